"""The strategies by which a borrowed field is written, held and given back: one row each. Pure.

`plain` is for every field that no option of its manifest is about. The others are options of `phase.yaml`, declared in
`renderer.catalog.borrow_options` under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.borrow.union import joined, parted
from reconcile.values import IsQuantity, satisfies
from renderer.model.manifest_spec import Borrowed, BorrowOption
from renderer.model.path import ABSENT, Path, path_name, starts_with
from renderer.quantity import quantity_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BorrowedField:
    """The value at a path (ABSENT if there is none) and the one that the manifest sets. `argument` is the option's."""

    path: Path
    value: Any
    expected: Any
    is_quantity: IsQuantity
    argument: Any = None


def _as_declared(field: BorrowedField) -> bool:
    return satisfies(field.value, field.expected, field.is_quantity, field.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class BorrowStrategy:
    """One way to borrow a field. Whatever a row does not say is as for a plain field.

    `is_met`: nothing needs to be written. `kept`: why the value is left as it is although it is another one; None if it
    is to be written. `new_value`: what is written. `reads_live`: that depends on what stands there, so the write is for
    the version that was read. `may_drift`: others may change the field while it is on loan, and nothing is wrong.
    `take_out`: given what stood there before, the value without what we added (ABSENT: nothing is left of it); None if
    the original is put back as a whole.
    """

    is_met: Callable[[BorrowedField], bool] = _as_declared
    kept: Callable[[BorrowedField], str | None] = lambda field: None
    new_value: Callable[[BorrowedField], Any] = lambda field: field.expected
    reads_live: bool = False
    may_drift: bool = False
    take_out: Callable[[BorrowedField, Any], Any] | None = None


def _why_not_raised(field: BorrowedField) -> str | None:
    """None if the expected value is greater. A value that is not an amount is left alone."""
    if field.value is ABSENT or field.value in (None, ""):
        return None
    name, found, least = path_name(field.path), _amount(field.value), _amount(field.expected)
    if found is None or least is None:
        return f"{name} is {field.value!r}, which cannot be compared with {field.expected!r}, so it is left alone"
    return (
        f"{name} is {field.value!r} already, which is not less than {field.expected!r}, so it is left alone"
        if found >= least
        else None
    )


def _amount(value: Any) -> Any:
    return quantity_of(value.strip() if isinstance(value, str) else value)


def _is_joined(field: BorrowedField) -> bool:
    if not isinstance(field.value, list | tuple):
        return _as_declared(field)
    return joined(field.argument, field.value, field.expected) == list(field.value)


def _join(field: BorrowedField) -> Any:
    if not isinstance(field.value, list | tuple):
        return field.expected
    return joined(field.argument, field.value, field.expected)


def _part(field: BorrowedField, original: Any) -> Any:
    if not isinstance(field.value, list | tuple) or field.expected is ABSENT:
        return field.value
    entries = parted(field.argument, field.value, field.expected, original)
    if entries == list(field.value):
        return field.value
    return entries if entries or isinstance(original, list | tuple) else ABSENT


PLAIN = BorrowStrategy()

STRATEGIES: Mapping[str, BorrowStrategy] = {
    "raiseOnly": BorrowStrategy(kept=_why_not_raised, reads_live=True, may_drift=True),
    "union": BorrowStrategy(is_met=_is_joined, new_value=_join, reads_live=True, may_drift=True, take_out=_part),
}
"""By the option's key in `phase.yaml`."""


def strategy_for(spec: Borrowed, path: Path) -> tuple[BorrowStrategy, BorrowOption]:
    """The strategy of one field and the option that asks for it: one that names the field goes before one that is about
    all of them."""
    options = [option for option in spec.options if option.path in (path, ())]
    option = max(options, key=lambda found: len(found.path), default=BorrowOption(name="plain"))
    return STRATEGIES.get(option.name, PLAIN), option


def take_out_option(spec: Borrowed, path: Path) -> BorrowOption | None:
    """The option by which only what we added is taken out again of the field at `path`, or of one below it where `path`
    is a parent that was missing; None where the original is put back."""
    below = (option for option in spec.options if starts_with(option.path, path))
    return next((option for option in below if STRATEGIES[option.name].take_out is not None), None)


def may_drift(spec: Borrowed, path: Path) -> bool:
    """True if others may change something at `path`, or below it, while it is on loan."""
    options = (option for option in spec.options if option.path == () or starts_with(option.path, path))
    return any(STRATEGIES[option.name].may_drift for option in options)


def reads_live(spec: Borrowed) -> bool:
    return any(STRATEGIES[option.name].reads_live for option in spec.options)
