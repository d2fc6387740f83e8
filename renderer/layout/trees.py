"""A rendered plan as the files of a layout. Which layouts there are is `renderer.layout.table`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from renderer.catalog.kinds import Kinds
from renderer.layout.credentials import RenderedCredential, refuse_credentials
from renderer.layout.index import index_of
from renderer.layout.manifests import Tree
from renderer.layout.table import LAYOUTS
from renderer.model.rendered import RenderedPlan
from renderer.redaction import Redactor
from renderer.yaml_io import dump

INDEX, PAGE = "index.yaml", "UPGRADE.md"


def tree_of(
    plan: RenderedPlan,
    kinds: Kinds,
    layout: str,
    credentials: Sequence[RenderedCredential] = (),
    *,
    allow_secrets: bool = False,
    redactor: Redactor | None = None,
    page: str = "",
) -> Tree:
    """All files of a layout, index included. `credentials` are those in the plan's manifests, `page` is what is known
    of the two releases, empty where nothing is."""
    tree = files_of(plan, layout, credentials, allow_secrets=allow_secrets) | ({PAGE: page} if page else {})
    tree[INDEX] = dump(index_of(plan, kinds, tree, layout, credentials, redactor))
    return tree


def files_of(
    plan: RenderedPlan,
    layout: str,
    credentials: Sequence[RenderedCredential] = (),
    *,
    allow_secrets: bool = False,
) -> Tree:
    """All files of a layout but the index. Raises `KeyError` for a layout that the table does not have, and `Problems`
    if it is pulled from Git and there are credentials that are not allowed."""
    row = LAYOUTS[layout]
    if row.pulled and not allow_secrets:
        refuse_credentials(credentials, layout)
    tree: Tree = import_module(f"renderer.layout.{layout}").files(plan)
    return tree
