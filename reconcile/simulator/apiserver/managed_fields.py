"""`metadata.managedFields`: reading it, writing it, and who is in it after a write. Pure; the time is an argument.

Source: k8s.io/apimachinery, package util/managedfields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from reconcile.simulator.apiserver.field_set import (
    EMPTY,
    FieldSet,
    from_fields_v1,
    to_fields_v1,
    without_below,
)
from reconcile.simulator.apiserver.ownership import APPLY, UPDATE, Holding, Holdings, Owner, applied, updated
from reconcile.simulator.apiserver.shape import Shape
from reconcile.simulator.apiserver.walk import ShapeError, field_set
from renderer.model.sharing import ByIdentity, SameObject

_NOBODYS = ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields")
_STRIPPED: FieldSet = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), ("f:metadata", "f:resourceVersion")]
    + [("f:metadata", f"f:{name}") for name in _NOBODYS]
)
_MAX_UPDATERS = 10
_BUCKET = "ancient-changes"
_BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWriter:
    """The writer, the endpoint that it uses, and the time. `ignored` are the fields that this endpoint does not
    write."""

    manager: str
    api_version: str
    time: str
    subresource: str = ""
    ignored: FieldSet = EMPTY

    def owner(self, operation: str) -> Owner:
        version = "" if operation == APPLY else self.api_version
        return Owner(
            manager=self.manager or "unknown", operation=operation, api_version=version, subresource=self.subresource
        )

    def holding(self, fields: FieldSet = EMPTY) -> Holding:
        return Holding(fields=fields, api_version=self.api_version, time=self.time)


def after_apply(
    shape: Shape,
    blank: Mapping[str, Any],
    live: Mapping[str, Any],
    config: Mapping[str, Any],
    writer: FieldWriter,
    *,
    force: bool,
) -> dict[str, Any]:
    """The merged object with its new managedFields. Raises ApplyConflictError; ShapeError if a list cannot be keyed.

    `blank` is an object of the kind that says nothing; it is also `live` when the apply creates.
    """
    bare, owner = without(live), writer.owner(APPLY)
    held = decode(live) or _tracked(shape, blank, bare, {}, replace(writer, manager=_BEFORE_FIRST_APPLY))
    claim = writer.holding(without_below(field_set(shape, config), writer.ignored))
    new, after = applied(shape, bare, config, held, owner, claim, force=force)
    own = after.get(owner, claim).fields - _STRIPPED
    if new == bare:
        claim = replace(claim, time=held[owner].time if owner in held else None)
    others = {other: holding for other, holding in after.items() if other != owner}
    return with_holdings(new, {**others, owner: replace(claim, fields=own)} if own else others)


def after_update(shape: Shape, live: Mapping[str, Any], new: Mapping[str, Any], writer: FieldWriter) -> dict[str, Any]:
    """The new object with its new managedFields. `live` is a blank object for a create.

    An object that nobody tracks stays untracked; a new one is tracked.
    """
    requested = _requested(live, new, writer)
    if not requested and (live.get("metadata") or {}).get("uid"):
        return without(new)
    try:
        return with_holdings(without(new), _tracked(shape, without(live), without(new), requested, writer))
    except ShapeError:  # lists that cannot be keyed: validation will refuse them with better words
        return without(new)


def _tracked(
    shape: Shape, live: Mapping[str, Any], new: Mapping[str, Any], holdings: Holdings, writer: FieldWriter
) -> Holdings:
    """The owners after an update; the writer's line has a new time only if it changed something."""
    owner = writer.owner(UPDATE)
    held = dict(updated(shape, live, new, holdings, _CURRENT, writer.holding(), writer.ignored))
    change = held.pop(_CURRENT, None)
    if change and change.fields - _STRIPPED:
        before = held[owner].fields if owner in held else EMPTY
        expected = change.fields - _STRIPPED
        held[owner] = replace(change, fields=before if expected <= before else expected | before)
    return _capped(held)


def same_but_times(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """True if two objects differ in nothing but the times in their managedFields: then nothing is written."""
    return without(left) == without(right) and _untimed(left) == _untimed(right)


def without(body: Mapping[str, Any]) -> dict[str, Any]:
    metadata = body.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return dict(body)
    return {**body, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def claims_of(body: Mapping[str, Any]) -> Any:
    """The entries as they are; None if there are none."""
    return (body.get("metadata") or {}).get("managedFields")


def with_claims(body: Mapping[str, Any], entries: Any) -> dict[str, Any]:
    if entries is None:
        return dict(body)
    return {**body, "metadata": {**(body.get("metadata") or {}), "managedFields": entries}}


def with_holdings(body: Mapping[str, Any], holdings: Holdings) -> dict[str, Any]:
    entries = [_entry(owner, holding) for owner, holding in holdings.items()]
    return with_claims(without(body), sorted(entries, key=_entry_order) or None)


def decode(body: Mapping[str, Any]) -> Holdings:
    return _decode(claims_of(body) or ())


_CURRENT = Owner(manager="current-operation", operation=UPDATE)


def _decode(entries: Iterable[Mapping[str, Any]]) -> Holdings:
    found = {}
    for entry in entries:
        operation = entry.get("operation", UPDATE)
        version = str(entry.get("apiVersion", ""))
        owner = Owner(
            manager=entry.get("manager", ""),
            operation=operation,
            api_version="" if operation == APPLY else version,
            subresource=entry.get("subresource", ""),
        )
        fields = _fields_in(entry.get("fieldsV1") or {})
        found[owner] = Holding(fields=fields, api_version=version, time=entry.get("time"))
    return found


_FIELDS = ByIdentity[FieldSet]()
"""Most writes leave most entries as they are, and an entry that was written here is read at the next write."""


def _fields_in(nested: Mapping[str, Any]) -> FieldSet:
    found = _FIELDS.get(nested)
    return found if found is not None else _FIELDS.put(nested, from_fields_v1(nested))


@lru_cache(maxsize=1024)
def _written(fields: SameObject) -> dict[str, Any]:
    made = to_fields_v1(fields.it)
    _FIELDS.put(made, fields.it)
    return made


def _entry(owner: Owner, holding: Holding) -> dict[str, Any]:
    entry = {
        "apiVersion": holding.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": _written(SameObject(holding.fields)),
        "manager": owner.manager,
        "operation": owner.operation,
    }
    optional = {"subresource": owner.subresource, "time": holding.time}
    return entry | {name: value for name, value in optional.items() if value}


def _entry_order(entry: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(str(entry.get(name, "")) for name in names)


def _requested(live: Mapping[str, Any], new: Mapping[str, Any], writer: FieldWriter) -> Holdings:
    """The holdings to start from: the request's own if it brings any, so that a claim can be taken out by hand.

    A subresource cannot do that. An empty list, or one empty entry, resets them all.
    """
    entries = claims_of(new)
    if writer.subresource:
        return decode(live)
    if entries is not None and (len(entries) == 0 or list(entries) == [{}]):
        return {}
    return _decode(entries) if entries else decode(live)


def _capped(holdings: dict[Owner, Holding]) -> Holdings:
    """At most ten updaters; the oldest ones of a version are merged."""
    updaters = sorted(
        (owner for owner in holdings if owner.operation == UPDATE),
        key=lambda owner: (holdings[owner].time or "", owner.manager, owner.subresource),
    )
    left, first = len(updaters), dict[str, Owner]()
    for owner in updaters:
        if left <= _MAX_UPDATERS:
            break
        left -= _thrown_together(holdings, first, owner)
    return holdings


def _thrown_together(holdings: dict[Owner, Holding], first: dict[str, Owner], owner: Owner) -> int:
    """Puts an updater into its version's bucket; the first one of a version only opens it. Returns how many went."""
    version = owner.api_version
    if version not in first:
        first[version] = owner
        return 0
    bucket = Owner(manager=_BUCKET, operation=UPDATE, api_version=version)
    if bucket not in holdings:
        holdings[bucket] = holdings.pop(first[version])
    moved = holdings.pop(owner)
    holdings[bucket] = replace(moved, fields=moved.fields | holdings[bucket].fields)
    return 1


def _untimed(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in claims_of(body) or ()]
