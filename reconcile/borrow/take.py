"""Borrows fields: from a partial manifest and the live object to the originals to record and the patch to send. Pure.

The caller records the originals first, then writes. The patch carries the resourceVersion whenever something depends
on what was read: an original that is to go back, a list that is joined, a figure that is only raised, a request that is
answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconcile.borrow.fields import Patch, fields_of, patch_of, present_at, without_nulls
from reconcile.borrow.loan import Original
from reconcile.borrow.strategies import BorrowedField, reads_live, strategy_for
from reconcile.values import IsQuantity
from renderer.model.manifest_spec import Borrowed, WhenAbsent
from renderer.model.path import ABSENT, Path, look_up, starts_with
from renderer.model.ref import Body, ref_of


class Taking(StrEnum):
    """The action that a borrowed manifest needs."""

    TAKE = "take"
    SATISFIED = "satisfied"  # the fields are as expected, nothing to write and nothing to record
    SKIP = "skip"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePlan:
    """`originals` are only those that some occasion gives back. `because` is empty when there is nothing to say;
    `left_overs` has what was found and will not be given back, by its place."""

    taking: Taking
    because: str = ""
    originals: tuple[Original, ...] = ()
    patch: Patch | None = None
    left_overs: tuple[Original, ...] = ()


def plan_take(
    body: Body, spec: Borrowed, live: Body | None, is_quantity: IsQuantity, *, answers: bool = False
) -> TakePlan:
    """Plans how to bring the live object to what the partial `body` says; `live` is None where it does not exist.
    `answers`: the object has a request that the fields answer, which must be there still when they are written."""
    if live is None:
        return _absent(body, spec)
    reasons: list[str] = []
    assignments: dict[Path, Any] = {}
    originals: dict[Path, Original] = {}
    for path, expected in fields_of(body):
        strategy, option = strategy_for(spec, path)
        field = BorrowedField(
            path=path,
            value=look_up(live, path),
            expected=expected,
            is_quantity=is_quantity,
            argument=option.argument,
        )
        if strategy.is_met(field):
            continue
        if (reason := strategy.kept(field)) is not None:
            reasons.append(reason)
            continue
        place, present = present_at(live, path)
        assignments[place] = _new_value(strategy.new_value(field) if place == path else look_up(body, place))
        if goes_back(spec, path):
            originals[place] = Original(path=place, value=present)
    left_overs = tuple(found for found in originals.values() if _is_left_over(found.value, spec.left_overs))
    originals |= {found.path: Original(path=found.path, value=ABSENT) for found in left_overs}
    because = "; ".join(reasons)
    if not assignments:
        return TakePlan(taking=Taking.SATISFIED, because=because)
    version = str(live["metadata"]["resourceVersion"]) if originals or answers or reads_live(spec) else None
    patch = patch_of(assignments, version)
    return TakePlan(
        taking=Taking.TAKE,
        because=because,
        originals=tuple(originals.values()),
        patch=patch,
        left_overs=left_overs,
    )


def goes_back(spec: Borrowed, path: Path) -> bool:
    """True if any occasion gives this field back."""
    return any(covers(paths, path) for _, paths in spec.returns)


def covers(paths: tuple[Path, ...], path: Path) -> bool:
    """True if the paths that an occasion returns hold this one; no paths stand for all."""
    return not paths or any(starts_with(path, start) for start in paths)


def _absent(body: Body, spec: Borrowed) -> TakePlan:
    if spec.when_absent is WhenAbsent.SKIP:
        return TakePlan(taking=Taking.SKIP, because=f"{ref_of(body)} does not exist, so nothing is changed")
    return TakePlan(taking=Taking.WAIT, because=f"{ref_of(body)} does not exist")


def _is_left_over(value: Any, texts: tuple[str, ...]) -> bool:
    """True if one of the texts stands anywhere in it as a whole."""
    if isinstance(value, Mapping):
        return any(_is_left_over(item, texts) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_is_left_over(item, texts) for item in value)
    return value in texts


def _new_value(expected: Any) -> Any:
    return ABSENT if expected is None else without_nulls(expected)
