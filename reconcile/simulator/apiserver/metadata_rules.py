"""Checks every object's metadata as the API server does: names, labels, annotations, owners, finalizers. Pure.

Source: k8s.io/apimachinery, package api/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reconcile.cluster.errors import StatusCause
from renderer.model.ref import Body, Kind

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_WORD = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_MAX_ANNOTATIONS = 256 * 1024

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SERVICE_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_PATH_TEXT = "may not contain '/' or '%', nor be '.' or '..'"


def invalid_metadata(kind: Kind, body: Body) -> tuple[StatusCause, ...]:
    metadata = body.get("metadata") or {}
    return (*_name(kind, metadata), *_texts(metadata), *_owners(metadata), *_finalizers(metadata))


def changed_for_good(old: Body, new: Body) -> tuple[StatusCause, ...]:
    """Reports changes in metadata that an update may not make, and no new finalizers on an object that is being
    deleted."""
    before, after = old["metadata"], new["metadata"]
    causes = [
        StatusCause(
            field=f"metadata.{name}", message=f"Invalid value: {after.get(name)!r}: field is immutable", reason=_INVALID
        )
        for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")
        if after.get(name) != before.get(name)
    ]
    added = sorted(set(after.get("finalizers") or ()) - set(before.get("finalizers") or ()))
    if before.get("deletionTimestamp") and added:
        message = f"Forbidden: no new finalizers can be added if the object is being deleted, found {added}"
        causes.append(StatusCause(field="metadata.finalizers", message=message, reason="FieldValueForbidden"))
    return tuple(causes)


_INVALID = "FieldValueInvalid"
_OWN_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def _cause(field: str, value: Any, text: str) -> StatusCause:
    return StatusCause(field=field, message=f"Invalid value: {value!r}: {text}", reason=_INVALID)


def _name(kind: Kind, metadata: Mapping[str, Any]) -> Iterator[StatusCause]:
    name = str(metadata.get("name") or "")
    if not name:
        yield StatusCause(
            field="metadata.name",
            message="Required value: name or generateName is required",
            reason="FieldValueRequired",
        )
        return
    fits, limit, text = _NAMES.get(str(kind), _DEFAULT_NAME)
    if len(name) > limit:
        yield _cause("metadata.name", name, f"must be no more than {limit} bytes")
    if not fits(name):
        yield _cause("metadata.name", name, text)


def _texts(metadata: Mapping[str, Any]) -> Iterator[StatusCause]:
    for key, value in (metadata.get("labels") or {}).items():
        if not _is_qualified(key):
            yield _cause("metadata.labels", key, "name part must consist of alphanumeric characters, '-', '_' or '.'")
        if value and not (len(value) <= 63 and _WORD.fullmatch(value)):
            yield _cause(
                "metadata.labels", value, "a valid label must be an empty string or consist of alphanumeric characters"
            )
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        if not _is_qualified(key.lower()):
            yield _cause(
                "metadata.annotations", key, "name part must consist of alphanumeric characters, '-', '_' or '.'"
            )
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        text = f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes"
        yield StatusCause(field="metadata.annotations", message=text, reason="FieldValueTooLong")


def _owners(metadata: Mapping[str, Any]) -> Iterator[StatusCause]:
    owners = metadata.get("ownerReferences") or ()
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield _cause(f"metadata.ownerReferences.{name}", owner.get(name), "must not be empty")
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        yield _cause("metadata.ownerReferences", owners, "Only one reference can have Controller set to true")


def _finalizers(metadata: Mapping[str, Any]) -> Iterator[StatusCause]:
    for name in metadata.get("finalizers") or ():
        if not _is_qualified(name):
            yield _cause("metadata.finalizers", name, "a qualified name must consist of alphanumeric characters")


def builtin_finalizers(body: Body) -> Iterator[StatusCause]:
    """On a built-in object a finalizer without a domain must be one of the server's own."""
    for index, name in enumerate((body.get("metadata") or {}).get("finalizers") or ()):
        if "/" not in name and name not in _OWN_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield _cause(f"metadata.finalizers[{index}]", name, text)


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (prefix and len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _WORD.fullmatch(name) is not None


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda name: pattern.fullmatch(name) is not None


def _is_path_segment(name: str) -> bool:
    return name not in (".", "..") and not set("/%") & set(name)


def _rows(kinds: Iterable[str], row: tuple[Callable[[str], bool], int, str]) -> dict[str, Any]:
    return dict.fromkeys(kinds, row)


_DEFAULT_NAME = (_matches(_SUBDOMAIN), 253, _SUBDOMAIN_TEXT)
_RBAC = "rbac.authorization.k8s.io/v1"
_NAMES: Mapping[str, tuple[Callable[[str], bool], int, str]] = {
    "v1 Namespace": (_matches(_LABEL), 63, _LABEL_TEXT),
    "v1 Service": (_matches(_SERVICE), 63, _SERVICE_TEXT),
    **_rows(
        (f"{_RBAC} {kind}" for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
        (_is_path_segment, 253, _PATH_TEXT),
    ),
}
