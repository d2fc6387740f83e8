"""The review of a rendering: the part of `render`'s answer that is for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from renderer.cli.answer import Model, redactor

if TYPE_CHECKING:
    from renderer.cli.input_options import RenderedInputs
    from renderer.markdown.limited_page import Block
    from renderer.model.rendered import RenderedPlan


def review_model(
    rendering: RenderedInputs, plan: RenderedPlan, index: Model, files: Mapping[str, str], against: str | None
) -> Model:
    """`files` are those of the tree. Raises `Problems` for a folder that cannot be compared with, and for a Job
    that agents have been given from there with another content."""
    from renderer.context.build import context_of
    from renderer.layout.pull_request import review_of
    from renderer.layout.upgrade_page import notes_of

    facts = rendering.assembly.facts
    notes = notes_of(facts, rendering.assembly.template_set.tree)
    review = review_of(plan, context_of(facts), facts.objects, notes, redactor())
    if against is not None:
        review["against"] = _against(rendering, plan.plan, index, files, Path(against))
    return review


def _against(
    rendering: RenderedInputs, plan: str, index: Model, files: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    from renderer.cli.rendered_folder import refuse_changed_jobs
    from renderer.compare_trees import TreeDifferences, WrittenTree, compare_trees
    from renderer.difference_groups import other_images
    from renderer.files.base_tree import read_base

    base, found = read_base(folder, plan), TreeDifferences(objects=(), files=())
    if base is not None:
        refuse_changed_jobs(base[1], files)
        before, after = WrittenTree(index=base[0], files=base[1]), WrittenTree(index=index, files=files)
        found = compare_trees(before, after, rendering.assembly.catalog.redaction)
    shown = [asdict(item) for item in found.objects]
    return {
        "folder": str(folder),
        "known": base is not None,
        "differences": [{key: value for key, value in item.items() if value not in ("", ())} for item in shown],
        "images": other_images(base[0].get("images", ()), index["images"]) if base else other_images((), ()),
        "files": list(found.files),
    }


def review_page(index: Model, review: Model, stale: Model | None) -> Iterator[Block]:
    """`stale` has the files that differ from what is in the folder, where it was only checked."""
    from renderer.markdown.limited_page import Table
    from renderer.markdown.quoting import code
    from renderer.markdown.rendering_blocks import rendering_blocks

    yield from rendering_blocks(index, review)
    rows = [(word, code(path)) for word in ("missing", "changed", "stale") for path in (stale or {}).get(word, ())]
    if rows:
        yield "#### The folder is stale: render again, and commit it"
    yield Table(heading=("", "file"), rows=rows, noun=("file", "files"))
