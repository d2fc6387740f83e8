"""Keeps the results of one decision about a plan for the next, so that what has not changed is not worked out again.

It saves time and changes nothing: whatever is taken from here is compared first with all that it was made from, and a
decision without it comes out the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from reconcile.probes.look import Need
from renderer.model.manifest_spec import Owned
from renderer.model.phase import Position, RequirePeers
from renderer.model.rendered import RenderedPhase, RenderedStep

if TYPE_CHECKING:
    from reconcile.decide.decision import Wait, WaitRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Adjacent steps that fan out, or adjacent steps that do not: then `of_node` is empty. `looks_further`: what a node
    comes to is decided from more than its own records and objects."""

    items: tuple[RenderedStep, ...]
    of_node: Mapping[str, tuple[RenderedStep, ...]]
    looks_further: bool

    @classmethod
    def of(cls, items: Iterable[RenderedStep]) -> Stretch:
        steps = tuple(items)
        looks_further = any(item.step.fetches or item.step.job_states for item in steps)
        return cls(items=steps, of_node=_by_node(steps), looks_further=looks_further)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSteps:
    """A phase's steps, by what is asked of them: those of each position in stretches, those of each node in order,
    those that keep an object alive, that fetch something, and that put nodes at the start."""

    phase: RenderedPhase
    stretches: Mapping[Position, tuple[Stretch, ...]]
    of_node: Mapping[str, tuple[RenderedStep, ...]]
    maintained: tuple[RenderedStep, ...]
    fetching: tuple[RenderedStep, ...]
    seeding: tuple[RenderedStep, ...]

    @classmethod
    def of(cls, phase: RenderedPhase) -> PhaseSteps:
        return cls(
            phase=phase,
            stretches={position: tuple(_stretches(phase, position)) for position in Position},
            of_node=_by_node(phase.steps),
            maintained=tuple(filter(_is_maintained, phase.steps)),
            fetching=tuple(item for item in phase.steps if item.step.fetches),
            seeding=tuple(item for item in phase.steps if item.step.initial_node_state),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecision:
    """The result for one node where nothing is to be done: waits, and how often in a row gates have passed.

    It holds while `inputs` are the same, each of `seen` is answered the same, `passes_before` are the counts that were
    found, and the limits of `timed` are still kept or exceeded. `waits` are those that `asked` came to.
    """

    inputs: tuple[Any, ...]
    seen: tuple[tuple[Need, Any], ...]
    passes_before: Mapping[tuple[str, int], int]
    timed: tuple[tuple[datetime, int, bool], ...]
    asked: tuple[WaitRequest, ...]
    waits: tuple[Wait, ...]
    passes: Mapping[tuple[str, int], int]
    progress: str
    reached: Any


@dataclass
class Kept:
    """Of one plan. All of it can be lost. `timed` are the limits that the last decision has asked about, `unfolded` the
    nodes of which it is known that they are not through with a phase, with what that was seen from; `peers` says of a
    Node, by name, by which requirement it is unhealthy and why, or None; `texts` are the redacted texts of waits."""

    timed: tuple[tuple[datetime, int, bool], ...] = ()
    nodes: dict[tuple[str, str, str], NodeDecision] = field(default_factory=dict)
    unfolded: dict[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)
    peers: dict[str, tuple[Any, RequirePeers, str | None]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    _phases: dict[str, PhaseSteps] = field(default_factory=dict)
    _common: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def steps_of(self, phase: RenderedPhase) -> PhaseSteps:
        known = self._phases.get(phase.phase.name)
        if known is None or known.phase is not phase:
            known = self._phases[phase.phase.name] = PhaseSteps.of(phase)
        return known

    def common_to(self, phase: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs that all nodes of a phase have in common; the very same as before if they are equal, so that
        each node's are compared at a glance."""
        if self._common.get(phase) != inputs:
            self._common[phase] = inputs
        return self._common[phase]


def _by_node(steps: Iterable[RenderedStep]) -> Mapping[str, tuple[RenderedStep, ...]]:
    """The steps of each node, in the order of the steps."""
    found: dict[str, list[RenderedStep]] = {}
    for item in steps:
        if item.step.node is not None:
            found.setdefault(item.step.node, []).append(item)
    return {node: tuple(items) for node, items in found.items()}


def _stretches(phase: RenderedPhase, position: Position) -> Iterator[Stretch]:
    steps = (item for item in phase.steps if item.step.position is position)
    for _, items in groupby(steps, key=lambda item: item.step.node is not None):
        yield Stretch.of(items)


def _is_maintained(item: RenderedStep) -> bool:
    return any(isinstance(manifest.spec, Owned) and manifest.spec.maintained for manifest in item.manifests)
