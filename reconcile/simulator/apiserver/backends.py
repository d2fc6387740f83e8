"""The backends of the embedded API server: kubelets, Services, pod logs, KubeVirt. Answers are registered.

A backend that nobody registered does not answer: BackendFailed, as a real server says of a dead one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from reconcile.cluster.errors import BackendFailed, NoSuchKind, NotFound
from reconcile.simulator.apiserver.store import Store
from renderer.model.ref import Body, Kind, Ref


class Reader(Protocol):
    """Gives the bytes of one path of a subresource. Raises BackendFailed for whatever it cannot give."""

    def __call__(self, ref: Ref, path: str, query: Mapping[str, str], /) -> bytes: ...


Actor = Callable[[Ref, Body], Body]
"""Does what a PUT asks for; answers the body, often empty."""


class Backends:
    """Readers and actors by kind and subresource."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: dict[tuple[str, str], Reader] = {}
        self._actors: dict[tuple[str, str], Actor] = {}

    def serve_read(self, kind: str, subresource: str, reader: Reader) -> None:
        """`serve_read("Node", "proxy", ...)`: the reader gets the path below the subresource, without a slash first."""
        self._readers[kind, subresource] = reader

    def serve_put(self, kind: str, subresource: str, actor: Actor) -> None:
        self._actors[kind, subresource] = actor

    def read(self, ref: Ref, subresource: str, query: Mapping[str, str]) -> bytes:
        """Raises NotFound when the object that stands before the backend is not there."""
        name, _, path = subresource.partition("/")
        target = _without_port(ref)
        with self._store.lock:
            if self._store.find(target) is None:
                if ref.kind == "Service":  # which is looked up by its endpoints
                    raise BackendFailed(ref, subresource, 404, f"endpoints {target.name!r} not found")
                raise NotFound(target)
        reader = self._readers.get((ref.kind, name))
        if reader is None:
            raise BackendFailed(ref, subresource, 503, "no endpoints available")
        return reader(ref, path, query)

    def put(self, kind: Kind, ref: Ref, subresource: str, body: Body) -> Body:
        actor = self._actors.get((ref.kind, subresource))
        if actor is None:
            raise NoSuchKind(kind, subresource)
        return actor(ref, body)


def _without_port(ref: Ref) -> Ref:
    """The Service of `[scheme:]name[:port]`."""
    parts = ref.name.split(":")
    name = parts[1] if len(parts) == 3 else parts[0]
    return Ref(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace, name=name)
