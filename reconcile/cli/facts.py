"""`facts`: collects what rendering and probes need from a live cluster into a folder, without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.connect import Target, cluster_options
from renderer.cli.answer import say
from renderer.cli.input_options import FOLDER
from renderer.errors import ExitCode, problem

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.observe.collect import Collected
    from renderer.model.ref import Body


@click.command
@click.option(
    "--output-dir",
    type=FOLDER,
    metavar="FOLDER",
    default="facts",
    show_default=True,
    help="The folder to write; an earlier one is replaced.",
)
@click.option("--plan", "name", metavar="NAME", help="The plan in the cluster. Defaults to the one that has not ended.")
@cluster_options
def facts(output_dir: str, name: str | None, target: Target) -> ExitCode:
    """Collect the inputs of a rendering from the cluster.

    \b
    Examples:
      upgradeplan facts --output-dir facts
      upgradeplan render upgradeplan.yaml --release harvester-release.yaml --cluster facts

    Use the folder as --cluster in other commands. It contains no data of Secrets, only the expiry dates of
    certificates, and passwords in other objects are redacted. Read it before you share it.
    """
    import sys

    from reconcile.cli.parts import parts_of
    from reconcile.observe.collect import NAMES, collect
    from renderer.files.flat import write_flat
    from renderer.redaction import Redactor

    parts = parts_of(target)
    collected = collect(parts.source, parts.readings, _plan(parts, name), Redactor(parts.rendering.catalog.redaction))
    files = as_files(collected)
    write_flat(Path(output_dir), files, NAMES)
    say([f"warning: {text}" for text in collected.unread], sys.stderr)
    count = sum(len(bodies) for bodies in collected.files.values())
    say([f"{count} objects in {output_dir}", f"next: upgradeplan render {output_dir} --release FILE"])
    return ExitCode.YES


def as_files(collected: Collected) -> dict[str, str]:
    """Each file's text: a List, as `kubectl get -o yaml` prints one, and the facts document."""
    from reconcile.observe.collect import FACTS
    from renderer.model import document_type
    from renderer.yaml_io import dump

    files = {
        name: dump({"apiVersion": "v1", "kind": "List", "items": list(bodies)})
        for name, bodies in collected.files.items()
    }
    return {
        **files,
        **({FACTS: dump(document_type.FACTS.document({"facts": collected.facts}))} if collected.facts else {}),
    }


def _plan(parts: ReconcilerDeps, name: str | None) -> Body | None:
    """None where the cluster has none yet, and none was named. Raises `Unreadable` with all that may not be read."""
    from reconcile.cli.parts import plan_named, plan_there
    from reconcile.loop.reconciler import PLANS
    from reconcile.observe.collect import refusals
    from reconcile.observe.facts import Unreadable

    if name is None and parts.source.list(PLANS) == ():
        return None
    try:
        chosen = plan_named(parts, name)
        found = plan_there(parts, chosen)
    except Unreadable as error:
        raise Unreadable((*error.problems, *refusals(parts.source))) from None
    if found is None:
        raise problem("NoSuchPlan", f"UpgradePlan {chosen} not found", remedy="it has just been deleted; try again")
    return found
