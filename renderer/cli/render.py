"""`render`: a plan's manifests on stdout, or as a tree of files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from renderer.cli.answer import (
    Model,
    again,
    answer,
    answer_with_files,
    output_option,
    pass_on,
    pending_lines,
    pending_models,
    redactor,
    say,
    warn,
)
from renderer.cli.input_options import FOLDER, InputOptions, RenderedInputs, catalog_of, input_options, rendering_of
from renderer.errors import ExitCode, Problems
from renderer.frozen import frozen
from renderer.layout.table import DEFAULT, LAYOUTS, layout_help
from renderer.model.document_type import RENDERED_FOLDER, RENDERING

if TYPE_CHECKING:
    from renderer.catalog.kinds import Kinds
    from renderer.layout.credentials import RenderedCredential
    from renderer.model.rendered import RenderedPlan


def _phase_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The names that complete a word; none if the templates cannot be read."""
    try:
        phases = catalog_of(InputOptions(templates=tuple(ctx.params.get("templates") or ()))).phases
    except Problems:
        return []
    return [item.phase.name for item in phases if item.phase.name.startswith(incomplete)]


@click.command
@input_options
@click.option(
    "--output-dir", type=FOLDER, metavar="FOLDER", help="Write the manifests to FOLDER/<plan>/ instead of stdout."
)
@click.option(
    "--check", is_flag=True, help="Write nothing; list the stale files in --output-dir and exit 1 if there are any."
)
@click.option(
    "--phase",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=_phase_names,
    help="Print this phase only. Repeatable; not with --output-dir.",
)
@click.option("--through", metavar="NAME", shell_complete=_phase_names, help="Stop after this phase.")
@click.option("--node", metavar="NAME", help="Print the manifests of this node only; not with --output-dir.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(list(LAYOUTS)),
    metavar="LAYOUT",
    help=layout_help(),
)
@click.option(
    "--allow-secrets",
    is_flag=True,
    help="Write credentials also in a layout that is made for a Git repository.",
)
@output_option
def render(
    given: InputOptions,
    output_dir: str | None,
    check: bool,
    names: tuple[str, ...],
    through: str | None,
    node: str | None,
    layout: str | None,
    allow_secrets: bool,
    output: str,
) -> ExitCode:
    """Render the manifests of a plan for review.

    \b
    Examples:
      upgradeplan render examples/three-node
      upgradeplan render upgradeplan.yaml --release harvester.iso --cluster facts/ --output-dir rendered
      upgradeplan render examples/three-node --output-dir rendered --check
      upgradeplan render examples/three-node --phase NodeUpgrade --node charlie-1-tink-system

    FILES and FOLDERS contain the UpgradePlan, the release and objects of the cluster, in any order; each document is
    recognized by its content, and `-` reads standard input. If an input is missing, the rest is rendered and the
    missing input is reported as pending.

    Manifests are printed to stdout in the order in which they are applied, pending inputs to stderr. --output-dir
    writes files instead, with an index.yaml that explains them, and removes files of an earlier render that are no
    longer needed; other files are left alone.

    A folder always contains a whole rendering: --phase and --node are for stdout only, and --through leaves out the
    later phases.
    """
    from renderer.layout.credentials import credentials_of
    from renderer.layout.select import select

    _refuse_a_part(output_dir, check, names, node)
    if output_dir is None and output == "text" and (layout or allow_secrets):
        option = "--format" if layout else "--allow-secrets"
        raise click.UsageError(f"{option} needs --output-dir or -o json: it is about files")
    rendering = rendering_of(given)
    if output_dir is not None:
        _require_name(rendering)
    catalog = rendering.assembly.catalog
    plan = select(rendering.plan, phases=names, through=through, node=node)
    credentials = credentials_of(plan, catalog.redaction)
    warn(item.warning() for item in credentials)
    chosen = _Chosen(
        plan=plan, kinds=catalog.kinds, layout=layout or DEFAULT, credentials=credentials, allowed=allow_secrets
    )
    if output_dir is not None:
        folder = Path(output_dir) / plan.plan
        chosen = replace(chosen, layout=layout or _layout_of(folder), page=_page(rendering))
        return _tree(chosen, folder, check=check, output=output)
    if output == "json":
        _whole(chosen)
    else:
        pass_on(_documents(plan), end="")
        say(pending_lines(pending_models(plan)), sys.stderr)
    return ExitCode.YES


@frozen
class _Chosen:
    """The output: what is written, how, and whether with the credentials that are in it."""

    plan: RenderedPlan
    kinds: Kinds
    layout: str
    credentials: tuple[RenderedCredential, ...]
    allowed: bool
    page: str = ""


def _page(rendering: RenderedInputs) -> str:
    from renderer.layout.upgrade_page import page_of

    return page_of(rendering.assembly.facts, rendering.assembly.template_set.tree)


def _refuse_a_part(output_dir: str | None, check: bool, names: tuple[str, ...], node: str | None) -> None:
    if check and output_dir is None:
        raise click.UsageError("--check needs --output-dir, the folder to compare with")
    if output_dir is not None and (names or node):
        part = "--phase" if names else "--node"
        raise click.UsageError(f"{part} is for stdout; a folder is always a whole rendering (or --through a phase)")


def _require_name(rendering: RenderedInputs) -> None:
    """A folder is kept, and bears the plan's name."""
    from renderer.input_rules import needs_name

    if rendering.inputs.plan and rendering.inputs.generated:
        raise Problems([needs_name(rendering.inputs.plan)])


def _whole(chosen: _Chosen) -> None:
    from renderer.layout.index import index_of
    from renderer.layout.trees import files_of

    files = files_of(chosen.plan, chosen.layout, chosen.credentials, allow_secrets=chosen.allowed)
    index = index_of(chosen.plan, chosen.kinds, files, chosen.layout, chosen.credentials)
    answer_with_files(RENDERING, {"index": index}, files)


def _documents(plan: RenderedPlan) -> Iterator[str]:
    """Every manifest as a document that says where it stands, as `helm template` prints them."""
    from renderer.layout.manifests import manifest_text

    for manifest in plan.manifests():
        yield f"---\n# Source: {plan.plan}/{manifest.file}\n{manifest_text([manifest])}"


def _layout_of(folder: Path) -> str:
    """The layout that an earlier render has given the folder."""
    from renderer.files.tree_state import layout_of

    try:
        found = layout_of(folder) or DEFAULT
    except OSError:
        return DEFAULT  # whoever reads or writes the folder next reports it
    if found not in LAYOUTS:
        raise click.UsageError(f"{folder} has the layout {found!r}; choose one with --format: {', '.join(LAYOUTS)}")
    return found


def _tree(chosen: _Chosen, folder: Path, *, check: bool, output: str) -> ExitCode:
    from renderer.files.tree import check_tree, write_tree
    from renderer.layout.trees import tree_of

    plan, layout = chosen.plan, chosen.layout
    files = tree_of(
        plan,
        chosen.kinds,
        layout,
        chosen.credentials,
        allow_secrets=chosen.allowed,
        redactor=redactor(),
        page=chosen.page,
    )
    done = check_tree(folder, files) if check else write_tree(folder, files)
    model = {
        "plan": plan.plan,
        "digest": plan.digest,
        "layout": layout,
        "folder": str(folder),
        "files": len(files),
        "written": not check,
        "changes": {name: list(getattr(done, name)) for name in ("missing", "changed", "stale", "foreign")},
        "pending": pending_models(plan),
    }
    answer(RENDERED_FOLDER, model, output, _checked if check else _written)
    return ExitCode.NO if check and done else ExitCode.YES


def _written(model: Model) -> Iterator[str]:
    changes = model["changes"]
    new, changed, removed, others = (len(changes[name]) for name in ("missing", "changed", "stale", "foreign"))
    yield f"wrote {model['folder']}: {model['files']} files ({new} new, {changed} changed, {removed} removed)"
    if others:
        yield f"left alone: {others} files that upgradeplan did not write"
    yield f"digest: {model['digest']}"
    yield from pending_lines(model["pending"])
    yield f"next: read {model['folder']}/index.yaml; in CI, `{again(add='--check')}` exits 1 if the folder is stale"


def _checked(model: Model) -> Iterator[str]:
    changes = model["changes"]
    stale = [(word, path) for word in ("missing", "changed", "stale") for path in changes[word]]
    if not stale:
        yield f"{model['folder']} is up to date: {model['files']} files, digest {model['digest']}"
        return
    yield f"{model['folder']} is stale; it differs from what these inputs render:"
    yield from (f"  {word:<8} {path}" for word, path in stale)
    yield f"next: `{again(leave_out='--check')}` renders it again"
