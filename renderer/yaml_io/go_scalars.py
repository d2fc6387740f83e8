"""Reads plain scalars as Go's YAML reader (sigs.k8s.io/yaml) does: kubectl, Helm and every controller read with it."""

from __future__ import annotations

import math
import re
from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((f"{s}{w}" for s in ("", "+") for w in (".inf", ".Inf", ".INF")), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_GO_INT = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_GO_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIGIT_GROUPS = r"(?<=[0-9])_(?=[0-9])"
_BASES = {"x": 16, "b": 2, "o": 8}


def go_scalar(text: str) -> Any:
    """The value that Go's reader makes of a plain scalar: word, integer, float or text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        plain = re.sub(_DIGIT_GROUPS, "", text)
        return float(plain) if _GO_FLOAT.fullmatch(plain) else text
    if text[0] not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    if (match := _GO_INT.fullmatch(plain)) and (value := _go_int(*match.groups())) is not None:
        return value
    return float(plain) if _GO_FLOAT.fullmatch(plain) else text


def _go_int(sign: str, digits: str) -> int | None:
    """None where it does not fit; Go then takes decimal digits for a float and anything else for text."""
    base = _BASES.get(digits[1:2].lower(), 8) if digits[0] == "0" and len(digits) > 1 else 10
    body = digits[2:] if digits[1:2].lower() in _BASES else digits
    if len(body.lstrip("0")) > 64:
        return None
    value = int(f"{sign}{body}", base)
    return value if -(2**63) <= value < (2**63 if sign else 2**64) else None
