"""Puts an installation together from a template tree, values and the packaged schemas."""

from __future__ import annotations

from collections.abc import Iterable

from renderer.catalog.places import INSTALL_VALUES
from renderer.catalog.template_tree import TemplateTree
from renderer.install.formats import Installation
from renderer.install.install_objects import chart_tree, install_files, install_tree
from renderer.install.install_values import SCHEMA, Values, default_values, merged
from renderer.resources import packaged
from renderer.templating import Templates

_DEFINITION = "crds/upgradeplan.yaml"


def prepare_installation(tree: TemplateTree, given: Iterable[Values], version: str) -> Installation:
    """An installation of this version of the program. Later values win. Raises `Problems`."""
    schemas = packaged("schemas")
    defaults = default_values(tree)
    values = dict(defaults)
    for item in given:
        values = merged(values, item)
    own = install_tree(tree, schemas.joinpath(_DEFINITION).read_text(encoding="utf-8"))
    return Installation(
        files=install_files(Templates(own), own, values, version),
        tree=own,
        chart_tree=chart_tree(tree),
        values=values,
        defaults=defaults,
        defaults_text=tree[INSTALL_VALUES].text,
        schema=schemas.joinpath(SCHEMA).read_text(encoding="utf-8"),
        version=version,
    )
