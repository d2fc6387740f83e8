"""The Jinja environment of all templates: sandboxed, strict, bounded, no clock, no network, nothing printed unquoted.

In a manifest template every printed text must come through `quote` or a macro; a bare one is an error, so that no input
can become YAML structure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from types import BuiltinMethodType
from typing import Any, NoReturn

from jinja2 import BaseLoader, BytecodeCache, ChainableUndefined, StrictUndefined, TemplateNotFound
from jinja2 import nodes as syntax
from jinja2.bccache import Bucket
from jinja2.environment import TemplateModule
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from renderer.catalog.template_tree import Template
from renderer.errors import shortened
from renderer.suggest import did_you_mean
from renderer.templating.filters import bounded, filters_of
from renderer.templating.limits import LONGEST, STEPS, Budget, RenderingError
from renderer.templating.methods import ATTRIBUTES, pay_for
from renderer.templating.printing import Formatter, Printable, as_text, finite, joined, percent, unquoted
from renderer.templating.syntax import counted, refusal

_COMPILED: dict[tuple[Any, ...], Any] = {}
"""Code by all that it was made from: a process compiles a template once, however often a tree is opened."""
_MOST_COMPILED = 4096
FILE_MARK = "template:"
"""The prefix of the file names of compiled code, so that a traceback's lines of templates are known."""


def environment_of(
    loader: BaseLoader, code: MutableMapping[str, bytes] | None, *, quoted: bool = True, lenient: bool = False
) -> Environment:
    """`quoted`: for manifests; else for strings of declarations, where text is printed as it is. `lenient`: a name that
    is unknown, and whatever is looked up in it, is empty."""
    environment = Environment(
        loader=loader,
        bytecode_cache=None if code is None else _Code(code),
        cache_size=-1,
        undefined=_Nothing if lenient else _Undefined,
        autoescape=quoted,  # numbers apart, only what `only_quoted` lets through is printed, and that is not escaped
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.finalize = environment.only_quoted if quoted else environment.as_text
    environment.filters = filters_of(environment)
    tests: Mapping[str, Any] = environment.tests
    environment.tests = {name: bounded(test, environment) for name, test in tests.items()}
    environment.globals = {"range": environment.globals["range"], "dict": dict, "fail": environment.fail}
    return environment


def page_environment(loader: BaseLoader) -> Environment:
    """For pages that people read: text is printed as it is, and escaped as HTML."""
    environment = environment_of(loader, None, quoted=False)
    environment.autoescape = True
    return environment


class TreeLoader(BaseLoader):
    """Finds a template by its path in the tree."""

    def __init__(self, tree: Mapping[str, Template]) -> None:
        self._tree = tree

    def get_source(self, environment: Any, template: str) -> tuple[str, str, Callable[[], bool]]:
        if template not in self._tree:
            raise TemplateNotFound(template)
        return self._tree[template].text, f"{FILE_MARK}{template}", lambda: True


class NamesLoader(BaseLoader):
    """Finds one file of the tree by its path; the name of every other template is its text."""

    def __init__(self, tree: Mapping[str, Template], path: str) -> None:
        self._tree, self._path = TreeLoader(tree), path

    def get_source(self, environment: Any, template: str) -> tuple[str, str, Callable[[], bool]]:
        return (self._tree if template == self._path else TextLoader()).get_source(environment, template)


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
        holder, expected = self._undefined_obj, str(self._undefined_name)
        if self._undefined_hint:
            return self._undefined_hint
        if not isinstance(holder, Mapping):
            return f"'{expected}' is undefined"
        return f"{getattr(holder, 'name', 'the mapping')} has no '{expected}'{did_you_mean(expected, holder)}"


class _Nothing(ChainableUndefined):
    """Stands for a field that an object does not have."""


class Environment(ImmutableSandboxedEnvironment):
    """Attribute look-up prefers keys: `d.items` is the key, never the method. Whatever could grow or repeat pays for it
    out of `budget`, which is set for each template."""

    budget = Budget(STEPS)
    intercepted_binops = frozenset(("*", "**", "%", "+"))

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, _Nothing):
            return obj
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

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, TemplateModule):
            return not attr.startswith("_")
        return attr in ATTRIBUTES.get(type(obj), ())

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if not isinstance(value, BuiltinMethodType) or not isinstance(value.__self__, str):
            return None
        text, formatter = value.__self__, Formatter(self, self.budget)
        if value.__name__ == "format":
            return lambda *args, **kwargs: formatter.vformat(text, args, kwargs)
        if value.__name__ == "format_map":
            return lambda values: formatter.vformat(text, (), values)
        return None

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The same for every template; Jinja's chain of mappings would be copied, slowly, for each rendering."""
        return self.globals if not d else super().make_globals(d)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Marks the output of a macro, so that its caller may print it."""
        if isinstance(__obj, Macro):  # its body pays for itself
            return Printable(str(super().call(__context, __obj, *args, **kwargs)))
        pay_for(__obj, args, kwargs, __self.budget)
        if isinstance(__obj, BuiltinMethodType) and __obj.__name__ == "join":
            return joined(args[0] if args else (), str(__obj.__self__), __self.budget)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        return _OPERATIONS[operator](left, right, self.budget)

    def concat(self, parts: Iterable[str]) -> str:
        """All that a template prints. Where it is too much, the template itself is stopped, so the line is known."""
        whole, length = [], 0
        for part in parts:
            whole.append(part)
            length += len(part)
            if length > LONGEST and isinstance(parts, Generator):
                parts.throw(RenderingError(f"prints more than {LONGEST:,} characters"))
        return "".join(whole)

    def only_quoted(self, value: Any) -> Markup | int | float:
        """Returns a value that may be printed into a manifest: numbers, booleans, and text that was quoted."""
        if isinstance(value, StrictUndefined):
            str(value)  # raises, and names it
        if value is None:
            raise RenderingError("prints a value that is not set; add a default or an `if`")
        if isinstance(value, Printable):
            self.budget.spend_text(len(value))
            return Markup(value)  # noqa: S704 - it is quoted
        if isinstance(value, bool):
            return Markup(str(value).lower())  # noqa: S704 - a word
        if not isinstance(value, (int, float)):
            raise unquoted(value)
        finite(value)
        return value

    def as_text(self, value: Any) -> str:
        """The text that a string of a declaration prints for a value."""
        return "" if isinstance(value, _Nothing) else as_text(value, self.budget)

    def fail(self, message: str) -> NoReturn:
        """Ends the rendering with this message."""
        raise RenderingError(shortened(as_text(message, self.budget)))

    def compile(self, source: Any, *args: Any, **options: Any) -> Any:
        """As Jinja does, once for each text; what cannot be compiled is tried again."""
        made_of = (self.autoescape, self.undefined, source, args, *options.items())
        if (known := _COMPILED.get(made_of)) is not None:
            return known
        if len(_COMPILED) >= _MOST_COMPILED:
            _COMPILED.clear()
        made = _COMPILED[made_of] = super().compile(source, *args, **options)
        return made

    def _parse(self, source: str, name: str | None, filename: str | None) -> syntax.Template:
        if len(source) > LONGEST:
            raise RenderingError(f"has {len(source):,} characters; at most {LONGEST:,} are allowed")
        template = super()._parse(source, name, filename)
        if error := refusal(template, alone=self.finalize == self.as_text):
            error.name, error.filename = name, filename
            raise error
        return counted(template)


def _times(left: Any, right: Any, budget: Budget) -> Any:
    for value, count in ((left, right), (right, left)):
        if isinstance(count, int) and isinstance(value, str):
            budget.spend_text(len(value) * max(0, count))
        elif isinstance(count, int) and isinstance(value, (list, tuple)):
            budget.spend(len(value) * max(0, count))
    if isinstance(left, int) and isinstance(right, int):
        budget.spend_bits(left.bit_length() + right.bit_length())
    return left * right


def _power(left: Any, right: Any, budget: Budget) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        budget.spend_bits(left.bit_length() * max(0, right))
    return left**right


def _plus(left: Any, right: Any, budget: Budget) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        budget.spend_text(len(left) + len(right))
    elif isinstance(left, (list, tuple)):
        budget.weighed(left), budget.weighed(right)
    return left + right


def _modulo(left: Any, right: Any, budget: Budget) -> Any:
    return percent(left, right, budget) if isinstance(left, str) else left % right


_OPERATIONS: Mapping[str, Callable[[Any, Any, Budget], Any]] = {"*": _times, "**": _power, "+": _plus, "%": _modulo}
