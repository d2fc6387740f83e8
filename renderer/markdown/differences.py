"""Differences between two renderings as a pull request shows them: which objects, and on demand the lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from renderer.difference_groups import fields_of, grouped, name_of
from renderer.markdown.limited_page import Block, Fold, Table
from renderer.markdown.quoting import cell, code, codes

Model = Mapping[str, Any]


def difference_blocks(differences: Sequence[Model], images: Mapping[str, Sequence[str]]) -> Iterator[Block]:
    """`images` are those that only one of the two uses."""
    groups = grouped(differences)
    rows = [
        (item["operation"], code(name_of(group)), cell(item["phase"]), cell(fields_of(group)))
        for group in groups
        for item in group[:1]
    ]
    yield Table(heading=("", "object", "phase", "fields"), rows=rows, noun=("difference", "differences"))
    for words in ("added", "removed"):
        if images[words]:
            yield from ("", f"Images {words}: {codes(images[words][:_IMAGES])}{_more(images[words])}")
    lines = [line for group in groups for line in _lines(group)]
    yield Fold(title="The differences in full", lines=lines)


_IMAGES = 30


def _more(images: Sequence[str]) -> str:
    return f" and {len(images) - _IMAGES} more" if len(images) > _IMAGES else ""


def _lines(group: list[Model]) -> Iterator[str]:
    """The diff of the first, under the name of all."""
    if diff := group[0].get("diff"):
        yield f"# {group[0]['operation']}: {name_of(group)}"
        yield from diff.splitlines()
