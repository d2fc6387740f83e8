"""Which fields of an object its CustomResourceDefinition refuses, without a server.

A second, independent reading of the definitions for tests: unknown fields are refused, as with the API server's strict
field validation. CEL rules are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from schemas.structural import INT_OR_STRING, LIST_TYPE, PRESERVE

Json = Mapping[str, Any]
KEPT = ("enum", "format", "maxLength", "maximum", "minLength", "minimum", "pattern", "required")


def refused(crd: Json, body: Json) -> tuple[str, ...]:
    """Paths of the fields that are refused, sorted, e.g. `spec.pauseNodes[1]`."""
    schema = json_schema(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return tuple(sorted({path for error in validator.iter_errors(body) for path in _paths(error)}))


def json_schema(node: Json) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one node of an openAPIV3Schema."""
    found: dict[str, Any] = {key: node[key] for key in KEPT if key in node} | _type(node)
    if "items" in node:
        found["items"] = json_schema(node["items"])
    if node.get(LIST_TYPE) == "set":
        found["uniqueItems"] = True
    if "properties" in node:
        found["properties"] = {name: json_schema(child) for name, child in node["properties"].items()}
    if node.get("type") == "object":
        found["additionalProperties"] = _others(node)
    return found


def _type(node: Json) -> dict[str, Any]:
    if node.get(INT_OR_STRING):
        return {"type": ["integer", "string"]}
    if "type" not in node:
        return {}
    return {"type": [node["type"], "null"] if node.get("nullable") else node["type"]}


def _others(node: Json) -> bool | dict[str, Any]:
    if isinstance(node.get("additionalProperties"), Mapping):
        return json_schema(node["additionalProperties"])
    return bool(node.get(PRESERVE))


def _paths(error: ValidationError) -> Iterator[str]:
    """A missing or unknown field is named itself, not the object that lacks or has it."""
    here = list(error.absolute_path)
    instance: Any = error.instance
    schema: Any = error.schema
    match error.validator:
        case "additionalProperties":
            names = [name for name in instance if name not in schema.get("properties", ())]
        case "required":
            names = [name for name in schema["required"] if name not in instance]
        case "uniqueItems":
            names = [index for index, value in enumerate(instance) if value in instance[:index]]
        case _:
            names = []
    yield from (_text([*here, name]) for name in names)
    if not names:
        yield _text(here)


def _text(path: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
