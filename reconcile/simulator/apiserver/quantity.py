"""Kubernetes quantities in the form in which the API server writes them: `1000m` is `1`, `1024Mi` is `1Gi`. Pure.

Source: k8s.io/apimachinery, package api/resource: the largest suffix of the given family without a fraction.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_FORM = re.compile(r"^([+-]?[0-9.]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?$")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")


def is_quantity(text: str) -> bool:
    found = _FORM.match(text)
    return bool(found and _number(found[1]) is not None)


def canonical(value: object) -> str:
    """The quantity in its canonical form; what is none comes back as it is."""
    text = str(value).strip()
    found = _FORM.match(text)
    number = _number(found[1]) if found else None
    if found is None or number is None:
        return text
    suffix = found[2] or ""
    if suffix.endswith("i"):
        return _binary(number * 1024 ** _BINARY.index(suffix))
    if suffix in _DECIMAL:
        return _decimal(number * Decimal(1000) ** (_DECIMAL.index(suffix) - 3))
    return _exponent(number * Decimal(10) ** int(suffix[1:]))


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _binary(amount: Decimal) -> str:
    """Less than a whole unit of 1024, or a fraction: then it is written with decimal suffixes."""
    if abs(amount) < 1024 or amount != amount.to_integral_value():
        return _decimal(amount)
    power, whole = 0, int(amount)
    while whole % 1024 == 0 and power < len(_BINARY) - 1:
        power, whole = power + 1, whole // 1024
    return f"{whole}{_BINARY[power]}"


def _decimal(amount: Decimal) -> str:
    if not amount:
        return "0"
    power = 0
    nano = int((amount * Decimal(1000) ** 3).to_integral_value(rounding="ROUND_UP"))
    while nano % 1000 == 0 and power < len(_DECIMAL) - 1:
        power, nano = power + 1, nano // 1000
    return f"{nano}{_DECIMAL[power]}"


def _exponent(amount: Decimal) -> str:
    power, number = 0, amount
    while number and number % 1000 == 0:
        power, number = power + 3, number / 1000
    while number != number.to_integral_value():
        power, number = power - 3, number * 1000
    return f"{int(number)}e{power}" if power else str(int(number))
