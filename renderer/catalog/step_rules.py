"""Rules for steps about what would be accepted and then do nothing: a kind that nothing knows, a field that no plan
has, a limit that another one hides. Packaged phases are proven by the tests."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from renderer.catalog.kinds import Kinds
from renderer.catalog.named_kinds import named_in_step, wrong_kind
from renderer.catalog.plan_fields import is_recordable
from renderer.catalog.verify import all_steps, probes_of
from renderer.errors import Problem
from renderer.model.manifest_spec import Owned
from renderer.model.phase import Phase, Position, Step
from renderer.suggest import did_you_mean
from renderer.yaml_io import Document


def without_effect(phase: Phase, document: Document, kinds: Kinds) -> Iterator[Problem]:
    """A problem for each declaration of a phase that could never have an effect."""
    yield from _unused_lanes(phase, document)
    for step in all_steps(phase):
        yield from _kinds(step, document, kinds)
        yield from _records(step, document)
        yield from _hidden(step, document)
    yield from _never_again(phase, document)


def unknown_values(phase: Phase, document: Document, values: Collection[str]) -> Iterator[Problem]:
    """A problem for each step that is there with a value which the tree does not have. An overlay's values.yaml may be
    older than a packaged phase; its own phases are not."""
    for step in phase.steps:
        if step.with_value is not None and step.with_value not in values:
            name = step.with_value
            message = f"step {step.name} is there with the value {name!r}, which values.yaml does not have"
            remedy = "add it to values.yaml, or correct the name"
            yield _problem(document, "UndefinedVariable", f"{message}{did_you_mean(name, values)}", remedy, name)


def _unused_lanes(phase: Phase, document: Document) -> Iterator[Problem]:
    used = {step.lane for step in all_steps(phase)}
    for lane in phase.lanes:
        if lane.name not in used:
            message = f"no step of phase {phase.name} is in lane {lane.name}"
            yield _problem(document, "NoEffect", message, "put a step into the lane, or remove it", lane.name)


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
    if _is_idle(step):
        remedy = "give it manifests, gates, captures or records, or remove it"
        yield _problem(document, "NoEffect", f"step {step.name} does nothing", remedy, step.name)
    elif step.no_gate and not any(isinstance(spec, Owned) for spec in step.manifests):
        message = f"step {step.name} owns no object, so there is no gate that noGate would replace"
        yield _problem(document, "NoEffect", message, "remove noGate", "noGate")
    if step.reconsider and not (step.skip_when or step.skip_unless):
        message = f"step {step.name} is never skipped, so there is nothing to reconsider"
        remedy = "remove reconsider, or add skipWhen or skipUnless"
        yield _problem(document, "NoEffect", message, remedy, "reconsider")
    for gate in step.gates:
        if gate.timeout and gate.slow_after and gate.slow_after >= gate.timeout:
            message = f"a gate of step {step.name} fails by its timeout before slowAfter has passed"
            yield _problem(document, "NoEffect", message, "make slowAfter shorter than timeout", "slowAfter")


def _is_idle(step: Step) -> bool:
    """True if the step writes nothing, waits for nothing, and records and reports nothing."""
    waits_for = (step.gates, step.trigger, step.requires, step.checks, step.hold, step.lane)
    does = (step.manifests, step.captures, step.fetches, step.records, step.initial_node_state, step.remove_fields)
    events = (step.started, step.completed, *(item for item in step.skip_when if item.warning))
    reports = (step.node_states, step.job_states, *events)
    return not any((*waits_for, *does, *reports, step.undo))


def _never_again(phase: Phase, document: Document) -> Iterator[Problem]:
    if any(step.checks for step in phase.steps if step.position is Position.LEAVE):
        return
    for step in (step for step in phase.steps if step.again):
        message = f"step {step.name} is carried out again while checks block, and no step of leave has checks"
        yield _problem(document, "NoEffect", message, "remove again, or add checks to a step of leave", "again")


def _problem(document: Document, reason: str, message: str, remedy: str, at: str) -> Problem:
    """`at` is the text of the declaration that the problem is about."""
    line = document.line_with(at)
    return Problem(reason=reason, file=document.file, line=line, message=message, remedy=remedy)
