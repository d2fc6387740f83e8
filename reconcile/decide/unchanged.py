"""Takes over what was decided in an earlier round, as a whole or for one node, as long as nothing that it was decided
from has changed.

Most of what a watch brings is nothing that a plan looks at, and of many nodes most wait, or are through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, filterfalse, takewhile
from math import inf
from operator import attrgetter
from typing import Any

from reconcile.borrow.loan import Loan
from reconcile.decide.answers import Remembering, is_answered
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision import Decision
from reconcile.decide.decision_cache import DecisionCache, Steps, Stretch
from reconcile.decide.observation import Observation
from reconcile.decide.quiet_nodes import NodeDecision, date
from reconcile.decide.step_run import Progress
from reconcile.objects import uid
from reconcile.probes.look import Look, Need
from reconcile.status.plan import PlanStatus
from renderer.model.sharing import SameObject

_WAITS, _PROGRESS, _REACHED = map(attrgetter, ("waits", "progress", "reached"))
_CHECK, _LIMIT = attrgetter("check"), attrgetter("counted", "limit", "slow")
_Common = tuple[tuple[Any, ...], Mapping[str, tuple[Loan, ...]]]
"""(inputs, loans by node)."""


def decides_the_same(then: Observation, now: Observation, decision: Decision, cache: DecisionCache) -> bool:
    """True if a decision that did nothing is the same for another observation that has the same objects."""
    waits = ((since, limit, slow) for since, limit, slow in _limits(decision) if since and limit is not None)
    return (
        not (decision.again or decision.events)
        and now.plan is then.plan
        and now.rendered is then.rendered
        and _reported(now) == _reported(then)
        and all([now.attended(since) > limit] == [past] for since, limit, past in (*cache.timed, *waits))
    )


def steady_for(observation: Observation, decision: Decision, cache: DecisionCache) -> float | None:
    """The seconds for which a decision that was just made, and did nothing, stays the same as long as all that was read
    does; None where the next one may be another at any time."""
    may_differ = (
        decision.again
        or decision.events
        or decision.passes != observation.passes
        or observation.errors
        or observation.fetch_failures
        or any(map(_CHECK, decision.waits))  # a check judges by the time as well
    )
    if may_differ:
        return None
    limits = _limits(decision).union(cache.timed)
    ahead = {(since, limit) for since, limit, past in limits if since and limit is not None and not past}
    return min((limit - observation.attended(since) for since, limit in ahead), default=inf)


def _limits(decision: Decision) -> set[tuple[datetime | None, int | None, bool]]:
    """From when the limits of its waits count, and whether they are exceeded; those of many nodes are the same."""
    return set(map(_LIMIT, decision.waits))


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
        observation.causes,
    )


class UnchangedNodes:
    """The decisions about the nodes of a stretch that hold as they are: of many nodes nearly all do, in every round.

    Those of which nothing is another object than in the last decision hold without a look at each; every other one is
    compared with all that it was decided from.
    """

    def __init__(self, builder: DecisionBuilder, stretch: Stretch, phase: str) -> None:
        self._builder = builder
        self._stretch = stretch
        self._phase = phase
        self._quiet = builder.cache.quiet_of(phase, stretch)
        self._status: PlanStatus | None = None
        self._is_dated = False
        self._common: tuple[Any, ...] = ()
        self._loans: Mapping[str, tuple[Loan, ...]] = {}

    def reached(self, decided: Callable[[Steps], Progress]) -> list[Progress]:
        """The result of `decided` for each node and its steps, or what it came to when everything was as it is now."""
        of_node = self._stretch.of_node
        if self._stretch.looks_further:
            return [decided(steps) for steps in of_node.values()]
        quiet, builder, found = self._quiet, self._builder, list[Progress]()
        self._look_at(builder.status)
        quiet.drop_changed(builder.observation.look)
        names = iter(of_node)
        for node in filterfalse(quiet.nodes.__contains__, of_node):  # each is asked for when it is its turn
            found.extend(self._take_over(takewhile(node.__ne__, names)))
            found.append(self._unless_unchanged(node, of_node[node], partial(decided, of_node[node])))
            if builder.status is not self._status:
                self._look_at(builder.status)
        found.extend(self._take_over(names))
        return found

    def _take_over(self, nodes: Iterable[str]) -> Iterable[Progress]:
        """Takes over what quiet nodes wait for; returns what each of them has come to."""
        builder, kept = self._builder, tuple(map(self._quiet.nodes.__getitem__, nodes))
        if not self._is_dated and any(map(_WAITS, kept)):  # not before: what counts may move for a node before these
            self._quiet.date(builder)
            self._is_dated = True
        builder.waits.extend(chain.from_iterable(map(_WAITS, kept)))
        if self._quiet.has_progress and not builder.progress:
            builder.progress = next(filter(None, map(_PROGRESS, kept)), "")
        return map(_REACHED, kept)

    def _look_at(self, status: PlanStatus) -> None:
        """Takes the status, and drops the quiet nodes of which it says something else."""
        self._status, (self._common, self._loans) = status, _common(self._builder, self._phase)
        self._quiet.keep_with(self._phase, self._common, self._stretch.of_node, status, self._loans)

    def _unless_unchanged(self, node: str, steps: Steps, decided: Callable[[], Progress]) -> Progress:
        builder, place, inputs = self._builder, (self._phase, node, steps[0].step.name), self._inputs(node, steps)
        kept = builder.cache.nodes.get(place)
        if kept is not None and kept.inputs == inputs and _holds(builder, kept):
            _take_over(builder, kept)
            reached: Progress = kept.reached
        else:
            builder.cache.nodes.pop(place, None)
            reached = _noted(builder, place, inputs, decided)
            kept = builder.cache.nodes.get(place)
        if kept is not None and builder.status is self._status:
            self._quiet.add(builder, node, kept)
        return reached

    def _inputs(self, node: str, steps: Steps) -> tuple[Any, ...]:
        """All that a node is decided from, but what is looked at, counted and timed."""
        status = self._builder.status
        recorded = status.at(self._phase, node)
        return self._common, steps, recorded, status.node_states.get(node), self._loans.get(node)


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
        (not kept.passes_before or _has_counts(observation.passes, kept.passes_before))
        and _looks_the_same(observation.look, kept.seen)
        and (not kept.timed or all(builder.is_past(since, limit) is past for since, limit, past in kept.timed))
    )


def _has_counts(passes: Mapping[tuple[str, int], int], before: Mapping[tuple[str, int], int]) -> bool:
    return all(passes.get(place, 0) == count for place, count in before.items())


def _looks_the_same(look: Look, seen: Iterable[tuple[Need, Any]]) -> bool:
    return all(is_answered(look, need, then) for need, then in seen)


def _take_over(builder: DecisionBuilder, kept: NodeDecision) -> None:
    date(builder, kept)
    builder.waits += kept.waits
    if kept.passes:
        builder.passes.update(kept.passes)
    builder.progress = builder.progress or kept.progress


def _noted(
    builder: DecisionBuilder, place: tuple[str, str, str], inputs: tuple[Any, ...], decided: Callable[[], Progress]
) -> Progress:
    """Decides, and keeps that if nothing is to be done."""
    observation, look = builder.observation, Remembering(builder.observation.look)
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
                waits=builder.waits[waits:],
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
