"""One context as the steps of a rendering see it, so that a step is rendered again only where something that it has
looked at is another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from renderer.context.build import Context
from renderer.context.scope import Looked, Scope
from renderer.digest import digest_of
from renderer.model.path import ABSENT

CAPTURED = ("captured",)
"""The values that were captured, which are not the context's but of the run."""
NODE = "node"
"""The node of a step, one of the context's."""
GIVEN, MARKS, ENDING = "<given>", "<marks>", "<ending>"
"""The parts of a context that are no names of it: which inputs there are, texts for values that come at run time, and
whether the plan is ending."""


def looked(*path: str) -> Looked:
    return path, True


def looked_for(inputs: Iterable[str]) -> set[Looked]:
    """Of each of these inputs, whether it was given."""
    return {looked(GIVEN, name) for name in inputs}


class SeenContext:
    """`digest` is that of all that a step can look at but its node's own: the same for all steps."""

    def __init__(self, context: Context, ending: bool) -> None:
        self.context = context
        self.ending = ending
        self._known: dict[tuple[Looked, str | None], str] = {}

    @cached_property
    def digest(self) -> str:
        return digest_of([self.context.data, sorted(self.context.given), self.ending])

    def at(self, it: Looked, node: str | None) -> str:
        """Tells what is there for the steps of that node from anything else."""
        path, whole = it
        key = it, node if path[0] == NODE else None
        if key not in self._known:
            found = self._found(path, node)
            self._known[key] = _told(found) if whole else str(isinstance(found, Scope))
        return self._known[key]

    def _found(self, path: tuple[Any, ...], node: str | None) -> Any:
        found = self._roots.get(path[0], ABSENT) if path[0] != NODE else self._nodes.get(node, ABSENT)
        for key in path[1:]:
            found = found.get(key, ABSENT) if isinstance(found, Scope) else ABSENT
        return found

    @cached_property
    def _roots(self) -> dict[str, Any]:
        given = Scope(GIVEN, dict.fromkeys(self.context.given, True))
        own = {GIVEN: given, MARKS: sorted(self.context.marks), ENDING: self.ending}
        return {**self.context.data, **own, CAPTURED[0]: ""}

    @cached_property
    def _nodes(self) -> dict[str | None, Any]:
        return {node["name"]: node for node in self.context.nodes}


def _told(value: Any) -> str:
    return "absent" if value is ABSENT else digest_of(value)
