"""Translates a CustomResourceDefinition's structural schema to JSON Schema 2020-12.

So a plan is validated by the very definition that the API server is given. The translation says what the API server
would refuse, and also what it would silently drop: unknown fields. What it cannot say is an error here, never ignored.
Source of the rules: the structural schema chapter of the Kubernetes documentation of CustomResourceDefinitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconcile.simulator.apiserver import cel
from renderer.validation.messages import TIME
from renderer.validation.nulls import Schema

_KEPT = {
    "type", "required", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
}  # fmt: skip
_WITHOUT_MEANING = {
    "description", "title", "default", "example", "externalDocs", "nullable", "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
}  # fmt: skip
_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": ["string", "null"], "pattern": TIME}
_INT64: Schema = {"minimum": -(2**63), "maximum": 2**63 - 1}
"""The range of an integer that the API server reads at all, whatever a schema says."""
_COUNT: Schema = {"type": ["integer", "null"], **_INT64}
_TEXTS: Schema = {"type": ["object", "null"], "additionalProperties": _TEXT}
_OBJECTS: Schema = {"type": ["array", "null"], "items": {"type": "object"}}
_NAME: Schema = {"type": "string", "minLength": 1}
_FLAG: Schema = {"type": ["boolean", "null"]}
_OWNERS: Schema = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": _NAME,
            "kind": _NAME,
            "name": _NAME,
            "uid": _NAME,
            "controller": _FLAG,
            "blockOwnerDeletion": _FLAG,
        },
    },
}
OBJECT_META: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": ["array", "null"], "items": _TEXT},
        "ownerReferences": _OWNERS,
        "managedFields": _OBJECTS,
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "generation": _COUNT,
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": _COUNT,
    },
}


def from_definition(definition: Mapping[str, Any]) -> Schema:
    """The schema of the stored version's objects. Raises `ValueError` for a word or CEL rule that it does not know."""
    spec = definition["spec"]
    version = next(version for version in spec["versions"] if version["storage"])
    schema = _translated(version["schema"]["openAPIV3Schema"])
    api_version, kind = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
    schema["properties"] |= {"apiVersion": {"const": api_version}, "kind": {"const": kind}, "metadata": OBJECT_META}
    schema["required"] = ["apiVersion", "kind", "metadata", *schema.get("required", ())]
    return schema


def _translated(structural: Mapping[str, Any]) -> Schema:
    schema: Schema = {}
    for word, value in structural.items():
        schema |= _word(word, value, structural)
    if structural.get("type") == "integer":
        schema = {**_INT64, **schema}
    if structural.get("type") == "object" and "additionalProperties" not in structural:
        schema["properties"] = schema.get("properties", {})
        if not structural.get("x-kubernetes-preserve-unknown-fields"):
            schema["additionalProperties"] = False
    if structural.get("x-kubernetes-embedded-resource"):
        _embed(schema)
    if structural.get("x-kubernetes-int-or-string"):
        schema["type"] = ["integer", "string"]
    return _nullable(schema) if structural.get("nullable") else schema


def _word(word: str, value: Any, structural: Mapping[str, Any]) -> Schema:
    if word in _KEPT:
        return {word: value}
    if word == "properties":
        return {word: {name: _translated(schema) for name, schema in value.items()}}
    if word == "items":
        return {word: _translated(value)}
    if word == "additionalProperties":
        return {word: value if isinstance(value, bool) else _translated(value)}
    if word == "format":
        return {"pattern": TIME} if value == "date-time" else {}
    if word == "x-kubernetes-list-type":
        return _list_type(value, structural)
    if word == "x-kubernetes-validations":
        return {"allOf": list(_rules(value))}
    if word not in _WITHOUT_MEANING:
        raise ValueError(f"a structural schema has the word {word!r}, which is not translated")
    return {}


def _list_type(value: str, structural: Mapping[str, Any]) -> Schema:
    if value == "map":
        return {"x-kubernetes-list-map-keys": structural["x-kubernetes-list-map-keys"]}
    return {"uniqueItems": True} if value == "set" else {}


def _rules(rules: list[Mapping[str, str]]) -> Iterator[Schema]:
    """CEL, as far as it speaks of the creation of an object: a rule with `oldSelf` is only asked on update.

    A rule of the form `has(self.a) || has(self.b)` is "one of these is required"; there is no other form yet.
    """
    for entry in rules:
        if cel.is_transition(entry["rule"]):
            continue
        names = cel.alternatives(entry["rule"])
        if names is None:
            raise ValueError(f"the CEL rule {entry['rule']!r} is not translated")
        yield {
            "anyOf": [{"required": [name]} for name in names],
            "x-message": entry.get("message", f"the rule {entry['rule']} is broken"),
        }


def _embed(schema: Schema) -> None:
    known = {"apiVersion": _NAME, "kind": _NAME, "metadata": OBJECT_META}
    schema["properties"] = {**known, **schema.get("properties", {})}
    schema["required"] = [*known, *schema.get("required", ())]


def _nullable(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    elif "type" in schema:
        schema["type"] = [*schema["type"], "null"]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    return schema
