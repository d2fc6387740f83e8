"""The steps of one rendering, taken from earlier ones wherever nothing has changed that a step has looked at."""

from __future__ import annotations

from renderer.catalog.load import Declared
from renderer.context.scope import Looked
from renderer.digest import digest_of
from renderer.frozen import frozen
from renderer.model.phase import Step
from renderer.model.rendered import RenderedStep
from renderer.render.last_rendering import LastRendering, SeenOfRun
from renderer.render.seen_context import SeenContext
from renderer.render.step import Node, Raw, StepRenderer


@frozen
class CachedStepRenderer:
    """`kept` has the steps of earlier renderings, and gets those of this one; `within` is what all steps see."""

    renderer: StepRenderer
    within: SeenContext
    kept: LastRendering

    @property
    def common(self) -> str:
        """The digest of what all steps see."""
        return self.within.digest

    def kept_steps(self, phase: str) -> tuple[tuple[RenderedStep, ...], frozenset[str | None]] | None:
        """The phase's steps as an earlier rendering made them of what all steps see now, and the nodes, None among
        them, of which something else is recorded since; None where there are none."""
        found = self.kept.find_others(phase, self.common, self.renderer.recorded.of(phase))
        return (found[0].steps, found[1]) if found else None

    def step(self, declared: Declared, step: Step, raw: Raw, node: Node) -> RenderedStep:
        """A step for one node, or for none. One that has looked at nothing that has changed since is kept."""
        phase, name = declared.phase.name, node["name"] if node else None
        seen = self._seen_of_run(phase, step, name)
        found = self.kept.find((phase, step.name, name), self.within, seen)
        return found or self._rendered(declared, step, raw, node, seen)

    def _rendered(self, declared: Declared, step: Step, raw: Raw, node: Node, seen: SeenOfRun) -> RenderedStep:
        """A step as an earlier rendering of whichever plan has made it, or rendered now."""
        phase, name, problems = declared.phase.name, node["name"] if node else None, self.renderer.problems
        place, before, others = (phase, step.name, name), len(problems), self.kept.steps

        def digest(looked: tuple[Looked, ...]) -> str:
            return digest_of([[self.within.at(it, name) for it in looked], seen.seen_by(looked)])

        def key() -> str:
            return digest_of([self.common, node, seen.all_of_it])

        if refused := self.kept.find_refused(place, key):
            problems.extend(refused[1])
            return refused[0]
        found = others.find(place, digest) if others else None
        if found is None:
            noted = set[Looked]()
            rendered, read = self.renderer.step(declared, step, raw, node, noted), frozenset(noted)
            if len(problems) != before:
                self.kept.keep_refused(place, key(), rendered, tuple(problems[before:]))
                return rendered
            found = self.kept.slim(place, rendered, read)
            if others:
                others.keep(place, digest, *found)
        rendered, read = found
        self.kept.keep(place, self.within, seen, read, rendered)
        return rendered

    def _seen_of_run(self, phase: str, step: Step, node: str | None) -> SeenOfRun:
        recorded = self.renderer.recorded
        made = [recorded.made_by(phase, item.name, node) for item in (step, step.undo) if item]
        return SeenOfRun(
            captured=recorded.captured(phase, node),
            under_way=recorded.is_under_way(phase, step.name, node),
            made=tuple(None if files is None else tuple(sorted(files)) for files in made),
        )
