"""Lets nodes into a lane one after another: who is inside, how far each has come, who of the others is unhealthy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reconcile.decide.admission import AdmissionCheck, NotAdmitted, admit, always_admit
from reconcile.decide.answers import Remembering
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision_cache import LaneNodes, Peers, Steps
from reconcile.decide.probing import scope_of
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import NODES, NOT_READ, ProbeContext, ReadFailure
from reconcile.status.plan import key_of
from renderer.model.phase import Lane, RequirePeers
from renderer.model.probe import ObjectTarget, Probe, RulePredicate, is_about_fields
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import RenderedPhase, RenderedStep
from renderer.model.sharing import changed


def admission(
    builder: DecisionBuilder, phase: RenderedPhase, item: RenderedStep, of_node: Mapping[str, Steps]
) -> AdmissionCheck:
    """Tells whether the step's node may begin it now."""
    lane = next((lane for lane in phase.phase.lanes if lane.name == item.step.lane), None)
    return always_admit if lane is None else partial(_admit, builder, lane, item, of_node)


def _admit(
    builder: DecisionBuilder, lane: Lane, item: RenderedStep, of_node: Mapping[str, Steps]
) -> NotAdmitted | None:
    node, builder.saw_others = str(item.step.node), True
    inside = _inside(builder, item.phase, lane.name, of_node)
    return admit(node, lane, inside, () if item.step.ignore_unhealthy_peers else _unhealthy(builder, lane, node))


# ---------------------------------------------------------------------------------------------------- who is inside


def _inside(builder: DecisionBuilder, phase: str, lane: str, of_node: Mapping[str, Steps]) -> dict[str, int]:
    """The nodes in the lane, in the order of the upgrade, and how many steps each has begun. Known of each node of
    which nothing has changed that this was seen from."""
    known, status = builder.cache.lanes.setdefault((phase, lane), LaneNodes()), builder.status
    inputs: tuple[Mapping[Any, Any], ...] = of_node, status.records, status.attempts, status.done
    steps, *places = map(changed, inputs, known.inputs or ({}, {}, {}, {}))
    at_places = (node for changed_places in places for name, node in changed_places if name == phase)
    known.drop({*steps, *filter(None, at_places), *known.answers.answered_otherwise(builder.observation.look)})
    known.inputs = inputs
    for node in of_node.keys() - known.how_far.keys():
        _look_at(builder, known, node, lane, of_node[node])
    inside = known.inside
    return {node: known.how_far[node] for node in of_node if node in inside} if inside else {}


def _look_at(builder: DecisionBuilder, known: LaneNodes, node: str, lane: str, steps: Steps) -> None:
    observation, look = builder.observation, Remembering(builder.observation.look)
    builder.observation = replace(observation, look=look)
    try:
        is_inside = _is_inside(builder, lane, steps)
    finally:
        builder.observation = observation
    how_far = sum(builder.status.has_begun(key_of(item)) for item in steps)
    probes = [item.step.hold_slot_while for item in steps if item.step.hold_slot_while is not None]
    known.add(node, how_far, is_inside, look, all(map(is_about_fields, probes)))


def _is_inside(builder: DecisionBuilder, lane: str, steps: Steps) -> bool:
    """True if a node has started the lane and not finished it, or still holds its slot."""
    own = [item for item in steps if item.step.lane == lane and item.skipped is None]
    if not any(builder.status.has_begun(key_of(item)) for item in own):
        return False
    return any(not builder.status.is_over(key_of(item)) or _keeps_lane(builder, item) for item in own)


def _keeps_lane(builder: DecisionBuilder, item: RenderedStep) -> bool:
    """True if the step's node still holds its slot."""
    probe = item.step.hold_slot_while
    return probe is not None and evaluate(probe, builder.observation.look, scope_of(builder, item)).passed


# ----------------------------------------------------------------------------------------------- who is unhealthy


def _unhealthy(builder: DecisionBuilder, lane: Lane, node: str) -> list[str]:
    """Reports what is wrong with other nodes."""
    peers, found = lane.require_peers, builder.observation.look.list(NODES)  # all at once: each is asked for below
    if peers is None or found is NOT_READ:  # then it is decided once more, when they have been read
        return []
    reasons: Mapping[str, str]
    if isinstance(found, ReadFailure) or not _is_plain(peers):
        reasons = _reasons(builder, peers, builder.nodes)
    else:
        reasons = _known_reasons(builder, peers, found)
    return [why for name, why in reasons.items() if name != node]


def _known_reasons(builder: DecisionBuilder, peers: RequirePeers, found: tuple[Body, ...]) -> Mapping[str, str]:
    """The reasons why nodes are unhealthy, by name; as known of each Node that is the very same."""
    nodes, known = builder.nodes, builder.cache.peers
    if known is not None and known.found is found and known.peers is peers and known.bodies.keys() == {*nodes}:
        return known.reasons
    there = {ref_of(body).name: body for body in found}
    bodies = {name: there.get(name) for name in nodes}
    others = {*changed(bodies, known.bodies)} if known is not None and known.peers is peers else {*nodes}
    anew = _reasons(builder, peers, [name for name in nodes if name in others])
    kept = {name: why for name, why in known.reasons.items() if name not in others} if known is not None else {}
    reasons = {name: why for name in nodes if (why := anew.get(name) or kept.get(name)) is not None}
    builder.cache.peers = Peers(peers=peers, found=found, bodies=bodies, reasons=reasons)
    return reasons


def _reasons(builder: DecisionBuilder, peers: RequirePeers, nodes: Iterable[str]) -> dict[str, str]:
    """The reasons of those of these nodes that are unhealthy."""
    seen, reasons = builder.observation, dict[str, str]()
    scope = ProbeContext(kinds=seen.kinds, schemas=seen.schemas, now=seen.now, redactor=seen.redactor)
    for name in nodes:
        ref = Ref(api_version="v1", kind="Node", name=name)
        verdict = evaluate(Probe(target=ObjectTarget(ref=ref), all=peers.all), seen.look, scope)
        if not verdict.passed:
            reasons[name] = verdict.reason
    return reasons


def _is_plain(peers: RequirePeers) -> bool:
    """True if nothing but the Node itself is looked at."""
    return not any(isinstance(predicate, RulePredicate) for predicate in peers.all)
