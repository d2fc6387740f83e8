"""Checks what every rendered manifest must keep to, whatever template made it: names, labels, Jobs that run once,
images.

Most of it is refused by an API server anyway; here it is refused before anybody has to ask one. Each check is a
function of one manifest, or of all, and says the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from renderer.catalog.kinds import KindRow, Kinds
from renderer.errors import Problem
from renderer.image_names import is_image
from renderer.model.path import ABSENT, Path, look_up, path_name
from renderer.model.ref import Body, Ref
from renderer.model.rendered import Manifest
from renderer.names import NAME_LIMIT, SUBDOMAIN_LIMIT, is_key, is_label_value, is_subdomain

_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_IMAGE_REMEDY = (
    "correct it in the template or in values.yaml; where the plan gives it, correct spec.upgrade or the annotation "
    "upgrade-toolkit-image"
)
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")

Finding = tuple[Path, str, str]
"""A place, what is wrong there, and what to do."""


def manifest_problems(manifest: Manifest, row: KindRow | None) -> list[Problem]:
    """Everything that is wrong with one manifest; values that are known at run time only are not looked at."""
    if row is None:
        return [_unknown_kind(manifest)]
    checks = _BORROWED if manifest.borrowed else _OWNED
    found = [*(finding for check in checks for finding in check(manifest.body)), *_served(manifest.body, row)]
    return [
        Problem(
            reason="InvalidManifest",
            file=manifest.template,
            field=path_name(path) if path else None,
            message=f"{manifest.ref}: {message}",
            remedy=remedy,
        )
        for path, message, remedy in found
        if path not in manifest.run_time
    ]


def _unknown_kind(manifest: Manifest) -> Problem:
    what = f"{manifest.ref.api_version or 'no apiVersion'} {manifest.ref.kind or 'no kind'}"
    return Problem(
        reason="UnknownKind",
        file=manifest.template,
        message=f"{what} is not in the kinds table",
        remedy="add a row for it to a file in _kinds/ of the template tree",
    )


def plan_problems(manifests: Iterable[Manifest], kinds: Kinds) -> list[Problem]:
    """Checks manifests against each other: one identity rendered twice, a Service that finds no pod."""
    owned = [manifest for manifest in manifests if not manifest.borrowed]
    return [*_identities(owned), *_selectors(owned, kinds)]


def image_problems(manifests: Iterable[Manifest]) -> Iterator[Problem]:
    """Each invalid image reference once, however many objects use it."""
    owned = [manifest for manifest in manifests if manifest.images and not manifest.borrowed]
    for image in dict.fromkeys(image for manifest in owned for image in manifest.images):
        if not is_image(image):
            first, *others = [manifest for manifest in owned if image in manifest.images]
            also = f"; {len(others)} more objects use it" if others else ""
            yield Problem(
                reason="InvalidManifest",
                file=first.template,
                message=f"{first.ref}: {image!r} is not a valid image reference{also}",
                remedy=_IMAGE_REMEDY,
            )


def images_of(body: Body, row: KindRow | None) -> tuple[str, ...]:
    """Every image that an object of this kind runs."""
    if row is None:
        return ()
    if row.image:
        image, tag = (look_up(body, path) for path in row.image)
        return (f"{image}:{str(tag).replace('+', '-')}",) if image is not ABSENT and tag is not ABSENT else ()
    spec = look_up(body, row.pod_spec) if row.pod_spec else ABSENT
    return tuple(str(item["image"]) for item in _containers(spec) if "image" in item)


# ------------------------------------------------------------------------------------------------- one manifest


def _identity(body: Body) -> Iterator[Finding]:
    for field in ("apiVersion", "kind"):
        if not isinstance(body.get(field), str) or not body.get(field):
            yield (field,), "is missing", f"set {field}"
    if str(body.get("kind", "")).endswith("List"):
        yield ("kind",), "is a list; one object per document is expected", "render each item as a document of its own"
    if "generateName" in body["metadata"]:
        yield ("metadata", "generateName"), "generated names differ each time", "set metadata.name"


def _own_name(body: Body) -> Iterator[Finding]:
    """It becomes a label's value."""
    yield from _name(body, NAME_LIMIT)


def _other_name(body: Body) -> Iterator[Finding]:
    yield from _name(body, SUBDOMAIN_LIMIT)


def _name(body: Body, limit: int) -> Iterator[Finding]:
    name, path = look_up(body, ("metadata", "name")), ("metadata", "name")
    if name is ABSENT:
        yield path, "is missing", "make one with `name(...)`"
    elif not isinstance(name, str):
        yield path, "is not a string", "add `| quote`"
    elif len(name) > limit:
        yield path, f"has {len(name)} characters, at most {limit} are allowed", "make it with `name(...)`"
    elif not (_DNS_LABEL.fullmatch if body.get("kind") == "Service" else is_subdomain)(name):
        yield (
            path,
            f"{name!r} is not a valid name",
            "use lower-case letters, digits and '-', a letter or digit at each end",
        )


def _metadata_maps(body: Body) -> Iterator[Finding]:
    for path in (("metadata", "labels"), ("metadata", "annotations"), ("spec", "template", "metadata", "labels")):
        value = look_up(body, path)
        if value is not ABSENT and isinstance(value, Mapping):
            yield from (finding for key, text in value.items() for finding in _entry((*path, key), key, text))


def _entry(path: Path, key: str, text: Any) -> Iterator[Finding]:
    if not is_key(key):
        yield path, f"{key!r} is not a valid key", "use `prefix/name` with at most 63 characters in the name"
    if not isinstance(text, str):
        yield path, f"{text!r} is not a string", "convert it with `| string | quote`"
    elif path[-2] == "labels" and not is_label_value(text):
        what = f"has {len(text)} characters, at most {NAME_LIMIT} are allowed"
        message = what if len(text) > NAME_LIMIT else f"{text!r} is not a valid label value"
        yield path, message, "use `labelValue(...)`, or an annotation"


def _server_owned(body: Body) -> Iterator[Finding]:
    if "status" in body:
        yield ("status",), "status is written by controllers", "remove it"
    for field in _SERVER_FIELDS:
        if look_up(body, ("metadata", field)) is not ABSENT:
            yield ("metadata", field), "is set by the API server", "remove it"


def _job(body: Body) -> Iterator[Finding]:
    spec = body.get("spec")
    if body.get("kind") != "Job" or not isinstance(spec, Mapping):
        return
    if "ttlSecondsAfterFinished" in spec:
        yield ("spec", "ttlSecondsAfterFinished"), "a GitOps agent creates a deleted Job again", "remove it"
    if "backoffLimit" not in spec:
        yield (
            ("spec",),
            "backoffLimit is missing, and Kubernetes would retry six times",
            "set backoffLimit; 0 runs the Job once",
        )
    if "suspend" in spec:
        yield ("spec", "suspend"), "suspending a running Job kills its pod", "use a hold in phase.yaml"
    for field in ("selector", "manualSelector"):
        if field in spec:
            yield ("spec", field), "is set by the API server", "remove it"


def _selector_matches(body: Body) -> Iterator[Finding]:
    selector = look_up(body, ("spec", "selector", "matchLabels"))
    labels = look_up(body, ("spec", "template", "metadata", "labels"))
    if isinstance(selector, Mapping) and isinstance(labels, Mapping) and not selector.items() <= labels.items():
        yield ("spec", "selector", "matchLabels"), "does not match the pod template's labels", "use the same labels"


def _changes_something(body: Body) -> Iterator[Finding]:
    metadata = {key for key in body["metadata"] if key not in ("name", "namespace")}
    if not metadata and not [key for key in body if key not in ("apiVersion", "kind", "metadata")]:
        yield (), "borrows no field", "set the fields to borrow"


def _served(body: Body, row: KindRow) -> Iterator[Finding]:
    namespace = look_up(body, ("metadata", "namespace"))
    if row.kind.namespaced and not namespace:
        yield ("metadata", "namespace"), "is missing", "name the namespace"
    if not row.kind.namespaced and namespace is not ABSENT:
        yield ("metadata", "namespace"), f"a {row.kind.kind} has no namespace", "remove it"


def _containers(spec: Any) -> Iterator[Mapping[str, Any]]:
    for field in ("initContainers", "containers"):
        items = look_up(spec, (field,))
        yield from (item for item in (items if isinstance(items, list) else ()) if isinstance(item, Mapping))


_COMMON: tuple[Callable[[Body], Iterator[Finding]], ...] = (_identity, _metadata_maps, _server_owned)
_OWNED = (*_COMMON, _own_name, _job, _selector_matches)
_BORROWED = (*_COMMON, _other_name, _changes_something)

# ---------------------------------------------------------------------------------------------- between manifests


def _identities(manifests: list[Manifest]) -> Iterator[Problem]:
    first: dict[Ref, Manifest] = {}
    for manifest in manifests if len({manifest.ref for manifest in manifests}) < len(manifests) else ():
        known = first.setdefault(manifest.ref, manifest)
        if known is not manifest:
            yield Problem(
                reason="DuplicateManifest",
                file=manifest.template,
                message=f"{manifest.ref} is also rendered by {known.template}",
                remedy="rename one of them",
            )


def _selectors(manifests: list[Manifest], kinds: Kinds) -> Iterator[Problem]:
    """Services are few, and each is next to the pods that it selects."""
    for manifest in (manifest for manifest in manifests if manifest.body.get("kind") == "Service"):
        selector = look_up(manifest.body, ("spec", "selector"))
        pods = (_pod_labels(other.body, kinds.find(other.ref.api_version, other.ref.kind)) for other in manifests)
        if isinstance(selector, Mapping) and not any(
            labels is not None and selector.items() <= labels.items() for labels in pods
        ):
            yield Problem(
                reason="DanglingReference",
                file=manifest.template,
                field="spec.selector",
                message=f"{manifest.ref} selects no pod that this plan renders",
                remedy="use the labels of the workload's pod template",
            )


def _pod_labels(body: Body, row: KindRow | None) -> Mapping[str, Any] | None:
    if row is None or row.pod_spec is None:
        return None
    labels = look_up(body, (*row.pod_spec[:-1], "metadata", "labels"))
    return labels if isinstance(labels, Mapping) else None
