"""One document or object of the inputs, the place where it was read, and its role: plan, release, facts or object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from pathlib import PurePath
from typing import Any

from renderer.deprecated import current
from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.document_type import (
    ANSWERS,
    CLUSTER_VALUES,
    FACTS,
    FILES,
    RENDERED_CLUSTERS,
    RENDERED_PLAN,
    TEMPLATES,
    WAVES,
)
from renderer.model.path import Path, path_name
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body
from renderer.namespaces import is_first_generation, placed
from renderer.validation.messages import found
from renderer.yaml_io import Document

PLAN_KIND = "UpgradePlan"

CLUSTER_FILE, WAVES_FILE = "cluster.yaml", "waves.yaml"
"""Files of many clusters that are not inputs of one: what is particular to a cluster, and which go when."""

_AGENT_FILES = {"kustomization.yaml", "kustomization.yml", "fleet.yaml", "fleet.yml", "Chart.yaml"}


_RELEASE_KEYS = {"harvesterChart", "os", "kubernetes", "rancher", "monitoringChart", "minUpgradableVersion"}


@frozen
class SourceDocument:
    """One plan, release, facts document or object, and the place where it was read.

    `path` is its place in the document; it is not empty for an item of a List. All scalars of a release are text.
    """

    body: Body
    document: Document = field(repr=False, compare=False)
    path: Path = ()

    @property
    def file(self) -> str:
        return self.document.file

    def line_of(self, path: Path = ()) -> int | None:
        """The line of the deepest part of `path` that exists; None where lines are not known."""
        return self.document.line_of((*self.path, *path)) or None

    @property
    def place(self) -> str:
        line = self.line_of()
        return f"{self.file}:{line}" if line else self.file

    def problem(self, reason: str, message: str, path: Path = (), *, remedy: str | None = None) -> Problem:
        """A problem at `path` of this source."""
        return Problem(
            reason=reason,
            message=message,
            file=self.file,
            line=self.line_of(path),
            field=path_name(path) or None,
            remedy=remedy,
        )


class Role(Enum):
    """The role of a document of the inputs; the value names it in messages."""

    PLAN = "UpgradePlan"
    RELEASE = "release"
    FACTS = "facts"
    OBJECT = "object of the cluster"
    EMPTY = "empty list of objects"


@frozen
class Piece:
    """A document, or an item of a List, with its role; `warnings` name what is deprecated in it."""

    role: Role
    source: SourceDocument
    warnings: tuple[Problem, ...] = ()


def without_lines(value: Any, file: str) -> Document:
    """A document that was not read by the YAML door: its lines are not known."""
    return Document(file=file, line=0, value=value, _node=None)


def pieces_of(document: Document, named: Role | None) -> Iterator[Piece | Problem]:
    value = document.value
    whole = SourceDocument(body=value, document=document)
    if not isinstance(value, Mapping):
        yield whole.problem("UnknownDocument", "is not a mapping, so it is not a Kubernetes object", remedy=_DOCUMENTS)
    elif _is_for_an_agent(document):
        return
    elif FACTS.is_type_of(value) or set(value) == {"facts"}:
        facts = current(document, FACTS)
        yield from facts.problems
        source = SourceDocument(body=facts.document.value, document=document)
        yield Piece(role=Role.FACTS, source=source, warnings=facts.warnings)
    elif _is_release(value) or (named is Role.RELEASE and not {"kind", "apiVersion"} & set(value)):
        yield Piece(role=Role.RELEASE, source=SourceDocument(body=_release_body(document), document=document))
    else:
        yield from _objects(whole)


def _is_for_an_agent(document: Document) -> bool:
    """Files beside manifests that are not inputs: our own indexes and those of many clusters, and those of kustomize,
    Fleet and Helm."""
    value, name = document.value, PurePath(document.file).name
    kind, api_version = value.get("kind"), str(value.get("apiVersion", ""))
    if kind is None:
        return name in _AGENT_FILES
    ours = (CLUSTER_VALUES.is_type_of(value) and name == CLUSTER_FILE) or (
        WAVES.is_type_of(value) and name == WAVES_FILE
    )
    return (
        ours
        or kind in (RENDERED_PLAN.kind, RENDERED_CLUSTERS.kind)
        or (kind == "Kustomization" and api_version.startswith("kustomize.config.k8s.io/"))
    )


def is_plan_or_release(document: Document) -> Role | None:
    """The role of a document of which a run has one: a plan or a release; None for any other."""
    value = document.value
    if not isinstance(value, Mapping):
        return None
    if value.get("kind") == PLAN_KIND:
        return Role.PLAN
    return Role.RELEASE if _is_release(value) else None


def _is_release(value: Mapping[str, Any]) -> bool:
    """By its key `harvester`, or by two other keys, so that a missing `harvester` is reported."""
    return "kind" not in value and ("harvester" in value or len(_RELEASE_KEYS & set(value)) > 1)


def _release_body(document: Document) -> Body:
    """Every scalar as text; a top-level null as the empty text, so that it counts as missing."""
    text = document.text
    if text is None:
        return dict(document.value)
    return {key: "" if document.value.get(key) is None else item for key, item in text.items()}


_DOCUMENTS = "a release has the key harvester; every other document needs apiVersion and kind"


def _objects(source: SourceDocument) -> Iterator[Piece | Problem]:
    body = source.body
    if (why := _no_object(body)) is not None:
        message, path = why
        yield source.problem("UnknownDocument", f"{message}, so it is not a Kubernetes object", path, remedy=_DOCUMENTS)
        return
    if body["apiVersion"] in (TEMPLATES, FILES, ANSWERS):
        message, remedy = f"a {body['kind']} of {body['apiVersion']} is not an input", "leave the document out"
        yield source.problem("UnknownDocument", message, remedy=remedy)
        return
    if body["kind"] == "List" or (body["kind"].endswith("List") and "items" in body):
        yield from _items(source)
    elif body["kind"] != PLAN_KIND and body["kind"].casefold() == PLAN_KIND.casefold():
        message = f"{found(body['kind'])} is not a kind; did you mean {PLAN_KIND!r}?"
        yield source.problem("UnknownDocument", message, ("kind",), remedy=f"write kind: {PLAN_KIND}")
    elif body["kind"] != PLAN_KIND:
        warnings = (_first_generation(source),) if is_first_generation(body) else ()
        yield Piece(role=Role.OBJECT, source=replace(source, body=placed(body)), warnings=warnings)
    elif body["apiVersion"] == PLAN_API_VERSION:
        yield Piece(role=Role.PLAN, source=source)
    else:
        message = f"{body['apiVersion']} is not the API version of an UpgradePlan that this program knows"
        remedy = f"write apiVersion: {PLAN_API_VERSION}"
        yield source.problem("WrongAPIVersion", message, ("apiVersion",), remedy=remedy)


def _first_generation(source: SourceDocument) -> Problem:
    message = f"a Version of {PLAN_API_VERSION} is read as one of harvesterhci.io/v1beta1 in harvester-system"
    remedy = "write apiVersion: harvesterhci.io/v1beta1 and metadata.namespace: harvester-system"
    return source.problem("FirstGenerationVersion", message, ("apiVersion",), remedy=remedy)


def _no_object(body: Body) -> tuple[str, Path] | None:
    """Names what an object lacks, and where; None if it has an API version and a kind."""
    missing = [key for key in ("apiVersion", "kind") if body.get(key) in (None, "")]
    if len(missing) == 2:
        return "has neither apiVersion nor kind", ()
    if missing:
        return f"has no {missing[0]}", ()
    wrong = [key for key in ("apiVersion", "kind") if not isinstance(body[key], str)]
    return (f"{found(body[wrong[0]])} is not a string", (wrong[0],)) if wrong else None


def _items(source: SourceDocument) -> Iterator[Piece | Problem]:
    """The items of a List. Those of a typed list (`NodeList`) inherit its API version and kind, as kubectl's do."""
    kind, items = source.body["kind"], source.body.get("items")
    inherited = {} if kind == "List" else {"apiVersion": source.body["apiVersion"], "kind": kind.removesuffix("List")}
    if items is not None and not isinstance(items, (list, tuple)):
        yield source.problem("InvalidList", f"items of {kind} is not a list", ("items",), remedy="write it as a list")
        return
    if not items and inherited:
        yield Piece(role=Role.EMPTY, source=source)
    for index, item in enumerate(items or ()):
        path: Path = ("items", index)
        if isinstance(item, Mapping):
            body = {**inherited, **item}
            yield from _objects(SourceDocument(body=body, document=source.document, path=(*source.path, *path)))
        else:
            yield source.problem(
                "InvalidList", "an item is not a mapping, so it is not an object", path, remedy=_DOCUMENTS
            )
