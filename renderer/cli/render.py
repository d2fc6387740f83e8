"""`render`: a plan's manifests on stdout, or as a tree of files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from renderer.cli.answer import (
    Model,
    again,
    answer,
    answer_with_files,
    pass_on,
    pending_lines,
    pending_models,
    redactor,
    review_output_option,
    say,
    say_page,
    warn,
)
from renderer.cli.delivery_options import DeliveryWords, delivery_options, layout_in, options_of
from renderer.cli.input_options import FOLDER, InputOptions, RenderedInputs, catalog_of, input_options, rendering_of
from renderer.delivery.agents import LAYOUT
from renderer.errors import ExitCode, Problems
from renderer.frozen import frozen
from renderer.model.document_type import RENDERED_FOLDER, RENDERING

if TYPE_CHECKING:
    from renderer.catalog.kinds import Kinds
    from renderer.delivery.options import DeliveryOptions
    from renderer.layout.credentials import RenderedCredential
    from renderer.markdown.limited_page import Block
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
@delivery_options
@click.option(
    "--allow-secrets",
    is_flag=True,
    help="Write credentials also in a layout that is made for a Git repository.",
)
@click.option(
    "--against",
    type=FOLDER,
    metavar="FOLDER",
    help="With -o markdown or json: also show what differs from the rendering in FOLDER, such as the base branch's.",
)
@review_output_option
def render(
    given: InputOptions,
    output_dir: str | None,
    check: bool,
    names: tuple[str, ...],
    through: str | None,
    node: str | None,
    delivered: DeliveryWords,
    allow_secrets: bool,
    against: str | None,
    output: str,
) -> ExitCode:
    """Render the manifests of a plan for review.

    \b
    Examples:
      upgradeplan render examples/three-node
      upgradeplan render upgradeplan.yaml --release harvester.iso --cluster facts/ --output-dir rendered
      upgradeplan render examples/three-node --output-dir rendered --check
      upgradeplan render examples/three-node --against base/rendered -o markdown
      upgradeplan render examples/three-node --phase NodeUpgrade --node charlie-1-tink-system
      upgradeplan render examples/three-node --output-dir rendered --format flux --repo https://git.example.com/site.git

    FILES and FOLDERS contain the UpgradePlan, the release and objects of the cluster, in any order; each document is
    recognized by its content, and `-` reads standard input. If an input is missing, the rest is rendered and the
    missing input is reported as pending.

    Manifests are printed to stdout in the order in which they are applied, pending inputs to stderr. --output-dir
    writes files instead, with an index.yaml that explains them, and removes files of an earlier render that are no
    longer needed; other files are left alone.

    A folder always contains a whole rendering: --phase and --node are for stdout only, and --through leaves out the
    later phases.
    """
    from renderer.layout.select import select

    _refuse_a_part(output_dir, check, names, node, delivered)
    if output_dir is None and output == "text" and (delivered.first or allow_secrets):
        option = delivered.first or "--allow-secrets"
        raise click.UsageError(f"{option} needs --output-dir or -o json: it is about files")
    if against is not None and output == "text":
        raise click.UsageError("--against needs -o markdown or -o json")
    rendering = rendering_of(given)
    if output_dir is not None or delivered.agents:
        _require_name(rendering)
    if output_dir is None and output == "text":
        return _printed(rendering, select(rendering.plan, phases=names, through=through, node=node))
    folder = Path(output_dir) / rendering.plan.plan if output_dir is not None else None
    options = options_of(delivered, folder, through=through, also=names, plan=rendering.plan.plan)
    plan = rendering.plan if options else select(rendering.plan, phases=names, through=through, node=node)
    credentials = _credentials(rendering, plan)
    page = _page(rendering) if folder is not None else ""
    if options is None:
        layout = delivered.layout or layout_in(folder)
        chosen = _in_layout(plan, rendering.assembly.catalog.kinds, layout, credentials, page, allowed=allow_secrets)
    else:
        chosen = _for_agents(rendering, options, credentials, page, allowed=allow_secrets)
    return _shown(rendering, chosen, folder, against, check=check, output=output)


def _printed(rendering: RenderedInputs, plan: RenderedPlan) -> ExitCode:
    _credentials(rendering, plan)
    pass_on(_documents(plan), end="")
    say(pending_lines(pending_models(plan)), sys.stderr)
    return ExitCode.YES


def _credentials(rendering: RenderedInputs, plan: RenderedPlan) -> tuple[RenderedCredential, ...]:
    """The credentials in rendered values, each with a warning."""
    from renderer.layout.credentials import credentials_of

    found = credentials_of(plan, rendering.assembly.catalog.redaction)
    warn(item.warning() for item in found)
    return found


def _shown(
    rendering: RenderedInputs, chosen: _Chosen, folder: Path | None, against: str | None, *, check: bool, output: str
) -> ExitCode:
    review: Model = {}
    if output != "text":
        from renderer.cli.render_review import review_model, review_page

        review = review_model(rendering, chosen.plan, chosen.index, chosen.files, against)
    if folder is not None:
        return _tree(chosen, review, folder, check=check, output=output)
    if output == "json":
        answer_with_files(RENDERING, {"index": chosen.index, "review": review}, chosen.files)
    else:
        say_page(review_page(chosen.index, redactor().value(review), None))
    return ExitCode.YES


@frozen
class _Chosen:
    """The output. `given` says for each agent what is applied once, and which folders it pulls."""

    plan: RenderedPlan
    layout: str
    files: dict[str, str]
    index: Model
    given: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def _in_layout(
    plan: RenderedPlan,
    kinds: Kinds,
    layout: str,
    credentials: tuple[RenderedCredential, ...],
    page: str,
    *,
    allowed: bool,
) -> _Chosen:
    from renderer.layout.index import index_of
    from renderer.layout.trees import PAGE, files_of

    files = files_of(plan, layout, credentials, allow_secrets=allowed) | ({PAGE: page} if page else {})
    index = index_of(plan, kinds, files, layout, credentials, redactor())
    return _Chosen(plan=plan, layout=layout, files=files, index=index)


def _for_agents(
    rendering: RenderedInputs,
    options: DeliveryOptions,
    credentials: tuple[RenderedCredential, ...],
    page: str,
    *,
    allowed: bool,
) -> _Chosen:
    from renderer.cli.version import installed_version
    from renderer.delivery.prepare_delivery import prepare_delivery

    delivery = prepare_delivery(
        rendering.assembly,
        rendering.plan,
        options,
        credentials,
        page,
        version=installed_version(),
        allow_secrets=allowed,
    )
    files = delivery.files()
    warn(options.warnings())
    return _Chosen(
        plan=rendering.plan,
        layout=LAYOUT,
        files=files,
        index=delivery.index(files, redactor()),
        given=delivery.given(),
    )


def _page(rendering: RenderedInputs) -> str:
    from renderer.layout.upgrade_page import page_of

    return page_of(rendering.assembly.facts, rendering.assembly.template_set.tree)


def _refuse_a_part(
    output_dir: str | None, check: bool, names: tuple[str, ...], node: str | None, delivered: DeliveryWords
) -> None:
    if check and output_dir is None:
        raise click.UsageError("--check needs --output-dir, the folder to compare with")
    if node and delivered.agents:
        raise click.UsageError("--node is for stdout; agents are given whole phases")
    if output_dir is not None and (node or (names and not delivered.is_for_agents)):
        part = "--phase" if names else "--node"
        raise click.UsageError(f"{part} is for stdout; a folder is always a whole rendering (or --through a phase)")


def _require_name(rendering: RenderedInputs) -> None:
    """A folder is kept, and bears the plan's name."""
    from renderer.input_rules import needs_name

    if rendering.inputs.plan and rendering.inputs.generated:
        raise Problems([needs_name(rendering.inputs.plan)])


def _documents(plan: RenderedPlan) -> Iterator[str]:
    """Every manifest as a document that says where it stands, as `helm template` prints them."""
    from renderer.layout.manifests import manifest_text

    for manifest in plan.manifests():
        yield f"---\n# Source: {plan.plan}/{manifest.file}\n{manifest_text([manifest])}"


def _tree(chosen: _Chosen, review: Model, folder: Path, *, check: bool, output: str) -> ExitCode:
    from renderer.files.tree import check_tree, write_tree
    from renderer.layout.trees import INDEX
    from renderer.yaml_io import dump

    plan, files = chosen.plan, {**chosen.files, INDEX: dump(chosen.index)}
    if chosen.layout == LAYOUT:
        _refuse_changed_jobs(folder, files)
    done = check_tree(folder, files) if check else write_tree(folder, files)
    model = {
        "plan": plan.plan,
        "digest": plan.digest,
        "layout": chosen.layout,
        "folder": str(folder),
        "files": len(files),
        "written": not check,
        "changes": {name: list(getattr(done, name)) for name in ("missing", "changed", "stale", "foreign")},
        "pending": pending_models(plan),
    }
    if chosen.given:
        model["agents"] = [dict(zip(("agent", "apply", "pulls"), row, strict=True)) for row in chosen.given]
    if review:
        model["review"] = review

    def page(shown: Model) -> Iterator[Block]:
        from renderer.cli.render_review import review_page

        return review_page(chosen.index, shown["review"], shown["changes"] if check else None)

    answer(RENDERED_FOLDER, model, output, _checked if check else _written, page)
    return ExitCode.NO if check and done else ExitCode.YES


def _refuse_changed_jobs(folder: Path, files: dict[str, str]) -> None:
    from renderer.delivery.delivered_jobs import changed_jobs
    from renderer.files.tree_state import texts_below

    if found := list(changed_jobs(texts_below(folder, "phases"), files)):
        raise Problems(found)


def _written(model: Model) -> Iterator[str]:
    changes = model["changes"]
    new, changed, removed, others = (len(changes[name]) for name in ("missing", "changed", "stale", "foreign"))
    yield f"wrote {model['folder']}: {model['files']} files ({new} new, {changed} changed, {removed} removed)"
    if others:
        yield f"left alone: {others} files that upgradeplan did not write"
    yield f"digest: {model['digest']}"
    yield from pending_lines(model["pending"])
    for item in model.get("agents", ()):
        yield f"{item['agent']}: apply {model['folder']}/{item['apply']} once; it pulls {', '.join(item['pulls'])}"
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
