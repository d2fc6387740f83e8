"""`compare`: what the same plan does with another release, or with other templates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from renderer.cli.answer import Model, answer, output_option, painted, plain, table
from renderer.cli.input_options import FILE, FOLDER, InputOptions, input_options, read, rendering_from
from renderer.errors import ExitCode, Problem, Problems
from renderer.model.document_type import COMPARISON_REPORT

if TYPE_CHECKING:
    from renderer.compare import Side

_SHOWN = 3


@click.command
@input_options
@click.option("--to-release", type=FILE, metavar="FILE|URL|ISO", help="The release to compare with.")
@click.option("--to-templates", type=FOLDER, metavar="FOLDER", multiple=True, help="The overlay to compare with.")
@output_option
def compare(given: InputOptions, to_release: str | None, to_templates: tuple[str, ...], output: str) -> ExitCode:
    """Show what another release or other templates would change.

    \b
    Examples:
      upgradeplan compare examples/three-node --to-release v1.8.1/harvester-release.yaml
      upgradeplan compare examples/three-node --templates old/ --to-templates new/

    Renders the plan twice, with --release and --templates and with --to-release and --to-templates, and shows the
    differences: objects that are added, removed or changed, and what the upgrade waits for. The plan's status is
    ignored, since it belongs to one release. Exits 0 if there are no differences, 1 if there are.
    """
    if to_release is None and not to_templates:
        raise click.UsageError("--to-release or --to-templates is missing, so there is nothing to compare with")
    other = replace(given, release=to_release or given.release, templates=to_templates or given.templates)
    model = _model(*_sides(given, other))
    answer(COMPARISON_REPORT, model, output, _text)
    return ExitCode.NO if model["differences"] else ExitCode.YES


def _sides(*givens: InputOptions) -> Iterator[Side]:
    """Both renderings. Raises `Problems` with those of both."""
    problems: list[Problem] = []
    sides: list[Side] = []
    for given in givens:
        try:
            sides.append(_side(given))
        except Problems as error:
            problems += error.problems
    if problems:
        raise Problems(problems)
    yield from sides


def _side(given: InputOptions) -> Side:
    from renderer.compare import Side

    inputs, tree = read(given)
    if inputs.plan:
        body = {key: value for key, value in inputs.plan.body.items() if key != "status"}
        inputs = replace(inputs, plan=replace(inputs.plan, body=body))
    rendering = rendering_from(inputs, tree, retry=given.retry)
    catalog = rendering.assembly.catalog
    return Side(plan=rendering.plan, kinds=catalog.kinds, redaction=catalog.redaction)


def _model(left: Side, right: Side) -> Model:
    from renderer.compare import compare as differences

    found = [asdict(difference) for difference in differences(left, right)]
    return {
        "plan": right.plan.plan,
        "manifests": sum(1 for _ in right.plan.manifests()),
        "digests": [left.plan.digest, right.plan.digest],
        "differences": [{key: value for key, value in item.items() if value not in ("", ())} for item in found],
    }


def _text(model: Model) -> Iterator[str]:
    if not model["differences"]:
        yield f"no difference: both do the same with {model['manifests']} manifests"
        return
    groups = _grouped(model["differences"])
    yield from table([("OPERATION", "OBJECT", "PHASE", "FIELDS"), *(_row(group) for group in groups)])
    for group in groups:
        first = group[0]
        if "diff" in first:
            yield ""
            yield f"{first['operation']}: {plain(_name(group))}"
            yield from map(_painted, first["diff"].splitlines())


def _grouped(differences: list[Model]) -> list[list[Model]]:
    """Groups differences that are the same for several nodes."""
    groups: dict[tuple[str, ...], list[Model]] = {}
    for number, item in enumerate(differences):
        lines = [line for line in item.get("diff", "").splitlines()[2:] if line[0] in "+-"]
        same = (item["operation"], item["phase"], item.get("step", ""), item.get("template", ""), *lines)
        groups.setdefault(same if item.get("node") else (str(number),), []).append(item)
    return list(groups.values())


def _row(group: list[Model]) -> tuple[str, ...]:
    first = group[0]
    fields = first.get("fields", ())
    more = f" and {len(fields) - _SHOWN} more" if len(fields) > _SHOWN else ""
    return (first["operation"], _name(group), first["phase"], ", ".join(fields[:_SHOWN]) + more)


def _name(group: list[Model]) -> str:
    first = group[0]
    what = first["name"] if first["subject"] == "manifest" else f"{first['subject']} {first['name']}"
    return f"{what} (and {len(group) - 1} more nodes)" if len(group) > 1 else what


def _painted(line: str) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return painted(plain(line), colour) if colour else plain(line)
