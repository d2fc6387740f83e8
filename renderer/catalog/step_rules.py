"""Rules for steps about what would be accepted and then do nothing: a kind that nothing knows, a field that no plan
has, a limit that another one hides. Packaged phases are proven by the tests."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.catalog.kinds import Kinds
from renderer.catalog.named_kinds import named_in_step, wrong_kind
from renderer.catalog.plan_fields import is_recordable
from renderer.catalog.verify import all_steps, probes_of
from renderer.errors import Problem
from renderer.model.phase import Phase, Step
from renderer.yaml_io import Document


def without_effect(phase: Phase, document: Document, kinds: Kinds) -> Iterator[Problem]:
    """A problem for each declaration of a step that could never have an effect."""
    for step in all_steps(phase):
        yield from _kinds(step, document, kinds)
        yield from _records(step, document)
        yield from _hidden(step, document)


def _kinds(step: Step, document: Document, kinds: Kinds) -> Iterator[Problem]:
    for named in named_in_step(step, tuple(probes_of(step))):
        if wrong := wrong_kind(named, kinds):
            message = f"step {step.name}: {wrong.message}"
            yield _problem(document, wrong.reason, message, wrong.remedy, named.kind)


def _records(step: Step, document: Document) -> Iterator[Problem]:
    for field in (*(capture.record for capture in step.captures), *(field for field, _ in step.records)):
        if field and not is_recordable(field):
            message = f"step {step.name} records {field!r}, which is not a field of a plan's status that steps set"
            yield _problem(document, "UnknownField", message, "name such a field, or use capture", field)


def _hidden(step: Step, document: Document) -> Iterator[Problem]:
    if step.reconsider and not (step.skip_when or step.skip_unless):
        message = f"step {step.name} is never skipped, so there is nothing to reconsider"
        remedy = "remove reconsider, or add skipWhen or skipUnless"
        yield _problem(document, "NoEffect", message, remedy, "reconsider")
    for gate in step.gates:
        if gate.timeout and gate.slow_after and gate.slow_after >= gate.timeout:
            message = f"a gate of step {step.name} fails by its timeout before slowAfter has passed"
            yield _problem(document, "NoEffect", message, "make slowAfter shorter than timeout", "slowAfter")


def _problem(document: Document, reason: str, message: str, remedy: str, at: str) -> Problem:
    """`at` is the text of the declaration that the problem is about."""
    line = document.line_with(at)
    return Problem(reason=reason, file=document.file, line=line, message=message, remedy=remedy)
