"""Checks that the cluster's definition of UpgradePlan has every status field that this program writes.

Another manager's definition serves the same kind, and refuses or prunes what we add: a plan would stand still under it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconcile.cluster.errors import Invalid, NoSuchKind, NotFound
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.observe.selection import COULD_NOT_LOOK
from reconcile.schemas import Schemas
from renderer.errors import Problem
from renderer.model.plan_api import GROUP
from renderer.model.ref import Body, Kind, ref_of

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_NO_LONGER_WRITTEN = ("status.version.releaseDate", "status.version.tags")
_TRIED: Mapping[str, Any] = {
    "steps": {},
    "borrowed": [],
    "waitingSince": {},
    "verification": [],
    "acceptedRisks": [],
    "templates": {},
    "observedGeneration": 0,
}
"""A value for each field of the status that we have added to the API. Only dry runs carry it."""

REMEDY = "install this program's: upgradeplan install --crds"
NO_DEFINITION = "NoDefinition"

_Schema = Mapping[str, Any]


def check_served_api(cluster: Cluster, kind: Kind, schemas: Schemas, plans: Sequence[Body] = ()) -> Problem | None:
    """Explains what is wrong with the definition that the server has of UpgradePlan; None if nothing is.

    Reads the schema that the server publishes; if there is a plan, also tries its status by a dry run. Raises `Away`
    and its like.
    """
    try:
        published = cluster.published_schema(kind)
    except NoSuchKind:
        return _no_definition()
    except COULD_NOT_LOOK:
        published = {}
    if not published and not _is_served(cluster, kind):
        return _no_definition()
    expected = schemas.of({"apiVersion": kind.api_version, "kind": kind.kind}).schema
    missing = list(_status_fields(expected, published)) if published else []
    return _unfit(missing or _refused(cluster, kind, plans))


def _is_served(cluster: Cluster, kind: Kind) -> bool:
    """False if the server does not serve the kind, though it may serve others of the group."""
    try:
        cluster.list(Selection(kind=kind))
    except NoSuchKind:
        return False
    except COULD_NOT_LOOK:
        return True
    return True


def _no_definition() -> Problem:
    message = f"the cluster has no CustomResourceDefinition upgradeplans.{GROUP}"
    remedy = "install the manager with it: upgradeplan install; or it alone: upgradeplan install --crds"
    return Problem(reason=NO_DEFINITION, message=message, remedy=remedy)


def unknown_fields(expected: _Schema, served: _Schema, path: str) -> Iterator[str]:
    """The fields of one schema that another neither declares nor preserves; of nested ones the outermost."""
    if served.get(_PRESERVE):
        return
    for name, below in (expected.get("properties") or {}).items():
        field, found = f"{path}.{name}", _below(served, name)
        if found is None:
            yield field
        else:
            yield from unknown_fields(below, found, field)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        below, found = expected.get(key), served.get(key)
        if isinstance(below, Mapping) and isinstance(found, Mapping):
            yield from unknown_fields(below, found, f"{path}{suffix}")


def _status_fields(expected: _Schema, published: _Schema) -> Iterator[str]:
    ours, theirs = ((schema.get("properties") or {}).get("status") or {} for schema in (expected, published))
    if not published.get(_PRESERVE):
        yield from (field for field in unknown_fields(ours, theirs, "status") if field not in _NO_LONGER_WRITTEN)


def _below(served: _Schema, name: str) -> _Schema | None:
    found = (served.get("properties") or {}).get(name, served.get("additionalProperties"))
    return found if isinstance(found, Mapping) else {_PRESERVE: True} if found is True else None


def _refused(cluster: Cluster, kind: Kind, plans: Sequence[Body]) -> list[str]:
    """The fields that a dry run of a plan's status is refused for, or loses."""
    for plan in plans[:1]:
        try:
            answer = cluster.patch(kind, ref_of(plan), {"status": dict(_TRIED)}, subresource="status", dry_run=True)
        except Invalid as error:
            return [cause.field for cause in error.causes if cause.message.startswith("unknown field")]
        except NotFound:
            return []
        kept = answer.body.get("status") or {}
        return [f"status.{name}" for name in _TRIED if name not in kept]
    return []


def _unfit(fields: Sequence[str]) -> Problem | None:
    if not fields:
        return None
    message = (
        f"CustomResourceDefinition upgradeplans.{GROUP} is another program's, or of an earlier version: "
        f"it does not have {', '.join(fields)}; no plan is touched"
    )
    return Problem(reason="AnotherDefinition", message=message, field=fields[0], remedy=REMEDY)
