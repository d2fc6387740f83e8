"""Keeps of the objects of long lists the fields that checks read, so that a large cluster fits into a small process.

A row of the kinds table says which they are; a check that reads others is refused when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from reconcile.cluster.protocol import Keep
from renderer.catalog.kinds import ALWAYS_CHECKED, KindRow
from renderer.model.path import Path
from renderer.model.ref import Body
from renderer.model.sharing import shared

_Tree = dict[str, Any]
"""The part that is kept of a mapping, and of each entry of a list: by key a tree, or None for all below it."""
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def for_checks(row: KindRow) -> Keep:
    """Keeps what checks read of the row's objects. Those of one list share what is equal in the one before."""
    paths = None if row.checked is None else (*ALWAYS_CHECKED, *row.checked)
    return _keep(_bare if paths is None else _only(paths), paths)


def without(parts: Collection[str]) -> Keep:
    """Keeps objects without these parts of their spec, and without what no one reads. Those of one list share what is
    equal in the one before."""

    def part(body: Body) -> Body:
        spec = body.get("spec")
        if not isinstance(spec, dict):
            return _bare(body)
        return _bare({**body, "spec": {key: value for key, value in spec.items() if key not in parts}})

    return _keep(part, None)


def _keep(part: Callable[[Body], Body], paths: tuple[Path, ...] | None) -> Keep:
    last: list[Body] = [{}]

    def share(body: Body) -> Body:
        last[0] = shared(body, last[0])
        return last[0]

    return Keep(trim=lambda body: share(part(body)), share=lambda body: share(_bare(body)), paths=paths)


def _only(paths: Iterable[Path]) -> Callable[[Body], Body]:
    tree: _Tree = {}
    for path in paths:
        below: Any = tree
        for step in path[:-1]:
            below = below.setdefault(str(step), {})
        below[str(path[-1])] = None
    return lambda body: _within(_bare(body), tree)


def _within(value: Any, tree: _Tree | None) -> Any:
    """The part of a value. A value of another shape stays, to be found by who reads it."""
    if tree is None:
        return value
    if isinstance(value, list):
        return [_within(item, tree) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _within(item, tree[key]) for key, item in value.items() if key in tree}


def _bare(body: Body) -> Body:
    """Without what no one reads: who owns which field, and the text that was applied."""
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        return body
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    if isinstance(annotations := kept.get("annotations"), dict) and _APPLIED in annotations:
        kept["annotations"] = {key: value for key, value in annotations.items() if key != _APPLIED}
    return {**body, "metadata": kept}
