"""The Jinja environment of all templates: sandboxed, strict, no clock, no network, and nothing printed unquoted.

In a manifest template every printed text must come through `quote` or a macro; a bare one is an error, so that no input
can become YAML structure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, NoReturn

from jinja2 import BaseLoader, BytecodeCache, StrictUndefined, TemplateNotFound, TemplateSyntaxError
from jinja2 import nodes as syntax
from jinja2.bccache import Bucket
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from renderer.catalog.template_tree import Template
from renderer.image_names import not_needed
from renderer.suggest import did_you_mean

FILE_MARK = "template:"
"""How the file name of compiled code begins, so that a traceback's lines of templates are known."""
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
# What a YAML double-quoted scalar may hold as it is; everything else becomes a \u escape.
_ESCAPED = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"


class Raised(Exception):
    """A template called `fail`, or printed what it must not."""


class Printable(str):
    """Text that may be printed: what `quote` or a macro made. Whatever a template does with it, joining, cutting or
    replacing, gives a plain string again, and that is not printed."""

    __slots__ = ()


def environment_of(loader: BaseLoader, code: MutableMapping[str, bytes] | None, *, quoted: bool = True) -> Environment:
    environment = Environment(
        loader=loader,
        bytecode_cache=None if code is None else _Code(code),
        cache_size=-1,
        undefined=_Undefined,
        autoescape=quoted,  # numbers apart, only what `_only_quoted` lets through is printed, and that is not escaped
        finalize=_only_quoted if quoted else None,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    ours = {"quote": quote, "without": not_needed}
    environment.filters = {name: environment.filters[name] for name in _FILTERS} | ours
    environment.globals = {"range": environment.globals["range"], "dict": dict, "fail": _fail}
    return environment


_FILTERS = (
    "abs", "batch", "default", "dictsort", "first", "int", "items", "join", "last", "length", "list", "lower", "map",
    "max", "min", "reject", "rejectattr", "replace", "reverse", "select", "selectattr", "sort", "string",
    "sum", "trim", "unique", "upper",
)  # fmt: skip


def quote(value: Any) -> Printable:
    """A value as JSON text that every YAML reader takes as it is. The only way for text into a manifest."""
    if isinstance(value, Printable):
        raise Raised("quotes a value twice; remove one `| quote`")
    text = _JSON.encode(_plain(value))
    if not text.isprintable():
        text = re.sub(_ESCAPED, lambda match: f"\\u{ord(match.group()):04x}", text)
    return Printable(text)


def _plain(value: Any) -> Any:
    if isinstance(value, StrictUndefined):
        str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


def _fail(message: str) -> NoReturn:
    raise Raised(message)


def _only_quoted(value: Any) -> Markup | int | float:
    """What may be printed into a manifest: numbers, booleans, and text that was quoted."""
    if isinstance(value, StrictUndefined):
        str(value)  # raises, and names it
    if value is None:
        raise Raised("prints a value that is not set; add a default or an `if`")
    if isinstance(value, (bool, Printable)):
        return Markup(str(value).lower() if isinstance(value, bool) else value)  # noqa: S704 - it is quoted
    if not isinstance(value, (int, float)):
        raise Raised(f"prints {str(value)!r} without quoting; add `| quote`")
    return value


class TreeLoader(BaseLoader):
    """Finds a template by its path in the tree."""

    def __init__(self, tree: Mapping[str, Template]) -> None:
        self._tree = tree

    def get_source(self, environment: Any, template: str) -> tuple[str, str, Callable[[], bool]]:
        if template not in self._tree:
            raise TemplateNotFound(template)
        return self._tree[template].text, f"{FILE_MARK}{template}", lambda: True


class TextLoader(BaseLoader):
    """A template's name is its text: strings and expressions are then compiled and kept as files are."""

    def get_source(self, environment: Any, template: str) -> tuple[str, str, Callable[[], bool]]:
        return template, "<string>", lambda: True


class _Code(BytecodeCache):
    """Compiled code by key. Jinja checks that it was made from the same source by the same version."""

    def __init__(self, code: MutableMapping[str, bytes]) -> None:
        self._code = code

    def load_bytecode(self, bucket: Bucket) -> None:
        if (known := self._code.get(bucket.key)) is not None:
            bucket.bytecode_from_string(known)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


class _Undefined(StrictUndefined):
    """Says whose name is unknown and what was probably meant."""

    @property
    def _undefined_message(self) -> str:
        holder, wanted = self._undefined_obj, str(self._undefined_name)
        if self._undefined_hint:
            return self._undefined_hint
        if not isinstance(holder, Mapping):
            return f"'{wanted}' is undefined"
        return f"{getattr(holder, 'name', 'the mapping')} has no '{wanted}'{did_you_mean(wanted, holder)}"


class Environment(ImmutableSandboxedEnvironment):
    """Attribute look-up prefers keys: `d.items` is the key, never the method."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, (Mapping, Printable)):
            return self._own(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping) or (isinstance(obj, Printable) and isinstance(argument, str)):
            return self._own(obj, argument)
        return super().getitem(obj, argument)

    def _own(self, obj: Mapping[str, Any] | Printable, name: str) -> Any:
        if isinstance(obj, Printable):  # Jinja's `format` would call its result quoted, whatever was put into it
            return self.unsafe_undefined(obj, name)
        return obj[name] if name in obj else self.undefined(obj=obj, name=name)

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The same for every template; Jinja's chain of mappings would be copied, slowly, for each rendering."""
        return self.globals if not d else super().make_globals(d)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """What a macro has printed, its caller may print."""
        value = super().call(__context, __obj, *args, **kwargs)
        return Printable(str(value)) if isinstance(__obj, Macro) else value

    def _parse(self, source: str, name: str | None, filename: str | None) -> syntax.Template:
        """Printed text can be taken hold of in two more ways; as text it would count as quoted whatever came to it."""
        template = super()._parse(source, name, filename)
        if block := next(template.find_all((syntax.AssignBlock, syntax.FilterBlock)), None):
            raise TemplateSyntaxError("a block cannot be set or filtered; use a macro", block.lineno, name, filename)
        return template
