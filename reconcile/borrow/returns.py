"""Returns borrowed fields: from the records, the live object and the occasion to the patch that puts the originals
there. Pure.

A field whose value is no longer the one that was written belongs to somebody else now: it stays, and the plan reports
it. The patch always carries the resourceVersion, so that such a change is not overwritten unseen either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconcile.borrow.claim import is_claimed
from reconcile.borrow.fields import Patch, fields_of, patch_of
from reconcile.borrow.loan import Loan, Original
from reconcile.borrow.strategies import STRATEGIES, BorrowedField, may_drift, take_out_option
from reconcile.borrow.take import covers, goes_back
from reconcile.values import IsQuantity, same, satisfies
from renderer.model.manifest_spec import Borrowed, BorrowOption, Occasion
from renderer.model.path import ABSENT, Path, look_up, path_name, starts_with
from renderer.model.ref import Body


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
    """The values to write back, and what was left to others. `whole`: nothing would be left at the place looked at."""

    assignments: Mapping[Path, Any] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    whole: bool = False


def plan_return(
    body: Body, spec: Borrowed, live: Body | None, loans: Iterable[Loan], occasion: Occasion, is_quantity: IsQuantity
) -> ReturnPlan:
    """Plans how to give back what this manifest's step has on loan of this object.

    `body` is the manifest as it was applied; `loans` are the records of its step on its object, latest last. Only the
    paths that `spec` returns on the occasion go back; a loan of which more goes back on another occasion stays open.
    """
    due = [loan for loan in loans if loan.returned is None and _is_due(body, spec, loan.original, occasion)]
    settled = tuple(loan for loan in due if _is_last(body, spec, loan.original, occasion))
    if live is None:
        return ReturnPlan(settled=settled, left=tuple(f"{loan.ref} is gone" for loan in due[:1]))
    returning = _Returning(body=body, spec=spec, live=live, occasion=occasion, is_quantity=is_quantity)
    moves = [returning.move(loan.original) for loan in due]
    assignments = {path: value for move in moves for path, value in move.assignments.items()}
    patch = patch_of(assignments, str(live["metadata"]["resourceVersion"])) if assignments else None
    return ReturnPlan(patch=patch, settled=settled, left=tuple(text for move in moves for text in move.left))


def occasions_of(body: Body, spec: Borrowed, original: Original) -> tuple[Occasion, ...]:
    """The occasions on which anything of an original goes back."""
    return tuple(when for when, _ in spec.returns if _is_due(body, spec, original, when))


def has_drifted(body: Body, spec: Borrowed, live: Body, original: Original, is_quantity: IsQuantity) -> bool:
    """True if somebody has changed what is on loan to another value than ours, where a strategy does not allow it. What
    the manifest does not set any more is not known."""
    expected = look_up(body, original.path)
    if expected is ABSENT or may_drift(spec, original.path):
        return False
    return not satisfies(look_up(live, original.path), expected, is_quantity, original.path)


def _is_due(body: Body, spec: Borrowed, original: Original, occasion: Occasion) -> bool:
    return any(_goes_back_on(spec, occasion, path) for path in _our_fields(body, original))


def _is_last(body: Body, spec: Borrowed, original: Original, occasion: Occasion) -> bool:
    """True if no field below the original goes back on some other occasion only."""
    return all(_goes_back_on(spec, occasion, path) for path in _our_fields(body, original) if goes_back(spec, path))


def _our_fields(body: Body, original: Original) -> list[Path]:
    """The manifest's fields at or below the original's path; that path itself if the manifest has none any more."""
    start = original.path
    return [path for path, _ in fields_of(body) if starts_with(path, start)] or [start]


def _goes_back_on(spec: Borrowed, occasion: Occasion, path: Path) -> bool:
    return any(when is occasion and covers(paths, path) for when, paths in spec.returns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Returning:
    """One object, and the occasion on which its fields go back."""

    body: Body
    spec: Borrowed
    live: Body
    occasion: Occasion
    is_quantity: IsQuantity

    def move(self, original: Original) -> _Move:
        expected = look_up(self.body, original.path)
        if option := take_out_option(self.spec, original.path):
            return self._take_out_added(option, original)
        if isinstance(expected, Mapping) and expected:
            return self._give_parent(original, expected)
        return self._give_field(original, expected)

    def _give_field(self, original: Original, expected: Any) -> _Move:
        """One field that had a value, or was missing while its parents were there."""
        value = look_up(self.live, original.path)
        if same(value, original.value, self.is_quantity, original.path):
            return _Move()
        if not self._is_ours(original.path, value, expected):
            return _Move(left=(self._changed(original.path),))
        return _Move(assignments={original.path: original.value})

    def _is_ours(self, path: Path, value: Any, expected: Any) -> bool:
        """True if the value is the one that we wrote. If the manifest no longer sets the field, our claim decides."""
        return is_claimed(self.live, path) if expected is ABSENT else self._is_what_we_wrote(path, value, expected)

    def _is_what_we_wrote(self, path: Path, value: Any, expected: Any) -> bool:
        """An empty mapping that others have filled is no longer just ours."""
        return bool(value == {}) if expected == {} else satisfies(value, expected, self.is_quantity, path)

    def _give_parent(self, original: Original, expected: Mapping[str, Any]) -> _Move:
        """A parent that we made: our fields go; it goes with them unless others have put something there."""
        value = look_up(self.live, original.path)
        if not isinstance(value, Mapping):
            is_back = value is ABSENT or same(value, original.value)
            return _Move(left=() if is_back else (self._changed(original.path),))
        move = self._take_out(value, expected, original.path)
        return replace(move, assignments={original.path: original.value}) if move.whole else move

    def _take_out(self, value: Mapping[str, Any], expected: Mapping[str, Any], path: Path) -> _Move:
        """The removal of our fields from a mapping."""
        ours = [key for key in expected if key in value]
        moves = {key: self._take_out_one(value[key], expected[key], (*path, key)) for key in ours}
        whole = all(key in moves and moves[key].whole for key in value)
        assignments = {place: new for move in moves.values() for place, new in move.assignments.items()}
        left = tuple(text for move in moves.values() for text in move.left)
        return _Move(assignments={path: ABSENT} if whole else assignments, left=left, whole=whole)

    def _take_out_one(self, value: Any, expected: Any, path: Path) -> _Move:
        if isinstance(expected, Mapping) and expected and isinstance(value, Mapping):
            return self._take_out(value, expected, path)
        if not _goes_back_on(self.spec, self.occasion, path):
            return _Move()
        if not self._is_what_we_wrote(path, value, expected):
            return _Move(left=(self._changed(path),))
        return _Move(assignments={path: ABSENT}, whole=True)

    def _take_out_added(self, option: BorrowOption, original: Original) -> _Move:
        """Takes out what we added to a field that others add to as well; a parent that we made goes if nothing is left
        in it."""
        take_out, path = STRATEGIES[option.name].take_out, option.path
        field = BorrowedField(
            path=path,
            value=look_up(self.live, path),
            expected=look_up(self.body, path),
            is_quantity=self.is_quantity,
            argument=option.argument,
        )
        left = take_out(field, original.value if original.path == path else ABSENT) if take_out else field.value
        if same(left, field.value):
            return _Move()
        if left is not ABSENT:
            return _Move(assignments={path: left})
        return _Move(assignments={_topmost_emptied(self.live, path, original.path): original.value})

    def _changed(self, path: Path) -> str:
        """A scalar is shown, unless it may be a secret."""
        value = look_up(self.live, path)
        if value is ABSENT:
            return f"{path_name(path)} was removed by somebody else and is not restored"
        is_shown = isinstance(value, str | int | float) and self.live.get("kind") != "Secret"
        return (
            f"{path_name(path)} was changed{f' to {value!r}' if is_shown else ''} by somebody else and is not restored"
        )


def _topmost_emptied(live: Body, path: Path, top: Path) -> Path:
    """The highest parent, at `top` or below, that holds nothing but what is removed."""
    while len(path) > len(top) and len(look_up(live, path[:-1])) == 1:
        path = path[:-1]
    return path
