"""The filters that a template may use, each within its budget, and those that counting puts into a template."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from jinja2.filters import FILTERS, make_attrgetter
from jinja2.runtime import Context
from jinja2.utils import pass_context, pass_environment

from renderer.errors import quoted
from renderer.image_names import not_needed
from renderer.templating.limits import RenderingError
from renderer.templating.printing import Printable, as_data, as_text, joined, quote
from renderer.templating.syntax import JOIN, SPEND, WEIGH

if TYPE_CHECKING:
    from renderer.templating.environment import Environment

_JINJAS = (
    "abs", "default", "dictsort", "first", "int", "items", "last", "length", "list", "map", "max", "min",
    "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "unique",
)  # fmt: skip
_BATCH: Callable[..., Any] = FILTERS["batch"]
_SUM: Callable[..., Any] = FILTERS["sum"]
_GO_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
_OF_TEXT = ("lower", "trim", "upper")


def filters_of(environment: Environment) -> dict[str, Callable[..., Any]]:
    """By name."""
    found = {name: bounded(FILTERS[name], environment) for name in _JINJAS}
    of_text = {name: _of_text(FILTERS[name], environment) for name in _OF_TEXT}
    return {**found, **of_text, "without": bounded(not_needed, environment), **_OURS}


def bounded(function: Callable[..., Any], environment: Environment) -> Callable[..., Any]:
    """A filter or test of Jinja's that pays for what it looks at."""

    @wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        weighed = environment.budget.weighed
        return function(*map(weighed, args), **{name: weighed(value) for name, value in kwargs.items()})

    return inner


def _of_text(function: Callable[..., Any], environment: Environment) -> Callable[..., Any]:
    @wraps(function)
    def inner(value: Any, *args: Any, **kwargs: Any) -> Any:
        return function(as_text(value, environment.budget), *args, **kwargs)

    return inner


@pass_environment
def _quote(environment: Environment, value: Any) -> Printable:
    return quote(value, environment.budget)


@pass_environment
def _digest(environment: Environment, value: Any) -> str:
    """SHA-256 of the value as Go's encoding/json writes it."""
    text = json.dumps(as_data(value, environment.budget), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.translate(_GO_ESCAPES).encode()).hexdigest()


@pass_environment
def _string(environment: Environment, value: Any) -> str:
    return as_text(value, environment.budget)


@pass_environment
def _join(environment: Environment, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
    items = value if attribute is None else map(make_attrgetter(environment, attribute), value)
    return joined(items, as_text(d, environment.budget), environment.budget)


@pass_environment
def _replace(environment: Environment, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    budget = environment.budget
    text, before, after = (as_text(value, budget) for value in (s, old, new))
    found = text.count(before)
    budget.spend_text(len(text) + found * max(0, len(after) - len(before)))
    return text.replace(before, after, -1 if count is None else count)


@pass_environment
def _batch(environment: Environment, value: Any, linecount: int, fill_with: Any = None) -> Any:
    environment.budget.spend(max(1, linecount))
    return _BATCH(environment.budget.weighed(value), linecount, fill_with)


@pass_environment
def _sum(environment: Environment, iterable: Any, attribute: str | int | None = None, start: Any = 0) -> Any:
    if not isinstance(start, (int, float)):
        raise RenderingError(f"adds to {quoted(start)}; a number is expected")
    return _SUM(environment, environment.budget.weighed(iterable), attribute, start)


@pass_context
def _spend(context: Context, steps: int) -> bool:
    """True, so that it may stand in a condition. The context is asked for only so that Jinja does not call it when it
    compiles, as it does with a filter of constants."""
    environment: Any = context.environment
    environment.budget.spend(max(1, steps))
    return True


@pass_environment
def _weigh(environment: Environment, value: Any) -> Any:
    return environment.budget.weighed(value)


@pass_environment
def _concatenate(environment: Environment, values: Iterable[Any]) -> str:
    return joined(values, "", environment.budget)


_OURS: Mapping[str, Callable[..., Any]] = {
    "quote": _quote,
    "digest": _digest,
    "string": _string,
    "join": _join,
    "replace": _replace,
    "batch": _batch,
    "sum": _sum,
    SPEND: _spend,
    WEIGH: _weigh,
    JOIN: _concatenate,
}
