"""The shape of an object by the definition of its kind: which values are texts, numbers, lists and mappings, and which
top-level fields each custom object has.

The shapes are data (`schemas/built/shapes.json`), made from the definitions of the kinds before anything runs: to make
them takes as long as to render half a plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.model.ref import Body
from renderer.resources import packaged
from renderer.validation.nulls import Schema, without_nulls
from renderer.validation.validate import schema_problems

_FILE = "built/shapes.json"


def shape_of(api_version: str, kind: str) -> Schema:
    """A JSON Schema of types, and of the top-level fields that no custom object is without; of a kind that nobody has
    described, only metadata is known."""
    found = _described(api_version, kind)
    properties, required = found.get("properties", _METADATA), found.get("required", [])
    return {"type": "object", "required": required, "properties": properties, "$defs": _shapes()["$defs"]}


def misfit(body: Body) -> str | None:
    """The first field of a live object that has another type than the definition of its custom kind says, in words.

    The API server itself holds its own kinds to their types.
    """
    api_version, kind = str(body.get("apiVersion")), str(body.get("kind"))
    if _custom(api_version, kind) is None:
        return None
    found = schema_problems(_Live(body=stored(body)), shape_of(api_version, kind))
    return next((f"{each.field}: {each.message}" for each in found if each.reason == "WrongType"), None)


@frozen
class _Live:
    """An object that is not from a file."""

    body: Body
    file: str = ""

    def line_of(self, path: Path = ()) -> int | None:
        return None


def is_namespaced(api_version: str, kind: str) -> bool:
    """True if objects of the kind are known to have a namespace."""
    found = _described(api_version, kind)
    return bool(found.get("namespaced"))


def stored(body: Body) -> Body:
    """The object as the API server stores it, without the keys that have no value where one is expected."""
    if not _has_null(body):
        return body
    shape = shape_of(str(body["apiVersion"]), str(body["kind"]))
    kept: Body = without_nulls(body, shape, shape["$defs"])
    return kept


def _has_null(value: Any) -> bool:
    """True if a key has no value, here or below."""
    below = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict) and None in below:
        return True
    return any(_has_null(item) for item in below if isinstance(item, (dict, list)))


_METADATA: Mapping[str, Schema] = {"metadata": {"$ref": "#/$defs/metadata"}}


def _described(api_version: str, kind: str) -> Mapping[str, Any]:
    """The kind in this version, or in another one that it is converted from; empty if no definition is known."""
    kinds = _shapes()["kinds"]
    found: Mapping[str, Any] = kinds.get(f"{api_version} {kind}") or kinds.get(_custom(api_version, kind), {})
    return found


def _custom(api_version: str, kind: str) -> str | None:
    """The name under which a custom kind is described; None for any other one."""
    found: str | None = _shapes()["custom"].get(f"{api_version.rpartition('/')[0]} {kind}")
    return found


@lru_cache
def _shapes() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(packaged("schemas").joinpath(_FILE).read_text(encoding="utf-8"))
    return found
