"""What the API server asks of any object's metadata, and no schema says: the form of keys, label values and finalizers.

Rules: `apimachinery/pkg/api/validation/objectmeta.go` of Kubernetes. Types are for the schema to judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.documents import Source
from renderer.errors import Problem
from renderer.model.path import Path, look_up
from renderer.names import NAME_LIMIT, is_key, is_label_value
from renderer.schema_messages import found

ANNOTATIONS_LIMIT = 256 * 2**10

_LABELS: Path = ("metadata", "labels")
_ANNOTATIONS: Path = ("metadata", "annotations")
_FINALIZERS: Path = ("metadata", "finalizers")
_KEY = f"use letters, digits, '-', '_' and '.', at most {NAME_LIMIT}; before it a domain and '/' if need be"


def metadata_problems(source: Source) -> Iterator[Problem]:
    for key, value in _entries(source, _LABELS):
        if not is_key(key):
            yield _no_key(source, (*_LABELS, key), key, "the key of a label")
        if isinstance(value, str) and not is_label_value(value):
            message = f"{found(value)} is no value that a label can have"
            remedy = f"use at most {NAME_LIMIT} letters, digits, '-', '_' and '.', or make it an annotation"
            yield source.problem("InvalidValue", message, (*_LABELS, key), remedy=remedy)
    for key, _ in _entries(source, _ANNOTATIONS):
        if not is_key(key.lower()):
            yield _no_key(source, (*_ANNOTATIONS, key), key, "the key of an annotation")
    yield from _size_problems(source)
    for index, name in enumerate(_items(source, _FINALIZERS)):
        if isinstance(name, str) and not is_key(name):
            yield _no_key(source, (*_FINALIZERS, index), name, "the name of a finalizer")


def _no_key(source: Source, path: Path, text: str, what: str) -> Problem:
    return source.problem("InvalidValue", f"{found(text)} cannot be {what}", path, remedy=_KEY)


def _size_problems(source: Source) -> Iterator[Problem]:
    entries = ((key, value) for key, value in _entries(source, _ANNOTATIONS) if isinstance(value, str))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in entries)
    if size > ANNOTATIONS_LIMIT:
        message = f"have {size} bytes in sum; at most {ANNOTATIONS_LIMIT} are allowed"
        yield source.problem("InvalidValue", message, _ANNOTATIONS, remedy="remove what is large")


def _entries(source: Source, path: Path) -> Iterator[tuple[str, Any]]:
    value = look_up(source.body, path)
    yield from value.items() if isinstance(value, Mapping) else ()


def _items(source: Source, path: Path) -> list[Any]:
    value = look_up(source.body, path)
    return value if isinstance(value, list) else []
