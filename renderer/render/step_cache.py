"""Steps kept from one rendering to the next, so that what has the same inputs is not rendered again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from renderer.context.scope import Looked
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedStep
from renderer.model.sharing import shared

DigestOfLooked = Callable[[tuple[Looked, ...]], str]
"""The digest of what is there now for a step that looks at these, in this order."""


class StepCache:
    """By place, where the last `limit` steps are kept by what they have looked at; the manifests of one template hold
    in common what is the same for all nodes."""

    def __init__(self, limit: int = 1) -> None:
        self._limit = limit
        self._steps: dict[str, dict[tuple[frozenset[Looked], str], RenderedStep]] = {}
        self._looked: dict[str, dict[frozenset[Looked], tuple[Looked, ...]]] = {}
        self._last: dict[tuple[str, int], Body] = {}

    def find(self, place: str, digest: DigestOfLooked) -> tuple[RenderedStep, frozenset[Looked]] | None:
        """The step of that place that finds what it has looked at as it was, and what that is. Steps of one place look
        at much the same, so few digests are asked for."""
        steps = self._steps.get(place, {})
        for read, looked in self._looked.get(place, {}).items():
            if (found := steps.get((read, digest(looked)))) is not None:
                return found, read
        return None

    def keep(self, place: str, digest: DigestOfLooked, step: RenderedStep, read: frozenset[Looked]) -> RenderedStep:
        """Returns the step as it is kept."""
        kept = self._slim(step)
        looked = self._looked.setdefault(place, {}).setdefault(read, tuple(read))
        steps = self._steps.setdefault(place, {})
        steps[read, digest(looked)] = kept
        if len(steps) > self._limit:
            gone, _ = first = next(iter(steps))
            del steps[first]
            if not any(read == gone for read, _ in steps):
                del self._looked[place][gone]
        return kept

    def _slim(self, step: RenderedStep) -> RenderedStep:
        manifests = tuple(self._manifest(number, manifest) for number, manifest in enumerate(step.manifests))
        return replace(step, manifests=manifests, undo=self._slim(step.undo) if step.undo else None)

    def _manifest(self, number: int, manifest: Manifest) -> Manifest:
        place = (manifest.template, number)
        body = shared(manifest.body, self._last.get(place))
        self._last[place] = body
        return replace(manifest, body=body)
