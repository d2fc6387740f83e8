"""`install`: the manager's own manifests, to the cluster, to files or to stdout."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconcile.cli.connect import Target, cluster_options, connect_to, wall_clock
from reconcile.cli.given_installation import GivenInstallation
from renderer.cli.answer import again, pass_on, say, show_problems
from renderer.cli.input_options import FILE, FOLDER
from renderer.errors import ExitCode, Problems, problem, quoted

if TYPE_CHECKING:
    from reconcile.cluster.protocol import Cluster
    from reconcile.install.installer import InstallChange
    from renderer.install.formats import Installation
    from renderer.install.install_values import Values
    from renderer.model.ref import Body

FORMATS = ("plain", "kustomize", "helm-chart", "addon")
_ON_STDOUT = ("plain", "addon")
_CHART_FOLDER = "templates"
_EVERY = 1.0
_MANAGER = ("control-plane", "controller-manager")


@click.command
@click.argument("action", required=False, type=click.Choice(["apply"]), metavar="[apply]")
@click.option(
    "--format",
    "layout",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="Write manifests instead of installing: plain, kustomize, helm-chart or addon.",
)
@click.option(
    "--values", "files", type=FILE, metavar="FILE", multiple=True, help="Values, as for the chart. Repeatable."
)
@click.option(
    "--release",
    type=FILE,
    metavar="FILE|URL|ISO",
    help="The release to upgrade to: its version becomes the value `toolkitTag`.",
)
@click.option("--name", metavar="NAME", help="The value `name`, the first part of every object's name.")
@click.option("--output-dir", type=FOLDER, metavar="FOLDER", help="Write the manifests to FOLDER instead of stdout.")
@click.option("--crds", is_flag=True, help="Install only the CRD, for `upgradeplan apply` from a laptop.")
@click.option(
    "--dry-run", is_flag=True, help="Have the API server try every object, show what changes, change nothing."
)
@click.option("--wait", is_flag=True, help="Wait until the manager is ready.")
@click.option("--timeout", type=click.IntRange(min=1), default=300, show_default=True, help="Seconds to wait.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that other field managers hold.")
@cluster_options
def install(
    action: str | None,
    layout: str | None,
    files: tuple[str, ...],
    release: str | None,
    name: str | None,
    output_dir: str | None,
    crds: bool,
    dry_run: bool,
    wait: bool,
    timeout: int,
    force_conflicts: bool,
    target: Target,
) -> ExitCode:
    """Install the manager, or write its manifests.

    \b
    Examples:
      upgradeplan install --dry-run
      upgradeplan install --wait
      upgradeplan install --format plain | kubectl apply --server-side -f -
      upgradeplan install --format helm-chart --output-dir chart

    Installs by server-side apply, after a dry run of every object: if one is refused, nothing is changed. Objects that
    only an earlier installation of the same name had are removed. If objects of the same names, or webhooks for
    UpgradePlans, belong to another manager, nothing is changed and the alternatives are shown.

    --format and --output-dir write the manifests instead; all formats have the same objects: CustomResourceDefinition,
    ServiceAccount and the permissions of the manager, its Deployment, and an admission policy that guards plans. The
    values are those of the chart. --templates gives the manager an overlay of templates, as a ConfigMap.

    The value `toolkitTag` is that of --release, or of --values. Without both the cluster suggests one: the image of
    another manager, or the only Version for which there is a toolkit. The output says which tag it is, and from where.
    """
    writes = layout is not None or output_dir is not None
    if writes and (action or dry_run or wait):
        raise click.UsageError("--format and --output-dir write manifests; leave them out to install")
    given = GivenInstallation(files=files, release=release, name=name, templates=target.templates, crds=crds)
    if writes:
        return _written(given, layout or "plain", output_dir)
    return _installed(given, target, dry_run=dry_run, timeout=timeout if wait else 0, force=force_conflicts)


def _written(given: GivenInstallation, layout: str, output_dir: str | None) -> ExitCode:
    from renderer.install.formats import FORMATS as WRITERS

    if output_dir is None and layout not in _ON_STDOUT:
        raise click.UsageError(f"--format {layout} needs --output-dir: it has several files")
    found, tag = given.read()
    say([tag] if tag else [], sys.stderr)
    tree = WRITERS[layout](found)
    if output_dir is None:
        pass_on(tree.values(), end="")
        return ExitCode.YES
    _write(Path(output_dir), tree, found)
    say(_next(layout, output_dir, len(tree), found.values))
    return ExitCode.YES


def _write(folder: Path, tree: dict[str, str], found: Installation) -> None:
    """Writes the files; a chart has a folder of templates. Raises `Problems`, and replaces nothing of others."""
    from renderer.files.flat import write_flat
    from renderer.install.install_objects import short_name

    known = {f"{short_name(path)}.yaml" for path in (*found.tree, *found.chart_tree)}
    flat = {path: text for path, text in tree.items() if "/" not in path}
    below = {path.partition("/")[2]: text for path, text in tree.items() if "/" in path}
    write_flat(folder, flat, known, folders=[_CHART_FOLDER] if below else ())
    if below:
        write_flat(folder / _CHART_FOLDER, below, known)


def _next(layout: str, folder: str, count: int, values: Values) -> Iterator[str]:
    yield f"wrote {folder}: {count} {'file' if count == 1 else 'files'}"
    yield f"next: {_NEXT[layout].format(folder=shlex.quote(folder), **values)}"


_NEXT = {
    "plain": "kubectl apply --server-side -f {folder}",
    "kustomize": "kubectl apply --server-side -k {folder}",
    "helm-chart": "helm install -n {namespace} {name} {folder}",
    "addon": "kubectl apply -f {folder}/addon.yaml",
}


# ---------------------------------------------------------------------------------------------------- to the cluster


def _installed(given: GivenInstallation, target: Target, *, dry_run: bool, timeout: int, force: bool) -> ExitCode:
    from reconcile.install.installer import Installer
    from reconcile.schemas import packaged_schemas
    from renderer.install.install_objects import in_order

    cluster = connect_to(target).cluster
    found, tag = given.read(cluster)
    objects = in_order(found.files)
    if _belongs_to_another(cluster, objects):
        return ExitCode.NO
    pruned = "" if given.crds else str(found.values["name"])
    installer = Installer(cluster=cluster, schemas=packaged_schemas(), force=force, pruned=pruned)
    tried = installer.tried(objects)
    say([tag] if tag else [])
    if dry_run:
        say(line for change in tried for line in _would(change))
        return ExitCode.YES
    for change in installer.apply(objects):
        say([f"{change.ref} {change.done}"])
        sys.stdout.flush()
    if timeout:
        _wait(cluster, objects, timeout)
    say([] if given.crds else ["next: upgradeplan preflight, then kubectl apply -f upgradeplan.yaml"])
    return ExitCode.YES


def _belongs_to_another(cluster: Cluster, objects: Sequence[Body]) -> bool:
    from reconcile.install.rivals import problems_of, rivals_of, their_deployments, ways_out

    rivals = rivals_of(cluster, objects)
    if not rivals:
        return False
    show_problems(Problems(problems_of(rivals)), "text")
    pass_on(ways_out(rivals, their_deployments(cluster, rivals), again()), sys.stderr)  # `again` hides what is secret
    return True


def _would(change: InstallChange) -> Iterator[str]:
    """One line for the object, and one for each field that would change."""
    from reconcile.diff.field_changes import steps_text

    would = {"unchanged": "is unchanged", "pruned": "would be removed"}
    yield f"{change.ref} {would.get(change.done, f'would be {change.done}')}"
    for field in change.fields:
        secret = change.ref.kind == "Secret"
        sides = "changes" if secret else f"{_side(field.before)} -> {_side(field.after)}"
        yield f"  {steps_text(field.path)}: {sides}"


def _side(value: Any) -> str:
    from renderer.model.path import ABSENT

    return "(none)" if value is ABSENT else quoted(value)


def _wait(cluster: Cluster, objects: Iterable[Body], timeout: int) -> None:
    """Raises `Problems` where the manager is not ready in time. The collector of logs is not waited for."""
    from reconcile.cli.catalogue import template_set_in
    from reconcile.install.installed_kinds import kind_of
    from reconcile.install.installer import is_ready
    from reconcile.objects import has_labels
    from reconcile.schemas import packaged_schemas
    from renderer.files.templates import read_templates
    from renderer.model.ref import ref_of

    kinds, schemas = template_set_in(read_templates([])).catalog.kinds, packaged_schemas()
    until = time.monotonic() + timeout
    managers = (body for body in objects if has_labels(body, [_MANAGER]))
    for ref in (ref_of(body) for body in managers if body["kind"] == "Deployment"):
        while not is_ready(cluster.get(kind_of(ref), ref).body, kinds, schemas, wall_clock()):
            if time.monotonic() >= until:
                remedy = f"see `kubectl -n {ref.namespace} describe deployment {ref.name}` and its pods' logs"
                message = f"{ref} is not ready after {timeout} seconds"
                raise problem("NotReady", message, remedy=remedy, exit_code=ExitCode.NO)
            time.sleep(_EVERY)
        say([f"{ref} is ready"])
