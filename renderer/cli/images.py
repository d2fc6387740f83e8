"""`images`: every image that any rendered object uses, and whether a release's list has it."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from renderer.cli.answer import Model, answer, output_option, pending_lines, pending_models, say
from renderer.cli.input_options import FILE, InputOptions, input_options, read, rendering_from, rendering_of
from renderer.errors import ExitCode, Problems, problem
from renderer.image_names import canonical, not_needed
from renderer.model.document_type import FACTS, IMAGE_LIST

if TYPE_CHECKING:
    from renderer.model.rendered import RenderedPlan

_SHOWN = 3


@click.command
@input_options
@click.option(
    "--against",
    type=FILE,
    metavar="FILE|ISO",
    help="An image list (one image per line), or the ISO image that contains it. Exits 1 if an image is not in it.",
)
@click.option("--all", "everything", is_flag=True, help="Also list the images of the installation, its hooks included.")
@click.option(
    "--purge-list",
    "purge",
    is_flag=True,
    help="List the images that are removed from the nodes at the end, since only the previous release uses them.",
)
@click.option(
    "--values",
    type=FILE,
    metavar="FILE",
    multiple=True,
    help="The values that are given to `install`, with --all: registry and tags apply to the upgrade too. Repeatable.",
)
@output_option
def images(
    given: InputOptions, against: str | None, everything: bool, purge: bool, values: tuple[str, ...], output: str
) -> ExitCode:
    """List the images that an upgrade uses.

    \b
    Examples:
      upgradeplan images examples/three-node
      upgradeplan images examples/three-node --against harvester.iso
      upgradeplan images examples/three-node --all --values values.yaml
      upgradeplan images examples/three-node harvester.iso --purge-list

    With --against, lists only the images that are not in the image list, with the objects that use them; in an air
    gap these must be loaded on the nodes by other means. With --purge-list, lists what the upgrade removes from the
    nodes; it needs the image lists of both releases, which the ISO has.
    """
    if purge and (against or everything):
        raise click.UsageError("--purge-list lists what is removed; leave --against and --all out")
    if values and not everything:
        raise click.UsageError("--values is of an installation, which --all lists")
    if purge:
        return _tell_purged(given, output)
    listed = None if against is None else _list(Path(against))
    plan, installed = _with_installation(given, values) if everything else (rendering_of(given).plan, ())
    users = _users([(str(found.ref), found.images) for found in plan.manifests()] + [*installed])
    model: Model = {
        "images": [{"image": image, "usedBy": users[image]} for image in sorted(users)],
        "pending": pending_models(plan),
    }
    if listed is not None:
        missing = [image for image in sorted(users) if not is_listed(listed, image)]
        model |= {"against": str(against), "missing": missing}
    answer(IMAGE_LIST, model, output, _text if listed is None else _missing_text)
    if output == "text":
        say(pending_lines(model["pending"]), sys.stderr)
    return ExitCode.NO if model.get("missing") else ExitCode.YES


def _tell_purged(given: InputOptions, output: str) -> ExitCode:
    """Raises `Problems` where the image lists are not given."""
    from renderer.catalog.verify import INPUTS
    from renderer.context.build import context_of

    rendered = rendering_of(given)
    context = context_of(rendered.assembly.facts)
    if "imageLists" not in context.given:
        message = "the image lists of the two releases are not among the inputs"
        raise problem("MissingInput", message, remedy=INPUTS["imageLists"])
    lists, retained = context.names["imageLists"], context.names["values"]["retainedImages"]
    removed = not_needed(lists["previous"], lists["current"], retained)
    stale = not_needed(lists["previous"], lists["current"], ())
    model: Model = {
        "images": [],
        "pending": pending_models(rendered.plan),
        "purged": sorted(removed),
        "retained": sorted(set(stale) - set(removed)),
    }
    answer(IMAGE_LIST, model, output, _purged_text)
    return ExitCode.YES


def _purged_text(model: Model) -> Iterator[str]:
    yield from model["purged"]
    for image in model["retained"]:
        yield f"# kept by retainedImages: {image}"


_Used = tuple[str, Iterable[str]]
"""An object, and the images that it uses."""


def _with_installation(given: InputOptions, files: Sequence[str]) -> tuple[RenderedPlan, tuple[_Used, ...]]:
    """The upgrade as a manager that is installed with these values runs it, and the objects of that installation."""
    from renderer.cli.version import installed_version
    from renderer.files.value_files import read_documents
    from renderer.install.install_values import read_values
    from renderer.install.prepare import prepare_installation
    from renderer.install.used_images import under_values, used_images

    inputs, tree = read(given)
    found = prepare_installation(tree, [read_values(read_documents(file)) for file in files], installed_version())
    rendered = rendering_from(inputs, under_values(tree, found), retry=given.retry)
    return rendered.plan, tuple(used_images(found, rendered.assembly.catalog.kinds))


def _users(used: Iterable[_Used]) -> Mapping[str, list[str]]:
    """Image to the objects that use it, in the order in which they are applied."""
    users: dict[str, list[str]] = defaultdict(list)
    for user, found in used:
        for image in dict.fromkeys(found):
            users[image].append(user)
    return users


def _text(model: Model) -> list[str]:
    return [item["image"] for item in model["images"]]


def _missing_text(model: Model) -> Iterator[str]:
    missing = set(model["missing"])
    if not missing:
        yield f"none of {len(model['images'])} images is missing"
        return
    for item in model["images"]:
        if item["image"] in missing:
            yield f"{item['image']} is not in {model['against']}"
            yield f"    used by {_some(item['usedBy'])}"
    yield f"missing: {len(missing)} of {len(model['images'])} images"


def _some(users: Sequence[str]) -> str:
    more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
    return ", ".join(users[:_SHOWN]) + more


def is_listed(listed: frozenset[str], image: str) -> bool:
    """A list knows tags; a digest beside the tag says which build, and no list has it."""
    return canonical(image) in listed or canonical(image.partition("@")[0]) in listed


def _list(path: Path) -> frozenset[str]:
    """The images of a list in one spelling. Raises `Problems`."""
    from renderer.files.decode import text_of
    from renderer.files.filesystem import read_bytes
    from renderer.files.iso import is_iso

    if is_iso(path):
        return frozenset(map(canonical, _of_iso(path)))
    lines = enumerate(text_of(read_bytes(path), str(path)).splitlines(), 1)
    entries = {number: line.strip() for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    if wrong := [number for number, entry in entries.items() if re.search(r"\s", entry)]:
        raise _no_list(path, wrong, entries[wrong[0]])
    if not entries:
        raise problem("EmptyImageList", "contains no image", file=str(path), remedy="write one image per line")
    return frozenset(map(canonical, entries.values()))


def _of_iso(path: Path) -> list[str]:
    from renderer.files.iso import read_iso

    bodies = [document.value for document in read_iso(path, None)]
    lists = [body["facts"]["imageLists"]["current"] for body in bodies if FACTS.is_type_of(body)]
    if not lists:
        remedy = "name the release's image_list_all.txt itself"
        raise problem("NoImageList", "contains no image list", file=str(path), remedy=remedy)
    return list(lists[0])


def _no_list(path: Path, lines: Sequence[int], entry: str) -> Problems:
    more = f"; so are {len(lines) - 1} more lines" if len(lines) > 1 else ""
    return problem(
        "InvalidImageList",
        f"{entry!r} is not an image{more}",
        file=str(path),
        line=lines[0],
        remedy="write one image a line, such as rancher/harvester:v1.8.0",
    )
