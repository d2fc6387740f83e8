"""`facts`: collects what rendering and probes need from a live cluster into a folder, without secrets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.catalogue import template_set_in
from reconcile.cli.connect import Target, cluster_options, connect_to
from renderer.cli.answer import say
from renderer.cli.input_options import FOLDER
from renderer.errors import ExitCode, Problems, problem

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.observe.collect import Collected
    from renderer.model.collected import CollectedKind
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
@click.option(
    "--plan",
    "name",
    metavar="NAME",
    shell_complete=plan_names,
    help="The plan in the cluster. Defaults to the one that has not ended.",
)
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

    from reconcile.cli.parts import parts_on
    from reconcile.cli.preflight import needs_on_cluster
    from reconcile.observe.collect import NAMES, collect
    from renderer.files.flat import write_flat
    from renderer.files.templates import read_templates
    from renderer.redaction import Redactor

    tree = read_templates([Path(folder) for folder in target.templates])
    template_set = template_set_in(tree)
    parts = parts_on(connect_to(target), template_set)
    plan, redactor = _plan(parts, name), Redactor(parts.rendering.catalog.redaction)
    looked_at = needs_on_cluster(parts, template_set, plan)
    collected = collect(parts.source, parts.readings, plan, redactor, looked_at)
    files = as_files(collected)
    write_flat(Path(output_dir), files, NAMES)
    say([f"warning: {text}" for text in collected.unread], sys.stderr)
    count = sum(len(bodies) for bodies in collected.files.values())
    say([f"{count} objects in {output_dir}", f"next: {next_command(output_dir, plan, collected)}"])
    if plan is None:
        _say_if_undefined(parts)
    return ExitCode.YES


def next_command(folder: str, plan: Body | None, collected: Collected) -> str:
    """Of the newest Version that the cluster can be upgraded to; without one `new` asks. With a plan, what can be
    rendered of it."""
    place = shlex.quote(folder)
    if plan is not None:
        return f"upgradeplan render {place}"
    version = f" --version {shlex.quote(found)}" if (found := _newest_target(collected)) else ""
    return f"upgradeplan new{version} > plan.yaml && upgradeplan preflight plan.yaml {place}"


def _newest_target(collected: Collected) -> str:
    """The name of a Version; empty if the cluster has none that is newer than what it runs."""
    from reconcile.observe.facts import SERVER_VERSION
    from renderer.model.ref import ref_of
    from renderer.versions import newest_target

    bodies = {ref_of(body): body for bodies in collected.files.values() for body in bodies}
    current = bodies.get(SERVER_VERSION, {}).get("value") or ""
    versions = (body for ref, body in bodies.items() if ref.kind == "Version")
    minima = {body["metadata"]["name"]: (body.get("spec") or {}).get("minUpgradableVersion") or "" for body in versions}
    return newest_target(current=current, minima=minima)


def _say_if_undefined(parts: ReconcilerDeps) -> None:
    """A cluster without the definition of UpgradePlan can still be read."""
    import sys

    from reconcile.cli.parts import require_definition

    try:
        require_definition(parts)
    except Problems as error:
        say([f"warning: {error}"], sys.stderr)


def as_files(collected: Collected) -> dict[str, str]:
    """Each file's text: a List, as `kubectl get -o yaml` prints one, and the facts document."""
    from reconcile.observe.collect import FACTS
    from renderer.model import document_type
    from renderer.yaml_io import dump

    files = {
        name: dump({"apiVersion": "v1", "kind": "List", "items": list(bodies)})
        for name, bodies in collected.files.items()
    }
    collects = [_without_empty(item) for item in collected.whole]
    facts = {**({"collected": collects} if collects else {}), "facts": collected.facts}
    return {**files, FACTS: dump(document_type.FACTS.document(facts))}


def _without_empty(item: CollectedKind) -> dict[str, str]:
    named = {"apiVersion": item.api_version, "kind": item.kind, "namespace": item.namespace, "name": item.name}
    return {key: value for key, value in named.items() if value}


def _plan(parts: ReconcilerDeps, name: str | None) -> Body | None:
    """None where the cluster has none yet, and none was named. Raises `Unreadable` with all that may not be read."""
    from reconcile.cli.parts import plan_named, plan_there
    from reconcile.loop.plan_round import PLANS
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
        raise problem("NoSuchPlan", f"UpgradePlan {chosen} not found", remedy="it was deleted meanwhile; try again")
    return found
