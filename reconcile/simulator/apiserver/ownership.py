"""Keeps the owners of fields through applies and updates. Pure.

Source: sigs.k8s.io/structured-merge-diff, package merge, update.go. One difference: a claim written for another version
of the kind is read as if it were for this one, since each kind is served in one version here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from reconcile.simulator.apiserver.field_set import EMPTY, FieldSet, Path, order
from reconcile.simulator.apiserver.shape import Shape
from reconcile.simulator.apiserver.structured_merge import Comparison, compare, merge
from reconcile.simulator.apiserver.walk import field_set, remove
from renderer.model.sharing import SameObject

APPLY = "Apply"
UPDATE = "Update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One line of `managedFields`. An applier keeps its line whatever version it writes, so its version is empty."""

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The fields of an owner, and the time when it last changed something (RFC 3339, None if not known)."""

    fields: FieldSet
    api_version: str
    time: str | None = None


Holdings = Mapping[Owner, Holding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """One field that an apply would take from another manager."""

    owner: Owner
    holding: Holding
    path: Path


class ApplyConflictError(Exception):
    """An apply without force conflicts with fields of other managers."""

    def __init__(self, clashes: tuple[Clash, ...]) -> None:
        self.clashes = clashes
        super().__init__(f"{len(clashes)} conflicts")


def applied(
    shape: Shape, live: Any, config: Any, holdings: Holdings, owner: Owner, claim: Holding, *, force: bool
) -> tuple[Any, Holdings]:
    """The object after `owner` has applied `config`, and its owners then. `claim` is what the owner claims now."""
    held = _by_shape(shape, holdings)
    last = held[owner].fields if owner in held else EMPTY
    now = {**held, owner: claim}
    new = _prune(shape, merge(shape, live, config), now, last)
    return new, _settle(compare(shape, live, new), now, owner, force=force)


def updated(
    shape: Shape, live: Any, new: Any, holdings: Holdings, owner: Owner, claim: Holding, ignored: FieldSet
) -> Holdings:
    """The owners after `new` has replaced `live`. `claim.fields` is what the owner owned before."""
    comparison = compare(shape, live, new).without(ignored)
    held = dict(_settle(comparison, _by_shape(shape, holdings), owner, force=True))
    own = (claim.fields - comparison.removed) | comparison.changed
    held.pop(owner, None)
    if own:
        held[owner] = replace(claim, fields=own)
    return held


def _settle(comparison: Comparison, holdings: Holdings, owner: Owner, *, force: bool) -> Holdings:
    """Takes from the others what has changed or is gone. Raises ApplyConflictError when that is not allowed."""
    if not force:
        _refuse(comparison.changed, holdings, owner)
    lost = comparison.changed | comparison.removed
    left = {other: _less(holding, lost) if other != owner else holding for other, holding in holdings.items()}
    return {other: holding for other, holding in left.items() if holding.fields}


def _refuse(changed: FieldSet, holdings: Holdings, owner: Owner) -> None:
    clashes = tuple(
        Clash(owner=other, holding=holding, path=path)
        for other, holding in holdings.items()
        if other != owner
        for path in sorted(holding.fields & changed, key=order)
    )
    if clashes:
        raise ApplyConflictError(clashes)


def _less(holding: Holding, lost: FieldSet) -> Holding:
    return replace(holding, fields=holding.fields - lost) if not holding.fields.isdisjoint(lost) else holding


def _prune(shape: Shape, merged: Any, holdings: Holdings, last: FieldSet) -> Any:
    """Removes fields that the owner applied last time, does not apply now, and that have no other owner."""
    claimed: FieldSet = EMPTY.union(*(holding.fields for holding in holdings.values()))
    if last <= claimed:
        return merged
    everything = _named(shape, field_set(shape, merged))
    last, claimed = _named(shape, last), _named(shape, claimed)
    pruned = remove(shape, merged, last)
    kept = _named(shape, field_set(shape, pruned)) | claimed
    pruned = remove(shape, merged, everything - kept)
    gone = everything - _named(shape, field_set(shape, pruned))
    return remove(shape, merged, gone & last)


def _named(shape: Shape, fields: FieldSet) -> FieldSet:
    """The set and every declared field on the way to its members: who owns `.spec.a` needs `.spec` to be there."""
    parents = {path[:end] for path in fields for end in range(1, len(path))}
    return fields | {path for path in parents if _is_declared(shape, path)}


def _is_declared(shape: Shape, path: Path) -> bool:
    parent: Shape | None = shape
    for element in path[:-1]:
        parent = _below(parent, element) if parent else None
    return bool(parent and parent.map and path[-1][:2] == "f:" and path[-1][2:] in parent.map.fields)


def _below(shape: Shape, element: str) -> Shape | None:
    if element[0] == "f":
        return shape.map.at(element[2:]) if shape.map else None
    return shape.list.element() if shape.list else None


def _by_shape(shape: Shape, holdings: Holdings) -> Holdings:
    """Claims below a field that is one leaf by now become claims on that field."""
    return {
        owner: replace(holding, fields=_leaves(SameObject(shape), SameObject(holding.fields)))
        for owner, holding in holdings.items()
    }


@lru_cache(maxsize=1024)
def _leaves(shape: SameObject, fields: SameObject) -> FieldSet:
    """The very same set where no claim is below a leaf."""
    found = frozenset(_to_leaf(shape, path) for path in fields.it)
    return fields.it if found == fields.it else found


@lru_cache(maxsize=2**14)  # of the fields that an owner has, a write changes a few
def _to_leaf(shape: SameObject, path: Path) -> Path:
    here: Shape | None = shape.it
    for depth, element in enumerate(path):
        if here is None or (here.map and not here.map.fields and here.scalar):
            return path
        if (here.map and here.map.atomic) or (not here.map and here.list and here.list.atomic):
            return path[:depth]
        here = _below(here, element)
    return path
