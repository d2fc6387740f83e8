"""Find what differs between two values, field by field, as the API server sees fields. Pure.

Keyed lists are compared by their keys, sets as sets, quantities by what they amount to, all other lists as one field.
Nothing becomes text here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconcile.schemas import KEY_DEFAULTS, Place
from reconcile.values import same, satisfies
from renderer.model.path import ABSENT, path_name
from renderer.model.ref import Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The step into a keyed list: which item, by its keys."""

    keys: tuple[tuple[str, Any], ...]


Steps = tuple[str | int | Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field that differs; ABSENT on the side that does not have it. What is new as a whole is one change."""

    path: Steps
    before: Any
    after: Any


def changes(before: Any, after: Any, place: Place, path: Steps = ()) -> Iterator[FieldChange]:
    """Every difference, in the order in which the fields stand, those of `before` first."""
    if same(before, after, place.is_quantity):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            yield from changes(before.get(key, ABSENT), after.get(key, ABSENT), place.at(key), (*path, key))
    elif not (place.is_set and _are_the_same_set(before, after)):
        yield from _unequal(before, after, place, path)


def unmet(live: Body, expected: Body, place: Place) -> Iterator[FieldChange]:
    """The parts of `expected` that the live object does not have; more of its own does not count."""
    found = changes(live, expected, place)
    return (change for change in found if change.after is not ABSENT and not satisfies(change.before, change.after))


def steps_text(path: Steps) -> str:
    """`spec.containers[name=apply].image`."""
    text = ""
    for step in path:
        if isinstance(step, Item):
            text += f"[{','.join(f'{key}={value}' for key, value in step.keys)}]"
        else:
            name = path_name((step,))
            text += f".{name}" if text and not name.startswith("[") else name
    return text


def _are_the_same_set(before: Any, after: Any) -> bool:
    if not (isinstance(before, list | tuple) and isinstance(after, list | tuple)):
        return False
    return sorted(map(_key_text, before)) == sorted(map(_key_text, after))


def _unequal(before: Any, after: Any, place: Place, path: Steps) -> Iterator[FieldChange]:
    old, new = _by_keys(before, place), _by_keys(after, place)
    if old is None or new is None:
        yield FieldChange(path=path, before=before, after=after)
        return
    found: list[FieldChange] = []
    for item in dict.fromkeys((*old, *new)):
        found += changes(old.get(item, ABSENT), new.get(item, ABSENT), place.item(), (*path, _item(item)))
    yield from found
    if not found and list(old) != list(new):  # nothing but the order
        yield FieldChange(path=path, before=before, after=after)


def _item(keys: str) -> Item:
    """The step that `_by_keys` has named."""
    return Item(keys=tuple(json.loads(keys).items()))


def _by_keys(value: Any, place: Place) -> dict[str, Any] | None:
    """Items of a keyed list by their keys; None for any other value, and for a list with duplicate keys."""
    if not place.keys or not isinstance(value, list | tuple) or not all(isinstance(item, Mapping) for item in value):
        return None
    found = {_key_text(_keys_of(item, place.keys)): item for item in value}
    return found if len(found) == len(value) else None


def _keys_of(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    found = {name: item.get(name, KEY_DEFAULTS.get(name)) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _key_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
