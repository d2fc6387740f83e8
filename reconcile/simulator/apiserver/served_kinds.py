"""The kinds that the embedded cluster serves, and how it reads, checks and prepares objects of each.

A kind is built in (`schemas/kubernetes`), defined by a CustomResourceDefinition, or open: served without a schema, for
objects of a user's cluster whose definition nobody gave us. This room has no objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver.cel_rules import UncheckedRule
from reconcile.simulator.apiserver.field_set import FieldSet
from reconcile.simulator.apiserver.shape import Shape
from renderer.model.ref import Body, Kind

STATUS = "status"


class Strategy(Protocol):
    """The treatment of a kind's objects. `subresource` is empty or `status`."""

    def blank(self) -> Body:
        """An empty object of the kind."""
        ...

    def refused(self, body: Body, before: Body | None = None) -> tuple[StatusCause, ...]:
        """The causes for which strict decoding refuses: undeclared fields, and for built-in kinds wrong types. Parts
        that are the very same as `before`, the stored object's, need not be gone through again."""
        ...

    def read(self, body: Body, before: Body | None = None) -> dict[str, Any]:
        """The object as the server understands it, defaults included; `before` as for `refused`."""
        ...

    def merged(self, body: Body) -> dict[str, Any]:
        """The object that an apply has merged, with its defaults: of a custom resource nothing is dropped any more."""
        ...

    def stored(self, body: Body) -> dict[str, Any]:
        """The object as it comes back from the store: read once more, and what the store does not keep apart is one."""
        ...

    def prepared(self, new: dict[str, Any], old: Body | None, subresource: str) -> dict[str, Any]:
        """The object with what this endpoint may not write put back, and its generation counted."""
        ...

    def invalid(self, new: Body, old: Body | None, subresource: str) -> tuple[StatusCause, ...]:
        """All causes for which validation refuses."""
        ...

    def unchecked(self, new: Body, old: Body | None) -> tuple[UncheckedRule, ...]:
        """The rules that validation would have evaluated as well, and cannot."""
        ...

    def ignored(self, subresource: str) -> FieldSet:
        """The fields that this endpoint does not write, so they are not owned through it."""
        ...


class Origin(Enum):
    """The origin of a kind. The plural of a guessed kind is not certain."""

    BUILTIN = "builtin"
    DEFINED = "defined"
    GUESSED = "guessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """A kind as it is served. `status`: it has that subresource. `counts`: it counts generations.

    `selectable` are a CRD's own fields for selectors.
    """

    kind: Kind
    shape: Shape
    strategy: Strategy
    status: bool
    counts: bool = True
    selectable: tuple[str, ...] = ()
    origin: Origin = Origin.DEFINED


def counted(new: dict[str, Any], generation: int) -> dict[str, Any]:
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def replaced(new: Mapping[str, Any], old: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """`new` with what stands at the path in `old`, or nothing if nothing stands there."""
    head, *rest = path
    out = dict(new)
    if rest:
        out[head] = replaced(new.get(head) or {}, old.get(head) or {}, tuple(rest))
    elif head in old:
        out[head] = old[head]
    else:
        out.pop(head, None)
    return out
