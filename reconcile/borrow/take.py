"""Taking: from a partial manifest and the live object to the originals to record and the patch to send. Pure.

The caller records the originals first, then writes. The patch carries the resourceVersion whenever something depends
on what was read: an original that is to go back, a list that is joined, a figure that is only raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from reconcile.borrow.fields import Patch, fields_of, patch_of, standing, without_nulls
from reconcile.borrow.loan import Original
from reconcile.borrow.union import joined
from reconcile.values import satisfies
from renderer.model.path import ABSENT, Path, look_up, path_name
from renderer.model.phase import Borrowed, WhenAbsent
from renderer.model.ref import Body, ref_of


class Taking(StrEnum):
    """What is to be done about a borrowed manifest."""

    TAKE = "take"
    SATISFIED = "satisfied"  # the fields are as wanted, nothing to write and nothing to record
    SKIP = "skip"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePlan:
    """`originals` are only those that some occasion gives back. `because` is empty when there is nothing to say."""

    taking: Taking
    because: str = ""
    originals: tuple[Original, ...] = ()
    patch: Patch | None = None


def plan_take(body: Body, spec: Borrowed, live: Body | None) -> TakePlan:
    """How to bring the live object to what the partial `body` says; `live` is None where it does not exist."""
    if live is None:
        return _absent(body, spec)
    reasons: list[str] = []
    assignments: dict[Path, Any] = {}
    originals: dict[Path, Original] = {}
    for path, wanted in fields_of(body):
        reason = _why_left(spec, live, path, wanted)
        if reason is not None:
            reasons.append(reason)
            continue
        place, stood = standing(live, path)
        assignments[place] = _new_value(body, spec, live, place)
        if goes_back(spec, path):
            originals[place] = Original(path=place, value=stood)
    because = "; ".join(filter(None, reasons))
    if not assignments:
        return TakePlan(taking=Taking.SATISFIED, because=because)
    depends = bool(originals) or spec.raise_only or spec.union is not None
    version = str(live["metadata"]["resourceVersion"]) if depends else None
    patch = patch_of(assignments, version)
    return TakePlan(taking=Taking.TAKE, because=because, originals=tuple(originals.values()), patch=patch)


def goes_back(spec: Borrowed, path: Path) -> bool:
    """Whether any occasion gives this field back."""
    return any(covers(paths, path) for _, paths in spec.returns)


def covers(paths: tuple[Path, ...], path: Path) -> bool:
    """Whether the paths that an occasion returns hold this one; no paths stand for all."""
    return not paths or any(path[: len(start)] == start for start in paths)


def _absent(body: Body, spec: Borrowed) -> TakePlan:
    if spec.when_absent is WhenAbsent.SKIP:
        return TakePlan(taking=Taking.SKIP, because=f"{ref_of(body)} does not exist, so there is nothing to change")
    return TakePlan(taking=Taking.WAIT, because=f"{ref_of(body)} does not exist")


def _why_left(spec: Borrowed, live: Body, path: Path, wanted: Any) -> str | None:
    """Why a field is not written: empty if it is as wanted, None if it is to be written."""
    value = look_up(live, path)
    if spec.union is not None and path == spec.union.path and isinstance(value, list | tuple):
        return "" if joined(spec.union, value, wanted) == list(value) else None
    if satisfies(value, wanted):
        return ""
    if spec.raise_only and value is not ABSENT and value not in (None, ""):
        return _why_not_raised(path, value, wanted)
    return None


def _why_not_raised(path: Path, value: Any, wanted: Any) -> str | None:
    """None if `wanted` is the greater; figures may be text. What is no number cannot be shown to be less, and stays."""
    found, least = _number(value), _number(wanted)
    if found is None or least is None:
        return f"{path_name(path)} is {value!r}, which cannot be compared with {wanted!r}, and stays"
    return f"{path_name(path)} is {value!r} already, not less than {wanted!r}, and stays" if found >= least else None


def _number(value: Any) -> Decimal | None:
    """A number, or a text that is one; infinity is none."""
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _new_value(body: Body, spec: Borrowed, live: Body, place: Path) -> Any:
    wanted = look_up(body, place)
    if wanted is None:
        return ABSENT
    value = look_up(live, place)
    if spec.union is not None and place == spec.union.path and isinstance(value, list | tuple):
        return joined(spec.union, value, wanted)
    return without_nulls(wanted)
