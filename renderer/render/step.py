"""Renders one step: is it skipped or pending, its gates completed, its manifests made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.catalog.load import Declared
from renderer.catalog.node_states import unknown_states
from renderer.catalog.verify import INPUTS, captures_of, first_round
from renderer.context.build import Context, for_step
from renderer.context.scope import SYMBOLIC_NODE, Looked, NotedScope
from renderer.digest import digest_of
from renderer.errors import Problem, Problems
from renderer.frozen import frozen
from renderer.model.manifest_spec import Borrowed, Expression
from renderer.model.node_state import NodeStates
from renderer.model.phase import Capture, Step
from renderer.model.rendered import Manifest, Pending, RenderedStep
from renderer.render.declaration import DeclarationFiller, without_bookkeeping
from renderer.render.manifest import DigestOf, ManifestRenderer, in_order, step_for_review
from renderer.render.recorded import Recorded
from renderer.render.seen_context import CAPTURED, ENDING, MARKS, looked, looked_for
from renderer.render.step_gates import gates_of, gates_of_begun
from renderer.templating import Templates

Raw = Mapping[str, Any]
Node = Mapping[str, Any] | None


def missing(context: Context, requires: Sequence[str]) -> tuple[Pending, ...]:
    """The inputs of `requires` that were not given."""
    names = (name for name in requires if name not in context.given)
    return tuple(Pending(input=name, remedy=INPUTS.get(name, f"{name} comes from a phase")) for name in names)


@frozen
class StepRenderer:
    """Renders the steps of one rendering. Problems go into `problems`, so that one run reports all of them."""

    kinds: Kinds
    node_states: NodeStates
    templates: Templates
    declaration: DeclarationFiller
    context: Context
    recorded: Recorded
    problems: list[Problem]
    ending: bool = False
    digest: DigestOf = digest_of

    def step(self, declared: Declared, step: Step, raw: Raw, node: Node, read: set[Looked]) -> RenderedStep:
        """A step for one node, or for none. Puts into `read` all that is looked at."""
        made = self._step(declared, step, raw, node, read)
        return step_for_review(made) if declared.held else made

    def _step(self, declared: Declared, step: Step, raw: Raw, node: Node, read: set[Looked]) -> RenderedStep:
        bare = replace(step, node=node["name"]) if node else step
        context = self._context(declared, node, read)
        requires = (*declared.phase.requires, *step.requires)
        pending = missing(self.context, requires)
        read |= looked_for(requires)
        read.add(looked(MARKS))  # which texts stand for values that are not known yet is asked of every manifest
        if self.recorded.made_by(declared.phase.name, step.name, bare.node) is not None:
            return self._begun(declared, bare, raw, context, pending)
        try:
            if self.recorded.is_under_way(declared.phase.name, step.name, bare.node) and not pending:
                return self._rendered(declared, bare, raw, context)
            # Whether a step is skipped is asked first, and with what there is: a skipped step needs no input.
            skip = self._skip_of(step.skip_when, context, declared, lenient=bool(pending))
            if skip.reason is None and not pending:
                return replace(self._rendered(declared, bare, raw, context), skipped_if=skip.undecided)
            skipped = skip.reason
            idle = _idle(declared, self._best(declared, bare, raw, context), skipped, () if skipped else pending)
            read.add(looked(ENDING))
            return replace(idle, manifests=self._not_made(declared, idle.step, context)) if self.ending else idle
        except Problems as error:
            self.problems.extend(error.problems)
            return _idle(declared, bare, None, ())

    def _begun(
        self, declared: Declared, bare: Step, raw: Raw, context: Context, pending: tuple[Pending, ...]
    ) -> RenderedStep:
        """A step whose objects are made. What they would be today matters only where one is kept alive or given back;
        else the step is watched although it cannot be rendered any more, as long as that says what it waits for."""
        before = len(self.problems)
        if not pending:
            try:
                rendered = self._rendered(declared, bare, raw, context)
                if len(self.problems) == before or _is_needed_later(bare):
                    return rendered
            except Problems as error:
                if _is_needed_later(bare):
                    self.problems.extend(error.problems)
                    return self._watchable(declared, bare, raw, context, pending)
            del self.problems[before:]
        return self._watchable(declared, bare, raw, context, pending)

    def _watchable(
        self, declared: Declared, bare: Step, raw: Raw, context: Context, pending: tuple[Pending, ...]
    ) -> RenderedStep:
        """The step without manifests; `pending` if not even what it waits for is known."""
        try:
            filled = self.declaration.fill_step(raw, context, declared)
            step = self.declaration.step(filled, bare, raw, declared)
        except Problems as error:
            if not pending:
                self.problems.extend(error.problems)
            return _idle(declared, bare, None, pending)
        made = self.recorded.made_by(declared.phase.name, bare.name, bare.node) or ()
        return _idle(declared, replace(step, gates=gates_of_begun(step, made)), None, ())

    def _not_made(self, declared: Declared, step: Step, context: Context) -> tuple[Manifest, ...]:
        """The manifests that an idle step would have made, as far as they can be rendered: another manager may have
        made it."""
        try:
            made, _ = self._manifests(declared, step, context).render(step)
        except Problems:
            return ()
        return tuple(item.manifest for item in made)

    def _best(self, declared: Declared, bare: Step, raw: Raw, context: Context) -> Step:
        """An idle step with its text filled in if what is missing allows it: it may have run, and be taken back. Else
        its warnings are their reasons, which need no filling in."""
        try:
            filled = self.declaration.fill_step(raw, context, declared)
            return self.declaration.step(filled, bare, raw, declared)
        except Problems:
            plain = (replace(item, warning=item.reason) if item.warning else item for item in bare.skip_when)
            return replace(bare, skip_when=tuple(plain))

    def shape(self, declared: Declared, step: Step, raw: Raw) -> Step:
        """A step that fans out, filled in for no node in particular."""
        context = self._context(declared, SYMBOLIC_NODE)
        try:
            return self.declaration.step(
                self.declaration.fill(raw, context.names, declared.document), step, raw, declared
            )
        except Problems as error:
            self.problems.extend(error.problems)
            return step

    def skip_reason(self, expressions: Sequence[Expression], declared: Declared) -> str | None:
        """The reason why a whole phase is skipped."""
        try:
            return self._skip_of(expressions, self.context, declared, lenient=False).reason
        except Problems as error:
            self.problems.extend(error.problems)
            return None

    def _context(self, declared: Declared, node: Node, read: set[Looked] | None = None) -> Context:
        captured = self.recorded.captured(declared.phase.name, node["name"] if node else None)
        rounds = {name: value for step in declared.phase.steps for name, value in first_round(step).items()}
        known = {**rounds, **captured}
        return for_step(self.context, node, captures_of(declared.phase), known, read)

    def _skip_of(
        self, expressions: Sequence[Expression], context: Context, declared: Declared, *, lenient: bool
    ) -> _Skip:
        """`lenient`: an expression that misses an input decides nothing."""
        undecided = []
        for expression in expressions:
            try:
                holds, is_known = self._evaluate(expression.expr, context, declared)
            except Problems:
                if not lenient:
                    raise
                continue
            if not is_known:
                undecided.append(expression.reason)
            elif holds:
                return _Skip(reason=expression.reason)
        return _Skip(undecided=tuple(undecided))

    def _evaluate(self, expr: str, context: Context, declared: Declared) -> tuple[bool, bool]:
        """Returns whether the expression holds, and whether that is known: it is not where a value was looked at that
        is captured while the upgrade runs."""
        if "captured" not in expr or "captured" not in context.names:
            return bool(self.templates.evaluate(expr, context.names, of=declared.document)), True
        captured, noted = context.names["captured"], set[Looked]()
        names = {**context.names, "captured": NotedScope(captured, noted, CAPTURED)}
        holds = bool(self.templates.evaluate(expr, names, of=declared.document))
        seen = (value for name, value in captured.items() if {looked(*CAPTURED), looked(*CAPTURED, name)} & noted)
        return holds, not any(isinstance(value, str) and value in context.marks for value in seen)

    def _as_taken_over(self, step: Step, context: Context, declared: Declared) -> Step:
        """The step with those values for a take-over that count for this plan."""
        if all(capture.value_on_take_over is None for capture in step.captures):
            return step

        def held(capture: Capture) -> bool:
            when = capture.value_on_take_over.when if capture.value_on_take_over else ""
            return bool(when and self.templates.evaluate(when, context.names, of=declared.document))

        captures = tuple(c if held(c) else replace(c, value_on_take_over=None) for c in step.captures)
        return replace(step, captures=captures)

    def _rendered(self, declared: Declared, bare: Step, raw: Raw, context: Context) -> RenderedStep:
        filled = self.declaration.fill_step(raw, context, declared)
        step = self._as_taken_over(self.declaration.step(filled, bare, raw, declared), context, declared)
        self._states_are_known(step, declared)
        manifests, left_out = self._manifests(declared, bare, context).render(step)
        self.problems.extend([problem for manifest in manifests for problem in manifest.problems])
        made = in_order(manifest.manifest for manifest in manifests)
        undo = self._undo(declared, bare, raw, context)
        gates = gates_of(step, made, {file for file, _ in left_out}, declared, self.kinds)
        step = replace(step, gates=gates, undo=undo.step if undo else None)
        held = step.hold and self.templates.evaluate(step.hold.when, context.names, of=declared.document)
        # Whether a node is held is the operator's to change at any time, so it is no part of the digest.
        declaration = {**filled, **without_bookkeeping(filled, raw)}
        parts = [bare.node, declaration, [[item.file, item.digest] for item in made], undo.digest if undo else None]
        return RenderedStep(
            phase=declared.phase.name,
            step=step,
            manifests=made,
            held=bool(held),
            digest=digest_of(parts),
            records=self._records(step, context, declared),
            left_out=left_out,
            undo=undo,
        )

    def _manifests(self, declared: Declared, step: Step, context: Context) -> ManifestRenderer:
        made_by = self.recorded.made_by(declared.phase.name, step.name, step.node)
        return ManifestRenderer(
            kinds=self.kinds,
            templates=self.templates,
            declared=declared,
            context=context,
            made_by=made_by,
            digest=self.digest,
        )

    def _states_are_known(self, step: Step, declared: Declared) -> None:
        """Raises `Problems` for a state that was filled in and that the table of node states does not have."""
        if not (unknown := tuple(unknown_states(step, self.node_states))):
            return
        file, line = declared.document.file, declared.document.line_with(step.name)
        raise Problems(
            Problem(reason="UnknownNodeState", message=message, file=file, line=line, remedy=remedy)
            for _, message, remedy in unknown
        )

    def _records(self, step: Step, context: Context, declared: Declared) -> tuple[tuple[str, Any], ...]:
        if any(fetch.name not in context.names["fetched"] for fetch in step.fetches):
            return ()
        of = declared.document
        found = ((path, self.templates.evaluate(expr, context.names, of=of)) for path, expr in step.records)
        return tuple((path, value) for path, value in found if value is not None)

    def _undo(self, declared: Declared, bare: Step, raw: Raw, context: Context) -> RenderedStep | None:
        if bare.undo is None:
            return None
        undo = replace(bare.undo, node=bare.node) if bare.node else bare.undo
        return self._rendered(declared, undo, raw["undo"], replace(context, undoing=True))


@frozen
class _Skip:
    """The reason why a step is skipped, if it is; else those that are `undecided` until it runs."""

    reason: str | None = None
    undecided: tuple[str, ...] = ()


def _is_needed_later(step: Step) -> bool:
    return any(isinstance(spec, Borrowed) or spec.maintained for spec in step.manifests)


def _idle(declared: Declared, step: Step, skipped: str | None, pending: tuple[Pending, ...]) -> RenderedStep:
    digest = digest_of([step.name, step.node, skipped, [item.input for item in pending]])
    return RenderedStep(phase=declared.phase.name, step=step, skipped=skipped, pending=pending, digest=digest)
