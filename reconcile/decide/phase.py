"""A phase's steps at one position, in order: those for the cluster one by one, those for nodes side by side.

Steps that fan out and stand next to each other are one stretch: each node goes through it at its own pace, and the
stretch ends when every node has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.captures import scope_of
from reconcile.decide.joiners import welcome
from reconcile.decide.reasons import describe_pending
from reconcile.decide.step import AdmissionCheck, NotAdmitted, Progress, advance, always_admit
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import Scope
from reconcile.status.plan import key_of
from renderer.model.phase import Lane, Position
from renderer.model.probe import ObjectTarget, Probe
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedPhase, RenderedStep


def run(builder: DecisionBuilder, phase: RenderedPhase, position: Position) -> Progress:
    """Takes the steps of one position as far as they go. A phase that is skipped has nothing to do."""
    if phase.skipped is not None:
        builder.status = builder.status.with_skipped(phase.phase.name, phase.skipped)
    if phase.phase.name in builder.status.skipped:
        return Progress.DONE
    if phase.pending:
        builder.wait(describe_pending(phase.pending), step=phase.phase.name)
        return Progress.BUSY
    _seed_late(builder, phase)
    steps = [item for item in phase.steps if item.step.position is position]
    for fans_out, stretch in groupby(steps, key=lambda item: item.step.node is not None):
        items = list(stretch)
        progress = _nodes(builder, phase, items) if fans_out else _in_order(builder, items)
        if progress is not Progress.DONE or phase.phase.name in builder.status.skipped:
            return progress
    return Progress.DONE


def _seed_late(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    """A node that has joined since then starts where the others did."""
    for item in phase.steps:
        if item.step.seed and builder.status.has_completed(key_of(item)):
            for node in (name for name in builder.nodes if not builder.status.node_states.get(name)):
                builder.status = builder.status.reset_node(node, item.step.seed.state)


def repeat(builder: DecisionBuilder, phase: RenderedPhase) -> Progress:
    """Steps of a completed phase that are asked for anew: Rancher's last request may come late (AC-86)."""
    steps = [item for item in phase.steps if item.step.repeat and builder.status.has_begun(key_of(item))]
    reached = [advance(builder, item) for item in steps]
    return Progress.BUSY if Progress.BUSY in reached else Progress.DONE


def _in_order(builder: DecisionBuilder, items: Iterable[RenderedStep]) -> Progress:
    for item in items:
        progress = advance(builder, item)
        if progress is not Progress.DONE:
            return progress
    return Progress.DONE


def _nodes(builder: DecisionBuilder, phase: RenderedPhase, items: Sequence[RenderedStep]) -> Progress:
    """Every node's steps. A failure on one node does not keep what runs on another from being watched."""
    by_node: dict[str, list[RenderedStep]] = {}
    for item in items:
        by_node.setdefault(str(item.step.node), []).append(item)
    reached = [_node(builder, phase, steps, by_node) for steps in by_node.values()]
    if Progress.FAILED in reached:
        return Progress.FAILED
    return Progress.BUSY if Progress.BUSY in reached else Progress.DONE


def _node(
    builder: DecisionBuilder, phase: RenderedPhase, steps: list[RenderedStep], by_node: dict[str, list[RenderedStep]]
) -> Progress:
    if (settled := welcome(builder, steps)) is not None:
        return settled
    for item in steps:
        progress = advance(builder, item, _admit(builder, phase, item, by_node))
        if progress is not Progress.DONE:
            return progress
    node = str(steps[0].step.node)
    if any(builder.status.record(key_of(item)) for item in steps) and not _has_loans(builder, phase, node):
        builder.status = builder.status.fold(phase.phase.name, node)
    return Progress.DONE


def _has_loans(builder: DecisionBuilder, phase: RenderedPhase, node: str) -> bool:
    return any(
        loan.returned is None and loan.phase == phase.phase.name and loan.step.endswith(f"/{node}")
        for loan in builder.status.loans
    )


def _admit(
    builder: DecisionBuilder, phase: RenderedPhase, item: RenderedStep, by_node: dict[str, list[RenderedStep]]
) -> AdmissionCheck:
    lane = next((lane for lane in phase.phase.lanes if lane.name == item.step.lane), None)
    if lane is None:
        return always_admit

    def admit() -> NotAdmitted | None:
        inside = [node for node, steps in by_node.items() if _is_inside(builder, lane.name, steps)]
        first = sorted(inside, key=lambda node: -_how_far(builder, by_node[node]))[: lane.at_most]
        if item.step.node not in first:
            if item.step.node in inside:  # another manager had let more of them in
                return NotAdmitted(text=f"{lane.waiting}: {', '.join(first)}", patient=True)
            if len(inside) >= lane.at_most:
                return NotAdmitted(text=f"{lane.waiting}: {', '.join(inside)}", patient=True, out_of_turn=True)
        return None if item.step.despite_others else _others_in_trouble(builder, lane, str(item.step.node))

    return admit


def _how_far(builder: DecisionBuilder, steps: list[RenderedStep]) -> int:
    return sum(builder.status.has_begun(key_of(item)) for item in steps)


def _others_in_trouble(builder: DecisionBuilder, lane: Lane, node: str) -> NotAdmitted | None:
    """A node that is in trouble stops the next step of another one, before both are down."""
    if lane.others is None:
        return None
    scope = Scope(kinds=builder.observation.kinds, schemas=builder.observation.schemas, now=builder.now)
    reasons: list[str] = []
    for other in (name for name in builder.nodes if name != node):
        target = ObjectTarget(ref=Ref(api_version="v1", kind="Node", name=other))
        verdict = evaluate(Probe(target=target, all=lane.others.all), builder.observation.look, scope)
        reasons += [] if verdict.passed else [verdict.reason]
    return NotAdmitted(text=f"{lane.others.waiting}: {'; '.join(reasons[:3])}", patient=False) if reasons else None


def _is_inside(builder: DecisionBuilder, lane: str, steps: list[RenderedStep]) -> bool:
    """Whether a node has begun a lane and not ended it, or something keeps its place there."""
    own = [item for item in steps if item.step.lane == lane and item.skipped is None]
    if not any(builder.status.has_begun(key_of(item)) for item in own):
        return False
    return any(not builder.status.is_over(key_of(item)) or _keeps_lane(builder, item) for item in own)


def _keeps_lane(builder: DecisionBuilder, item: RenderedStep) -> bool:
    probe = item.step.keeps_lane
    return probe is not None and evaluate(probe, builder.observation.look, scope_of(builder, item)).passed


def all_steps(phases: Iterable[RenderedPhase]) -> Iterator[RenderedStep]:
    """Every step of these phases, and what takes one back."""
    for phase in phases:
        for item in phase.steps:
            yield item
            if item.undo:
                yield item.undo
