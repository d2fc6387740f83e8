"""Steps of whichever plans, kept so that what has the same inputs is not rendered again for another plan."""

from __future__ import annotations

from collections.abc import Callable

from renderer.context.scope import Looked
from renderer.model.rendered import RenderedStep

Place = tuple[str, str, str | None]
"""(phase, step, node)."""

DigestOfLooked = Callable[[tuple[Looked, ...]], str]
"""The digest of what is there now for a step that looks at these, in this order."""


class StepCache:
    """By place, where the last `limit` steps are kept by what they have looked at."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._steps: dict[Place, dict[tuple[frozenset[Looked], str], RenderedStep]] = {}
        self._looked: dict[Place, dict[frozenset[Looked], tuple[Looked, ...]]] = {}

    def find(self, place: Place, digest: DigestOfLooked) -> tuple[RenderedStep, frozenset[Looked]] | None:
        """The step of that place that finds what it has looked at as it was, and what that is. Steps of one place look
        at much the same, so few digests are asked for."""
        steps = self._steps.get(place, {})
        for read, looked in self._looked.get(place, {}).items():
            if (found := steps.get((read, digest(looked)))) is not None:
                return found, read
        return None

    def keep(self, place: Place, digest: DigestOfLooked, step: RenderedStep, read: frozenset[Looked]) -> None:
        looked = self._looked.setdefault(place, {}).setdefault(read, tuple(read))
        steps = self._steps.setdefault(place, {})
        steps[read, digest(looked)] = step
        if len(steps) > self._limit:
            gone, _ = first = next(iter(steps))
            del steps[first]
            if not any(read == gone for read, _ in steps):
                del self._looked[place][gone]
