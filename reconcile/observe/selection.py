"""Selects what is read of each kind: one rule for the loop, for rehearsals, and for commands that run once.

Most kinds are listed and watched without restriction. Of Secrets only Rancher's machine plans are listed; every other
Secret is read by name, so that the loop needs no right to read all Secrets of a cluster. A Node's images are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconcile.cluster.errors import (
    BackendFailed,
    ClusterError,
    Denied,
    Forbidden,
    Gone,
    NoSuchKind,
    NotFound,
    ServerFailed,
)
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.objects import FIELD_MANAGER, LISTED_IN_PART, has_field_manager
from reconcile.probes.look import Group, ReadFailure
from renderer.model.ref import Body, Kind, Ref, ref_of
from renderer.model.sharing import same_shape
from renderer.validation.shapes import misfit

MACHINE_PLANS = Group(api_version="v1", kind="Secret", namespace="fleet-local")
_OF_EACH_NODE = ("Node", "Machine")
COULD_NOT_LOOK = (Forbidden, Denied, ServerFailed, Gone, BackendFailed)
"""Errors about one object or kind; that the cluster is away, or does not know us, is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Narrowing:
    """The one namespace in which a kind is listed, and the field selector that is used there."""

    namespace: str
    fields: str
    what: str


_NARROWED = dict.fromkeys(
    LISTED_IN_PART,
    _Narrowing(
        namespace=MACHINE_PLANS.namespace, fields="type=rke.cattle.io/machine-plan", what="machine plans of fleet-local"
    ),
)


def selection_of(kind: Kind, namespace: str) -> Selection | None:
    """The selection that is listed and watched of a kind; None if its objects are only read by name."""
    narrowing = _NARROWED.get((kind.api_version, kind.kind))
    if narrowing is None:
        return Selection(kind=kind, namespace=namespace)
    if namespace != narrowing.namespace:
        return None
    return Selection(kind=kind, namespace=namespace, fields=narrowing.fields)


def is_whole(kind: Kind) -> bool:
    """True if the list has every object of the kind; an object that is missing from a narrowed list may still exist."""
    return (kind.api_version, kind.kind) not in _NARROWED


def not_listed(kind: Kind) -> ReadFailure:
    """Explains why a group of the kind cannot be read."""
    narrowing = _NARROWED[kind.api_version, kind.kind]
    why = f"of {kind.kind} objects only the {narrowing.what} are listed"
    return ReadFailure(why=why, remedy=f"name the {kind.kind}: each one is read by its name")


def read_by_name(cluster: Cluster, kind: Kind, ref: Ref) -> Body | ReadFailure | None:
    """One object from the cluster itself; None if it, or its kind, does not exist."""
    try:
        body = cluster.get(kind, ref).body
        return misshapen(body) or trimmed(body)
    except (NotFound, NoSuchKind):
        return None
    except COULD_NOT_LOOK as error:
        return read_failures(error)


def read_failures(error: ClusterError) -> ReadFailure:
    """The failure of a read; if it is a matter of rights, the remedy names the missing rule."""
    return ReadFailure(why=error.problem.message, remedy=error.problem.remedy)


def misshapen(body: Body) -> ReadFailure | None:
    """The failure for an object of which a field has another type than its definition says; nobody reads it then."""
    why = misfit(body)
    if why is None:
        return None
    ref = ref_of(body)
    where = f" -n {ref.namespace}" if ref.namespace else ""
    return ReadFailure(why=f"{ref}: {why}", remedy=f"correct it: kubectl edit {ref.kind.lower()} {ref.name}{where}")


def misshapen_among(bodies: Iterable[Body]) -> ReadFailure | None:
    """The failure for the first such object of a list. One of the shape of the one before is as right as that."""
    before: Body = {}
    for body in bodies:
        if not same_shape(body, before) and (found := misshapen(body)):
            return found
        before = body
    return None


def trimmed(body: Body) -> Body:
    """Without most of what each of many nodes has and no probe needs: a Node's list of images, and who owns which field
    of a Node or Machine, unless we own one."""
    if body.get("kind") not in _OF_EACH_NODE:
        return body
    status, metadata = body.get("status"), body.get("metadata")
    found = body
    if isinstance(status, dict) and "images" in status:
        found = {**found, "status": {key: value for key, value in status.items() if key != "images"}}
    if isinstance(metadata, dict) and "managedFields" in metadata and not has_field_manager(body, FIELD_MANAGER):
        found = {**found, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
    return found
