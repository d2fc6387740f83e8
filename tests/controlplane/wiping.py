"""Takes a cluster back to an earlier inventory: what came since is deleted, finalizers or not.

Changes to objects that were there before are left alone, and so are objects of built-in kinds in the control plane's
own namespaces.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from controlplane import waiting
from controlplane.api import DISCOVERY, METADATA, Api, ApiError

OWN_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})
FOLLOWERS = frozenset({"apiservices", "ipaddresses"})  # come and go with definitions and services
AT_ONCE = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}  # no kubelet will end a pod's grace


def inventory(api: Api) -> Mapping[str, str]:
    """Path of every object, by its uid."""
    custom = _custom(api)
    return {
        item["metadata"]["uid"]: _path(collection, item["metadata"])
        for collection in _collections(api)
        for item in _items(api, collection)
        if item["metadata"].get("namespace") not in OWN_NAMESPACES or _kind(collection) in custom
    }


def wipe(api: Api, keep: Mapping[str, str]) -> None:
    """Deletes what is not in `keep` and returns when it is gone. Raises TimeoutError naming what would not go."""
    left: Mapping[str, str] = {}

    def gone() -> bool:
        nonlocal left
        left = {uid: path for uid, path in inventory(api).items() if uid not in keep}
        for path in left.values():
            _delete(api, path, left.values())
        return not left

    try:
        waiting.until("wipe", gone)
    except TimeoutError:
        raise TimeoutError(f"would not go: {', '.join(left.values())}") from None


def _delete(api: Api, path: str, left: Collection[str]) -> None:
    with contextlib.suppress(ApiError):  # gone meanwhile, or refused by a policy that goes in the same sweep
        api.send("DELETE", path, AT_ONCE)
        if not _is_namespace(path):
            api.patch(path, {"metadata": {"finalizers": None}})
        elif not any(f"/namespaces/{path.rpartition('/')[2]}/" in other for other in left):
            api.send("PUT", f"{path}/finalize", api.get(path) | {"spec": {"finalizers": []}})


def _is_namespace(path: str) -> bool:
    """Namespaces need more: their own controller ends them only after five seconds."""
    return path.startswith("/api/v1/namespaces/") and path.count("/") == 4


def _collections(api: Api) -> Iterator[str]:
    """URL of every listable and deletable resource, each once, in its preferred version."""
    for root in ("/api", "/apis"):
        for group in api.get(root, accept=DISCOVERY)["items"]:
            version = group["versions"][0]
            base = "/".join(part for part in (root, group["metadata"].get("name"), version["version"]) if part)
            for resource in version.get("resources", ()):
                if {"list", "delete"} <= set(resource["verbs"]) and resource["resource"] not in FOLLOWERS:
                    yield f"{base}/{resource['resource']}"


def _custom(api: Api) -> frozenset[str]:
    """Plural and group of every kind that the control plane has no objects of, since a definition brought it."""
    definitions = api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", accept=METADATA)["items"]
    return frozenset(definition["metadata"]["name"] for definition in definitions or ())


def _kind(collection: str) -> str:
    """Plural and group, as a definition of it is called: `/apis/GROUP/VERSION/PLURAL`."""
    base, _, plural = collection.rpartition("/")
    return f"{plural}.{base.rpartition('/')[0].rpartition('/')[2]}"


def _items(api: Api, collection: str) -> list[dict[str, Any]]:
    try:
        items: list[dict[str, Any]] = api.get(collection, accept=METADATA)["items"] or []
    except ApiError as error:
        if error.code == 404:  # its definition is on the way out
            return []
        raise
    return items


def _path(collection: str, metadata: Mapping[str, Any]) -> str:
    base, _, plural = collection.rpartition("/")
    if namespace := metadata.get("namespace"):
        base = f"{base}/namespaces/{namespace}"
    return f"{base}/{plural}/{metadata['name']}"
