"""The one door to deepdiff: says what has changed within a list that the API server takes as one field.

It is used, and imported, only for lists that differ. It decides nothing, and never makes or
loads a `Delta`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.diff.field_changes import FieldChange
from renderer.model.path import ABSENT

_LONGEST = 50  # items; beyond that an explanation is longer than the diff


def explained(change: FieldChange) -> tuple[FieldChange, ...]:
    """The changes of a list's items, in their order; the change itself where there is nothing more to say."""
    if not (_is_explainable(change.before) and _is_explainable(change.after)):
        return (change,)
    return tuple(sorted(_within(change), key=lambda item: [str(step).zfill(4) for step in item.path])) or (change,)


def _is_explainable(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= _LONGEST


def _within(change: FieldChange) -> Iterator[FieldChange]:
    from deepdiff import DeepDiff

    for group in DeepDiff(change.before, change.after, view="tree").values():
        for level in group:
            path = level.path(output_format="list")
            yield FieldChange(path=(*change.path, *path), before=_side(level.t1), after=_side(level.t2))


def _side(value: Any) -> Any:
    from deepdiff.helper import notpresent

    return ABSENT if value is notpresent else value
