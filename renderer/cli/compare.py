"""`compare`: what the same plan does with another release, or with other templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from renderer.cli.answer import Model, answer, painted, plain, review_output_option, table
from renderer.cli.input_options import FILE, FOLDER, InputOptions, input_options, read, rendering_from
from renderer.difference_groups import fields_of, grouped, name_of, other_images
from renderer.errors import ExitCode, Problem, Problems
from renderer.frozen import frozen
from renderer.model.document_type import COMPARISON_REPORT

if TYPE_CHECKING:
    from renderer.compare import Side
    from renderer.markdown.limited_page import Block


@click.command
@input_options
@click.option("--to-release", type=FILE, metavar="FILE|URL|ISO", help="The release to compare with.")
@click.option("--to-templates", type=FOLDER, metavar="FOLDER", multiple=True, help="The overlay to compare with.")
@review_output_option
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
    answer(COMPARISON_REPORT, model, output, _text, _blocks)
    return ExitCode.NO if model["differences"] else ExitCode.YES


@frozen
class _RenderedRelease:
    """One of the two renderings, and the version that it upgrades to; empty without a release."""

    side: Side
    release: str


def _sides(*givens: InputOptions) -> Iterator[_RenderedRelease]:
    """Both renderings. Raises `Problems` with those of both."""
    problems: list[Problem] = []
    sides: list[_RenderedRelease] = []
    for given in givens:
        try:
            sides.append(_side(given))
        except Problems as error:
            problems += error.problems
    if problems:
        raise Problems(problems)
    yield from sides


def _side(given: InputOptions) -> _RenderedRelease:
    from renderer.compare import Side

    inputs, tree = read(given)
    if inputs.plan:
        body = {key: value for key, value in inputs.plan.body.items() if key != "status"}
        inputs = replace(inputs, plan=replace(inputs.plan, body=body))
    rendering = rendering_from(inputs, tree, retry=given.retry)
    catalog = rendering.assembly.catalog
    side = Side(plan=rendering.plan, kinds=catalog.kinds, redaction=catalog.redaction)
    release = inputs.release.body if inputs.release else {}
    return _RenderedRelease(side=side, release=str(release.get("harvester") or ""))


def _model(left: _RenderedRelease, right: _RenderedRelease) -> Model:
    from renderer.compare import compare as differences

    found = [asdict(difference) for difference in differences(left.side, right.side)]
    return {
        "plan": right.side.plan.plan,
        "releases": [left.release, right.release],
        "manifests": sum(1 for _ in right.side.plan.manifests()),
        "digests": [left.side.plan.digest, right.side.plan.digest],
        "images": other_images(left.side.plan.images, right.side.plan.images),
        "differences": [{key: value for key, value in item.items() if value not in ("", ())} for item in found],
    }


def _text(model: Model) -> Iterator[str]:
    if not model["differences"]:
        yield f"no difference: both do the same with {model['manifests']} manifests"
        return
    groups = grouped(model["differences"])
    yield from table([("OPERATION", "OBJECT", "PHASE", "FIELDS"), *(_row(group) for group in groups)])
    for group in groups:
        first = group[0]
        if "diff" in first:
            yield ""
            yield f"{first['operation']}: {plain(name_of(group))}"
            yield from map(_painted, first["diff"].splitlines())


def _row(group: list[Mapping[str, Any]]) -> tuple[str, ...]:
    return (group[0]["operation"], name_of(group), group[0]["phase"], fields_of(group))


def _blocks(model: Model) -> Iterator[Block]:
    from renderer.markdown.differences import difference_blocks
    from renderer.markdown.quoting import cell

    count = len(model["differences"])
    what = f"{count} difference{'' if count == 1 else 's'}" if count else "no difference"
    yield f"### {cell(model['plan'])}: {what}"
    before, after = (cell(item or "no release") for item in model["releases"])
    yield from ("", f"Compared: {before} and {after}; {model['manifests']} manifests.")
    yield from difference_blocks(model["differences"], model["images"])


def _painted(line: str) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return painted(plain(line), colour) if colour else plain(line)
