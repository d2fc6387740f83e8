"""Keeps the results of one decision about a plan for the next, so that what has not changed is not worked out again.

It saves time and changes nothing: whatever is taken from here is compared first with all that it was made from, and a
decision without it comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import compress, groupby
from operator import is_not, itemgetter
from typing import Any

from reconcile.borrow.loan import loan_step
from reconcile.decide.answers import NodeAnswers, Remembering
from reconcile.decide.quiet_nodes import NodeDecision, QuietNodes
from reconcile.preflight.check_result import CheckResult
from reconcile.preflight.running_plan import SeldomLook
from reconcile.probes.look import Need
from reconcile.status.plan import PlanStatus
from renderer.model.manifest_spec import Borrowed, Owned
from renderer.model.phase import Position, RequirePeers, Step
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPhase, RenderedPlan, RenderedStep

Steps = tuple[RenderedStep, ...]
_Pick = Callable[[Steps], Steps]
_Picking = Callable[[tuple[int, ...]], _Pick]
"""The same places give the very same pick: those of a node are asked for twice, and there may be a thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Adjacent steps that fan out, or adjacent steps that do not: then `of_node` is empty. `looks_further`: what a node
    comes to is decided from more than its own records and objects."""

    items: Steps
    of_node: Mapping[str, Steps]
    looks_further: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSteps:
    """A phase's steps, by what is asked of them: those of each position in stretches, those of each node in order,
    those that keep an object alive, that fetch something, that put nodes at the start, that are
    repeated, and that may be skipped for a while only, and
    that are carried out again. `borrowing` has the places of those that borrow something, by the name of their
    loans."""

    phase: RenderedPhase
    stretches: Mapping[Position, tuple[Stretch, ...]]
    of_node: Mapping[str, Steps]
    maintained: Steps
    borrowing: Mapping[str, int]
    fetching: Steps
    seeding: Steps
    repeated: Steps
    reconsidered: Steps
    again: Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _StretchPlaces:
    items: _Pick
    of_node: Mapping[str, _Pick]
    looks_further: bool

    @classmethod
    def of(cls, places: Iterable[int], steps: Steps, picking: _Picking) -> _StretchPlaces:
        own = tuple(places)
        looks_further = any(steps[place].step.fetches or steps[place].step.job_states for place in own)
        return cls(items=picking(own), of_node=_by_node(own, steps, picking), looks_further=looks_further)

    def stretch(self, steps: Steps, before: Stretch | None, others: frozenset[str] | None) -> Stretch:
        """`before` is the same of the steps before, of which those of no `others` have changed."""
        of_node = _picked(self.of_node, steps, before.of_node if before else {}, others)
        return Stretch(items=self.items(steps), of_node=of_node, looks_further=self.looks_further)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """The places of steps among all those of a phase, by what they declare: the same in each rendering that has the
    same steps for the same nodes."""

    stretches: Mapping[Position, tuple[_StretchPlaces, ...]]
    of_node: Mapping[str, _Pick]
    maintained: _Pick
    borrowing: Mapping[str, int]
    fetching: _Pick
    seeding: _Pick
    repeated: _Pick
    reconsidered: _Pick
    again: _Pick

    @classmethod
    def of(cls, steps: Steps) -> _Places:
        picking = cache(_picking)

        def declaring(what: Callable[[Step], object]) -> _Pick:
            return picking(tuple(place for place, item in enumerate(steps) if what(item.step)))

        return cls(
            stretches={position: tuple(_stretches(steps, position, picking)) for position in Position},
            of_node=_by_node(range(len(steps)), steps, picking),
            maintained=declaring(lambda step: any(isinstance(m, Owned) and m.maintained for m in step.manifests)),
            borrowing={
                loan_step(item): place
                for place, item in enumerate(steps)
                if any(isinstance(m, Borrowed) for m in item.step.manifests)
            },
            fetching=declaring(lambda step: step.fetches),
            seeding=declaring(lambda step: step.initial_node_state),
            repeated=declaring(lambda step: step.repeat),
            reconsidered=declaring(lambda step: step.reconsider),
            again=declaring(lambda step: step.again),
        )

    def steps(self, phase: RenderedPhase, before: PhaseSteps | None, others: frozenset[str] | None) -> PhaseSteps:
        """`before` is the same of the phase before, of which the steps of no `others` have changed."""
        steps = phase.steps
        stretches = {
            where: tuple(
                each.stretch(steps, before.stretches[where][number] if before else None, others)
                for number, each in enumerate(all_)
            )
            for where, all_ in self.stretches.items()
        }
        return PhaseSteps(
            phase=phase,
            stretches=stretches,
            of_node=_picked(self.of_node, steps, before.of_node if before else {}, others),
            maintained=self.maintained(steps),
            borrowing=self.borrowing,
            fetching=self.fetching(steps),
            seeding=self.seeding(steps),
            repeated=self.repeated(steps),
            reconsidered=self.reconsidered(steps),
            again=self.again(steps),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOut:
    """A check as it came out; that holds while `inputs` are the same and `look` is answered the same."""

    inputs: tuple[object, ...]
    look: SeldomLook
    result: CheckResult


class LaneNodes:
    """The nodes of a lane: how far each has come, by its steps begun, and which are `inside`; known while the `inputs`
    and the answers are the same."""

    def __init__(self) -> None:
        self.inputs: tuple[Mapping[Any, Any], ...] = ()
        self.how_far: dict[str, int] = {}
        self.inside: set[str] = set()
        self.answers = NodeAnswers()
        self._seen: dict[str, Mapping[Need, Any]] = {}
        self._unsure: set[str] = set()

    def add(self, node: str, how_far: int, is_inside: bool, look: Remembering, is_sure: bool) -> None:
        """`is_sure`: the same answers say the same the next time."""
        self.how_far[node], self._seen[node] = how_far, look.seen
        self.answers.add(node, look.seen.items())
        if is_inside:
            self.inside.add(node)
        if not (is_sure and look.timeless):
            self._unsure.add(node)

    def drop(self, nodes: Iterable[str]) -> None:
        """These, and those of which one cannot be sure."""
        for node in {*nodes, *self._unsure}:
            self.how_far.pop(node, None)
            self.inside.discard(node)
            self.answers.forget(node, self._seen.pop(node, {}).items())
        self._unsure.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """The reasons why nodes are unhealthy by a requirement, by name; true of these `bodies`, of those that were
    `found`."""

    peers: RequirePeers
    found: tuple[Body, ...]
    bodies: Mapping[str, Body | None]
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The end of the last decision: the status, in which no node is through with a phase, what was rendered,
    and each node's steps in the phases that have begun."""

    status: PlanStatus = field(default_factory=PlanStatus)
    rendered: RenderedPlan | None = None
    of_nodes: Mapping[str, Mapping[str, Steps]] = field(default_factory=dict)


@dataclass
class DecisionCache:
    """The results of earlier decisions about one plan. All of it can be lost. `timed` are the limits that the last
    decision has asked about, `quiet` the nodes of each stretch that are as they were, `lanes` who is in a lane,
    `folded` what the last one has ended with, `peers` which nodes are unhealthy; `texts` are the redacted texts of
    waits, `checks` what the checks of a step came to, by step and check."""

    timed: tuple[tuple[datetime, int, bool], ...] = ()
    nodes: dict[tuple[str, str, str], NodeDecision] = field(default_factory=dict)
    quiet: dict[tuple[str, str], QuietNodes] = field(default_factory=dict)
    lanes: dict[tuple[str, str], LaneNodes] = field(default_factory=dict)
    folded: Folded = field(default_factory=Folded)
    peers: Peers | None = None
    texts: dict[str, str] = field(default_factory=dict)
    checks: dict[tuple[str, str], CarriedOut] = field(default_factory=dict)
    _phases: dict[str, tuple[_Places, PhaseSteps]] = field(default_factory=dict)
    _common: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def steps_of(self, phase: RenderedPhase) -> PhaseSteps:
        places, known = self._phases.get(phase.phase.name, (None, None))
        if known is None or known.phase is not phase:
            others = None if known is None else _others(phase.steps, known.phase.steps)
            if places is None or others is None:
                places, known = _Places.of(phase.steps), None
            known = places.steps(phase, known, others)
            self._phases[phase.phase.name] = places, known
        return known

    def quiet_of(self, phase: str, stretch: Stretch) -> QuietNodes:
        """The nodes of the stretch that are as they were when it was last decided."""
        return self.quiet.setdefault((phase, stretch.items[0].step.name), QuietNodes())

    def common_to(self, phase: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs that all nodes of a phase have in common; the very same as before if they are equal, so that
        each node's are compared at a glance."""
        if self._common.get(phase) != inputs:
            self._common[phase] = inputs
        return self._common[phase]


def _others(now: Steps, then: Steps) -> frozenset[str] | None:
    """The nodes of which a step has changed; most are the very same. None where they are other steps, or for other
    nodes."""
    others = tuple(compress(zip(now, then, strict=False), map(is_not, now, then)))
    is_alike = len(now) == len(then) and all(
        (one.step.name, one.step.node) == (other.step.name, other.step.node) for one, other in others
    )
    return frozenset(one.step.node for one, _ in others if one.step.node is not None) if is_alike else None


def _by_node(places: Iterable[int], steps: Steps, picking: _Picking) -> Mapping[str, _Pick]:
    """The steps of each node, in the order of the steps."""
    found: dict[str, list[int]] = {}
    for place in places:
        if (node := steps[place].step.node) is not None:
            found.setdefault(node, []).append(place)
    return {node: picking(tuple(own)) for node, own in found.items()}


def _stretches(steps: Steps, position: Position, picking: _Picking) -> Iterator[_StretchPlaces]:
    places = (place for place, item in enumerate(steps) if item.step.position is position)
    for _, own in groupby(places, key=lambda place: steps[place].step.node is not None):
        yield _StretchPlaces.of(own, steps, picking)


def _picking(places: tuple[int, ...]) -> _Pick:
    """Takes the steps of these places; `itemgetter` makes no tuple of less than two."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda steps: tuple(steps[place] for place in places)


def _picked(
    of_node: Mapping[str, _Pick], steps: Steps, before: Mapping[str, Steps], others: frozenset[str] | None
) -> Mapping[str, Steps]:
    """The steps of each node; those of no `others` are as before, if it is known which they are."""
    if others is None:
        return {node: pick(steps) for node, pick in of_node.items()}
    changed = {node: of_node[node](steps) for node in before if node in others} if others else {}
    return {**before, **changed} if changed else before
