"""`images`: every image that any rendered object uses, and whether a release's list has it."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from renderer.cli.answer import Model, answer, output_option, pending_lines, pending_models, say
from renderer.cli.input_options import FILE, InputOptions, input_options, rendering_of
from renderer.errors import ExitCode, Problems, problem
from renderer.image_names import canonical
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
@output_option
def images(given: InputOptions, against: str | None, output: str) -> ExitCode:
    """List the images that an upgrade uses.

    \b
    Examples:
      upgradeplan images examples/three-node
      upgradeplan images examples/three-node --against harvester.iso

    With --against, lists only the images that are not in the image list, with the objects that use them; in an air
    gap these must be loaded on the nodes by other means.
    """
    listed = None if against is None else _list(Path(against))
    plan = rendering_of(given).plan
    users = _users(plan)
    model: Model = {
        "images": [{"image": image, "usedBy": users[image]} for image in plan.images],
        "pending": pending_models(plan),
    }
    if listed is not None:
        missing = [image for image in plan.images if not is_listed(listed, image)]
        model |= {"against": str(against), "missing": missing}
    answer(IMAGE_LIST, model, output, _text if listed is None else _missing_text)
    if output == "text":
        say(pending_lines(model["pending"]), sys.stderr)
    return ExitCode.NO if model.get("missing") else ExitCode.YES


def _users(plan: RenderedPlan) -> Mapping[str, list[str]]:
    """Image to the objects that use it, in the order in which they are applied."""
    users: dict[str, list[str]] = defaultdict(list)
    for manifest in plan.manifests():
        for image in dict.fromkeys(manifest.images):
            users[image].append(str(manifest.ref))
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
