"""Rules for a plan's metadata and images that no schema states.

Metadata follows the API server's rules for any object (`apimachinery/pkg/api/validation/objectmeta.go` of Kubernetes):
the form of keys, label values and finalizers. Types are for the schema to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from renderer.documents import Inputs
from renderer.errors import Problem
from renderer.image_names import is_repository, is_tag
from renderer.model.path import ABSENT, Path, look_up
from renderer.model.plan_api import PREFIX, SUPPORTED_SPEC
from renderer.names import NAME_LIMIT, is_key, is_label_value
from renderer.source_document import SourceDocument
from renderer.validation.messages import found

ANNOTATIONS_LIMIT = 256 * 2**10

_LABELS: Path = ("metadata", "labels")
_ANNOTATIONS: Path = ("metadata", "annotations")
_FINALIZERS: Path = ("metadata", "finalizers")
_KEY = f"use letters, digits, '-', '_' and '.', at most {NAME_LIMIT}; before it a domain and '/' if need be"


def metadata_problems(source: SourceDocument) -> Iterator[Problem]:
    for key, value in _entries(source, _LABELS):
        if not is_key(key):
            yield _no_key(source, (*_LABELS, key), key, "the key of a label")
        if isinstance(value, str) and not is_label_value(value):
            message = f"{found(value)} is not a valid label value"
            remedy = f"use at most {NAME_LIMIT} letters, digits, '-', '_' and '.', or make it an annotation"
            yield source.problem("InvalidValue", message, (*_LABELS, key), remedy=remedy)
    for key, _ in _entries(source, _ANNOTATIONS):
        if not is_key(key.lower()):
            yield _no_key(source, (*_ANNOTATIONS, key), key, "the key of an annotation")
    yield from _size_problems(source)
    for index, name in enumerate(_items(source, _FINALIZERS)):
        if isinstance(name, str) and not is_key(name):
            yield _no_key(source, (*_FINALIZERS, index), name, "the name of a finalizer")


def _no_key(source: SourceDocument, path: Path, text: str, what: str) -> Problem:
    return source.problem("InvalidValue", f"{found(text)} cannot be {what}", path, remedy=_KEY)


def _size_problems(source: SourceDocument) -> Iterator[Problem]:
    entries = ((key, value) for key, value in _entries(source, _ANNOTATIONS) if isinstance(value, str))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in entries)
    if size > ANNOTATIONS_LIMIT:
        message = f"have {size} bytes in total; at most {ANNOTATIONS_LIMIT} are allowed"
        yield source.problem("InvalidValue", message, _ANNOTATIONS, remedy="remove or shorten annotations")


def _entries(source: SourceDocument, path: Path) -> Iterator[tuple[str, Any]]:
    value = look_up(source.body, path)
    yield from value.items() if isinstance(value, Mapping) else ()


def _items(source: SourceDocument, path: Path) -> list[Any]:
    value = look_up(source.body, path)
    return value if isinstance(value, list) else []


TOOLKIT_IMAGE = f"{PREFIX}upgrade-toolkit-image"

_CHECKSUM = re.compile(r"[0-9a-fA-F]{128}")
_ADDRESS = re.compile(r"https?://[^\s/]+(/\S*)?", re.IGNORECASE)


def toolkit_problems(plan: SourceDocument) -> Iterator[Problem]:
    """Of `spec.upgrade`, which becomes a tag with `-` for `+`, and of the annotation that names the repository."""
    tag, repository = ("spec", "upgrade"), ("metadata", "annotations", TOOLKIT_IMAGE)
    if (text := _text(plan, tag)) and not is_tag(text.replace("+", "-")):
        remedy = "write one such as v1.8.1: at most 128 letters, digits, '.', '_' and '-', a letter or digit first"
        yield plan.problem("InvalidValue", f"{found(text)} cannot be the tag of the toolkit image", tag, remedy=remedy)
    if (text := _text(plan, repository)) and not is_repository(text):
        message = f"{found(text)} cannot be the repository of the toolkit image"
        remedy = "write it without tag and digest, such as registry.example.com/rancher/harvester-upgrade-toolkit"
        yield plan.problem("InvalidValue", message, repository, remedy=remedy)


def unsupported_problems(plan: SourceDocument) -> Iterator[Problem]:
    """Of what a spec asks for that is not done here."""
    for name, done in SUPPORTED_SPEC.items():
        value = look_up(plan.body, ("spec", name))
        if value is not ABSENT and value not in (None, done):
            message = f"{found(value)} is not supported; every plan is run with {found(done)}"
            remedy = "remove the field, or upgrade with the manager that supports it"
            yield plan.problem("UnsupportedSpec", message, ("spec", name), remedy=remedy)


def iso_warnings(inputs: Inputs) -> Iterator[Problem]:
    """Of the object that says where the plan's ISO image is: the import would fail, hours later. Harvester takes any
    text there."""
    if inputs.plan is None:
        return
    named = {kind: _text(inputs.plan, ("spec", field)) for kind, (field, *_) in _ISO_SOURCES.items()}
    for source in inputs.objects:
        kind = source.body["kind"]
        if named.get(kind) and look_up(source.body, ("metadata", "name")) == named[kind]:
            yield from _iso_problems(source, *_ISO_SOURCES[kind][1:])


_ISO_SOURCES = {
    "Version": ("version", ("spec", "isoURL"), ("spec", "isoChecksum")),
    "VirtualMachineImage": ("image", ("spec", "url"), ("spec", "checksum")),
}
"""By kind: the field of the plan's spec that names it, and the places of the address and the SHA-512 checksum."""


def _iso_problems(source: SourceDocument, address: Path, checksum: Path) -> Iterator[Problem]:
    if (text := _text(source, address)) and not _ADDRESS.fullmatch(text):
        remedy = "write the address of the ISO image, such as https://example.com/harvester.iso"
        yield source.problem("InvalidValue", f"{found(text)} is not an http or https URL", address, remedy=remedy)
    if (text := _text(source, checksum)) and not _CHECKSUM.fullmatch(text):
        message = f"{found(text)} is not a SHA-512 checksum: expected 128 hexadecimal digits, not {len(text)}"
        remedy = "copy it from the .sha512 file beside the ISO image, or leave it out"
        yield source.problem("InvalidValue", message, checksum, remedy=remedy)


def _text(source: SourceDocument, path: Path) -> str:
    value: Any = look_up(source.body, path)
    return value if isinstance(value, str) else ""
