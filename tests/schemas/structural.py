"""The rules of the API server for the schema of a CustomResourceDefinition, as far as they can be told from the file.

The source is the reference page "Extend the Kubernetes API with CustomResourceDefinitions", section "Specifying a
structural schema". Each problem is a line `path: what is wrong`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
MAP_TYPE = "x-kubernetes-map-type"
FORBIDDEN = frozenset(
    {
        "$ref",
        "$schema",
        "additionalItems",
        "definitions",
        "dependencies",
        "deprecated",
        "id",
        "patternProperties",
        "readOnly",
        "writeOnly",
    }
)
SCALARS = frozenset({"boolean", "integer", "number", "string"})


def problems(root: Schema) -> tuple[str, ...]:
    """All problems of an openAPIV3Schema."""
    return (*_root(root), *_node(root, "$"))


def fields(node: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every field below with its path: `spec.pauseNodes[]`, `status.steps.*.records`."""
    for name, below in node.get("properties", {}).items():
        yield from _field(f"{path}.{name}".lstrip("."), below)
    if "items" in node:
        yield from _field(f"{path}[]", node["items"])
    if isinstance(node.get("additionalProperties"), Mapping):
        yield from _field(f"{path}.*", node["additionalProperties"])


def _field(path: str, node: Schema) -> Iterator[tuple[str, Schema]]:
    yield path, node
    yield from fields(node, path)


def _root(root: Schema) -> Iterator[str]:
    if root.get("type") != "object":
        yield "$: type is not object"
    if not set(root.get("properties", {}).get("metadata", {})) <= {"type", "properties"}:
        yield "$.metadata: says more than its type and properties"


def _node(node: Schema, path: str) -> Iterator[str]:
    if "type" not in node and not node.get(PRESERVE) and not node.get(INT_OR_STRING):
        yield f"{path}: no type"
    yield from (f"{path}: {word} is forbidden" for word in sorted(FORBIDDEN & set(node)))
    if "additionalProperties" in node and ("properties" in node or node["additionalProperties"] is False):
        yield f"{path}: additionalProperties is false or stands beside properties"
    yield from _required(node, path)
    yield from _list(node, path)
    if node.get(MAP_TYPE) and node.get("type") != "object":
        yield f"{path}: {MAP_TYPE} on what is not an object"
    yield from _below(node, path)


def _below(node: Schema, path: str) -> Iterator[str]:
    for name, child in node.get("properties", {}).items():
        yield from _node(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(node.get(key), Mapping):
            yield from _node(node[key], path + mark)


def _required(node: Schema, path: str) -> Iterator[str]:
    for name in node.get("required", ()):
        if name not in node.get("properties", {}):
            yield f"{path}: required field {name} is not declared"


def _list(node: Schema, path: str) -> Iterator[str]:
    if (node.get("type") == "array") != ("items" in node):
        yield f"{path}: array without items, or items without array"
        return
    items = node.get("items", {})
    match node.get(LIST_TYPE):
        case "set" if items.get("type") not in SCALARS and items.get(MAP_TYPE) != "atomic":
            yield f"{path}: set of what is neither scalar nor atomic"
        case "map" if not set(node.get("x-kubernetes-list-map-keys", ())) <= set(items.get("required", ())):
            yield f"{path}: a map key is not required"
        case "map" if not node.get("x-kubernetes-list-map-keys"):
            yield f"{path}: no map keys"
        case None | "atomic" | "set" | "map":
            pass
        case other:
            yield f"{path}: unknown list type {other}"
