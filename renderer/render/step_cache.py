"""Steps kept from one rendering to the next, so that what has the same inputs is not rendered again."""

from __future__ import annotations

from dataclasses import replace

from renderer.context.scope import Looked
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedStep
from renderer.model.sharing import shared


class StepCache:
    """By place, where the last `limit` steps are kept; the manifests of one template hold in common what is the same
    for all nodes."""

    def __init__(self, limit: int = 1) -> None:
        self._limit = limit
        self._steps: dict[str, dict[str, tuple[RenderedStep, frozenset[Looked]]]] = {}
        self._last: dict[tuple[str, int], Body] = {}

    def find(self, place: str, key: str) -> tuple[RenderedStep, frozenset[Looked]] | None:
        """The step of that place and what it has looked at, if it was made of what `key` is the digest of."""
        return self._steps.get(place, {}).get(key)

    def keep(self, place: str, key: str, step: RenderedStep, read: frozenset[Looked]) -> RenderedStep:
        """Returns the step as it is kept."""
        kept = self._slim(step)
        steps = self._steps.setdefault(place, {})
        steps[key] = kept, read
        if len(steps) > self._limit:
            del steps[next(iter(steps))]
        return kept

    def _slim(self, step: RenderedStep) -> RenderedStep:
        manifests = tuple(self._manifest(number, manifest) for number, manifest in enumerate(step.manifests))
        return replace(step, manifests=manifests, undo=self._slim(step.undo) if step.undo else None)

    def _manifest(self, number: int, manifest: Manifest) -> Manifest:
        place = (manifest.template, number)
        body = shared(manifest.body, self._last.get(place))
        self._last[place] = body
        return replace(manifest, body=body)
