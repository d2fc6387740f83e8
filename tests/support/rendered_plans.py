"""Renders an example, or a plan that a test makes of mappings. Templates are compiled once for all tests.

What a test makes goes the way of what a user gives: told apart, judged by the input rules, then rendered.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.assemble import Assembly, assemble
from renderer.catalog.kinds import Kinds
from renderer.catalog.load import load_catalog
from renderer.catalog.template_tree import Template, TemplateTree
from renderer.documents import Inputs, recognize
from renderer.errors import Problems
from renderer.files.inputs import read_inputs
from renderer.files.templates import read_templates
from renderer.input_rules import as_stored, input_problems
from renderer.layout.trees import tree_of
from renderer.model.document_type import FACTS
from renderer.model.rendered import Manifest, RenderedPlan, RenderedStep
from renderer.source_document import without_lines
from renderer.validation import document_problems

Json = Mapping[str, Any]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = tuple(sorted(path.parent.name for path in ROOT.glob("examples/*/upgradeplan.yaml")))
PREFIX = "management.harvesterhci.io/"
WITNESS = "node-role.harvesterhci.io/witness"

_CODE: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A rendered plan and the ways in which tests look at it."""

    plan: RenderedPlan
    kinds: Kinds

    def files(self, layout: str = "plain") -> Mapping[str, str]:
        return tree_of(self.plan, self.kinds, layout)

    def steps(self) -> Iterator[RenderedStep]:
        """Every step, undo steps too."""
        for phase in self.plan.phases:
            for step in phase.steps:
                yield step
                if step.undo:
                    yield step.undo

    def step(self, step_id: str) -> RenderedStep:
        return next(step for step in self.steps() if step.id == step_id)

    def manifests(self, step_id: str) -> tuple[Manifest, ...]:
        return self.step(step_id).manifests

    def body(self, step_id: str) -> Any:
        """The one object that a step renders."""
        (manifest,) = self.manifests(step_id)
        return manifest.body


@functools.cache
def templates(*overlays: Path) -> TemplateTree:
    return read_templates(overlays)


NODE_STATES = load_catalog(templates(), document_problems).node_states
"""The states that the packaged templates declare."""


def overlaid(files: Mapping[str, str], under: TemplateTree | None = None) -> TemplateTree:
    """The packaged templates with files of a test laid over them."""
    over = {path: Template(text=text, shown=f"overlay/{path}", packaged=False) for path, text in files.items()}
    return dict(sorted({**(templates() if under is None else under), **over}.items()))


MANAGER_IMAGE = "registry.example.com/upgradeplan:v1"


@functools.cache
def looking_at_hosts() -> TemplateTree:
    """The packaged templates where the manager's image is known: a Job looks at each node's host."""
    values = templates()["values.yaml"].text
    return overlaid({"values.yaml": values.replace('managerImage: ""', f"managerImage: {MANAGER_IMAGE}")})


def overlays_of(example: str) -> tuple[Path, ...]:
    folder = ROOT / "examples" / example / "templates"
    return (folder,) if folder.is_dir() else ()


@functools.cache
def inputs_of_example(example: str) -> Inputs:
    return read_inputs([str(ROOT / "examples" / example)])


@functools.cache
def render_example(example: str) -> Rendered:
    """With the example's own overlay, where it has one."""
    return render(inputs_of_example(example), templates(*overlays_of(example)))


def render_made(*documents: Json, tree: TemplateTree | None = None, retry: int = 0) -> Rendered:
    """Raises `Problems`."""
    return render(inputs_of(documents), tree, retry=retry)


def inputs_of(documents: Sequence[Json]) -> Inputs:
    """Raises `Problems`, as reading the same documents from files would."""
    inputs, untold = recognize([without_lines(document, "given.yaml") for document in documents])
    inputs = as_stored(inputs)
    if found := [*untold, *input_problems(inputs)]:
        raise Problems(found)
    return inputs


def render(inputs: Inputs, tree: TemplateTree | None = None, *, retry: int = 0) -> Rendered:
    assembly = assembled(inputs, tree, retry=retry)
    return Rendered(plan=assembly.render(), kinds=assembly.catalog.kinds)


def assembled(inputs: Inputs, tree: TemplateTree | None = None, *, retry: int = 0) -> Assembly:
    return assemble(inputs, templates() if tree is None else tree, retry=retry, code=_CODE)


# ----------------------------------------------------------------------------------------- documents that tests make


def plan(name: str = "up", *, annotations: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    """An UpgradePlan; to v1.8.0 unless `spec` says something else."""
    metadata = {"name": name} | ({"annotations": annotations} if annotations else {})
    body = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": metadata,
        "spec": spec or {"version": "v1.8.0"},
    }
    return body | ({"status": status} if status else {})


def release(harvester: str = "v1.8.0", **other: Any) -> Json:
    """A harvester-release.yaml."""
    return {
        "harvester": harvester,
        "harvesterChart": "1.8.0",
        "os": f"Harvester {harvester}",
        "kubernetes": "v1.35.2+rke2r1",
        "rancher": "v2.14.0",
        "monitoringChart": "108.0.2+up77.9.1-rancher.11",
        "minUpgradableVersion": "v1.7.0",
        **other,
    }


def version(name: str = "v1.8.0", **spec: Any) -> Json:
    given = {"isoURL": f"https://releases.example.com/harvester-{name}-amd64.iso", "isoChecksum": "5f0c" * 32, **spec}
    return _object("harvesterhci.io/v1beta1", "Version", name, "harvester-system", spec=given)


def server_version(value: str | None = "v1.7.1", **other: Any) -> Json:
    """The Setting that holds the version that runs now."""
    fields = ({} if value is None else {"value": value}) | other
    return _object("harvesterhci.io/v1beta1", "Setting", "server-version", **fields)


def node(name: str, *, managed: str | None = "true", witness: str | None = None) -> Json:
    labels = {"harvesterhci.io/managed": managed, WITNESS: witness}
    body = _object("v1", "Node", name)
    return {
        **body,
        "metadata": {"name": name, "labels": {key: text for key, text in labels.items() if text is not None}},
    }


def nodes(*names: str) -> tuple[Json, ...]:
    return tuple(node(name) for name in names)


def machine(name: str, node_name: str) -> Json:
    return _object(
        "cluster.x-k8s.io/v1beta1",
        "Machine",
        name,
        "fleet-local",
        status={"nodeRef": {"name": node_name}, "phase": "Running"},
    )


def machine_plan(name: str, machine_name: str) -> Json:
    body = _object("v1", "Secret", name, "fleet-local", type="rke.cattle.io/machine-plan")
    return {**body, "metadata": {**body["metadata"], "labels": {"rke.cattle.io/machine-name": machine_name}}}


def image_lists(previous: Sequence[str], current: Sequence[str]) -> Json:
    return FACTS.document({"facts": {"imageLists": {"previous": list(previous), "current": list(current)}}})


def three_nodes(*, given_plan: Json | None = None, **spec: Any) -> tuple[Json, ...]:
    """Everything that a plan over nodes n1, n2 and n3 needs."""
    return _cluster(given_plan or plan(**spec), "n1", "n2", "n3")


def one_node(*, given_plan: Json | None = None, **spec: Any) -> tuple[Json, ...]:
    return _cluster(given_plan or plan(**spec), "n1")


def _cluster(given_plan: Json, *names: str) -> tuple[Json, ...]:
    lists = image_lists(["docker.io/rancher/old:v1", "docker.io/rancher/same:v1"], ["docker.io/rancher/same:v1"])
    machines = [
        document for name in names for document in (machine(f"m-{name}", name), machine_plan(f"p-{name}", f"m-{name}"))
    ]
    return (given_plan, release(), version(), server_version(), *nodes(*names), *machines, lists)


def _object(api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
