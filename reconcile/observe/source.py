"""Where objects are read from: the cluster itself, each time again. Errors become answers: a probe that could not look
says so, and a cluster that is away ends the round. What can be seen at all, `selection` says."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from reconcile.cluster.errors import NoSuchKind
from reconcile.cluster.protocol import Cluster
from reconcile.observe.selection import COULD_NOT_LOOK, not_listed, read_by_name, read_failures, selection_of, trimmed
from reconcile.probes.look import Group, ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Kind, Ref


class Source(Protocol):
    """Answers with what is there now, or was there a moment ago: under the version that is asked for, or under another
    one of the kind where that has nothing."""

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """None where the object, or its kind, does not exist."""
        ...

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        """None at all where the kind does not exist."""
        ...

    def note(self, body: Body) -> None:
        """An object as it is after a write of ours, which a copy may not have yet."""
        ...


def under(kind: Kind, ref: Ref) -> Ref:
    """The object under one version of its kind."""
    return ref if kind.api_version == ref.api_version else replace(ref, api_version=kind.api_version)


class DirectSource:
    """Asks the cluster each time: for commands that look once."""

    def __init__(self, cluster: Cluster, kinds: Kinds) -> None:
        self._cluster = cluster
        self._kinds = kinds

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        for kind in self._kinds.served_as(ref.api_version, ref.kind):
            if (found := read_by_name(self._cluster, kind, under(kind, ref))) is not None:
                return found
        return None

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        for kind in self._kinds.served_as(group.api_version, group.kind):
            found = self._listed(kind, group)
            if isinstance(found, ReadFailure) or found:
                return found
        return ()

    def note(self, body: Body) -> None:
        return None

    def _listed(self, kind: Kind, group: Group) -> tuple[Body, ...] | ReadFailure:
        selection = selection_of(kind, group.namespace)
        if selection is None:
            return not_listed(kind)
        labels = ",".join(f"{key}={value}" for key, value in group.labels)
        try:
            return tuple(map(trimmed, self._cluster.list(replace(selection, labels=labels)).items))
        except NoSuchKind:
            return ()
        except COULD_NOT_LOOK as error:
            return read_failures(error)
