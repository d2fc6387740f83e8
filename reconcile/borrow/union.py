"""A list that several add to, such as a ManagedChart's `comparePatches`: our values in, and only ours out again. Pure.

An entry is found by its keys alone. What others have in it, and their entries, are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconcile.values import same
from renderer.model.manifest_spec import Union
from renderer.model.path import ABSENT


def joined(union: Union, live: Sequence[Any], expected: Sequence[Mapping[str, Any]]) -> list[Any]:
    """`live` with the expected values added where they are missing; equal to `live` if none is."""
    entries = list(live)
    for ours in expected:
        places = [place for place, entry in enumerate(entries) if _has_keys_of(union, entry, ours)]
        if not places:
            entries.append(ours)
            continue
        there = [value for place in places for value in _values(union, entries[place])]
        missing = [value for value in _values(union, ours) if value not in there]
        if missing:
            first = entries[places[0]]
            entries[places[0]] = {**first, union.values: [*_values(union, first), *missing]}
    return entries


def parted(union: Union, live: Sequence[Any], expected: Sequence[Mapping[str, Any]], original: Any) -> list[Any]:
    """`live` without the values that we added to `original` (a list, or whatever stood there instead of one)."""
    before = original if isinstance(original, list | tuple) else ()
    entries = list(live)
    for ours in expected:
        old = [entry for entry in before if _has_keys_of(union, entry, ours)]
        had = [value for entry in old for value in _values(union, entry)]
        added = [value for value in _values(union, ours) if value not in had]
        entries = [_without(union, entry, ours, added, old) for entry in entries]
        entries = [entry for entry in entries if entry is not ABSENT]
    return entries


def _without(union: Union, entry: Any, ours: Mapping[str, Any], added: Sequence[Any], old: Sequence[Any]) -> Any:
    """The entry without our values; ABSENT if nothing but what we wrote was in it."""
    if not _has_keys_of(union, entry, ours):
        return entry
    left = [value for value in _values(union, entry) if value not in added]
    if left == _values(union, entry):
        return entry
    if left:
        return {**entry, union.values: left}
    rest = {key: value for key, value in entry.items() if key != union.values}
    if old:
        return {**rest, union.values: old[0][union.values]} if union.values in old[0] else rest
    return ABSENT if all(key in ours and same(value, ours[key]) for key, value in rest.items()) else rest


def _has_keys_of(union: Union, entry: Any, ours: Mapping[str, Any]) -> bool:
    return isinstance(entry, Mapping) and all(same(entry.get(key), ours.get(key)) for key in union.keys)


def _values(union: Union, entry: Mapping[str, Any]) -> list[Any]:
    return list(entry.get(union.values) or ())
