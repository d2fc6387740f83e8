"""A rendered plan as the files of a layout. Which layouts there are is `renderer.layout.table`."""

from __future__ import annotations

from importlib import import_module

from renderer.catalog.kinds import Kinds
from renderer.layout.index import index_of
from renderer.layout.manifests import Tree
from renderer.layout.table import LAYOUTS
from renderer.model.rendered import RenderedPlan
from renderer.yaml_io import dump

INDEX = "index.yaml"


def tree_of(plan: RenderedPlan, kinds: Kinds, layout: str) -> Tree:
    """All files of a layout, index included."""
    tree = files_of(plan, layout)
    tree[INDEX] = dump(index_of(plan, kinds, tree, layout))
    return tree


def files_of(plan: RenderedPlan, layout: str) -> Tree:
    """All files of a layout but the index. Raises `KeyError` for a layout that the table does not have."""
    if layout not in LAYOUTS:
        raise KeyError(layout)
    tree: Tree = import_module(f"renderer.layout.{layout}").files(plan)
    return tree
