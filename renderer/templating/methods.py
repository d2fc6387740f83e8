"""The attributes of values that a template may use, and the cost of a method's result. What is not listed is
forbidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import BuiltinMethodType
from typing import Any

from jinja2.runtime import BlockReference, LoopContext, Macro

from renderer.templating.limits import Budget

_TEXT = (
    "capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "format", "format_map", "index",
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable",
    "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip", "partition", "removeprefix", "removesuffix",
    "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith",
    "strip", "swapcase", "title", "upper", "zfill",
)  # fmt: skip
_LOOP = (
    "changed", "cycle", "depth", "depth0", "first", "index", "index0", "last", "length", "nextitem", "previtem",
    "revindex", "revindex0",
)  # fmt: skip
ATTRIBUTES: Mapping[type, frozenset[str]] = {
    str: frozenset(_TEXT),
    list: frozenset(("copy", "count", "index")),
    tuple: frozenset(("count", "index")),
    range: frozenset(("count", "index", "start", "step", "stop")),
    float: frozenset(("is_integer",)),
    LoopContext: frozenset(_LOOP),
    Macro: frozenset(("arguments", "caller", "catch_kwargs", "catch_varargs", "name")),
    BlockReference: frozenset(("super",)),
}


def pay_for(method: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], budget: Budget) -> None:
    """For a call that is about to be made. Raises `RenderingError` where its result would be too large."""
    budget.spend(len(args) + len(kwargs))
    for value in (*args, *kwargs.values()):
        budget.weighed(value)
    if isinstance(method, BuiltinMethodType) and isinstance(method.__self__, str):
        size = _SIZES.get(method.__name__)
        budget.spend_text(size(method.__self__, *args, **kwargs) if size else len(method.__self__))


def _padded(text: str, width: int, *_: Any) -> int:
    return max(len(text), width)


def _replaced(text: str, old: str, new: str, count: int = -1, /) -> int:
    found = text.count(old)
    return len(text) + (found if count < 0 else min(found, count)) * max(0, len(new) - len(old))


_SIZES: Mapping[str, Callable[..., int]] = {
    "center": _padded,
    "ljust": _padded,
    "rjust": _padded,
    "zfill": _padded,
    "expandtabs": lambda text, tabsize=8: len(text) + text.count("\t") * max(0, tabsize),
    "replace": _replaced,
}
