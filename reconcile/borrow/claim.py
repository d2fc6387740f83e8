"""Our claim on somebody else's object: the entries of `metadata.managedFields` that a patch of ours has left. Pure.

It is removed last: until then, a server-side apply by another manager conflicts with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.model.path import Path
from renderer.model.ref import Body

MANAGER = "upgradeplan"
"""The field manager that our patches name; the cluster door's own constant, which is out of reach from here."""

_FIELDS = "/metadata/managedFields"


def release_of(live: Body, manager: str = MANAGER) -> tuple[Body, ...]:
    """The JSON patch that removes the manager's claim and nothing else; empty if there is none.

    Each entry is tested first, so that a list that has changed meanwhile is refused (Invalid). A server ignores an
    empty list; where ours is the only claim, the one that it takes for "none" is written (seen on 1.35.4).
    """
    entries = list(live["metadata"].get("managedFields") or ())
    ours = [place for place, entry in enumerate(entries) if _is_update_by(entry, manager)]
    if ours and len(ours) == len(entries):
        return _test(_FIELDS, entries), {"op": "replace", "path": _FIELDS, "value": [{}]}
    return tuple(
        operation
        for place in reversed(ours)
        for operation in (_test(f"{_FIELDS}/{place}", entries[place]), {"op": "remove", "path": f"{_FIELDS}/{place}"})
    )


def is_claimed(live: Body, path: Path, manager: str = MANAGER) -> bool:
    """True if the manager was the last to change the field (an atomic list counts as one field)."""
    entries = live["metadata"].get("managedFields") or ()
    return any(_holds(entry.get("fieldsV1") or {}, path) for entry in entries if _is_update_by(entry, manager))


def _holds(fields: Any, path: Path) -> bool:
    for step in path:
        if not isinstance(fields, Mapping) or f"f:{step}" not in fields:
            return False
        fields = fields[f"f:{step}"]
    return True


def _is_update_by(entry: Mapping[str, Any], manager: str) -> bool:
    found = (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "")
    return found == (manager, "Update", "")


def _test(path: str, value: Any) -> Body:
    return {"op": "test", "path": path, "value": value}
