"""Checks the inputs before anything is rendered: the schemas, the plan's name, text where text is meant.

Only form is judged: whether the cluster may be upgraded is for the checks to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from renderer.documents import Inputs
from renderer.errors import Problem
from renderer.model.path import look_up
from renderer.model.ref import Body
from renderer.names import is_subdomain
from renderer.plan_rules import iso_warnings, metadata_problems, toolkit_problems, unsupported_problems
from renderer.source_document import SourceDocument
from renderer.validation import load, schema_problems
from renderer.validation import problems as problems_by
from renderer.validation.nulls import without_nulls
from renderer.validation.shapes import shape_of, stored

PLAN_SCHEMA = "built/upgradeplan.json"
LONGEST_PLAN_NAME = 58
"""The Service `<plan>-repo` has to be a DNS label of at most 63 characters."""

_STANDS_FOR = "xxxxx"
_PLAN_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def as_stored(inputs: Inputs) -> Inputs:
    """The same with plan and objects as the API server would store them: without the keys that have no value, and with
    a name in place of a generateName."""
    objects = tuple(replace(source, body=stored(source.body)) for source in inputs.objects)
    if inputs.plan is None:
        return replace(inputs, objects=objects)
    body = without_nulls(inputs.plan.body, load(PLAN_SCHEMA))
    named = _with_name(body)
    return replace(inputs, plan=replace(inputs.plan, body=named), objects=objects, generated=named is not body)


def is_plan_name(text: str) -> bool:
    return bool(_PLAN_NAME.fullmatch(text))


def _with_name(plan: Body) -> Body:
    """A name as long as the one that the API server will make."""
    metadata = plan.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("name") or not isinstance(metadata.get("generateName"), str):
        return plan
    prefix = metadata["generateName"]
    return {**plan, "metadata": {**metadata, "name": f"{prefix}{_STANDS_FOR}"}} if prefix else plan


def input_problems(inputs: Inputs) -> list[Problem]:
    """All that is wrong with the form of the inputs: plan, release, facts, objects, each by line."""
    problems: list[Problem] = []
    if inputs.plan:
        problems += [_of_a_version(problem, inputs) for problem in plan_problems(inputs.plan)]
    if inputs.release:
        problems += problems_by(inputs.release, "release.json")
    for source in inputs.facts_sources:
        problems += problems_by(source, "facts.json")
    for source in inputs.objects:
        problems += object_problems(source)
    return problems


def input_warnings(inputs: Inputs) -> list[Problem]:
    """Reports what is allowed and may be an oversight."""
    return [
        *_release_warnings(inputs.release),
        *iso_warnings(inputs),
        *(_generated_name(inputs.plan) if inputs.plan and inputs.generated else ()),
    ]


def _generated_name(plan: SourceDocument) -> Iterator[Problem]:
    name = plan.body["metadata"]["name"]
    message = f"the API server generates the name; {name} is used in its place here, in object names and in the digest"
    yield plan.problem("StandInName", message, ("metadata", "generateName"))


def needs_name(plan: SourceDocument) -> Problem:
    """For a tree that is kept: the next one would be another."""
    metadata = plan.body["metadata"]
    return plan.problem(
        "GeneratedName",
        "a generated name differs each time; a plan whose files are kept needs a fixed name",
        ("metadata", "generateName"),
        remedy=f"write name: {_proposed_name(metadata['generateName'], plan.body.get('spec'))}",
    )


def _release_warnings(release: SourceDocument | None) -> Iterator[Problem]:
    path = ("minUpgradableVersion",)
    if release is not None and not release.body.get(path[0]):
        message = "is missing, so nothing restricts the version to upgrade from"
        remedy = "compare with the release notes, and add it if the release has a minimum"
        yield release.problem("NoMinimum", message, path, remedy=remedy)


def plan_problems(plan: SourceDocument) -> list[Problem]:
    """By the CustomResourceDefinition, as if the plan were created now; its metadata, and how it names an image."""
    found = [
        *problems_by(plan, PLAN_SCHEMA),
        *_plan_name_problems(plan),
        *metadata_problems(plan),
        *_image_problems(plan),
        *toolkit_problems(plan),
        *unsupported_problems(plan),
    ]
    return sorted(found, key=lambda problem: problem.line or 0)


def _of_a_version(problem: Problem, inputs: Inputs) -> Problem:
    """Quotes alone do not help where the Version among the inputs has another name."""
    if (problem.reason, problem.field) != ("WrongType", "spec.version"):
        return problem
    names = [name for name in map(_version_name, inputs.objects) if name]
    written = str(look_up((inputs.plan.document.text if inputs.plan else None), ("spec", "version")))
    if not names or written in names:
        return problem
    meant = next((name for name in names if name.removeprefix("v").startswith(written)), None)
    if meant is None:
        return replace(problem, remedy=f"write the name of a Version; among the inputs: {', '.join(names[:5])}")
    return replace(problem, remedy=f"write version: {meant}, the Version among the inputs")


def _version_name(source: SourceDocument) -> str | None:
    """The name as it is written: one that is not text yet will be, and is the one that is meant."""
    if source.body["kind"] != "Version":
        return None
    name = look_up(source.document.text, (*source.path, "metadata", "name"))
    return str(name) if isinstance(name, (str, int, float)) else None


def unusable_image(plan: Mapping[str, Any]) -> str | None:
    """Explains why no image can be found by what the plan names; None where one can. A plan that an earlier
    manager has begun may say `namespace/name`: the image that its status has recorded is meant then."""
    spec, status = plan.get("spec"), plan.get("status")
    image = spec.get("image") if isinstance(spec, Mapping) else None
    recorded = status.get("isoImageID") if isinstance(status, Mapping) else None
    if not isinstance(image, str) or not image or recorded or is_subdomain(image):
        return None
    return f"{image!r} is not a name that a VirtualMachineImage of harvester-system can have"


def object_problems(source: SourceDocument) -> list[Problem]:
    """A shape that the kind has, and a name that an object can have."""
    found = schema_problems(source, shape_of(source.body["apiVersion"], source.body["kind"]))
    return sorted([*found, *_object_name_problems(source)], key=lambda problem: problem.line or 0)


def _plan_name_problems(plan: SourceDocument) -> Iterator[Problem]:
    metadata = plan.body.get("metadata")
    if not isinstance(metadata, Mapping):
        return
    name = metadata.get("name")
    if not name:
        yield plan.problem("MissingField", "is missing", ("metadata", "name"), remedy="give the plan a name")
    elif isinstance(name, str) and (message := _plan_name_message(name)):
        remedy = f"write a shorter, plainer name, such as {nearest_plan_name(name)}"
        yield plan.problem("InvalidName", message, ("metadata", "name"), remedy=remedy)


def _image_problems(plan: SourceDocument) -> Iterator[Problem]:
    if message := unusable_image(plan.body):
        yield plan.problem("InvalidName", message, ("spec", "image"), remedy="write the image's metadata.name alone")


def _plan_name_message(name: str) -> str | None:
    if not _PLAN_NAME.fullmatch(name):
        form = "small letters, digits and '-', a letter first and no '-' at the end"
        return f"'{name}' is not a name for a plan; it becomes part of a Service's name: {form}"
    if len(name) > LONGEST_PLAN_NAME:
        return f"has {len(name)} characters; at most {LONGEST_PLAN_NAME} leave room for the Service '<plan>-repo'"
    return None


def _proposed_name(generated: Any, spec: Any) -> str:
    target = next((spec[key] for key in ("version", "image") if spec.get(key)), "") if isinstance(spec, Mapping) else ""
    return nearest_plan_name(f"{generated}-{target}")


def nearest_plan_name(text: str) -> str:
    """The nearest name that a plan may have."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name = words if words[:1].isalpha() else f"plan-{words}"
    return name[:LONGEST_PLAN_NAME].strip("-")


def _object_name_problems(source: SourceDocument) -> Iterator[Problem]:
    metadata = source.body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if name is None or name == "":
        message, remedy = f"{source.body['kind']} has no name", "give it one, or take the document out of the inputs"
        yield source.problem("MissingField", message, ("metadata", "name"), remedy=remedy)
    elif isinstance(name, str) and source.body["kind"] == "Node" and not is_subdomain(name):
        message = f"'{name}' is not a name that a Node can have"
        remedy = "use the name that kubectl get nodes shows"
        yield source.problem("InvalidName", message, ("metadata", "name"), remedy=remedy)
