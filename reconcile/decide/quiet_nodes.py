"""The nodes of one stretch of steps that are as they were when the plan was last decided: of many, nearly all.

What changed since is looked for among all of them at once, by comparing which objects there are, and not node by node.
A node that is not among them is no other for it: it is compared with all that it was decided from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reconcile.decide.answers import NodeAnswers
from reconcile.probes.look import Look, Need
from reconcile.status.plan import PlanStatus
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
    by itself for the time. `has_progress`: one of them may have words for the plan's progress."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeDecision] = {}
        self._common: tuple[Any, ...] | None = None
        self._inputs: _Inputs = ()
        self._answers = NodeAnswers()
        self._dated: dict[_Idle, tuple[datetime | None, bool]] = {}
        self._waiting: dict[_Idle, set[str]] = {}
        self.has_progress = False

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
        for node in self._answers.answered_otherwise(look):
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
        self.has_progress = self.has_progress or bool(kept.progress)
        self._answers.add(node, kept.seen)
        for asked, wait in zip(kept.asked, kept.waits, strict=True):
            self._dated[_idle(asked)] = wait.counted, wait.slow
            self._waiting.setdefault(_idle(asked), set()).add(node)

    def _drop(self, node: str) -> None:
        kept = self.nodes.pop(node, None)
        if kept is None:
            return
        self._answers.forget(node, kept.seen)
        for key in {_idle(asked) for asked in kept.asked}:
            self._waiting[key].discard(node)
            if not self._waiting[key]:
                del self._waiting[key], self._dated[key]

    def _clear(self) -> None:
        self._answers.clear()
        for known in (self.nodes, self._dated, self._waiting):
            known.clear()


def _idle(asked: WaitRequest) -> _Idle:
    return str(asked.idle), asked.limit


def date(builder: DecisionBuilder, kept: NodeDecision) -> None:
    """Brings the waits of a decision up to date."""
    for place, (asked, then) in enumerate(zip(kept.asked, kept.waits, strict=True)):
        counted, slow = builder.counted(asked)
        if slow is not then.slow or (counted is not then.counted and counted != then.counted):
            kept.waits[place] = builder.waiting(asked)
