"""The extract of the Kubernetes schemas is what its script makes, stands alone, and judges as the API server would."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas import extract

DOCUMENT: Mapping[str, Any] = json.loads(extract.TARGET.read_text(encoding="utf-8"))
DEFINITIONS: Mapping[str, Any] = DOCUMENT["$defs"]


def errors(body: Mapping[str, Any]) -> list[str]:
    schema = {**DOCUMENT, "$ref": DOCUMENT["kinds"][f"{body['apiVersion']} {body['kind']}"]}
    found = Draft202012Validator(schema).iter_errors(body)
    return sorted(f"{error.json_path}: {error.validator}" for error in found)


def job(**spec: Any) -> Mapping[str, Any]:
    container = {"name": "apply", "image": "toolkit:v1", "command": ["sh"]}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"template": template, **spec}}


def test_the_file_is_what_the_script_makes() -> None:
    assert extract.TARGET.read_text(encoding="utf-8") == extract.extract(), (
        "schemas/kubernetes/v1.35.json is not what the installed kubernetes-validate gives:"
        " run `python tests/schemas/extract.py` and look at the diff"
    )


def test_the_source_and_its_version_stand_in_the_file() -> None:
    assert "kubernetes-validate 1." in DOCUMENT["$comment"]
    assert extract.SCHEMA_SET in DOCUMENT["$comment"]


@pytest.mark.slow
def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(DOCUMENT)


def test_every_reference_is_answered_and_every_definition_is_used() -> None:
    roots = {pointer.removeprefix(extract.POINTER) for pointer in DOCUMENT["kinds"].values()}
    referred = {name for definition in DEFINITIONS.values() for name in references(definition)}
    assert roots | referred == set(DEFINITIONS)


def test_no_description_is_left_but_the_field_of_that_name() -> None:
    texts = [path for path, value in leaves(DOCUMENT) if path.endswith(".description") and isinstance(value, str)]
    assert texts == []
    schema_of_schemas = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    assert "description" in DEFINITIONS[schema_of_schemas]["properties"]


@pytest.mark.parametrize("kind", extract.KINDS)
def test_a_kind_knows_its_name_and_refuses_unknown_fields(kind: str) -> None:
    api_version, _, name = kind.partition(" ")
    body = {"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}}
    complete = {**body, **minimum(kind)}
    assert errors(complete) == []
    assert errors({**complete, "specs": {}}) == ["$: additionalProperties"]
    assert errors({**complete, "metadata": {"nmae": "x"}}) == ["$.metadata: additionalProperties"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"backoffLimit": 0, "suspend": True}, []),
        ({"backoffLimit": "0"}, ["$.spec.backoffLimit: type"]),
        ({"backOffLimit": 0}, ["$.spec: additionalProperties"]),
        ({"template": None}, []),
        ({"template": {"spec": {}}}, ["$.spec.template.spec: required"]),
        ({"selector": {"matchLabels": {"a": 1}}}, ["$.spec.selector.matchLabels.a: type"]),
    ],
)
def test_jobs(spec: Mapping[str, Any], expected: list[str]) -> None:
    assert errors(job(**spec)) == expected


@pytest.mark.parametrize(
    ("definition", "field", "list_type", "keys"),
    [
        ("io.k8s.api.core.v1.PodSpec", "containers", "map", ["name"]),
        ("io.k8s.api.core.v1.PodSpec", "tolerations", "atomic", None),
        ("io.k8s.api.core.v1.Container", "env", "map", ["name"]),
        ("io.k8s.api.core.v1.Container", "ports", "map", ["containerPort", "protocol"]),
        ("io.k8s.api.core.v1.ServiceSpec", "ports", "map", ["port", "protocol"]),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "ownerReferences", "map", ["uid"]),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers", "set", None),
    ],
)
def test_what_server_side_apply_needs_is_kept(definition: str, field: str, list_type: str, keys: list[str]) -> None:
    schema = DEFINITIONS[definition]["properties"][field]
    assert schema["x-kubernetes-list-type"] == list_type
    assert schema.get("x-kubernetes-list-map-keys") == keys


def minimum(kind: str) -> Mapping[str, Any]:
    """What a kind cannot do without, beside its name."""
    required = DEFINITIONS[DOCUMENT["kinds"][kind].removeprefix(extract.POINTER)].get("required", ())
    values: Mapping[str, Any] = {
        "addressType": "IPv4",
        "endpoints": [],
        "eventTime": None,
        "involvedObject": {},
        "metadata": {"name": "x"},
        "provisioner": "driver.longhorn.io",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
        "rules": None,
        "spec": {
            "group": "example.com",
            "names": {"kind": "X", "plural": "xs"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    return {name: values[name] for name in required}


def references(node: Any) -> Iterator[str]:
    for path, value in leaves(node):
        if path.endswith(".$ref") and isinstance(value, str):
            yield value.removeprefix(extract.POINTER)


def leaves(node: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, node
