"""Where objects are read from: the cluster itself, each time anew. Errors become answers: a probe that could not look
says so, and a cluster that is away ends the round."""

from __future__ import annotations

from typing import Protocol

from reconcile.cluster.errors import BackendFailed, Denied, Forbidden, Gone, NoSuchKind, NotFound, ServerFailed
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.probes.look import Group, Unseen
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Ref

COULD_NOT_LOOK = (Forbidden, Denied, ServerFailed, Gone, BackendFailed)
"""Errors about one object or kind; that the cluster is away, or does not know us, is raised."""


class Source(Protocol):
    """Answers with what is there now, or was there a moment ago."""

    def get(self, ref: Ref) -> Body | Unseen | None:
        """None where the object, or its kind, does not exist."""
        ...

    def list(self, group: Group, fields: str = "") -> tuple[Body, ...] | Unseen:
        """None at all where the kind does not exist. `fields` is a field selector."""
        ...

    def note(self, body: Body) -> None:
        """An object as it is after a write of ours, which a copy may not have yet."""
        ...


class DirectSource:
    """Asks the cluster each time."""

    def __init__(self, cluster: Cluster, kinds: Kinds) -> None:
        self._cluster = cluster
        self._kinds = kinds

    def get(self, ref: Ref) -> Body | Unseen | None:
        kind = self._kinds.row(ref.api_version, ref.kind).kind
        try:
            return self._cluster.get(kind, ref).body
        except (NotFound, NoSuchKind):
            return None
        except COULD_NOT_LOOK as error:
            return Unseen(why=error.problem.message)

    def list(self, group: Group, fields: str = "") -> tuple[Body, ...] | Unseen:
        try:
            return self._cluster.list(selection_of(group, self._kinds, fields)).items
        except NoSuchKind:
            return ()
        except COULD_NOT_LOOK as error:
            return Unseen(why=error.problem.message)

    def note(self, body: Body) -> None:
        return None


def selection_of(group: Group, kinds: Kinds, fields: str = "") -> Selection:
    labels = ",".join(f"{key}={value}" for key, value in group.labels)
    kind = kinds.row(group.api_version, group.kind).kind
    return Selection(kind=kind, namespace=group.namespace, labels=labels, fields=fields)
