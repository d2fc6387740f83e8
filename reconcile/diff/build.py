"""Makes diffs of what was tried, phase by phase: hide first, mask, then compare. Pure.

Equal objects are done at once, others are walked by their schema; only lists that differ as a whole are explained.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconcile.diff.entry import Change, Diff, DiffEntry, Untried
from reconcile.diff.field_changes import changes, steps_text, unmet
from reconcile.diff.list_changes import explained
from reconcile.diff.masks import DiffRules, masked
from reconcile.diff.redact import DiffRedactor
from reconcile.diff.trial import GoesBack, Trial
from reconcile.schemas import Schemas
from renderer.describe import DescriptionContext, describe_gate
from renderer.errors import Problem
from renderer.model.ref import Body, Ref
from renderer.model.rendered import RenderedPhase, RenderedStep
from renderer.render.manifest import written

_REPEATED = re.compile(r"Invalid value: .*?: (?=[a-z])", re.DOTALL)
_ABOUT_FIELDS = ("Conflict", "Immutable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A phase and what came of trying its manifests. `waits_for` has the gates' words by the manifest's `file`."""

    phase: RenderedPhase
    trials: tuple[Trial, ...]
    waits_for: Mapping[str, str]


def diffs_of(plan: str, phases: Sequence[Tried], *, rules: DiffRules, schemas: Schemas) -> tuple[Diff, ...]:
    """One diff a phase. A secret has the same number in all of them, and none shows what another one hides."""
    builder = _Builder(rules, schemas)
    for tried in phases:
        for trial in tried.trials:
            builder.learn(trial)
    return tuple(_diff(plan, tried, builder) for tried in phases)


def _diff(plan: str, tried: Tried, builder: _Builder) -> Diff:
    skipped_if = {step.id: step.skipped_if for step in tried.phase.steps}
    entries = tuple(
        replace(
            builder.entry(trial, tried.waits_for.get(trial.manifest.file, "")),
            skipped_if=skipped_if.get(trial.step, ()),
        )
        for trial in tried.trials
    )
    return Diff(plan=plan, phase=tried.phase.phase.name, entries=entries, untried=tuple(_untried(tried.phase)))


def _untried(phase: RenderedPhase) -> Iterator[Untried]:
    if phase.skipped or phase.pending:
        yield Untried(step=phase.phase.name, skipped=phase.skipped, pending=phase.pending)
    for step in phase.steps:
        if step.skipped or step.pending:
            yield Untried(step=step.id, skipped=step.skipped, pending=step.pending)


class _Builder:
    """One run: the numbers of its secrets go through all entries."""

    def __init__(self, rules: DiffRules, schemas: Schemas) -> None:
        self._rules = rules
        self._schemas = schemas
        self._redactor = DiffRedactor(rules.redaction)

    def learn(self, trial: Trial) -> None:
        """Call it for every trial before the first entry is made, so that no text shows what is hidden elsewhere."""
        for body in (trial.manifest.body, trial.live, trial.after):
            if body is not None:
                self._redactor.learn(body)
        for gone in trial.goes_back:
            self._redactor.value(trial.manifest.body, gone.path, gone.value)

    def entry(self, trial: Trial, waits_for: str) -> DiffEntry:
        before, after = self._sides(trial)
        return DiffEntry(
            operation=trial.operation,
            step=trial.step,
            ref=trial.manifest.ref,
            file=trial.manifest.file,
            template=trial.manifest.template,
            changes=tuple(self._refused(trial) if trial.problem else self._changes(before, after)),
            goes_back=tuple(self._goes_back(trial)),
            run_time=trial.manifest.run_time,
            waits_for=waits_for,
            because=self._redactor.text(trial.because),
            problem=self._problem(trial),
            warnings=tuple(map(self._redactor.text, trial.warnings)),
            before=before,
            after=after,
        )

    def _sides(self, trial: Trial) -> tuple[Body | None, Body | None]:
        live, after = trial.live, trial.after
        if live is not None and after is not None:
            live, after = self._redactor.pair(live, after)
        elif after is not None:
            after = self._redactor.one(after)
        elif live is not None:
            live = self._redactor.one(live)
        return self._shown(live), self._shown(after)

    def _shown(self, body: Body | None) -> Body | None:
        return None if body is None else written(masked(body, self._rules))

    def _changes(self, before: Body | None, after: Body | None) -> Iterator[Change]:
        if before is None or after is None or before == after:
            return
        for found in changes(before, after, self._schemas.of(after)):
            for change in explained(found):
                yield Change(field=steps_text(change.path), before=change.before, after=change.after)

    def _refused(self, trial: Trial) -> Iterator[Change]:
        """The values that we would have changed, where the refusal is about them."""
        if trial.live is None or trial.problem is None or trial.problem.reason not in _ABOUT_FIELDS:
            return
        live, expected = self._redactor.pair(trial.live, _as_kept(trial.manifest.body))
        for change in unmet(live, expected, self._schemas.of(expected)):
            yield Change(field=steps_text(change.path), before=change.before, after=change.after)

    def _goes_back(self, trial: Trial) -> Iterator[GoesBack]:
        for field in trial.goes_back:
            yield replace(field, value=self._redactor.value(trial.manifest.body, field.path, field.value))

    def _problem(self, trial: Trial) -> Problem | None:
        """The problem; of an object that holds secrets, without any value that a server repeats."""
        if trial.problem is None:
            return None
        message = self._redactor.text(trial.problem.message)
        if self._rules.redaction.paths_for(trial.manifest.body):
            message = _REPEATED.sub("", message)
        return replace(trial.problem, message=message)


def _as_kept(body: Body) -> Body:
    """As a server keeps what was sent: the `stringData` of a Secret becomes part of its `data`."""
    if (body["apiVersion"], body["kind"]) != ("v1", "Secret"):
        return body
    encoded = {key: b64encode(str(text).encode()).decode() for key, text in (body.get("stringData") or {}).items()}
    kept = {key: value for key, value in body.items() if key != "stringData"}
    return {**kept, "data": {**(body.get("data") or {}), **encoded}} if encoded else body


def waits_of(phase: RenderedPhase) -> dict[str, str]:
    """The waits of each step's gates, by the `file` of each of its manifests; a step without gates has no entry."""
    words = ((step, _gates(step)) for step in phase.steps if step.step.gates)
    return {manifest.file: text for step, text in words for manifest in step.manifests}


def _gates(step: RenderedStep) -> str:
    rendered: dict[str, tuple[Ref, ...]] = {}
    for manifest in step.manifests:
        rendered[manifest.spec.file] = (*rendered.get(manifest.spec.file, ()), manifest.ref)
    return " and ".join(describe_gate(gate, DescriptionContext(manifests=rendered)) for gate in step.step.gates)
