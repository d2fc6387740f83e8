"""Runs the steps of a phase at one position: steps for the cluster one after another, steps for nodes in parallel.

Adjacent steps that fan out form one stretch: each node goes through it at its own pace, and the stretch ends when
every node has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision_cache import Folded, Steps, Stretch
from reconcile.decide.joining import welcome
from reconcile.decide.lanes import admission
from reconcile.decide.missing_inputs import wait_for_inputs
from reconcile.decide.probing import counts_rounds
from reconcile.decide.step import advance
from reconcile.decide.step_run import Progress
from reconcile.decide.unchanged import UnchangedNodes
from reconcile.probes.look import Group
from reconcile.status.plan import PlanStatus, key_of
from renderer.model.phase import Position
from renderer.model.rendered import RenderedPhase, RenderedStep
from renderer.model.sharing import changed

_NODES = Group(api_version="v1", kind="Node")


def run(builder: DecisionBuilder, phase: RenderedPhase, position: Position) -> Progress:
    """Takes the steps of one position as far as they can go. A skipped phase has nothing to do."""
    if phase.skipped is not None:
        builder.status = builder.status.with_skipped(phase.phase.name, phase.skipped)
    if phase.phase.name in builder.status.skipped:
        return Progress.DONE
    if phase.pending:
        wait_for_inputs(builder, phase.pending, step=phase.phase.name, node=None, since=builder.since)
        return Progress.BUSY
    _seed_late(builder, phase)
    for stretch in builder.cache.steps_of(phase).stretches[position]:
        progress = _nodes(builder, phase, stretch) if stretch.of_node else _in_order(builder, stretch.items)
        if progress is not Progress.DONE or phase.phase.name in builder.status.skipped:
            return progress
    return Progress.DONE


def _seed_late(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    """Gives a node that has joined since the state that the others started from."""
    for item in builder.cache.steps_of(phase).seeding:
        if item.step.initial_node_state and builder.status.has_completed(key_of(item)):
            if all(map(builder.status.node_states.get, builder.nodes)):
                continue
            for node in (name for name in builder.nodes if not builder.status.node_states.get(name)):
                builder.status = builder.status.reset_node(node, item.step.initial_node_state.state)


def repeat(builder: DecisionBuilder, phase: RenderedPhase) -> Progress:
    """Runs steps of a completed phase that are requested again: Rancher's last request may come late."""
    repeated = builder.cache.steps_of(phase).repeated
    steps = [item for item in repeated if builder.status.has_begun(key_of(item))]
    reached = [advance(builder, item) for item in steps]
    return Progress.BUSY if Progress.BUSY in reached else Progress.DONE


def unless_unchanged(builder: DecisionBuilder, phase: str, items: Iterable[RenderedStep]) -> Iterator[Progress]:
    """Each of the steps as far as it can go; those for nodes as they came out where everything is as it was."""
    for _, group in groupby(items, key=lambda item: item.step.name):
        own = tuple(group)
        of_node = {item.step.node: (item,) for item in own if item.step.node is not None}
        if len(of_node) < len(own):
            yield from (advance(builder, item) for item in own)
        else:
            looks_further = any(item.step.fetches or item.step.job_states for item in own)
            stretch = Stretch(items=own, of_node=of_node, looks_further=looks_further)
            yield from UnchangedNodes(builder, stretch, phase).reached(lambda steps: advance(builder, steps[0]))


def fold_finished(builder: DecisionBuilder) -> None:
    """Shortens the record of every node that is through with a phase. A node that something is still borrowed for keeps
    its record until that is returned, which may be phases later; one with several rounds of a step for good."""
    status, last = builder.status, builder.cache.folded
    others = _others(builder, last)
    for phase in (phase for phase in builder.observation.rendered.phases if phase.phase.name in others):
        of_node, lent = builder.cache.steps_of(phase).of_node, _lent_for(status, phase)
        for node in sorted(others[phase.phase.name]):
            if _is_through(builder, of_node.get(node, ()), node in lent):
                builder.status = builder.status.fold(phase.phase.name, node)
    of_nodes = last.of_nodes
    if last.rendered is not builder.observation.rendered:
        of_nodes = {name: builder.cache.steps_of(phase).of_node for name, phase in _begun(builder).items()}
    builder.cache.folded = Folded(status=builder.status, rendered=builder.observation.rendered, of_nodes=of_nodes)


def _others(builder: DecisionBuilder, last: Folded) -> dict[str, set[str]]:
    """The nodes with records, by phase, of which something is another than when none of them was through."""
    now, then, found = builder.status, last.status, dict[str, set[str]]()
    places = {*changed(now.records, then.records), *changed(now.done, then.done), *changed(now.attempts, then.attempts)}
    if last.rendered is not builder.observation.rendered:
        for name, phase in _begun(builder).items():
            nodes = changed(builder.cache.steps_of(phase).of_node, last.of_nodes.get(name, {}))
            places.update((name, node) for node in nodes)
    if now.loans is not then.loans:
        places.update((loan.phase, loan.step.rpartition("/")[2]) for loan in (*now.loans, *then.loans))
    for name, node in places & now.records.keys():
        if node is not None:
            found.setdefault(name, set()).add(node)
    return found


def _begun(builder: DecisionBuilder) -> dict[str, RenderedPhase]:
    """The phases that something is recorded of."""
    names = {name for name, _ in builder.status.records}
    return {phase.phase.name: phase for phase in builder.observation.rendered.phases if phase.phase.name in names}


def _lent_for(status: PlanStatus, phase: RenderedPhase) -> frozenset[str]:
    """The nodes that something of the phase is still borrowed for."""
    open_loans = (loan for loan in status.loans if loan.returned is None and loan.phase == phase.phase.name)
    return frozenset(loan.step.rpartition("/")[2] for loan in open_loans)


def _is_through(builder: DecisionBuilder, steps: Steps, lent: bool) -> bool:
    """True if a node has ended its steps of the phase."""
    status = builder.status
    is_over = bool(steps) and all(status.is_over(key_of(item)) for item in steps)
    return is_over and not lent and not any(counts_rounds(status, item) for item in steps)


def _in_order(builder: DecisionBuilder, items: Iterable[RenderedStep]) -> Progress:
    for item in items:
        progress = advance(builder, item)
        if progress is not Progress.DONE:
            return progress
    return Progress.DONE


def _nodes(builder: DecisionBuilder, phase: RenderedPhase, stretch: Stretch) -> Progress:
    """Runs every node's steps. After a failure on one node the others are still watched."""
    unchanged = UnchangedNodes(builder, stretch, phase.phase.name)
    reached = unchanged.reached(lambda steps: _node(builder, phase, steps, stretch.of_node))
    if Progress.FAILED in reached:
        return Progress.FAILED
    return Progress.BUSY if Progress.BUSY in reached else Progress.DONE


def _node(
    builder: DecisionBuilder, phase: RenderedPhase, steps: Sequence[RenderedStep], of_node: Mapping[str, Steps]
) -> Progress:
    if (settled := welcome(builder, steps)) is not None:
        return settled
    _mind_hold(builder, phase, steps)
    for item in steps:
        progress = advance(builder, item, admission(builder, phase, item, of_node))
        if progress is not Progress.DONE:
            return progress
    return Progress.DONE


def _mind_hold(builder: DecisionBuilder, phase: RenderedPhase, steps: Iterable[RenderedStep]) -> None:
    """A node that was held is named as long as it is, whether its step is asked for now or not; then it is where all
    nodes start."""
    for item in (item for item in steps if item.step.hold and not builder.status.has_begun(key_of(item))):
        hold, node = item.step.hold, str(item.step.node)
        if hold is None or (builder.status.node_states.get(node) or {}).get("state") != hold.state:
            continue
        if item.held:
            builder.held.setdefault(hold.waiting, set()).add(node)
        elif (start := _initial_state(phase)) is not None:
            builder.status = builder.status.reset_node(node, start)


def _initial_state(phase: RenderedPhase) -> str | None:
    seeds = (item.step.initial_node_state for item in phase.steps)
    return next((seed.state for seed in seeds if seed is not None), None)


def all_steps(phases: Iterable[RenderedPhase]) -> Iterator[RenderedStep]:
    """Every step of these phases, each followed by its undo step."""
    for phase in phases:
        for item in phase.steps:
            yield item
            if item.undo:
                yield item.undo
