"""Where objects are read from: the cluster itself, each time anew. Errors become answers: a probe that could not look
says so, and a cluster that is away ends the round."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from reconcile.cluster.errors import BackendFailed, Denied, Forbidden, Gone, NoSuchKind, NotFound, ServerFailed
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.probes.look import Group, ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Kind, Ref

COULD_NOT_LOOK = (Forbidden, Denied, ServerFailed, Gone, BackendFailed)
"""Errors about one object or kind; that the cluster is away, or does not know us, is raised."""


class Source(Protocol):
    """Answers with what is there now, or was there a moment ago: under the version that is asked for, or under another
    one of the kind where that has nothing."""

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """None where the object, or its kind, does not exist."""
        ...

    def list(self, group: Group, fields: str = "") -> tuple[Body, ...] | ReadFailure:
        """None at all where the kind does not exist. `fields` is a field selector."""
        ...

    def note(self, body: Body) -> None:
        """An object as it is after a write of ours, which a copy may not have yet."""
        ...


def under(kind: Kind, ref: Ref) -> Ref:
    """The object under one version of its kind."""
    return ref if kind.api_version == ref.api_version else replace(ref, api_version=kind.api_version)


class DirectSource:
    """Asks the cluster each time."""

    def __init__(self, cluster: Cluster, kinds: Kinds) -> None:
        self._cluster = cluster
        self._kinds = kinds

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        for kind in self._kinds.served_as(ref.api_version, ref.kind):
            try:
                return self._cluster.get(kind, under(kind, ref)).body
            except (NotFound, NoSuchKind):
                continue
            except COULD_NOT_LOOK as error:
                return ReadFailure(why=error.problem.message, remedy=error.problem.remedy)
        return None

    def list(self, group: Group, fields: str = "") -> tuple[Body, ...] | ReadFailure:
        labels = ",".join(f"{key}={value}" for key, value in group.labels)
        for kind in self._kinds.served_as(group.api_version, group.kind):
            selection = Selection(kind=kind, namespace=group.namespace, labels=labels, fields=fields)
            try:
                if items := self._cluster.list(selection).items:
                    return items
            except NoSuchKind:
                continue
            except COULD_NOT_LOOK as error:
                return ReadFailure(why=error.problem.message, remedy=error.problem.remedy)
        return ()

    def note(self, body: Body) -> None:
        return None
