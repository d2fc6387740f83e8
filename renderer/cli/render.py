"""`render`: a plan's manifests on stdout, or as a tree of files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from renderer.cli.answer import (
    Model,
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
from renderer.cli.candidates import phase_names
from renderer.cli.delivery_options import (
    DeliveryWords,
    delivery_options,
    layout_in,
    options_of,
    path_in_repository,
)
from renderer.cli.input_options import FOLDER, InputOptions, RenderedInputs, input_options, rendering_of
from renderer.errors import ExitCode, Problems
from renderer.model.document_type import RENDERING

if TYPE_CHECKING:
    from renderer.cli.rendered_folder import RenderedFiles
    from renderer.layout.credentials import RenderedCredential
    from renderer.model.rendered import RenderedPlan


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
    shell_complete=phase_names,
    help="Print this phase only. Repeatable; not with --output-dir.",
)
@click.option("--through", metavar="NAME", shell_complete=phase_names, help="Stop after this phase.")
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
@click.option(
    "--clusters",
    type=FOLDER,
    metavar="FOLDER",
    help="Render each cluster that has a folder in FOLDER, and its waves.yaml, to --output-dir.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --clusters: render in N processes. Default: one for each CPU.",
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
    clusters: str | None,
    jobs: int | None,
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
      upgradeplan render --clusters clusters --output-dir rendered --format flux

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

    if clusters is not None:
        _refuse_beside_clusters(given, output_dir, names=names, through=through, node=node, against=against)
        from renderer.cli.cluster_folders import ClustersAsked
        from renderer.cli.render_clusters import render_clusters

        asked = ClustersAsked(
            folder=clusters, output=str(output_dir), check=check, allow_secrets=allow_secrets, jobs=jobs or 0
        )
        return render_clusters(given, asked, delivered, output)
    if jobs:
        raise click.UsageError("--jobs is for --clusters")
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
    from renderer.cli.rendered_folder import for_agents, in_layout

    folder = Path(output_dir) / rendering.plan.plan if output_dir is not None else None
    path = path_in_repository(folder, rendering.plan.plan)
    options = options_of(delivered, folder, through=through, also=names, path=path)
    plan = rendering.plan if options else select(rendering.plan, phases=names, through=through, node=node)
    credentials = _credentials(rendering, plan)
    page = _page(rendering) if folder is not None else ""
    if options is None:
        layout = delivered.layout or layout_in(folder)
        chosen = in_layout(plan, rendering.assembly.catalog.kinds, layout, credentials, page, allowed=allow_secrets)
    else:
        chosen = for_agents(rendering, options, credentials, page, allowed=allow_secrets)
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
    rendering: RenderedInputs,
    chosen: RenderedFiles,
    folder: Path | None,
    against: str | None,
    *,
    check: bool,
    output: str,
) -> ExitCode:
    review: Model = {}
    if output != "text":
        from renderer.cli.render_review import review_model, review_page

        review = review_model(rendering, chosen.plan, chosen.index, chosen.files, against)
    if folder is not None:
        from renderer.cli.rendered_folder import answer_folder

        return answer_folder(chosen, review, folder, check=check, output=output)
    if output == "json":
        answer_with_files(RENDERING, {"index": chosen.index, "review": review}, chosen.files)
    else:
        say_page(review_page(chosen.index, redactor().value(review), None))
    return ExitCode.YES


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


def _refuse_beside_clusters(given: InputOptions, output_dir: str | None, **others: object) -> None:
    """Refuses what is for one cluster only."""
    if output_dir is None:
        raise click.UsageError("--clusters needs --output-dir, the folder to write to")
    parts = {"--phase": others["names"], "--plan": given.plan, "--cluster": given.cluster, "--retry": given.retry}
    parts |= {f"--{name}": others[name] for name in ("through", "node", "against")}
    if given.files:
        raise click.UsageError("--clusters names the inputs of all clusters; FILES and FOLDERS are those of one")
    for name, value in parts.items():
        if value:
            raise click.UsageError(f"{name} is for one cluster, and cannot be combined with --clusters")


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
