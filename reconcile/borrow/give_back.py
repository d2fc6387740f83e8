"""Giving back: from the records, the live object and the occasion to the patch that puts the originals there. Pure.

A field whose value is no longer the one that we wrote is somebody else's by now: it stays, and the plan says so. The
patch always carries the resourceVersion, so that such a change is not overwritten unseen either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from reconcile.borrow.claim import is_claimed
from reconcile.borrow.fields import Patch, fields_of, patch_of
from reconcile.borrow.loan import Loan, Original
from reconcile.borrow.take import covers, goes_back
from reconcile.borrow.union import parted
from reconcile.values import same, satisfies
from renderer.model.path import ABSENT, Path, look_up, path_name
from renderer.model.phase import Borrowed, Occasion, Union
from renderer.model.ref import Body

Goes = Callable[[Path], bool]
"""Whether a field goes back on the occasion at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnPlan:
    """`patch` is None where nothing has to be written. `settled` are the loans that are over once that is done.

    `left` says of each field that was not given back why.
    """

    patch: Patch | None = None
    settled: tuple[Loan, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """What is to stand where, and what was left to others. `whole`: nothing would be left at the place looked at."""

    assignments: Mapping[Path, Any] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    whole: bool = False


def plan_return(body: Body, spec: Borrowed, live: Body | None, loans: Iterable[Loan], occasion: Occasion) -> ReturnPlan:
    """How to give back what this manifest's step has on loan of this object.

    `body` is the manifest as it was applied; `loans` are the records of its step on its object, latest last. Only the
    paths that `spec` returns on the occasion go back; a loan of which more goes back on another occasion stays open.
    """
    due = [loan for loan in loans if loan.returned is None and _is_due(body, spec, loan.original, occasion)]
    settled = tuple(loan for loan in due if _is_last(body, spec, loan.original, occasion))
    if live is None:
        return ReturnPlan(settled=settled, left=tuple(f"{loan.ref} is gone" for loan in due[:1]))
    moves = [_move(body, spec, live, loan.original, occasion) for loan in due]
    assignments = {path: value for move in moves for path, value in move.assignments.items()}
    patch = patch_of(assignments, str(live["metadata"]["resourceVersion"])) if assignments else None
    return ReturnPlan(patch=patch, settled=settled, left=tuple(text for move in moves for text in move.left))


def occasions_of(body: Body, spec: Borrowed, original: Original) -> tuple[Occasion, ...]:
    """The occasions on which anything of an original goes back."""
    return tuple(when for when, _ in spec.returns if _is_due(body, spec, original, when))


def _is_due(body: Body, spec: Borrowed, original: Original, occasion: Occasion) -> bool:
    return any(_goes_back_on(spec, occasion, path) for path in _our_fields(body, original))


def _is_last(body: Body, spec: Borrowed, original: Original, occasion: Occasion) -> bool:
    """Whether no field below the original goes back on some other occasion only."""
    return all(_goes_back_on(spec, occasion, path) for path in _our_fields(body, original) if goes_back(spec, path))


def _our_fields(body: Body, original: Original) -> list[Path]:
    """The manifest's fields at or below the original's path; that path itself if the manifest has none any more."""
    start = original.path
    return [path for path, _ in fields_of(body) if path[: len(start)] == start] or [start]


def _goes_back_on(spec: Borrowed, occasion: Occasion, path: Path) -> bool:
    return any(when is occasion and covers(paths, path) for when, paths in spec.returns)


def _move(body: Body, spec: Borrowed, live: Body, original: Original, occasion: Occasion) -> _Move:
    wanted = look_up(body, original.path)
    if spec.union is not None and spec.union.path[: len(original.path)] == original.path:
        return _leave_union(spec.union, live, look_up(body, spec.union.path), original)
    if isinstance(wanted, Mapping) and wanted:
        return _give_parent(live, original, wanted, partial(_goes_back_on, spec, occasion))
    return _give_field(live, original, wanted)


def _give_field(live: Body, original: Original, wanted: Any) -> _Move:
    """One field that had a value, or was missing while its parents were there."""
    value = look_up(live, original.path)
    if same(value, original.value):
        return _Move()
    if not _is_ours(live, original.path, value, wanted):
        return _Move(left=(_changed(live, original.path),))
    return _Move(assignments={original.path: original.value})


def _is_ours(live: Body, path: Path, value: Any, wanted: Any) -> bool:
    """Whether what stands there is what we wrote. A manifest that sets it no more cannot tell; our claim can."""
    return is_claimed(live, path) if wanted is ABSENT else _is_what_we_wrote(value, wanted)


def _is_what_we_wrote(value: Any, wanted: Any) -> bool:
    """An empty mapping in which something stands by now is no longer just ours."""
    return bool(value == {}) if wanted == {} else satisfies(value, wanted)


def _give_parent(live: Body, original: Original, wanted: Mapping[str, Any], goes: Goes) -> _Move:
    """A parent that we made: our fields go; it goes with them unless others have put something there."""
    value = look_up(live, original.path)
    if not isinstance(value, Mapping):
        is_back = value is ABSENT or same(value, original.value)
        return _Move(left=() if is_back else (_changed(live, original.path),))
    move = _take_out(live, value, wanted, original.path, goes)
    return replace(move, assignments={original.path: original.value}) if move.whole else move


def _take_out(live: Body, value: Mapping[str, Any], wanted: Mapping[str, Any], path: Path, goes: Goes) -> _Move:
    """The removal of our fields from a mapping."""
    moves = {
        key: _take_out_one(live, value[key], item, (*path, key), goes) for key, item in wanted.items() if key in value
    }
    whole = all(key in moves and moves[key].whole for key in value)
    assignments = {place: new for move in moves.values() for place, new in move.assignments.items()}
    left = tuple(text for move in moves.values() for text in move.left)
    return _Move(assignments={path: ABSENT} if whole else assignments, left=left, whole=whole)


def _take_out_one(live: Body, value: Any, wanted: Any, path: Path, goes: Goes) -> _Move:
    if isinstance(wanted, Mapping) and wanted and isinstance(value, Mapping):
        return _take_out(live, value, wanted, path, goes)
    if not goes(path):
        return _Move()
    if not _is_what_we_wrote(value, wanted):
        return _Move(left=(_changed(live, path),))
    return _Move(assignments={path: ABSENT}, whole=True)


def _leave_union(union: Union, live: Body, wanted: Any, original: Original) -> _Move:
    value = look_up(live, union.path)
    if not isinstance(value, list | tuple) or wanted is ABSENT:
        return _Move()
    had = original.value if original.path == union.path else ABSENT
    entries = parted(union, value, wanted, had)
    if entries == list(value):
        return _Move()
    if entries or isinstance(had, list | tuple):
        return _Move(assignments={union.path: entries})
    return _Move(assignments={_topmost_emptied(live, union.path, original.path): original.value})


def _topmost_emptied(live: Body, path: Path, top: Path) -> Path:
    """The highest parent, at `top` or below, that holds nothing but what is removed."""
    while len(path) > len(top) and len(look_up(live, path[:-1])) == 1:
        path = path[:-1]
    return path


def _changed(live: Body, path: Path) -> str:
    """A scalar is shown, unless it may be a secret."""
    value = look_up(live, path)
    if value is ABSENT:
        return f"{path_name(path)} has been removed by somebody else and stays away"
    shown = f" to {value!r}" if isinstance(value, str | int | float) and live.get("kind") != "Secret" else ""
    return f"{path_name(path)} has been changed{shown} by somebody else and stays"
