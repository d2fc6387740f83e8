"""The last rendering of one plan: its phases and steps, and what of the run each of them was made of.

What has not changed is taken from here by comparing, without a digest; a `StepCache` may have steps of other plans by
digest. What could not be rendered is kept with its problems: the same inputs fail alike, and may take long to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import compress
from operator import is_, is_not
from typing import Any

from renderer.context.build import Context
from renderer.context.scope import Looked
from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.phase import Step
from renderer.model.rendered import Manifest, RenderedPhase, RenderedStep, manifests_of
from renderer.model.sharing import changed, shared
from renderer.render.recorded import RecordedPhase
from renderer.render.seen_context import CAPTURED, NODE, SeenContext
from renderer.render.step_cache import Place, StepCache

Found = tuple[Problem, ...]


@frozen
class SeenOfRun:
    """The part of the record that a step's rendering can see. `made` are the templates whose objects were made, by the
    step and by its undo step."""

    captured: Mapping[str, Any]
    under_way: bool
    made: tuple[tuple[str, ...] | None, ...]

    def gives(self, step: RenderedStep, now: SeenOfRun, read: frozenset[Looked]) -> bool:
        """True if the step, rendered from this, is the same now: of the captured values it has looked at
        those that `read` names. One that begins is not asked any more whether it is skipped, which it was not."""
        begins = now.under_way and step.skipped is None and not step.pending
        return (
            self.made == now.made
            and (self.under_way == now.under_way or begins)
            and _captured_seen(self.captured, read) == _captured_seen(now.captured, read)
        )

    def seen_by(self, looked: Collection[Looked]) -> list[Any]:
        """The part of it that a step has seen which looked at these, for a digest."""
        return [_captured_seen(self.captured, looked), self.under_way, self.made]

    @property
    def all_of_it(self) -> list[Any]:
        """The record that was there to see, for a digest."""
        return [self.captured, self.under_way, self.made]


def _captured_seen(captured: Mapping[str, Any], looked: Collection[Looked]) -> Mapping[str, Any]:
    if (CAPTURED, True) in looked:
        return captured
    names = {path[1] for path, _ in looked if path[:1] == CAPTURED}
    return {name: value for name, value in captured.items() if name in names}


@frozen
class _Kept:
    """A step, what it was made in, what of that it has looked at, and what of the record at its place it has `seen`."""

    within: SeenContext
    read: frozenset[Looked]
    seen: SeenOfRun
    step: RenderedStep


@frozen
class _KeptPhase:
    """A phase, its problems, and what it was made of: of what is `common` to all steps, and what was `recorded`."""

    common: str
    recorded: RecordedPhase
    phase: RenderedPhase
    problems: Found


@frozen
class Whole:
    """All manifests of a plan held against each other: their images, which of these are none, and what else is wrong
    between them."""

    images: tuple[str, ...]
    images_found: Found
    found: Found


class LastRendering:
    """The values that it is given to compare must not be changed in place. What is equal for several nodes is kept
    once: the steps of a thousand of them differ in little but names. `steps` has those of other plans as well."""

    def __init__(self, steps: StepCache | None = None) -> None:
        self.steps = steps
        self._now: SeenContext | None = None
        self._agreed: dict[tuple[SeenContext, frozenset[Looked], str | None], bool] = {}
        self._steps: dict[tuple[str, str], dict[str | None, _Kept]] = {}
        self._before: dict[tuple[str, str], RenderedStep] = {}
        self._seen: dict[tuple[str, str], SeenOfRun] = {}
        self._reads: dict[frozenset[Looked], frozenset[Looked]] = {}
        self._phases: dict[str, _KeptPhase] = {}
        self._outlines: dict[str, tuple[RenderedPhase, tuple[Manifest, ...]]] = {}
        self._whole: tuple[tuple[tuple[Manifest, ...], ...], Whole] | None = None
        self._shapes: dict[str, tuple[str, tuple[Step, ...], Found]] = {}
        self._refused: dict[Place, tuple[str, RenderedStep, Found]] = {}

    def within(self, context: Context, ending: bool) -> SeenContext:
        """Returns all that steps see; of the very same context it is known."""
        if self._now is None or self._now.context is not context or self._now.ending != ending:
            self._now, self._agreed = SeenContext(context, ending), {}
        return self._now

    def find(self, place: Place, now: SeenContext, seen: SeenOfRun) -> RenderedStep | None:
        """The step of that place, if what it has looked at is the same, though other things have changed since."""
        kept = self._steps.get(place[:2], {}).get(place[2])
        if kept is None or not self._agrees(kept, now, place[2]) or not kept.seen.gives(kept.step, seen, kept.read):
            return None
        self.keep(place, now, seen, kept.read, kept.step)
        return kept.step

    def _agrees(self, kept: _Kept, now: SeenContext, node: str | None) -> bool:
        """True if that step of the node finds what it has looked at as it was; nodes look at much the same."""
        if kept.within is now:
            return True
        key = kept.within, kept.read, node if any(path[0] == NODE for path, _ in kept.read) else None
        if key not in self._agreed:
            self._agreed[key] = all(kept.within.at(it, node) == now.at(it, node) for it in kept.read)
        return self._agreed[key]

    def slim(self, place: Place, step: RenderedStep, read: frozenset[Looked]) -> tuple[RenderedStep, frozenset[Looked]]:
        """The same, with all that they have in common with those of the node before."""
        of_all = place[:2]
        kept = self._before[of_all] = shared(step, self._before.get(of_all))
        return kept, self._reads.setdefault(read, read)

    def keep(
        self, place: Place, now: SeenContext, seen: SeenOfRun, read: frozenset[Looked], step: RenderedStep
    ) -> None:
        of_all = place[:2]
        one = self._seen[of_all] = shared(seen, self._seen.get(of_all))
        self._steps.setdefault(of_all, {})[place[2]] = _Kept(within=now, read=read, seen=one, step=step)

    def find_phase(self, name: str, common: str, recorded: RecordedPhase) -> tuple[RenderedPhase, Found] | None:
        """The phase and its problems, if it was made of the same."""
        known = self._phases.get(name)
        is_same = known is not None and known.common == common and known.recorded == recorded
        return (known.phase, known.problems) if known is not None and is_same else None

    def find_others(
        self, name: str, common: str, recorded: RecordedPhase
    ) -> tuple[RenderedPhase, frozenset[str | None]] | None:
        """The phase as it was last, and the nodes, None among them, of which something else is recorded now: all other
        steps of it come out the same. None where that cannot be said."""
        known = self._phases.get(name)
        if known is None or known.common != common or known.problems or not known.phase.steps:
            return None
        others = (node for now, then in zip(recorded, known.recorded, strict=True) for node in changed(now, then))
        return known.phase, frozenset(others)

    def keep_phase(self, common: str, recorded: RecordedPhase, phase: RenderedPhase, problems: Found) -> None:
        self._phases[phase.phase.name] = _KeptPhase(common=common, recorded=recorded, phase=phase, problems=problems)

    def outline_of(self, phase: RenderedPhase) -> tuple[Manifest, ...]:
        """The phase's manifests, by which a plan's are held against each other: the very same as of the last rendering
        where no other object is owned now, and nothing uses another image."""
        last = self._outlines.get(phase.phase.name)
        found = last[1] if last and _is_outlined_alike(phase, last[0]) else tuple(phase.manifests())
        self._outlines[phase.phase.name] = phase, found
        return found

    def find_whole(self, outlines: tuple[tuple[Manifest, ...], ...]) -> Whole | None:
        """As it came out of the very same outlines."""
        if self._whole is None or not all(map(is_, outlines, self._whole[0])):
            return None
        return self._whole[1]

    def keep_whole(self, outlines: tuple[tuple[Manifest, ...], ...], found: Whole) -> Whole:
        """Returns what was found."""
        self._whole = outlines, found
        return found

    def find_shapes(self, phase: str, common: str) -> tuple[tuple[Step, ...], Found] | None:
        """The phase's steps for no node in particular and their problems, if they were made of the same: nothing is
        recorded for them."""
        known, shapes, problems = self._shapes.get(phase, ("", (), ()))
        return (shapes, problems) if known == common else None

    def keep_shapes(self, phase: str, common: str, shapes: tuple[Step, ...], problems: Found) -> None:
        self._shapes[phase] = common, shapes, problems

    def find_refused(self, place: Place, key: Callable[[], str]) -> tuple[RenderedStep, Found] | None:
        """The step that could not be rendered and its problems, if it was made of inputs with that digest."""
        known, step, problems = self._refused.get(place, ("", None, ()))
        return (step, problems) if step is not None and known == key() else None

    def keep_refused(self, place: Place, key: str, step: RenderedStep, problems: Found) -> None:
        self._refused[place] = key, step, problems


def _is_outlined_alike(now: RenderedPhase, then: RenderedPhase) -> bool:
    """True if the manifests of both count alike; most steps are the very same."""
    others = compress(zip(now.steps, then.steps, strict=False), map(is_not, now.steps, then.steps))
    return len(now.steps) == len(then.steps) and all(_outlined(one) == _outlined(other) for one, other in others)


def _outlined(step: RenderedStep) -> list[Any]:
    """All that counts of a step's manifests when those of a plan are held against each other: of what is borrowed its
    place and images alone."""
    return [(it.ref, it.images) if it.borrowed else it for it in manifests_of(step)]
