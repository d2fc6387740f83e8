"""What etcd holds, by key: one small question tells what has been made since a revision, where the API has eighty."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Collection, Mapping
from typing import Any

_FIRST, _PAST = b"/registry/", b"/registry0"
_OF_THE_SERVERS = b"/registry/leases/kube-system/"
"""Leases by which servers show that they live: one that was restarted makes its own anew, and renews it for ever."""
_OTHERWISE = {"minions": "nodes", "controllers": "replicationcontrollers", "ingress": "ingresses"}
"""Kinds that are kept under another name than they are served by."""


def revision(url: str) -> int:
    """Rises with each write."""
    return int(_range(url, limit=1, keys_only=True)["header"]["revision"])


def made_since(url: str, since: int) -> frozenset[str]:
    """The plural of every kind of which there is an object that was made after the revision."""
    found: Collection[Any] = _range(url, keys_only=True).get("kvs", ())
    return frozenset(_plural(base64.b64decode(one["key"])) for one in found if int(one["create_revision"]) > since)


def written_since(url: str, since: int) -> Mapping[str, int]:
    """Of every object that was made after the revision, by its key, the revision of its last write. The servers' own
    Leases do not count."""
    found: Collection[Any] = _range(url, keys_only=True).get("kvs", ())
    return {
        one["key"]: int(one["mod_revision"])
        for one in found
        if int(one["create_revision"]) > since and not base64.b64decode(one["key"]).startswith(_OF_THE_SERVERS)
    }


def shapes(url: str) -> Mapping[str, tuple[int, int]]:
    """By plural, how many objects there are, and the revision of the last write to one of them: another pair whenever
    one was made, changed or deleted."""
    found: dict[str, tuple[int, int]] = {}
    for one in _range(url, keys_only=True).get("kvs", ()):
        plural = _plural(base64.b64decode(one["key"]))
        count, last = found.get(plural, (0, 0))
        found[plural] = (count + 1, max(last, int(one["mod_revision"])))
    return found


def _plural(key: bytes) -> str:
    """`/registry/PLURAL/...`, or `/registry/GROUP/PLURAL/...` of a kind that a definition or another server brought."""
    first, second = key.decode().split("/")[2:4]
    return second if "." in first else _OTHERWISE.get(first, first)


def _range(url: str, **options: Any) -> Any:
    bounds = {"key": base64.b64encode(_FIRST).decode(), "range_end": base64.b64encode(_PAST).decode()}
    content = json.dumps({**bounds, **options}).encode()
    asked = urllib.request.Request(f"{url}/v3/kv/range", content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)
