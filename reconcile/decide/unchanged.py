"""Takes over what was decided in an earlier round, as a whole or for one node, as long as nothing that it was decided
from has changed.

Most of what a watch brings is nothing that a plan looks at, and of many nodes most wait, or are through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from reconcile.borrow.loan import Loan
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision import Decision
from reconcile.decide.decision_cache import DecisionCache, NodeDecision, Stretch
from reconcile.decide.observation import Observation
from reconcile.objects import uid
from reconcile.probes.look import Answer, Group, Look, Need, ReadFailure, Reading
from renderer.model.ref import Body, Ref
from renderer.model.rendered import RenderedStep
from renderer.model.sharing import SameObject

_T = TypeVar("_T")
_Common = tuple[tuple[Any, ...], Mapping[str, tuple[Loan, ...]]]
"""(inputs, loans by node)."""


class _Remembering:
    """A `Look` that remembers what it was asked for and what it answered. `timeless`: a reading is another each minute,
    and what is said of one depends on the time."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.seen: dict[Need, Any] = {}
        self.timeless = True

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        found = self.seen[ref] = self._look.get(ref)
        return found

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        found = self.seen[group] = self._look.list(group)
        return found

    def reading(self, reading: Reading, name: str) -> Answer:
        self.timeless = False
        return self._look.reading(reading, name)


def decides_the_same(then: Observation, now: Observation, decision: Decision, cache: DecisionCache) -> bool:
    """True if a decision that did nothing comes out the same of another observation, if that looks at the same."""
    waits = (
        (wait.counted, wait.limit, wait.slow) for wait in decision.waits if wait.counted and wait.limit is not None
    )
    return (
        not (decision.again or decision.events)
        and now.plan is then.plan
        and now.rendered is then.rendered
        and _reported(now) == _reported(then)
        and all([now.attended(since) > limit] == [past] for since, limit, past in (*cache.timed, *waits))
    )


def _reported(observation: Observation) -> tuple[Any, ...]:
    """All else that a decision is made from, but the time and what it looks at."""
    return (
        observation.others,
        observation.fetched,
        observation.fetch_failures,
        observation.passes,
        observation.errors,
        observation.approved,
        observation.sealed,
        observation.unapproved,
        observation.templates,
        observation.approved_templates,
    )


def unless_unchanged(
    builder: DecisionBuilder, stretch: Stretch, steps: Sequence[RenderedStep], decided: Callable[[], _T]
) -> _T:
    """The result of `decided` for the steps of one node, or what it came to when everything was as it is now."""
    if stretch.looks_further:
        return decided()
    phase, node = steps[0].phase, str(steps[0].step.node)
    place, inputs = (phase, node, steps[0].step.name), _inputs(builder, phase, node, steps)
    kept = builder.cache.nodes.get(place)
    if kept is not None and kept.inputs == inputs and _holds(builder, kept):
        _take_over(builder, kept)
        reached: _T = kept.reached
        return reached
    builder.cache.nodes.pop(place, None)
    return _noted(builder, place, inputs, decided)


def _inputs(builder: DecisionBuilder, phase: str, node: str, steps: Sequence[RenderedStep]) -> tuple[Any, ...]:
    """All that a node is decided from, but what is looked at, counted and timed."""
    status = builder.status
    common, loans = _common(builder, phase)
    return common, steps, status.at(phase, node), status.node_states.get(node), loans.get(node)


def _common(builder: DecisionBuilder, phase: str) -> _Common:
    """The inputs that a node shares with all others, and the loans of each node; gathered once as long as the nodes
    before it have changed nothing."""
    if builder.common is None or builder.common[:2] != (SameObject(builder.status), phase):
        status, observation, loans = builder.status, builder.observation, dict[str, tuple[Loan, ...]]()
        for loan in status.loans:
            node = loan.step.partition("/")[2]
            loans[node] = (*loans.get(node, ()), loan)
        inputs = (
            status.at(phase, None),
            status.skipped,
            loans.pop("", ()),
            phase in builder.closed,
            builder.since,
            uid(observation.plan),
            observation.fetched,
            observation.fetch_failures,
            observation.others,
        )
        builder.common = SameObject(status), phase, builder.cache.common_to(phase, inputs), loans
    return builder.common[2:]


def _holds(builder: DecisionBuilder, kept: NodeDecision) -> bool:
    observation = builder.observation
    return (
        all(observation.passes.get(place, 0) == count for place, count in kept.passes_before.items())
        and all(_is_same(_answer(observation.look, need), then) for need, then in kept.seen)
        and all(builder.is_past(since, limit) is past for since, limit, past in kept.timed)
    )


def _answer(look: Look, need: Need) -> Any:
    return look.get(need) if isinstance(need, Ref) else look.list(need) if isinstance(need, Group) else None


def _is_same(found: Any, then: Any) -> bool:
    """A narrower group is made again each time, of the same bodies."""
    return found is then or (isinstance(found, (tuple, ReadFailure)) and found == then)


def _take_over(builder: DecisionBuilder, kept: NodeDecision) -> None:
    for asked, then in zip(kept.asked, kept.waits, strict=True):
        is_same = builder.counted(asked) == (then.counted, then.slow)
        builder.waits.append(then if is_same else builder.waiting(asked))
    builder.passes.update(kept.passes)
    builder.progress = builder.progress or kept.progress


def _noted(
    builder: DecisionBuilder, place: tuple[str, str, str], inputs: tuple[Any, ...], decided: Callable[[], _T]
) -> _T:
    """Decides, and keeps that if nothing is to be done."""
    observation, look = builder.observation, _Remembering(builder.observation.look)
    before, progress, passes = _written(builder), builder.progress, builder.passes
    waits, asked, timed = len(builder.waits), len(builder.asked), len(builder.timed)
    builder.observation, builder.progress, builder.passes = replace(observation, look=look), "", {}
    builder.saw_others = False
    try:
        reached = decided()
        is_quiet = _written(builder) == before and look.timeless and not builder.saw_others
        if is_quiet and len(builder.waits) - waits == len(builder.asked) - asked:
            builder.cache.nodes[place] = NodeDecision(
                inputs=inputs,
                seen=tuple(look.seen.items()),
                passes_before={gate: observation.passes.get(gate, 0) for gate in builder.passes},
                timed=tuple(builder.timed[timed:]),
                asked=tuple(builder.asked[asked:]),
                waits=tuple(builder.waits[waits:]),
                passes=dict(builder.passes),
                progress=builder.progress,
                reached=reached,
            )
    finally:
        builder.observation, builder.progress = observation, progress or builder.progress
        passes.update(builder.passes)
        builder.passes = passes
    return reached


def _written(builder: DecisionBuilder) -> tuple[Any, ...]:
    """All that a step can do but wait."""
    held = sum(map(len, builder.held.values()))
    waiting = len(builder.recorded_waits)
    counts = (len(builder.actions), len(builder.events), len(builder.failures))
    return SameObject(builder.status), waiting, held, counts
