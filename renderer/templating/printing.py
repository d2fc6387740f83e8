"""Turns values into text. Only data can be printed: any other object would print its address, which differs in each
run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jinja2 import Undefined
from jinja2.environment import TemplateModule
from jinja2.runtime import LoopContext, Macro, TemplateReference
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter

from renderer.errors import quoted
from renderer.templating.limits import Budget, RenderingError

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
# What a YAML double-quoted scalar may hold as it is; everything else becomes a \u escape.
_ESCAPED = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
_SURROGATE = "[\ud800-\udfff]"
_CONVERSION = r"%(?:\([^)]*\))?[-+ #0]*(\*|[0-9]+)?(?:\.(\*|[0-9]+))?"
_KINDS: Sequence[tuple[Any, str]] = (
    (Mapping, "a mapping"),
    ((list, tuple), "a list"),
    (LoopContext, "a loop"),
    (Iterator, "a generator"),
    (range, "a range"),
    (Macro, "a macro"),
    (TemplateModule, "an imported template"),
    (TemplateReference, "a template"),
    (Callable, "a function"),
)


class Printable(str):
    """Text that may be printed: what `quote` or a macro made. Whatever a template does with it, joining, cutting or
    replacing, gives a plain string again, and that is not printed."""

    __slots__ = ()


def quote(value: Any, budget: Budget) -> Printable:
    """A value as JSON text that every YAML reader takes as it is. The only way for text into a manifest."""
    if isinstance(value, Printable):
        raise RenderingError("quotes a value twice; remove one `| quote`")
    text = _JSON.encode(as_data(value, budget))
    if not text.isprintable():
        text = re.sub(_ESCAPED, lambda match: f"\\u{ord(match.group()):04x}", text)
    return Printable(text)


def as_data(value: Any, budget: Budget) -> Any:
    """The value in JSON's types. Raises `RenderingError` for what has no such form."""
    if isinstance(value, str):
        budget.spend_text(len(value))
        return _whole(str(value))
    if isinstance(value, (bool, int, float)) or value is None:
        return finite(value)
    if isinstance(value, Mapping):
        budget.spend(1 + len(value))
        return {_key(key, budget): as_data(item, budget) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        budget.spend(1 + len(value))
        return [as_data(item, budget) for item in value]
    raise _no_data(value)


def _key(key: Any, budget: Budget) -> str:
    if isinstance(key, (list, tuple, Mapping)):
        raise RenderingError(f"has {quoted(key)} as the key of a mapping; text is expected")
    return as_text(key, budget)


def as_text(value: Any, budget: Budget) -> str:
    """The text of a value, as Python has it."""
    if isinstance(value, str):
        budget.spend_text(len(value))
        return _whole(value)
    if not (isinstance(value, (bool, int, float)) or value is None):
        budget.spend_text(_length(value, budget))
    return str(finite(value))


def finite(value: Any) -> Any:
    """The value itself, unless it is infinite or not a number: YAML and JSON would get a word."""
    if isinstance(value, float) and not math.isfinite(value):
        raise no_number(str(value))
    return value


def no_number(name: str) -> RenderingError:
    """The message for a number that is none, `inf` or `nan`."""
    return RenderingError(f"makes {name.lstrip('-')}, which is no number in JSON; numbers end at 1.8e308")


def _whole(text: str) -> str:
    """The text itself. Half of a surrogate pair is no character, and nothing can be written with it."""
    if not text.isascii() and re.search(_SURROGATE, text):
        raise RenderingError("prints half of a surrogate pair; write the character itself, or \\U and its eight digits")
    return text


def _length(value: Any, budget: Budget) -> int:
    """About how long the text of a list is."""
    if isinstance(value, (list, tuple)):
        budget.spend(1 + len(value))
        return sum(_length(item, budget) for item in value)
    if isinstance(value, str):
        budget.spend_text(len(value))
        return len(value)
    if isinstance(value, (bool, int, float)) or value is None:
        return len(str(finite(value)))
    raise _no_data(value)


def _no_data(value: Any) -> RenderingError:
    if isinstance(value, Undefined):
        str(value)  # raises, and names it
    return RenderingError(
        f"prints {_kind(value)}, which is not a value; add `| join` to print its items, or name a value in it"
    )


def unquoted(value: Any) -> RenderingError:
    """The message for a value that stands in a manifest as it is."""
    message = f"prints {quoted(value) if isinstance(value, str) else _kind(value)} without quoting; add `| quote`"
    is_data = isinstance(value, (str, list, tuple, Mapping))
    return RenderingError(message if is_data else f"{message}, and it is not a value, so add `| join` before")


def _kind(value: Any) -> str:
    return next((words for kind, words in _KINDS if isinstance(value, kind)), f"a {type(value).__name__}")


def joined(values: Iterable[Any], separator: str, budget: Budget) -> str:
    """As `separator.join`, for values of any type that has a text."""
    parts = [as_text(value, budget) for value in values]
    budget.spend_text(sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1))
    return separator.join(parts)


def percent(template: str, values: Any, budget: Budget) -> str:
    """As `template % values`."""
    budget.spend_text(len(template))
    given = values if isinstance(values, (tuple, Mapping)) else (values,)
    numbers = [value for value in given if isinstance(value, int)] if "*" in template else []
    widths = [width for match in re.finditer(_CONVERSION, template) for width in match.groups() if width]
    budget.spend_text(sum(abs(max(numbers, key=abs, default=0)) if width == "*" else _size(width) for width in widths))
    if isinstance(given, Mapping):
        return str(template) % _Checked(given, budget)
    return str(template) % tuple(_paid(value, budget) for value in given)


def _paid(value: Any, budget: Budget) -> Any:
    """The value itself: a number must stay one, for `%d`."""
    as_text(value, budget)
    return value


class _Checked(Mapping[str, Any]):
    """The mapping that `%(name)s` looks into. Each look-up is paid for: a text may be printed many times."""

    def __init__(self, values: Mapping[str, Any], budget: Budget) -> None:
        self._values, self._budget = values, budget

    def __getitem__(self, key: str) -> Any:
        return _paid(self._values[key], self._budget)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        raise _no_data(self)


class Formatter(SandboxedFormatter):
    """Formats data only, and no wider than a text may be."""

    def __init__(self, environment: SandboxedEnvironment, budget: Budget) -> None:
        super().__init__(environment)
        self._budget = budget

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return super().convert_field(_paid(value, self._budget), conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        self._budget.spend_text(sum(map(_size, re.findall("[0-9]+", format_spec))))
        return super().format_field(_paid(value, self._budget), format_spec)


def _size(digits: str) -> int:
    """Of a width; one that has more digits than this is too much in any case."""
    return int(digits[:20])
