"""The objects of one kind as actors have them at hand: by namespace and name, and by the uids of their owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from renderer.model.ref import Body, Kind

Key = tuple[str, str]
"""Namespace and name."""
Test = Callable[[Body], bool]


class KindCache:
    """The objects of one kind, by namespace and name, and by the uids of their owners. Each has a spec, an empty one
    where its writer gave it none."""

    def __init__(self, kind: Kind | None, bodies: Iterable[Body]) -> None:
        """`kind` is the version of the kind in which they were listed; None where there is no object in any."""
        self.kind = kind
        self.objects: dict[Key, Body] = {}
        self.state = object()
        self._views: dict[Test, dict[Key, Body]] = {}
        self._sorted: dict[Test, tuple[Body, ...]] = {}
        self._order: dict[Test, list[Key]] = {}
        self.owned: dict[str, dict[Key, Body]] = {}
        for body in bodies:
            self.put(body)

    def those(self, test: Test) -> tuple[Body, ...]:
        """The objects that pass, by namespace and name, also those that came one by one: each was asked once, when it
        came."""
        if (known := self._sorted.get(test)) is not None:
            return known
        view = self._views.get(test)
        if view is None:
            view = self._views[test] = {key: body for key, body in self.objects.items() if test(body)}
        if test not in self._order:
            self._order[test] = sorted(view)
        found = self._sorted[test] = tuple(map(view.__getitem__, self._order[test]))
        return found

    def put(self, body: Body) -> None:
        """Another `state` says that something has changed."""
        body = body if isinstance(body.get("spec"), dict) else {**body, "spec": {}}
        before = self.objects.get(key_of(body))
        if before is not None and version_of(before) == version_of(body):
            return
        if before is not None and _owners(before) != _owners(body):
            self.drop(before)
        key = key_of(body)
        self.objects[key] = body
        self.state = object()
        for test, view in self._views.items():
            if test(body):
                if key not in view:
                    self._order.pop(test, None)
                view[key] = body
                self._sorted.pop(test, None)
            elif view.pop(key, None) is not None:
                self._forget(test)
        for uid in _owners(body):
            self.owned.setdefault(uid, {})[key] = body

    def drop(self, body: Body) -> None:
        self.objects.pop(key_of(body), None)
        self.state = object()
        for test, view in self._views.items():
            if view.pop(key_of(body), None) is not None:
                self._forget(test)
        for uid in _owners(body):
            self.owned.get(uid, {}).pop(key_of(body), None)

    def _forget(self, test: Test) -> None:
        """Other objects pass now."""
        self._sorted.pop(test, None)
        self._order.pop(test, None)


def version_of(body: Body | None) -> str:
    return str(body["metadata"].get("resourceVersion")) if body else ""


def key_of(body: Body) -> Key:
    return str(body["metadata"].get("namespace") or ""), str(body["metadata"]["name"])


def _owners(body: Body) -> list[str]:
    return [str(owner["uid"]) for owner in body["metadata"].get("ownerReferences") or ()]
