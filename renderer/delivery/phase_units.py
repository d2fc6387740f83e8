"""Phases as units of delivery: a folder for each, and one before it where something must pass first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from renderer.catalog.rules import RULES
from renderer.delivery.delivery_rules import DeliveryRules, Pair
from renderer.delivery.dress import dressed, record_of, records_of
from renderer.delivery.gate_document import GateContent, NamedGate, resolved
from renderer.delivery.gate_files import GateWriter
from renderer.delivery.linter import group_and_kind
from renderer.delivery.phase_choice import delivered_steps
from renderer.delivery.units import Unit, unit_name
from renderer.errors import Problems, problem
from renderer.model.check import CheckTime
from renderer.model.phase import Deletion, Position
from renderer.model.probe import RulePredicate
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPhase, RenderedStep
from renderer.render.manifest import NOT_READ

PHASES = "phases"


def kinds_defined_in(phases: Iterable[RenderedPhase], rules: DeliveryRules) -> frozenset[Pair]:
    """Group and kind of each definition that the phases deliver."""
    steps = (step for phase in phases for step in delivered_steps(phase, rules))
    found = (rules.definitions.of(manifest.body) for step in steps for manifest in step.manifests)
    return frozenset(pair for pair in found if pair)


def units_of_phase(
    phase: RenderedPhase, plan: str, rules: DeliveryRules, gates: GateWriter, defined: frozenset[Pair]
) -> Iterator[Unit]:
    """The gate before the phase, if it has one, and the phase itself, if it has anything to deliver. `defined` are the
    kinds that the tree itself defines. Raises `Problems` for a manifest that takes the place of a dressing's file."""
    steps = delivered_steps(phase, rules)
    files = _files(steps, plan, rules, defined)
    for file in (rules.gate_file, rules.record_file):
        if file in files:
            raise place_taken(f"{phase.phase.folder}/{file.removesuffix(NOT_READ)}.j2", file)
    if keepers := _keepers(steps, plan, rules, gates):
        files = {rules.record_file: keepers, **files}
    enter = [step for step in steps if step.step.position is Position.ENTER] if files else []
    name, folder = phase.phase.name, phase.phase.folder
    before = _content(f"Before{name}", enter, gates.declared(name), rules)
    if before:
        place = f"{phase.phase.number - 1:02}-{folder.partition('-')[2]}-gate"
        yield _unit(plan, place, {}, gates.bodies(before), phase, rules)
    own = _content(name, [step for step in steps if step not in enter], (), rules)
    gate = gates.bodies(own) if own else ()
    if files or gate:
        yield _unit(plan, folder, files, gate, phase, rules)


def _unit(
    plan: str,
    folder: str,
    files: dict[str, tuple[Body, ...]],
    gate: tuple[Body, ...],
    phase: RenderedPhase,
    rules: DeliveryRules,
) -> Unit:
    own = {rules.gate_file: tuple(dressed(body, rules) for body in gate)} if gate else {}
    return Unit(
        name=unit_name(plan, folder),
        folder=f"{PHASES}/{folder}",
        files={**files, **own},
        number=int(folder[:2]),
        timeout=rules.timeout,
        manual=phase.phase.deletion is Deletion.FORBIDDEN,
    )


def place_taken(template: str, file: str) -> Problems:
    """A template makes a file that a delivery needs for itself."""
    message = f"{template} replaces {file}, which the delivery generates"
    return problem("UnfitForAgents", message, file=template, remedy="give the template another name")


def _files(
    steps: tuple[RenderedStep, ...], plan: str, rules: DeliveryRules, defined: frozenset[Pair]
) -> dict[str, tuple[Body, ...]]:
    found: dict[str, list[Body]] = defaultdict(list)
    for step in steps:
        for manifest in step.manifests:
            record = record_of(manifest.body, plan, step.step.name)
            name = manifest.file.rpartition("/")[2].removesuffix(NOT_READ)
            is_new = group_and_kind(manifest.body) in defined
            found[f"{name}{NOT_READ}"].append(dressed(manifest.body, rules, record, is_of_new_kind=is_new))
    return {name: tuple(bodies) for name, bodies in found.items()}


def _keepers(steps: tuple[RenderedStep, ...], plan: str, rules: DeliveryRules, gates: GateWriter) -> tuple[Body, ...]:
    """The roles by which the phase's Jobs keep the records of their success."""
    if not rules.script:
        return ()
    found = (records_of((item.body for item in step.manifests), plan, step.step.name) for step in steps)
    return tuple(dressed(body, rules) for records in found for record in records for body in gates.keepers(record))


def _content(
    name: str, steps: list[RenderedStep], declared: tuple[NamedGate, ...], rules: DeliveryRules
) -> GateContent:
    """All that must pass; nothing where agents judge all of it by themselves."""
    found = (*declared, *(gate for step in steps for gate in resolved(step) if not _is_decided(gate)))
    times = [step.step.checks.when for step in steps if step.step.checks]
    needed = found if any(gate.kind not in rules.judged for gate in found) else ()
    return GateContent(name=name, gates=needed, checks=_one(times))


def _one(times: list[CheckTime]) -> CheckTime | None:
    return times[0] if times else None


def _is_decided(named: NamedGate) -> bool:
    """A gate that the rendering has answered."""
    predicates = named.gate.probe.all
    return all(isinstance(item, RulePredicate) and RULES[item.name].render_time for item in predicates)
