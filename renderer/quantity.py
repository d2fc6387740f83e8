"""Kubernetes quantities: how much a text such as `10Gi`, `1500m` or `1e3` amounts to, and its canonical form. Pure.

Source: k8s.io/apimachinery, package api/resource (`ParseQuantity`, `CanonicalizeBytes`). A suffix without a number,
which that package reads as 0, is no quantity here. Whether a text is meant as a quantity is for the caller to know: a
label `1m` is not a quantity.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from typing import Any

_FORM = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*\.?[0-9]*)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]{1,9}))?")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_FINEST = -9
"""The exponent of the smallest part that is distinguished: a finer amount is rounded away from zero."""
_LARGEST_BINARY = Decimal(2**63 - 1)
"""Amounts with a binary suffix are capped there, others are not."""


def quantity_of(value: Any) -> Decimal | None:
    """The exact amount of a number or a text; None if it is not a quantity (true, `5 Gi`, `abc`, infinity)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    found = _FORM.fullmatch(str(value))
    return _amount(found) if found else None


def canonical(text: str) -> str:
    """As the API server writes it: with the largest suffix of the same family that leaves no fraction (`1000m` is `1`,
    `1024Mi` is `1Gi`). Any other text is returned unchanged."""
    found = _FORM.fullmatch(text)
    if found is None:
        return text
    amount, exponent = _amount(found), found[5]
    if found[3]:
        return _binary(amount)
    return _decimal(amount) if exponent is None else _exponent(amount)


def _amount(found: re.Match[str]) -> Decimal:
    sign, number, binary, suffix, exponent = found.groups()
    exact = Context(prec=len(number) + 32, Emax=MAX_EMAX, Emin=MIN_EMIN)
    amount = Decimal(number)
    if binary:
        amount = exact.multiply(amount, Decimal(1024) ** _BINARY.index(binary))
    elif suffix:
        amount = exact.scaleb(amount, 3 * (_DECIMAL.index(suffix) - 3))
    elif exponent:
        amount = exact.scaleb(amount, int(exponent))
    if int(amount.as_tuple().exponent) < _FINEST:
        amount = amount.quantize(Decimal(1).scaleb(_FINEST), rounding=ROUND_UP, context=exact)
    if binary:
        amount = min(amount, _LARGEST_BINARY)
    return amount.copy_negate() if sign == "-" and amount else amount


def _binary(amount: Decimal) -> str:
    """Less than a whole unit of 1024, or a fraction: then it is written with decimal suffixes."""
    if abs(amount) < 1024 or amount != amount.to_integral_value():
        return _decimal(amount)
    power, whole = 0, int(amount)
    while whole % 1024 == 0 and power < len(_BINARY) - 1:
        power, whole = power + 1, whole // 1024
    return f"{whole}{_BINARY[power]}"


def _decimal(amount: Decimal) -> str:
    number, power = _thousands(amount)
    if power < len(_DECIMAL):
        return f"{number}{_DECIMAL[power]}"
    return f"{number}e{3 * (power - 3)}"  # larger than any suffix


def _exponent(amount: Decimal) -> str:
    number, power = _thousands(amount)
    return f"{number}e{3 * (power - 3)}" if power != 3 else str(number)


def _thousands(amount: Decimal) -> tuple[int, int]:
    """A whole number, and how many times a thousand of 1n it counts."""
    if not amount:
        return 0, 3
    _, digits, exponent = amount.as_tuple()
    number, tens = int("".join(map(str, digits))), int(exponent) - _FINEST
    while number % 10 == 0:
        number, tens = number // 10, tens + 1
    power, rest = divmod(tens, 3)
    return (-1 if amount < 0 else 1) * number * 10**rest, power
