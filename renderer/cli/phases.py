"""`phases`: the phases in their order, what each needs and waits for; and what a phase's templates may see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from renderer.cli.answer import Model, answer, output_option, pending_lines, plain, table
from renderer.cli.candidates import or_files, phase_names
from renderer.cli.input_options import InputOptions, catalog_of, input_options, rendering_of
from renderer.errors import ExitCode
from renderer.model.document_type import PHASE_CONTEXT, PHASE_LIST

if TYPE_CHECKING:
    from renderer.catalog.load import Catalog
    from renderer.model.phase import Phase, Step

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


@click.command
@partial(input_options, completed_by=or_files(phase_names))
@click.option(
    "--context", "wants_context", is_flag=True, help="List the names that the templates of this phase can use."
)
@output_option
def phases(given: InputOptions, wants_context: bool, output: str) -> ExitCode:
    """List the phases of an upgrade.

    \b
    Examples:
      upgradeplan phases
      upgradeplan phases NodeUpgrade examples/three-node
      upgradeplan phases NodeUpgrade --context

    A name such as NodeUpgrade among FILES selects a phase. Without inputs, phases are listed as the templates declare
    them; with inputs, also what is skipped or pending and why, and which objects of this plan each gate waits for.
    """
    names, given = _names_apart(given)
    if wants_context and len(names) != 1:
        raise click.UsageError("--context needs the name of one phase, such as `phases NodeUpgrade --context`")
    if wants_context:
        from renderer.cli.context import context_model, context_text

        answer(PHASE_CONTEXT, context_model(names[0], given), output, context_text)
    else:
        models = _rendered(given) if given.names_inputs else _declared(catalog_of(given))
        answer(PHASE_LIST, {"phases": _chosen(models, names)}, output, _text)
    return ExitCode.YES


def _names_apart(given: InputOptions) -> tuple[tuple[str, ...], InputOptions]:
    """Names of phases look like `NodeUpgrade`; a file of such a name can be written `./NodeUpgrade`."""
    names = tuple(word for word in given.files if _NAME.fullmatch(word) and not Path(word).exists())
    return names, replace(given, files=tuple(word for word in given.files if word not in names))


def _chosen(models: list[Model], names: Sequence[str]) -> list[Model]:
    from renderer.layout.select import unknown

    known = [model["name"] for model in models]
    for name in names:
        if name not in known:
            raise unknown("phase", name, known)
    return [model for model in models if not names or model["name"] in names]


def _declared(catalog: Catalog) -> list[Model]:
    return [{**_phase(item.phase), "steps": [_step(step) for step in item.phase.steps]} for item in catalog.phases]


def _rendered(given: InputOptions) -> list[Model]:
    from renderer.layout.index import index_of

    rendering = rendering_of(given)
    index = index_of(rendering.plan, rendering.assembly.catalog.kinds, (), "plain")
    return [
        {
            **_phase(phase.phase),
            **_part(entry, ("skipped", "pending")),
            "steps": [_part(step, _STEP_KEYS) for step in entry.get("steps", ())],
        }
        for phase, entry in zip(rendering.plan.phases, index["phases"], strict=True)
    ]


_STEP_KEYS = ("name", "description", "runs", "forEach", "skipped", "pending", "waitsFor", "noGate")


def _part(entry: Mapping[str, Any], keys: Sequence[str]) -> Model:
    return {key: entry[key] for key in keys if key in entry}


def _phase(phase: Phase) -> Model:
    return {
        "number": phase.number,
        "name": phase.name,
        "description": phase.description,
        "status": {"active": phase.active, "completed": phase.completed},
        "deletion": str(phase.deletion),
        "requires": sorted({*phase.requires, *(name for step in phase.steps for name in step.requires)}),
        "provides": list(phase.provides),
    }


def _step(step: Step) -> Model:
    """A step as declared; its words still hold the marks that a plan fills in."""
    from renderer.describe import describe_gate
    from renderer.layout.index import POSITIONS
    from renderer.model.manifest_spec import Owned
    from renderer.render.step_gates import implied_gates

    owned = [spec.file for spec in step.manifests if isinstance(spec, Owned)]
    entries = {
        "name": step.name,
        "description": step.description,
        "runs": POSITIONS.get(step.position),
        "forEach": step.for_each,
        "waitsFor": [describe_gate(gate) for gate in step.gates or implied_gates(step, owned)],
        "noGate": step.no_gate,
    }
    return {key: value for key, value in entries.items() if value}


def _text(model: Model) -> Iterator[str]:
    heading = ("NO", "PHASE", "WHILE IT RUNS", "AFTERWARDS", "DELETION", "REQUIRES")
    head, *lines = table([heading, *map(_row, model["phases"])])
    yield head
    for line, phase in zip(lines, model["phases"], strict=True):
        yield line
        yield from (f"      {plain(detail)}" for detail in _details(phase))


def _row(phase: Model) -> tuple[str, ...]:
    requires = ", ".join(phase["requires"]) or "-"
    status = phase["status"]
    return (f"{phase['number']:02}", phase["name"], status["active"], status["completed"], phase["deletion"], requires)


def _details(phase: Model) -> Iterator[str]:
    if "skipped" in phase:
        yield f"skipped: {phase['skipped']}"
    yield from pending_lines(phase.get("pending", ()))
    for step in phase["steps"]:
        if isinstance(step.get("skipped"), str):
            yield f"{step['name']} is skipped: {step['skipped']}"
        yield from (f"{step['name']} is {line}" for line in pending_lines(step.get("pending", ())))
        yield from (f"{step['name']} waits for: {words}" for words in step.get("waitsFor", ()))
