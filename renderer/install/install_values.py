"""The values of an installation: the packaged defaults, and over them the user's, merged as helm merges them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from renderer.catalog.places import INSTALL_VALUES
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problem, Problems, problem
from renderer.validation import whole_problems
from renderer.yaml_io import Document, parse

SCHEMA = "install-values.json"
Values = Mapping[str, Any]


def default_values(tree: TemplateTree) -> Values:
    """The packaged values, or those of an overlay. Raises `Problems`."""
    template = tree[INSTALL_VALUES]
    (document,) = parse(template.text, template.shown)
    return read_values((document,))


def read_values(documents: Iterable[Document]) -> Values:
    """The values of a file, which may be empty. Raises `Problems` with file, line, field and remedy of all errors."""
    found = tuple(documents)
    if not found:
        return {}
    if len(found) > 1:
        message, remedy = f"holds {len(found)} documents; values are one", "merge them, or pass one file for each"
        raise problem("InvalidYAML", message, file=found[1].file, line=found[1].line, remedy=remedy)
    if wrong := whole_problems(found[0], SCHEMA):
        raise Problems(wrong)
    values: Values = found[0].value
    return values


def merged(values: Values, over: Values) -> dict[str, Any]:
    """Values with others over them: mappings are merged, everything else is replaced."""
    both = {key: merged(values[key], item) for key, item in over.items() if _are_mappings(values.get(key), item)}
    return {**values, **over, **both}


def _are_mappings(one: Any, other: Any) -> bool:
    return isinstance(one, Mapping) and isinstance(other, Mapping)


def changed(values: Values, defaults: Values) -> dict[str, Any]:
    """The part of the values that differs from the defaults: what a user would have to write."""
    differing = {key: item for key, item in values.items() if key not in defaults or item != defaults[key]}
    return {
        key: changed(item, defaults[key]) if _are_mappings(item, defaults.get(key)) else item
        for key, item in differing.items()
    }


def missing_value(field: str, message: str, remedy: str) -> Problem:
    return Problem(reason="MissingField", message=message, field=field, remedy=remedy)
