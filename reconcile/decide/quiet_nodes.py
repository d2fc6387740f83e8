"""The nodes of one stretch of steps that are as they were when the plan was last decided: of many, nearly all.

What changed since is looked for among all of them at once, by comparing which objects there are, and not node by node.
A node that is not among them is no other for it: it is compared with all that it was decided from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reconcile.probes.look import Group, Look, Need, ReadFailure
from reconcile.status.plan import PlanStatus
from renderer.model.ref import Ref
from renderer.model.sharing import changed

if TYPE_CHECKING:
    from reconcile.decide.builder import DecisionBuilder, WaitRequest
    from reconcile.decide.decision import Wait

_Inputs = tuple[Mapping[Any, Any], ...]
_Idle = tuple[str, int | None]
"""(phase, limit): what the date of a wait follows from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecision:
    """The result for one node where nothing is to be done: waits, and how often in a row gates have passed.

    It holds while `inputs` are the same, each of `seen` is answered the same, `passes_before` are the counts that were
    found, and the limits of `timed` are still kept or exceeded. `waits` are what `asked` came to last.
    """

    inputs: tuple[Any, ...]
    seen: tuple[tuple[Need, Any], ...]
    passes_before: Mapping[tuple[str, int], int]
    timed: tuple[tuple[datetime, int, bool], ...]
    asked: tuple[WaitRequest, ...]
    waits: list[Wait]
    passes: Mapping[tuple[str, int], int]
    progress: str
    reached: Any


class QuietNodes:
    """`nodes` has the decisions that hold, by node, of all that was last looked at. None of them counts rounds, or asks
    by itself for the time."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeDecision] = {}
        self._common: tuple[Any, ...] | None = None
        self._inputs: _Inputs = ()
        self._answers: dict[Need, Any] = {}
        self._lookers: dict[Need, set[str]] = {}
        self._dated: dict[_Idle, tuple[datetime | None, bool]] = {}
        self._waiting: dict[_Idle, set[str]] = {}

    def keep_with(
        self,
        phase: str,
        common: tuple[Any, ...],
        of_node: Mapping[str, Any],
        status: PlanStatus,
        loans: Mapping[str, Any],
    ) -> None:
        """Drops the nodes of which one of these says something else than it did."""
        inputs: _Inputs = of_node, status.records, status.attempts, status.done, status.node_states, loans
        if common is not self._common:
            self._clear()
        else:
            steps, records, attempts, done, states, lent = map(changed, inputs, self._inputs)
            of_phase = (place for places in (records, attempts, done) for place in places)
            of_places = (node for name, node in of_phase if name == phase)
            for node in {*steps, *of_places, *states, *lent}:
                self._drop(node)
        self._common, self._inputs = common, inputs

    def drop_changed(self, look: Look) -> None:
        """Drops the nodes that would see another answer."""
        others = [need for need, then in self._answers.items() if not is_answered(look, need, then)]
        for node in {node for need in others for node in self._lookers[need]}:
            self._drop(node)

    def date(self, builder: DecisionBuilder) -> None:
        """Brings the waits of all of them up to date."""
        now: dict[_Idle, tuple[datetime | None, bool]] = {key: builder.idle(*key) for key in self._dated}
        if now != self._dated:
            self._dated = now
            for kept in self.nodes.values():
                date(builder, kept)

    def add(self, builder: DecisionBuilder, node: str, kept: NodeDecision) -> None:
        """A decision that was made, or compared, just now."""
        if kept.passes_before or kept.timed or any(asked.idle is None for asked in kept.asked):
            return
        self._drop(node)
        if kept.waits:
            self.date(builder)
        self.nodes[node] = kept
        for need, answer in kept.seen:
            self._answers.setdefault(need, answer)
            self._lookers.setdefault(need, set()).add(node)
        for asked, wait in zip(kept.asked, kept.waits, strict=True):
            self._dated[_idle(asked)] = wait.counted, wait.slow
            self._waiting.setdefault(_idle(asked), set()).add(node)

    def _drop(self, node: str) -> None:
        kept = self.nodes.pop(node, None)
        if kept is not None:
            _forget(node, (need for need, _ in kept.seen), self._lookers, self._answers)
            _forget(node, {_idle(asked) for asked in kept.asked}, self._waiting, self._dated)

    def _clear(self) -> None:
        for known in (self.nodes, self._answers, self._lookers, self._dated, self._waiting):
            known.clear()


def _idle(asked: WaitRequest) -> _Idle:
    return str(asked.idle), asked.limit


def _forget(node: str, keys: Iterable[Any], nodes_of: dict[Any, set[str]], known: dict[Any, Any]) -> None:
    """The node has to do with these no more; what no node has to do with goes."""
    for key in keys:
        nodes_of[key].discard(node)
        if not nodes_of[key]:
            del nodes_of[key], known[key]


def date(builder: DecisionBuilder, kept: NodeDecision) -> None:
    """Brings the waits of a decision up to date."""
    for place, (asked, then) in enumerate(zip(kept.asked, kept.waits, strict=True)):
        counted, slow = builder.counted(asked)
        if slow is not then.slow or (counted is not then.counted and counted != then.counted):
            kept.waits[place] = builder.waiting(asked)


def is_answered(look: Look, need: Need, then: Any) -> bool:
    """True if the answer is what it was then. A narrower group is made again each time, of the same bodies."""
    found = look.get(need) if isinstance(need, Ref) else look.list(need) if isinstance(need, Group) else None
    return found is then or (isinstance(found, (tuple, ReadFailure)) and bool(found == then))
