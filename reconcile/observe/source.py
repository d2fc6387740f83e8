"""The source of objects. Errors about one object or kind become read failures, which probes report; a cluster
that is away ends the round. `selection` says what can be read at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from reconcile.cluster.errors import NoSuchKind
from reconcile.cluster.protocol import Cluster, Keep
from reconcile.observe.selection import (
    COULD_NOT_LOOK,
    is_whole,
    misshapen_among,
    not_listed,
    read_by_name,
    read_failures,
    selection_of,
    trimmed,
)
from reconcile.probes.look import Group, ReadFailure
from renderer.catalog.kinds import KindRow, Kinds
from renderer.model.ref import Body, Kind, Ref

Watched = Callable[[Group], tuple[Body, ...] | ReadFailure | None]
"""The group's objects where a watch brings them all; None where none does."""


def nothing_watched(group: Group) -> None:
    """The answer where everything is read."""


class Source(Protocol):
    """Returns current or slightly older objects: in the requested version of the kind, or in another served version if
    that has none."""

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """None if the object, or its kind, does not exist."""
        ...

    def held(self) -> Mapping[Ref, Body]:
        """The objects that `get` would give now without another look, so that not each of many has to be asked for."""
        ...

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        """Empty if the kind does not exist."""
        ...

    def note(self, body: Body) -> None:
        """Takes an object as it is after a write of ours, which a cache may not have yet."""
        ...


def under(kind: Kind, ref: Ref) -> Ref:
    """The object under one version of its kind."""
    return ref if kind.api_version == ref.api_version else ref._replace(api_version=kind.api_version)


class DirectSource:
    """Reads from the cluster each time: for commands that run once."""

    def __init__(self, cluster: Cluster, kinds: Kinds, keep: Callable[[KindRow], Keep] | None = None) -> None:
        """`keep` says what is kept of the objects of lists; all of them by default."""
        self._cluster = cluster
        self._kinds = kinds
        self._keep = keep

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        for kind in self._kinds.served_as(ref.api_version, ref.kind):
            if (found := read_by_name(self._cluster, kind, under(kind, ref))) is not None:
                return found
        return None

    def held(self) -> Mapping[Ref, Body]:
        return {}

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        for kind in self._kinds.served_as(group.api_version, group.kind):
            found = self._named(kind, group) if group.name and not is_whole(kind) else self._listed(kind, group)
            if isinstance(found, ReadFailure) or found:
                return found
        return ()

    def note(self, body: Body) -> None:
        return None

    def _named(self, kind: Kind, group: Group) -> tuple[Body, ...] | ReadFailure:
        ref = Ref(api_version=kind.api_version, kind=kind.kind, namespace=group.namespace, name=group.name)
        found = read_by_name(self._cluster, kind, ref)
        return found if isinstance(found, ReadFailure) else () if found is None else (found,)

    def _listed(self, kind: Kind, group: Group) -> tuple[Body, ...] | ReadFailure:
        selection = selection_of(kind, group.namespace)
        if selection is None:
            return not_listed(kind)
        labels = ",".join(f"{key}={value}" for key, value in group.labels)
        try:
            fields = f"metadata.name={group.name}" if group.name else selection.fields
            keep = self._keep(self._kinds.row(kind.api_version, kind.kind)) if self._keep else None
            chosen = replace(selection, labels=labels, fields=fields)
            items = self._cluster.list(chosen, keep).items
            return misshapen_among(items) or tuple(map(trimmed, items))
        except NoSuchKind:
            return ()
        except COULD_NOT_LOOK as error:
            return read_failures(error)


class WatchedFirst:
    """A `Source` of groups that are watched anyway, and of all else from another: for what is looked at now and
    then."""

    def __init__(self, watched: Watched, other: Source) -> None:
        self._watched = watched
        self._other = other

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        return self._other.get(ref)

    def held(self) -> Mapping[Ref, Body]:
        return self._other.held()

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        found = self._watched(group)
        return self._other.list(group) if found is None else found

    def note(self, body: Body) -> None:
        self._other.note(body)
