"""Runs the steps of a phase at one position: steps for the cluster one after another, steps for nodes in parallel.

Adjacent steps that fan out form one stretch: each node goes through it at its own pace, and the stretch ends when
every node has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from reconcile.decide.admission import AdmissionCheck, NotAdmitted, admit, always_admit
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision_cache import Stretch
from reconcile.decide.joining import welcome
from reconcile.decide.missing_inputs import wait_for_inputs
from reconcile.decide.probing import counts_rounds, scope_of
from reconcile.decide.step import advance
from reconcile.decide.step_run import Progress
from reconcile.decide.unchanged import UnchangedNodes
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import Group, ProbeContext
from reconcile.status.plan import PlanStatus, key_of
from renderer.model.phase import Lane, Position, RequirePeers
from renderer.model.probe import ObjectTarget, Probe, RulePredicate, is_about_fields
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedPhase, RenderedStep
from renderer.model.sharing import SameObject

_Steps = Sequence[RenderedStep]
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
            for node in (name for name in builder.nodes if not builder.status.node_states.get(name)):
                builder.status = builder.status.reset_node(node, item.step.initial_node_state.state)


def repeat(builder: DecisionBuilder, phase: RenderedPhase) -> Progress:
    """Runs steps of a completed phase that are requested again: Rancher's last request may come late."""
    repeated = builder.cache.steps_of(phase).repeated
    steps = [item for item in repeated if builder.status.has_begun(key_of(item))]
    reached = [advance(builder, item) for item in steps]
    return Progress.BUSY if Progress.BUSY in reached else Progress.DONE


def fold_finished(builder: DecisionBuilder) -> None:
    """Shortens the record of every node that is through with a phase. A node that something is still borrowed for keeps
    its record until that is returned, which may be phases later; one with several rounds of a step for good."""
    status = builder.status
    seen = (SameObject(status.records), SameObject(status.done), SameObject(status.loans), _rendered_of(builder))
    if builder.cache.nothing_to_fold == seen:
        return
    begun: dict[str, list[str]] = {}
    for name, node in status.records:
        if node is not None:
            begun.setdefault(name, []).append(node)
    for phase in (phase for phase in builder.observation.rendered.phases if phase.phase.name in begun):
        of_node = builder.cache.steps_of(phase).of_node
        lent = _lent_for(status, phase)
        for node in sorted(begun[phase.phase.name]):
            if _is_through(builder, phase, node, of_node.get(node, ()), node in lent):
                builder.status = builder.status.fold(phase.phase.name, node)
    builder.cache.nothing_to_fold = seen if builder.status is status else None


def _rendered_of(builder: DecisionBuilder) -> SameObject:
    return SameObject(builder.observation.rendered)


def _lent_for(status: PlanStatus, phase: RenderedPhase) -> frozenset[str]:
    """The nodes that something of the phase is still borrowed for."""
    open_loans = (loan for loan in status.loans if loan.returned is None and loan.phase == phase.phase.name)
    return frozenset(loan.step.rpartition("/")[2] for loan in open_loans)


def _is_through(builder: DecisionBuilder, phase: RenderedPhase, node: str, steps: _Steps, lent: bool) -> bool:
    """True if the node has ended its steps of the phase; a no is kept while steps, records and loans stay."""
    place, status = (phase.phase.name, node), builder.status
    seen = (steps, status.at(*place), lent)
    if builder.cache.unfolded.get(place) == seen:
        return False
    is_over = bool(steps) and all(status.is_over(key_of(item)) for item in steps)
    if is_over and not lent and not any(counts_rounds(status, item) for item in steps):
        return True
    builder.cache.unfolded[place] = seen
    return False


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
    builder: DecisionBuilder, phase: RenderedPhase, steps: Sequence[RenderedStep], of_node: Mapping[str, _Steps]
) -> Progress:
    if (settled := welcome(builder, steps)) is not None:
        return settled
    _mind_hold(builder, phase, steps)
    for item in steps:
        progress = advance(builder, item, _admission(builder, phase, item, of_node))
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


def _admission(
    builder: DecisionBuilder, phase: RenderedPhase, item: RenderedStep, of_node: Mapping[str, _Steps]
) -> AdmissionCheck:
    lane = next((lane for lane in phase.phase.lanes if lane.name == item.step.lane), None)
    return always_admit if lane is None else partial(_admit, builder, lane, item, of_node)


def _admit(
    builder: DecisionBuilder, lane: Lane, item: RenderedStep, of_node: Mapping[str, _Steps]
) -> NotAdmitted | None:
    node, builder.saw_others = str(item.step.node), True
    steps = {name: steps for name, steps in of_node.items() if _is_inside(builder, lane.name, steps)}
    inside = {name: _how_far(builder, items) for name, items in steps.items()}
    return admit(node, lane, inside, () if item.step.ignore_unhealthy_peers else _unhealthy(builder, lane, node))


def _how_far(builder: DecisionBuilder, steps: _Steps) -> int:
    return sum(builder.status.has_begun(key_of(item)) for item in steps)


def _unhealthy(builder: DecisionBuilder, lane: Lane, node: str) -> list[str]:
    """Reports what is wrong with other nodes."""
    builder.observation.look.list(_NODES)  # all at once: each is asked for below
    peers = lane.require_peers
    found = [_unhealthy_peer(builder, peers, name) for name in builder.nodes if name != node] if peers else []
    return [reason for reason in found if reason is not None]


def _unhealthy_peer(builder: DecisionBuilder, peers: RequirePeers, name: str) -> str | None:
    """The reason why one node is unhealthy; kept for the same Node, unless a rule looks at more."""
    ref = Ref(api_version="v1", kind="Node", name=name)
    body, known = builder.observation.look.get(ref), builder.cache.peers.get(name)
    if known is not None and known[0] is body and known[1] is peers:
        return known[2]
    seen = builder.observation
    scope = ProbeContext(kinds=seen.kinds, schemas=seen.schemas, now=seen.now, redactor=seen.redactor)
    verdict = evaluate(Probe(target=ObjectTarget(ref=ref), all=peers.all), seen.look, scope)
    reason = None if verdict.passed else verdict.reason
    if not any(isinstance(predicate, RulePredicate) for predicate in peers.all):
        builder.cache.peers[name] = body, peers, reason
    return reason


def _is_inside(builder: DecisionBuilder, lane: str, steps: _Steps) -> bool:
    """True if a node has started the lane and not finished it, or still holds its slot."""
    own = [item for item in steps if item.step.lane == lane and item.skipped is None]
    if not any(builder.status.has_begun(key_of(item)) for item in own):
        return False
    return any(not builder.status.is_over(key_of(item)) or _keeps_lane(builder, item) for item in own)


def _keeps_lane(builder: DecisionBuilder, item: RenderedStep) -> bool:
    """True if the step's node still holds its slot; known where the object that says so is the very same, and so is
    what is recorded, unless a rule looks at more."""
    probe, look = item.step.hold_slot_while, builder.observation.look
    if probe is None:
        return False
    if not isinstance(probe.target, ObjectTarget) or probe.target.others or not is_about_fields(probe):
        return evaluate(probe, look, scope_of(builder, item)).passed
    place, seen = key_of(item), (SameObject(look.get(probe.target.ref)), SameObject(item))
    recorded, known = builder.status.at(item.phase, item.step.node), builder.cache.slots.get(place)
    if known is None or known[0] != seen or known[1] != recorded:
        held = evaluate(probe, look, scope_of(builder, item)).passed
        known = builder.cache.slots[place] = seen, recorded, held
    return known[2]


def all_steps(phases: Iterable[RenderedPhase]) -> Iterator[RenderedStep]:
    """Every step of these phases, each followed by its undo step."""
    for phase in phases:
        for item in phase.steps:
            yield item
            if item.undo:
                yield item.undo
