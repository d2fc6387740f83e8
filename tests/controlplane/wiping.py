"""Takes a cluster back to an earlier inventory: what came since is deleted, finalizers or not.

Changes to objects that were there before are left alone, and so are objects of built-in kinds in the control plane's
own namespaces. Tests wipe often, so what can go with one request goes with one.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane import waiting
from controlplane.api import DISCOVERY, METADATA, Api, ApiError

OWN_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})
FOLLOWERS = frozenset({"apiservices", "ipaddresses"})  # come and go with definitions and services
AT_ONCE = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}  # no kubelet will end a pod's grace


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """An object: its uid and path, the path of its collection in its namespace, whether finalizers hold it, and whether
    its kind can be deleted by collection."""

    uid: str
    place: str
    name: str
    held: bool
    by_collection: bool

    @property
    def path(self) -> str:
        return f"{self.place}/{self.name}"


def inventory(api: Api, plurals: Collection[str] | None = None) -> Mapping[str, str]:
    """Path of every object, or of those of kinds that are called so, by its uid."""
    return {found.uid: found.path for found in _objects(api, plurals)}


def wipe(api: Api, keep: Mapping[str, str], made: Callable[[], Collection[str]]) -> None:
    """Deletes what is not in `keep` and returns when it is gone. Raises TimeoutError naming what would not go.

    `made` answers with the plurals of all kinds that have objects which `keep` has not: only these are listed."""
    left: Sequence[_Found] = ()
    kept = {path.rpartition("/")[0] for path in keep.values()}

    def gone() -> bool:
        nonlocal left
        left = [found for found in _objects(api, made()) if found.uid not in keep]
        for place, those in _by_place(left).items():
            if place not in kept and all(found.by_collection and not found.held for found in those):
                _try(api, "DELETE", place, AT_ONCE)
            else:
                _delete_each(api, those, left)
        return not left

    try:
        waiting.until("wipe", gone)
    except TimeoutError:
        raise TimeoutError(f"would not go: {', '.join(found.path for found in left)}") from None


def _by_place(found: Sequence[_Found]) -> Mapping[str, Sequence[_Found]]:
    places: dict[str, list[_Found]] = defaultdict(list)
    for one in found:
        places[one.place].append(one)
    return places


def _delete_each(api: Api, found: Sequence[_Found], left: Sequence[_Found]) -> None:
    for one in found:
        _try(api, "DELETE", one.path, AT_ONCE)
        if one.place == _NAMESPACES:
            _end_namespace(api, one, left)
        if one.held:
            with contextlib.suppress(ApiError):
                api.patch(one.path, {"metadata": {"finalizers": None}})


_NAMESPACES = "/api/v1/namespaces"


def _end_namespace(api: Api, one: _Found, left: Sequence[_Found]) -> None:
    """Its own controller ends an empty one only after five seconds."""
    if any(other.place.startswith(f"{_within(other)}/namespaces/{one.name}/") for other in left):
        return
    with contextlib.suppress(ApiError):
        api.send("PUT", f"{one.path}/finalize", api.get(one.path) | {"spec": {"finalizers": []}})


def _within(found: _Found) -> str:
    return found.place.partition("/namespaces/")[0]


def _try(api: Api, method: str, path: str, body: Mapping[str, Any]) -> None:
    """It may be gone meanwhile, or refused by a policy that goes in the same sweep."""
    with contextlib.suppress(ApiError):
        api.send(method, path, body)


def _objects(api: Api, plurals: Collection[str] | None = None) -> Iterator[_Found]:
    """Of all kinds, or of those that are called so."""
    custom = _custom(api)
    for collection, verbs in _collections(api):
        if plurals is not None and collection.rpartition("/")[2] not in plurals:
            continue
        for metadata in _items(api, collection):
            if metadata.get("namespace") not in OWN_NAMESPACES or _kind(collection) in custom:
                yield _Found(
                    uid=metadata["uid"],
                    place=_place(collection, metadata.get("namespace")),
                    name=metadata["name"],
                    held=bool(metadata.get("finalizers")),
                    by_collection="deletecollection" in verbs,
                )


def _collections(api: Api) -> Iterator[tuple[str, Sequence[str]]]:
    """URL of every listable and deletable resource, each once, in its preferred version; and its verbs."""
    for root in ("/api", "/apis"):
        for group in api.get(root, accept=DISCOVERY)["items"]:
            version = group["versions"][0]
            base = "/".join(part for part in (root, group["metadata"].get("name"), version["version"]) if part)
            for resource in version.get("resources", ()):
                if {"list", "delete"} <= set(resource["verbs"]) and resource["resource"] not in FOLLOWERS:
                    yield f"{base}/{resource['resource']}", resource["verbs"]


def _custom(api: Api) -> frozenset[str]:
    """Plural and group of every kind that the control plane has no objects of, since a definition brought it."""
    definitions = api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", accept=METADATA)["items"]
    return frozenset(definition["metadata"]["name"] for definition in definitions or ())


def _kind(collection: str) -> str:
    """Plural and group, as a definition of it is called: `/apis/GROUP/VERSION/PLURAL`."""
    base, _, plural = collection.rpartition("/")
    return f"{plural}.{base.rpartition('/')[0].rpartition('/')[2]}"


def _items(api: Api, collection: str) -> list[Mapping[str, Any]]:
    try:
        return [item["metadata"] for item in api.get(collection, accept=METADATA)["items"] or ()]
    except ApiError as error:
        if error.code == 404:  # its definition is on the way out
            return []
        raise


def _place(collection: str, namespace: str | None) -> str:
    base, _, plural = collection.rpartition("/")
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else collection
