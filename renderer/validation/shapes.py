"""The shape of an object by the definition of its kind: which values are texts, numbers, lists and mappings.

Which fields there are differs from release to release, and nothing must be there that a person who writes an object
down may leave out; but an item of a list has what tells it apart. Kubernetes' own kinds are described by its published
schema, others by their CustomResourceDefinitions in `schemas/crds`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.model.ref import Body
from renderer.resources import packaged
from renderer.validation.crd_schema import OBJECT_META, TIME, Schema, without_nulls
from renderer.validation.validate import schema_problems
from renderer.yaml_io import parse

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_BUILT_IN = "kubernetes/v1.35.json"
_THIRD_PARTY = "crds/third-party"
_CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "Namespace",
    "Node",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
"""Of Kubernetes' kinds that the schema describes."""
_SECRET: Schema = {"type": "object", "additionalProperties": {"type": "string", "writeOnly": True}}
_ALTERNATIVES: Mapping[str, Schema] = {
    "Quantity": {"type": ["string", "number"]},
    "IntOrString": {"type": ["string", "integer"]},
}
"""Definitions that have alternatives in place of a type."""


def shape_of(api_version: str, kind: str) -> Schema:
    """A JSON Schema of types alone; of a kind that nobody has described, only metadata is known."""
    return _shape(f"{api_version} {kind}")


def misfit(body: Body) -> str | None:
    """The first field of a live object that has another type than the definition of its custom kind says, in words.

    The API server itself holds its own kinds to their types.
    """
    api_version, kind = str(body.get("apiVersion")), str(body.get("kind"))
    if _definition(api_version, kind) is None:
        return None
    found = schema_problems(_Live(body=stored(body)), shape_of(api_version, kind))
    return next((f"{each.field}: {each.message}" for each in found if each.reason == "WrongType"), None)


@frozen
class _Live:
    """An object that stands in no file."""

    body: Body
    file: str = ""

    def line_of(self, path: Path = ()) -> int | None:
        return None


def is_namespaced(api_version: str, kind: str) -> bool:
    """True if objects of the kind are known to have a namespace."""
    if f"{api_version} {kind}" in _kubernetes()["kinds"]:
        return kind not in _CLUSTER_SCOPED
    found = _definition(api_version, kind)
    return found is not None and found["scope"] == "Namespaced"


def stored(body: Body) -> Body:
    """The object as the API server stores it, without the keys that have no value where one is expected."""
    kept: Body = without_nulls(body, shape_of(str(body["apiVersion"]), str(body["kind"])))
    return kept


@lru_cache
def _shape(name: str) -> Schema:
    api_version, _, kind = name.partition(" ")
    known = _kubernetes()["kinds"].get(name)
    found = _types({"$ref": known} if known else _served(api_version, kind))
    properties = {**found.get("properties", {}), "metadata": _types(OBJECT_META)}
    if name == "v1 Secret":
        properties |= {"data": _SECRET, "stringData": _SECRET}
    return {"type": "object", "properties": properties}


def _types(schema: Any, within: frozenset[str] = frozenset()) -> Schema:
    """The types that a schema declares. One that contains itself ends there."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        same = _referred(schema) if name not in within else {}
        return _ALTERNATIVES.get(name.rpartition(".")[2]) or _types(same, within | {name})
    if schema.get("x-kubernetes-int-or-string"):
        return _ALTERNATIVES["IntOrString"]
    kept: Schema = {"type": _type(schema)} if "type" in schema else {}
    if schema.get("format") == "date-time" or schema.get("pattern") == TIME:
        kept["pattern"] = TIME
    if "items" in schema:
        kept["items"] = {**_types(schema["items"], within), **_required(schema["items"])}
    if isinstance(schema.get("additionalProperties"), Mapping):
        kept["additionalProperties"] = _types(schema["additionalProperties"], within)
    if "properties" in schema:
        kept["properties"] = {name: _types(below, within) for name, below in schema["properties"].items()}
    return kept


def _required(item: Mapping[str, Any]) -> Schema:
    names = _referred(item).get("required")
    return {"required": names} if names else {}


def _referred(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema
    if "$ref" in schema:
        found = _kubernetes()["$defs"][schema["$ref"].rpartition("/")[2]]
    return found


def _type(schema: Mapping[str, Any]) -> Any:
    """Kubernetes' own schema allows null everywhere, and reads it as a field that is left out; only the `nullable` of a
    CustomResourceDefinition means a null that is stored."""
    named = schema["type"]
    plain = named if isinstance(named, str) else next(each for each in named if each != "null")
    return [plain, "null"] if schema.get("nullable") else plain


@lru_cache
def _kubernetes() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(packaged("schemas").joinpath(_BUILT_IN).read_text(encoding="utf-8"))
    return found


def _served(api_version: str, kind: str) -> Schema:
    """The schema of this version, or of another one that it is converted from; empty where nobody has described it."""
    definition = _definition(api_version, kind)
    versions = definition["versions"] if definition else ()
    same = [item for item in versions if item["name"] == api_version.rpartition("/")[2]]
    return (same or versions)[0]["schema"]["openAPIV3Schema"] if versions else {}


@lru_cache
def _definition(api_version: str, kind: str) -> Mapping[str, Any] | None:
    """The spec of the kind's CustomResourceDefinition; None where there is none."""
    file = _definitions().get(f"{api_version.rpartition('/')[0]}_{kind.lower()}s.yaml")
    if file is None:
        return None
    spec: Mapping[str, Any] = parse(file.read_text(encoding="utf-8"), file.name)[0].value["spec"]
    return spec


@lru_cache
def _definitions() -> Mapping[str, Traversable]:
    return {file.name: file for file in packaged("schemas").joinpath(_THIRD_PARTY).iterdir()}
