"""The last rendering of one plan: its phases and steps, and what of the run each of them was made of.

What has not changed is taken from here by comparing, without a digest; behind it, a `StepCache` has steps by digest.
What could not be rendered is kept with its problems: the same inputs fail alike, and may take long to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from renderer.context.build import Context
from renderer.digest import digest_of
from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.path import ABSENT
from renderer.model.phase import Step
from renderer.model.rendered import RenderedPhase, RenderedStep
from renderer.render.step_cache import StepCache

Place = tuple[str, str, str | None]
"""(phase, step, node)."""

Found = tuple[Problem, ...]


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
    """A step, and what of the record at its place it has `seen`."""

    seen: SeenOfRun
    step: RenderedStep


@dataclass
class _PlaceSteps:
    """The steps of one node in a phase, or of none, and what they were made of: `common` to all steps, and all that was
    `recorded` there. Steps that were made of an earlier record are among those in `kept` alone."""

    common: str
    recorded: Any
    kept: dict[str, _Kept] = field(default_factory=dict)
    same: dict[str, RenderedStep] = field(default_factory=dict)


class LastRendering:
    """Of the values that it is given to compare none is ever changed in place."""

    def __init__(self, steps: StepCache) -> None:
        self.steps = steps
        self._common: tuple[Context, bool, str] | None = None
        self._steps: dict[tuple[str, str | None], _PlaceSteps] = {}
        self._phases: dict[str, tuple[str, Any, RenderedPhase, Found]] = {}
        self._shapes: dict[str, tuple[str, tuple[Step, ...], Found]] = {}
        self._refused: dict[Place, tuple[str, RenderedStep, Found]] = {}

    def common_of(self, context: Context, ending: bool) -> str:
        """The digest of what all steps see; of the very same context it is known."""
        if self._common is None or self._common[0] is not context or self._common[1] != ending:
            self._common = context, ending, digest_of([context.data, sorted(context.given), ending])
        return self._common[2]

    def find_place(self, phase: str, node: str | None, common: str, recorded: Any) -> Mapping[str, RenderedStep]:
        """The steps of that node, or of none, that were made of the same."""
        steps = self._steps.get((phase, node))
        return steps.same if steps is not None and steps.common == common and steps.recorded == recorded else {}

    def find(self, place: Place, common: str, recorded: Any, seen: SeenOfRun) -> RenderedStep | None:
        """The step of that place, if what it has seen is the same though more was recorded since."""
        phase, name, node = place
        steps = self._steps.get((phase, node))
        kept = steps.kept.get(name) if steps is not None and steps.common == common else None
        if kept is None or not kept.seen.gives(kept.step, seen):
            return None
        self.keep(place, common, recorded, replace(seen, read=kept.seen.read), kept.step)
        return kept.step

    def keep(self, place: Place, common: str, recorded: Any, seen: SeenOfRun, step: RenderedStep) -> None:
        phase, name, node = place
        steps = self._steps.get((phase, node))
        if steps is None or steps.common != common:
            steps = self._steps[phase, node] = _PlaceSteps(common=common, recorded=recorded)
        elif steps.recorded != recorded:
            steps.recorded, steps.same = recorded, {}
        steps.kept[name], steps.same[name] = _Kept(seen=seen, step=step), step

    def find_phase(self, name: str, common: str, recorded: Any) -> tuple[RenderedPhase, Found] | None:
        """The phase and its problems, if it was made of the same."""
        known, then, phase, problems = self._phases.get(name, ("", None, None, ()))
        return (phase, problems) if phase is not None and known == common and then == recorded else None

    def keep_phase(self, common: str, recorded: Any, phase: RenderedPhase, problems: Found) -> None:
        self._phases[phase.phase.name] = common, recorded, phase, problems

    def find_shapes(self, phase: str, common: str) -> tuple[tuple[Step, ...], Found] | None:
        """The phase's steps for no node in particular and their problems, if they were made of the same: nothing is
        recorded for them."""
        known, shapes, problems = self._shapes.get(phase, ("", (), ()))
        return (shapes, problems) if known == common else None

    def keep_shapes(self, phase: str, common: str, shapes: tuple[Step, ...], problems: Found) -> None:
        self._shapes[phase] = common, shapes, problems

    def find_refused(self, place: Place, key: str) -> tuple[RenderedStep, Found] | None:
        """The step that could not be rendered and its problems, if it was made of the inputs that `key` is the digest
        of."""
        known, step, problems = self._refused.get(place, ("", None, ()))
        return (step, problems) if step is not None and known == key else None

    def keep_refused(self, place: Place, key: str, step: RenderedStep, problems: Found) -> None:
        self._refused[place] = key, step, problems
