"""What objects are refused for their shape: each by its file, line and field, and what is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import pytest
from support.built_schemas import definitions
from support.rehearsals import ROOT, template_set

from reconcile.simulator.rehearsal.rehearsal import prepare
from renderer.documents import Inputs, recognize
from renderer.errors import Problem
from renderer.files.inputs import read_inputs
from renderer.input_rules import as_stored, input_problems
from renderer.validation.shapes import is_namespaced, shape_of
from renderer.yaml_io import parse

REFUSED = {
    "metadata: []": "metadata: a list is not a mapping",
    "metadata: {name: n1, labels: [a]}": "metadata.labels: a list is not a mapping",
    "metadata: {name: n1, labels: {a: 7}}": "metadata.labels.a: 7 is not a string",
    "metadata: {name: 7}": "metadata.name: 7 is not a string",
    'metadata: {name: n1, generation: ""}': "metadata.generation: '' is not an integer",
    f"metadata: {{name: n1, generation: {2**63}}}": f"metadata.generation: {2**63} is more than {2**63 - 1}",
    "metadata: {name: n1}\nspec: yes please": "spec: 'yes please' is not a mapping",
    "metadata: {name: n1}\nspec: {taints: {}}": "spec.taints: a mapping is not a list",
    "metadata: {name: n1}\nspec: {taints: [null]}": "spec.taints[0]: has no value; a mapping is expected",
    "metadata: {name: n1}\nspec: {taints: [{effect: NoSchedule}]}": "spec.taints[0].key: is missing",
    "metadata: {name: n1}\nspec: {unschedulable: 1}": "spec.unschedulable: 1 is not true or false",
    "metadata: {name: n1}\nstatus: {conditions: [{type: Ready}]}": "status.conditions[0].status: is missing",
    "metadata: {name: n1}\nstatus: {nodeInfo: {bootID: true}}": "status.nodeInfo.bootID: true is not a string",
    "metadata: {name: n1}\nstatus: {allocatable: {cpu: []}}": (
        "status.allocatable.cpu: a list is not a string or a number"
    ),
}
"""What a Node says to what is said of it."""
OTHERS = {
    ("upgrade.cattle.io/v1", "Plan", "status: {applying: n1}"): "status.applying: 'n1' is not a list",
    ("cluster.x-k8s.io/v1beta1", "Machine", "status: {nodeRef: n1}"): "status.nodeRef: 'n1' is not a mapping",
    ("cluster.x-k8s.io/v1beta2", "Machine", "status: {nodeRef: n1}"): "status.nodeRef: 'n1' is not a mapping",
    ("longhorn.io/v1beta2", "Setting", "value: 600"): "value: 600 is not a string",
    ("v1", "Secret", "data: {password: 12345}"): "data.password: the value is not a string",
    ("example.com/v1", "Thing", "metadata: {name: n1, annotations: 7}"): "metadata.annotations: 7 is not a mapping",
}
REQUIRED = {
    (f"{spec['group']}/{version['name']}", spec["names"]["kind"], field)
    for spec in definitions()
    for version in spec["versions"]
    for field in version["schema"]["openAPIV3Schema"].get("required", ())
}
"""By the definitions of the custom kinds."""
TAKEN = {
    "spec: null": None,
    "spec: {taints: null, unschedulable: null}": {},
    "status: {nodeInfo: null}": {},
    "spec: {somethingNew: {a: null}}": {"somethingNew": {"a": None}},
    "spec: {podCIDR: ''}": {"podCIDR": ""},
}
"""What a Node says to what is kept of it: a null where none can be is as if it were left out."""


def given(text: str, *others: str) -> Inputs:
    documents = [document for each in (text, *others) for document in parse(each, "objects.yaml")]
    inputs, problems = recognize(documents)
    assert not problems
    return as_stored(inputs)


def node(says: str, api_version: str = "v1", kind: str = "Node") -> str:
    named = says if says.startswith("metadata") else f"metadata: {{name: n1}}\n{says}"
    return f"apiVersion: {api_version}\nkind: {kind}\n{named}\n"


@pytest.mark.parametrize(("says", "said"), REFUSED.items())
def test_a_field_of_another_shape_is_refused_with_its_line(says: str, said: str) -> None:
    refused_as(input_problems(given(node(says))), said)


@pytest.mark.parametrize(("what", "said"), OTHERS.items(), ids=lambda each: str(each))
def test_so_is_one_of_any_kind_that_is_described(what: tuple[str, str, str], said: str) -> None:
    api_version, kind, says = what
    refused_as(input_problems(given(node(says, api_version, kind))), said)


@pytest.mark.parametrize(("api_version", "kind", "field"), sorted(REQUIRED))
def test_a_custom_object_without_a_field_that_all_have_is_refused(api_version: str, kind: str, field: str) -> None:
    """The API server would take no write of it, so a rehearsal would end where somebody writes to it."""
    for says in (f"{field}: null", "status: {}"):
        (found,) = input_problems(given(node(says, api_version, kind)))
        assert (found.reason, f"{found.field}: {found.message}") == ("MissingField", f"{field}: is missing")
        assert (found.file, found.line) == ("objects.yaml", 4 if says.startswith(field) else 1)
        assert found.remedy


def refused_as(problems: list[Problem], said: str) -> None:
    first = problems[0]
    assert f"{first.field}: {first.message}" == said
    assert first.file == "objects.yaml"
    assert first.line == (3 if said.startswith("metadata") else 4)
    assert first.remedy


@pytest.mark.parametrize(("says", "kept"), TAKEN.items())
def test_a_null_counts_as_left_out_and_what_is_unknown_is_let_be(says: str, kept: Any) -> None:
    inputs = given(node(says))
    assert not input_problems(inputs)
    (source,) = inputs.objects
    assert source.body.get("spec", source.body.get("status")) == kept


def test_a_name_of_a_group_finds_no_other_file() -> None:
    """A kind is looked up among the definitions, and never as a path."""
    assert set(shape_of("../../upgradeplan/v1", "UpgradePlan")["properties"]) == {"metadata"}
    assert shape_of("..", "") == shape_of("x", "Y")


@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced"),
    [
        ("v1", "Node", False),
        ("v1", "Secret", True),
        ("harvesterhci.io/v1beta1", "Setting", False),
        ("cluster.x-k8s.io/v1beta2", "Machine", True),
        ("example.com/v1", "Machine", False),
    ],
)
def test_it_is_known_which_kinds_have_a_namespace(api_version: str, kind: str, namespaced: bool) -> None:
    assert is_namespaced(api_version, kind) is namespaced


def test_the_shape_of_what_contains_itself_is_followed() -> None:
    deep = "{type: object, properties: {b: {type: object, properties: {c: {type: 7}}}}}"
    versions = f"[{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {deep}}}}}]"
    says = f"spec: {{group: g, scope: Cluster, names: {{plural: p, kind: K}}, versions: {versions}}}"
    (found,) = input_problems(given(node(says, "apiextensions.k8s.io/v1", "CustomResourceDefinition")))
    assert found.field == "spec.versions[0].schema.openAPIV3Schema.properties.b.properties.c.type"


CHANGES: tuple[tuple[str, tuple[str | int, ...], Any], ...] = (
    ("Node", ("spec",), None),
    ("KubeVirt", ("spec",), {}),
)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_what_is_accepted_can_be_rehearsed(change: tuple[str, tuple[str | int, ...], Any]) -> None:
    """A sample: whatever an object leaves out, a rehearsal ends with a yes or a no."""
    inputs = changed(*change)
    assert not input_problems(inputs)
    prepare(inputs, template_set(), start=datetime(2026, 1, 1, tzinfo=UTC)).play(lambda _: None)


@lru_cache
def single_node() -> Inputs:
    return read_inputs([str(ROOT / "examples" / "single-node")])


def changed(kind: str, path: tuple[str | int, ...], value: Any) -> Inputs:
    inputs = single_node()
    assert any(source.body["kind"] == kind for source in inputs.objects)
    objects = tuple(
        replace(source, body=_with(source.body, path, value)) if source.body["kind"] == kind else source
        for source in inputs.objects
    )
    return as_stored(replace(inputs, objects=objects))


def _with(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    return {**value, path[0]: _with(value.get(path[0], {}), path[1:], new)}
