"""`new`: a plan to begin with, from options or questions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from reconcile.cli.candidates import node_names
from reconcile.cli.prompt import agreed, typed
from renderer.cli.answer import pass_on, warn
from renderer.cli.input_options import FILE
from renderer.errors import ExitCode, Problem, problem


@click.command
@click.option("--version", metavar="VERSION", default="", help="The release to upgrade to: the name of its Version.")
@click.option(
    "--image",
    metavar="NAME",
    default="",
    help="Upgrade from the VirtualMachineImage of this name in harvester-system instead of a Version.",
)
@click.option(
    "--iso",
    type=FILE,
    metavar="ISO",
    help="The ISO image as a file: the version and the checksum are read from it.",
)
@click.option(
    "--iso-url",
    metavar="URL",
    default="",
    help="Where the cluster downloads the ISO image: the Version, or the image, is printed as well.",
)
@click.option("--iso-checksum", metavar="SHA512", default="", help="The SHA-512 checksum of the ISO image.")
@click.option("--name", metavar="NAME", default="", help="The name of the plan. Defaults to one with the version.")
@click.option(
    "--pause-node",
    "pause_nodes",
    metavar="NODE",
    multiple=True,
    shell_complete=node_names,
    help="A node to hold before its upgrade. Repeatable.",
)
@click.option("--restore-vms", is_flag=True, help="Start virtual machines again that had to be stopped.")
@click.option(
    "--preload-concurrency",
    type=int,
    metavar="N",
    help="How many nodes load images at the same time; a negative number means that none does.",
)
@click.option("--toolkit-tag", metavar="TAG", default="", help="The tag of the upgrade toolkit's image: spec.upgrade.")
@click.option("--toolkit-image", metavar="REPOSITORY", default="", help="The repository of that image.")
def new(
    version: str,
    image: str,
    iso: str | None,
    iso_url: str,
    iso_checksum: str,
    name: str,
    pause_nodes: tuple[str, ...],
    restore_vms: bool,
    preload_concurrency: int | None,
    toolkit_tag: str,
    toolkit_image: str,
) -> ExitCode:
    """Print a new plan.

    \b
    Examples:
      upgradeplan new --version v1.8.0 > plan.yaml
      upgradeplan new --iso harvester-v1.8.0-amd64.iso --iso-url https://files.example.com/harvester.iso > plan.yaml
      upgradeplan new --image harvester-v1-8-0 --toolkit-tag v1.8.0 --preload-concurrency=-1   # in an air gap

    Needs no cluster and writes no files. In a terminal, without --version, --image and --iso, it prompts for the
    release. Values that `validate` would refuse are refused.
    """
    from renderer.cli.input_options import InputOptions, catalog_of
    from renderer.new_plan import NewPlan, new_documents
    from renderer.yaml_io import dump

    _refuse_unused(version, image, iso_url, iso_checksum)
    if not (version or image or iso):
        version, iso_url, restore_vms = _asked(iso_url, restore_vms=restore_vms)
    if iso:
        released = _version_in(Path(iso)) if not version or not iso_url else ""
        version = version or released
        iso_checksum = iso_checksum or (_checksum_of(Path(iso)) if iso_url else "")
    given = NewPlan(
        version=version,
        image=image,
        name=name,
        iso_url=iso_url,
        iso_checksum=iso_checksum,
        toolkit_tag=toolkit_tag,
        toolkit_image=toolkit_image,
        preload_concurrency=preload_concurrency,
        pause_nodes=pause_nodes,
        restore_vms=restore_vms,
    )
    made = new_documents(given, catalog_of(InputOptions()).values)
    warn(warning for body in made for warning in _credentials_in(body))
    pass_on(["---\n".join(map(dump, made))], end="")
    return ExitCode.YES


def _credentials_in(body: Mapping[str, Any]) -> Iterator[Problem]:
    """Warnings of credentials, which are printed, since the cluster needs them."""
    from renderer.cli.answer import redactor
    from renderer.model.path import path_name

    for path in redactor().found(body):
        which = f"{body['kind']} {body['metadata']['name']}"
        message = f"{which} contains a credential, and anyone who may read the object can see it"
        remedy = "serve the file without credentials, or from an address that only the cluster reaches"
        yield Problem(reason="CredentialInManifest", message=message, field=path_name(path), remedy=remedy)


def _refuse_unused(version: str, image: str, iso_url: str, iso_checksum: str) -> None:
    if version and image:
        message = "--version and --image are given; a plan with an image looks up no Version"
        raise problem("Usage", message, remedy="leave one of the two out")
    if iso_checksum and not iso_url:
        message = "--iso-checksum is given without --iso-url; only a Version or an image that is made has a checksum"
        raise problem("Usage", message, remedy="add --iso-url URL, or leave the checksum out")


def _asked(iso_url: str, *, restore_vms: bool) -> tuple[str, str, bool]:
    """Asks for the version, where its ISO image is, and what becomes of machines that cannot move."""
    if not sys.stdin.isatty():
        message = "neither --version nor --image nor --iso is given"
        raise problem("Usage", message, remedy="name the release to upgrade to: upgradeplan new --version v1.8.0")
    version = typed("Version to upgrade to, such as v1.8.0")
    if not iso_url:
        iso_url = typed("URL of its ISO image (empty if the cluster has the Version already)", default="")
    if not restore_vms:
        restore_vms = agreed("Start virtual machines again that have to be stopped?")
    return version, iso_url, restore_vms


def _version_in(path: Path) -> str:
    """The release's version, as the ISO image has it. Raises `Problems`."""
    from renderer.files.iso import read_iso

    release = read_iso(path, None)[0].value
    return str(release.get("harvester") or "")


def _checksum_of(path: Path) -> str:
    from renderer.files.iso import sha512_of

    return sha512_of(path)
