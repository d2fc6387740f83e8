"""Keeps the results of one decision about a plan for the next, so that what has not changed is not worked out again.

It saves time and changes nothing: whatever is taken from here is compared first with all that it was made from, and a
decision without it comes out the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reconcile.probes.look import Need
from renderer.model.manifest_spec import Owned
from renderer.model.rendered import RenderedPhase, RenderedStep

if TYPE_CHECKING:
    from reconcile.decide.decision import Wait, WaitRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSteps:
    """A phase's steps, by what is asked of them: those of each node in order, and those that keep an object alive."""

    phase: RenderedPhase
    of_node: Mapping[str, tuple[RenderedStep, ...]]
    maintained: tuple[RenderedStep, ...]

    @classmethod
    def of(cls, phase: RenderedPhase) -> PhaseSteps:
        return cls(phase=phase, of_node=by_node(phase.steps), maintained=tuple(filter(_is_maintained, phase.steps)))


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
    """Of one plan. All of it can be lost. `timed` are the limits that the last decision has asked about."""

    timed: tuple[tuple[datetime, int, bool], ...] = ()
    nodes: dict[tuple[str, str, str], NodeDecision] = field(default_factory=dict)
    _phases: dict[str, PhaseSteps] = field(default_factory=dict)

    def steps_of(self, phase: RenderedPhase) -> PhaseSteps:
        known = self._phases.get(phase.phase.name)
        if known is None or known.phase is not phase:
            known = self._phases[phase.phase.name] = PhaseSteps.of(phase)
        return known


def by_node(steps: Iterable[RenderedStep]) -> Mapping[str, tuple[RenderedStep, ...]]:
    """The steps of each node, in the order of the steps."""
    found: dict[str, list[RenderedStep]] = {}
    for item in steps:
        if item.step.node is not None:
            found.setdefault(item.step.node, []).append(item)
    return {node: tuple(items) for node, items in found.items()}


def _is_maintained(item: RenderedStep) -> bool:
    return any(isinstance(manifest.spec, Owned) and manifest.spec.maintained for manifest in item.manifests)
