"""Checks of phases that a schema cannot express: numbers, names, inputs, files, gates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from renderer.catalog.node_states import unknown_states
from renderer.catalog.places import RESERVED
from renderer.catalog.rules import misused
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problem
from renderer.model.check import CheckTime
from renderer.model.node_state import NodeStates
from renderer.model.phase import Phase, Step
from renderer.model.probe import Captured, FieldPredicate, ManifestTarget, Predicate, Probe, RulePredicate
from renderer.suggest import did_you_mean
from renderer.yaml_io import Document

ROUND = "round"
"""The captured value of a step that is carried out again: how often it was begun."""

INPUTS: dict[str, str] = {
    "nodes": "give the cluster's Node objects, as `kubectl get nodes -o yaml` prints them",
    "version": "give the Version object that spec.version names, from namespace harvester-system",
    "previousVersion": "give the Harvester Setting server-version",
    "repoTag": "set spec.upgrade, or toolkitTag in values.yaml of the templates",
    "releaseMetadata": "give the release's harvester-release.yaml with --release",
    "toolkitTag": "set spec.upgrade, or give the release's harvester-release.yaml with --release",
    "imageLists": "give the release as an ISO file, or the lists in a facts document",
}
"""The inputs that a phase or a step may require, and how to give each. Late inputs are provided by phases."""

Declared = tuple[Phase, Document]


def verify_phases(phases: Sequence[Declared], tree: TemplateTree, states: NodeStates) -> list[Problem]:
    """Everything that is wrong with a set of phases, in their order."""
    return [
        *_twice(phases, "number", lambda phase: [f"number {phase.number:02}"]),
        *_twice(phases, "name", lambda phase: [f"name {phase.name}"]),
        *_twice(phases, "status", _status_values),
        *_inputs(phases),
        *(problem for phase, document in phases for problem in _Steps(phase, document, tree, states).problems()),
    ]


def _twice(phases: Sequence[Declared], field: str, values: Callable[[Phase], list[str]]) -> Iterator[Problem]:
    seen: dict[str, Document] = {}
    for phase, document in phases:
        for value in values(phase):
            if value in seen:
                yield Problem(
                    reason="PhaseConflict",
                    file=document.file,
                    line=document.line_of((field,)) if field != "number" else None,
                    message=f"{value} is already used by {seen[value].file}",
                    remedy="give each phase a number, a name and status values of its own",
                )
            seen[value] = document


def _status_values(phase: Phase) -> list[str]:
    return [f"status value {value}" for value in (phase.active, phase.completed, *phase.also_completed)]


def _inputs(phases: Sequence[Declared]) -> Iterator[Problem]:
    providers: dict[str, list[Phase]] = defaultdict(list)
    for phase, _ in phases:
        for name in phase.provides:
            providers[name].append(phase)
    for phase, document in phases:
        for name in sorted(_required(phase)):
            yield from _input(phase, document, name, providers[name])


def _required(phase: Phase) -> set[str]:
    return {*phase.requires, *(name for step in phase.steps for name in step.requires)}


def _input(phase: Phase, document: Document, name: str, providers: Sequence[Phase]) -> Iterator[Problem]:
    if name not in INPUTS and not providers:
        yield Problem(
            reason="MissingInput",
            file=document.file,
            line=document.line_of(("requires",)),
            message=f"phase {phase.name} requires {name!r}, which nothing provides",
            remedy=f"known inputs: {', '.join(sorted(INPUTS))}; or let an earlier phase provide it",
        )
    if providers and all(provider.number > phase.number for provider in providers):
        later = providers[0]
        circle = set(later.requires) & set(phase.provides)
        yield Problem(
            reason="CyclicRequires" if circle else "LateInput",
            file=document.file,
            line=document.line_of(("requires",)),
            message=f"phase {phase.name} requires {name!r}, which only the later phase {later.name} provides"
            + (f", and that one requires {', '.join(sorted(circle))!r} of this" if circle else ""),
            remedy="move one of the phases: an input must come from an earlier phase",
        )


class _Steps:
    """The checks over one phase's steps."""

    def __init__(self, phase: Phase, document: Document, tree: TemplateTree, states: NodeStates) -> None:
        self._phase = phase
        self._document = document
        self._tree = tree
        self._states = states
        self._files = {path for path in tree if path.startswith(f"{phase.folder}/") and path.endswith(".j2")}
        self._captured = {name for step in all_steps(self._phase) for name in _captures(step)}

    def problems(self) -> Iterator[Problem]:
        names: set[str] = set()
        used: set[str] = set()
        for step in all_steps(self._phase):
            if step.name in names:
                yield self._problem("StepConflict", f"duplicate step {step.name}", "rename one of them", step.name)
            names.add(step.name)
            used |= {f"{self._phase.folder}/{spec.file}" for spec in step.manifests}
            yield from self._step(step)
        for path in sorted(self._files - used):
            message = f"no step of {self._document.file} uses it"
            remedy = "name it in a step's owned or borrowed list, or remove it"
            yield Problem(reason="UnusedTemplate", file=self._tree[path].shown, message=message, remedy=remedy)

    def _step(self, step: Step) -> Iterator[Problem]:
        for spec in step.manifests:
            if f"{self._phase.folder}/{spec.file}" not in self._files:
                message = f"step {step.name} names {spec.file}, which is not in the folder"
                yield self._problem("TemplateNotFound", message, "add the template, or correct the name", spec.file)
            elif spec.file.removesuffix(".j2") in RESERVED:
                message = f"step {step.name} names {spec.file}, and that name is reserved for a file of a layout"
                yield self._problem("ReservedName", message, "rename the template", spec.file)
        if step.no_gate and step.gates:
            message = f"step {step.name} has both gates and noGate"
            yield self._problem("GateConflict", message, "remove one of the two", step.name)
        if step.checks and (step.checks.when is CheckTime.BEFORE_NODE) is not (step.for_each == "node"):
            message = f"step {step.name} carries out the checks of {step.checks.when}, and "
            message += "runs once for each node" if step.for_each else "does not run for each node"
            remedy = "use beforeNode in a step with forEach: node, the other times in one without"
            yield self._problem("ChecksConflict", message, remedy, step.name)
        if step.lane and step.lane not in {lane.name for lane in self._phase.lanes}:
            message = f"step {step.name} is in lane {step.lane!r}, which the phase does not declare"
            yield self._problem("UnknownLane", message, "declare it under lanes", step.lane)
        for state, message, remedy in unknown_states(step, self._states):
            yield self._problem("UnknownNodeState", message, remedy, state)
        for capture in step.captures:
            later = [other.name for other in steps_after(self._phase, step) if other.for_each == step.for_each]
            if capture.value_before and (name := capture.value_before.step) not in later:
                message = f"step {step.name}: {capture.name}.valueBefore names {name!r}, which is no later step of the "
                message += f"phase for {'each node' if step.for_each else 'the cluster'}{did_you_mean(name, later)}"
                yield self._problem("UnknownStep", message, "name a later step of the same kind", name)
        for probe in probes_of(step):
            yield from self._probe(step, probe)
        for rule in (capture.unite.rule for capture in step.captures if capture.unite):
            yield from self._predicate(step, rule) if rule else ()

    def _probe(self, step: Step, probe: Probe) -> Iterator[Problem]:
        if isinstance(probe.target, ManifestTarget) and probe.target.file not in {s.file for s in step.manifests}:
            message = f"a gate of step {step.name} looks at {probe.target.file}, which the step does not render"
            yield self._problem("UnknownManifest", message, "name a manifest of the same step", probe.target.file)
        for predicate in (*probe.all, *probe.fails):
            yield from self._predicate(step, predicate)

    def _predicate(self, step: Step, predicate: Predicate) -> Iterator[Problem]:
        if isinstance(predicate, RulePredicate) and (wrong := misused(predicate.name, dict(predicate.arguments))):
            message = f"step {step.name}: {wrong}"
            yield self._problem("InvalidRule", message, "correct the rule's name or arguments", predicate.name)
        operand = predicate.operand if isinstance(predicate, FieldPredicate) else None
        if isinstance(operand, Captured) and operand.name not in self._captured:
            message = f"step {step.name} compares with {operand.name!r}, which no step captures"
            yield self._problem("UnknownCapture", message, "capture it in an earlier step of the phase", operand.name)

    def _problem(self, reason: str, message: str, remedy: str, at: str) -> Problem:
        """`at` is the text of the declaration that the problem is about."""
        line = self._document.line_with(at)
        return Problem(reason=reason, file=self._document.file, line=line, message=message, remedy=remedy)


def steps_after(phase: Phase, step: Step) -> tuple[Step, ...]:
    """The steps of the phase that are declared after this one."""
    return phase.steps[phase.steps.index(step) + 1 :] if step in phase.steps else ()


def all_steps(phase: Phase) -> Iterator[Step]:
    """The steps of a phase as declared, and those that undo one."""
    for step in phase.steps:
        yield step
        if step.undo:
            yield step.undo


def _captures(step: Step) -> Iterator[str]:
    yield from (capture.name for capture in step.captures)
    if step.trigger and step.trigger.capture:
        yield step.trigger.capture


def probes_of(step: Step) -> Iterator[Probe]:
    yield from (gate.probe for gate in step.gates)
    yield from (capture.value_if.probe for capture in step.captures if capture.value_if)
    if step.trigger:
        yield step.trigger.probe
    if step.hold_slot_while:
        yield step.hold_slot_while
    if step.late_nodes:
        yield step.late_nodes.done
    if step.skip_unless:
        yield step.skip_unless.probe


def captures_of(phase: Phase) -> tuple[str, ...]:
    """The names that any step of a phase captures; its templates use them as `captured.<name>`."""
    return tuple(dict.fromkeys(name for step in phase.steps for name in (*_captures(step), *first_round(step))))


def first_round(step: Step) -> dict[str, int]:
    """The number of the round, for a step that is carried out again; later ones are captured."""
    return {ROUND: 1} if step.again else {}
