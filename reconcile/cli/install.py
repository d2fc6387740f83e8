"""`install`: the manager's own manifests, to the cluster, to files or to stdout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.connect import Target, cluster_options
from renderer.cli.answer import pass_on, say
from renderer.cli.input_options import FILE, FOLDER
from renderer.errors import ExitCode

if TYPE_CHECKING:
    from renderer.install.formats import Installation

FORMATS = ("plain", "kustomize", "helm-chart", "addon")
_ON_STDOUT = ("plain", "addon")
_CHART_FOLDER = "templates"


@click.command
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
@click.option("--name", metavar="NAME", help="The value `name`, the first part of every object's name.")
@click.option("--output-dir", type=FOLDER, metavar="FOLDER", help="Write the manifests to FOLDER instead of stdout.")
@cluster_options
def install(
    layout: str | None, files: tuple[str, ...], name: str | None, output_dir: str | None, target: Target
) -> ExitCode:
    """Install the manager, or write its manifests.

    \b
    Examples:
      upgradeplan install --format plain | kubectl apply --server-side -f -
      upgradeplan install --format helm-chart --output-dir chart
      upgradeplan install --format kustomize --values values.yaml --output-dir base

    All formats have the same objects: CustomResourceDefinition, ServiceAccount and the permissions of the manager, its
    Deployment, and an admission policy that guards plans. The values are those of the chart. --templates gives the
    manager an overlay of templates, as a ConfigMap.
    """
    layout = layout or "plain"
    if output_dir is None and layout not in _ON_STDOUT:
        raise click.UsageError(f"--format {layout} needs --output-dir: it has several files")
    found = installation_of(files, name, target.templates)
    tree = _tree(found, layout)
    if output_dir is None:
        pass_on(tree.values(), end="")
        return ExitCode.YES
    write(Path(output_dir), tree, found)
    say(_next(layout, output_dir, len(tree)))
    return ExitCode.YES


def installation_of(files: tuple[str, ...], name: str | None, templates: tuple[str, ...]) -> Installation:
    """Raises `Problems` with all that is wrong with values and templates."""
    from importlib.metadata import version

    from reconcile.cli.catalogue import template_set_in
    from renderer.cli.version import DISTRIBUTION
    from renderer.files.templates import read_templates
    from renderer.files.value_files import read_documents
    from renderer.install.install_values import read_values
    from renderer.install.overlay_values import overlay_values
    from renderer.install.prepare import prepare_installation

    tree = read_templates([Path(folder) for folder in templates])
    if templates:
        template_set_in(tree)
    given = [read_values(read_documents(file)) for file in files]
    named = {"name": name} if name else {}
    return prepare_installation(tree, [overlay_values(tree), *given, named], version(DISTRIBUTION))


def _tree(found: Installation, layout: str) -> dict[str, str]:
    from renderer.install.formats import FORMATS as WRITERS

    return WRITERS[layout](found)


def write(folder: Path, tree: dict[str, str], found: Installation) -> None:
    """Writes the files; a chart has a folder of templates. Raises `Problems`, and replaces nothing of others."""
    from renderer.files.flat import write_flat
    from renderer.install.install_objects import short_name

    known = {f"{short_name(path)}.yaml" for path in found.tree}
    flat = {path: text for path, text in tree.items() if "/" not in path}
    below = {path.partition("/")[2]: text for path, text in tree.items() if "/" in path}
    write_flat(folder, flat, known, folders=[_CHART_FOLDER] if below else ())
    if below:
        write_flat(folder / _CHART_FOLDER, below, known)


def _next(layout: str, folder: str, count: int) -> Iterator[str]:
    yield f"wrote {folder}: {count} {'file' if count == 1 else 'files'}"
    yield f"next: {_NEXT[layout].format(folder=folder)}"


_NEXT = {
    "plain": "kubectl apply --server-side -f {folder}",
    "kustomize": "kubectl apply --server-side -k {folder}",
    "helm-chart": "helm install -n harvester-system harvester-upgrade-manager {folder}",
    "addon": "kubectl apply -f {folder}/addon.yaml",
}
