"""The last rendering of one plan: its phases and steps, and what of the run each of them was made of.

What has not changed is taken from here by comparing, without a digest; behind it, a `StepCache` has steps by digest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import ABSENT
from renderer.model.phase import Step
from renderer.model.rendered import RenderedPhase, RenderedStep
from renderer.render.step_cache import StepCache

Place = tuple[str, str, str | None]
"""(phase, step, node)."""


@frozen
class SeenOfRun:
    """The part of the record that a step's rendering can see; of the values that were captured it has looked at those
    that `read` names, or nobody knows at which. `made` are the templates whose objects were made, by the step and by
    its undo step."""

    captured: Mapping[str, Any]
    under_way: bool
    made: tuple[tuple[str, ...] | None, ...]
    read: frozenset[str] | None = None

    def gives(self, step: RenderedStep, now: SeenOfRun) -> bool:
        """True if the step, made of this, comes out the same now. One that begins is not asked any more whether it is
        skipped, which it was not."""
        begins = now.under_way and step.skipped is None and not step.pending
        return (
            self.made == now.made and (self.under_way == now.under_way or begins) and self._captured_same(now.captured)
        )

    def _captured_same(self, now: Mapping[str, Any]) -> bool:
        if self.read is None:
            return self.captured == now
        return all(self.captured.get(name, ABSENT) == now.get(name, ABSENT) for name in self.read)

    @property
    def all_of_it(self) -> list[Any]:
        """The record that was there to see, for a digest."""
        return [self.captured, self.under_way, self.made]


@frozen
class _Kept:
    """A step, and what it was made of: `common` to all steps, all that was `recorded` at its place, and what of that
    it has `seen`."""

    common: str
    recorded: Any
    seen: SeenOfRun
    step: RenderedStep


class LastRendering:
    """Of the values that it is given to compare none is ever changed in place."""

    def __init__(self, steps: StepCache) -> None:
        self.steps = steps
        self._steps: dict[Place, _Kept] = {}
        self._phases: dict[str, tuple[str, Any, RenderedPhase]] = {}
        self._shapes: dict[str, tuple[str, tuple[Step, ...]]] = {}

    def find(self, place: Place, common: str, recorded: Any, seen: Callable[[], SeenOfRun]) -> RenderedStep | None:
        """The step of that place, if it was made of the same. `seen` is asked for only if more was recorded since."""
        kept = self._steps.get(place)
        if kept is None or kept.common != common:
            return None
        if kept.recorded == recorded:
            return kept.step
        now = seen()
        if not kept.seen.gives(kept.step, now):
            return None
        self.keep(place, common, recorded, replace(now, read=kept.seen.read), kept.step)
        return kept.step

    def keep(self, place: Place, common: str, recorded: Any, seen: SeenOfRun, step: RenderedStep) -> None:
        self._steps[place] = _Kept(common=common, recorded=recorded, seen=seen, step=step)

    def find_phase(self, name: str, common: str, recorded: Any) -> RenderedPhase | None:
        """The phase, if it was made of the same."""
        known, then, phase = self._phases.get(name, ("", None, None))
        return phase if phase is not None and known == common and then == recorded else None

    def keep_phase(self, common: str, recorded: Any, phase: RenderedPhase) -> None:
        self._phases[phase.phase.name] = common, recorded, phase

    def find_shapes(self, phase: str, common: str) -> tuple[Step, ...] | None:
        """The phase's steps for no node in particular, if they were made of the same: nothing is recorded for them."""
        known, shapes = self._shapes.get(phase, ("", ()))
        return shapes if known == common else None

    def keep_shapes(self, phase: str, common: str, shapes: tuple[Step, ...]) -> None:
        self._shapes[phase] = common, shapes
