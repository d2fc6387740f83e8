"""The kind and the ref of an object. Imports no other module of the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from renderer.frozen import frozen

Body = Mapping[str, Any]
"""A manifest or an object as JSON-like values; never changed in place."""


@frozen
class Kind:
    """A kind as the API server serves it: `batch/v1 Job`, plural `jobs`, namespaced."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"

    def __lt__(self, other: Kind) -> bool:
        return (self.api_version, self.kind, self.plural) < (other.api_version, other.kind, other.plural)


class Ref(NamedTuple):
    """One object's identity. `namespace` is empty for cluster-scoped kinds.

    A tuple, since each look-up of an object begins with its hash.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def __lt__(self, other: tuple[str, ...]) -> bool:
        return self._order < Ref(*other)._order

    @property
    def _order(self) -> tuple[str, ...]:
        return (self.api_version, self.kind, self.namespace, self.name)


def ref_of(body: Body) -> Ref:
    """The ref of a manifest or object; absent parts are empty strings."""
    metadata = body.get("metadata") or {}
    return one_ref(
        str(body.get("apiVersion", "")),
        str(body.get("kind", "")),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
    )


@lru_cache(maxsize=2**14)
def one_ref(api_version: str, kind: str, namespace: str, name: str) -> Ref:
    """The ref of these parts, the very same each time: the same objects are asked for theirs again and again, and
    named in many places."""
    return Ref(api_version=api_version, kind=kind, namespace=namespace, name=name)
