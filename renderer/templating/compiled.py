"""Renders manifest templates, strings of `phase.yaml` with marks in them, and expressions.

Every error of a template is reported with file, line and remedy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cached_property
from types import TracebackType
from typing import Any

from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables

from renderer.catalog.places import NAMES_FILE
from renderer.catalog.template_tree import Template
from renderer.errors import Problems, problem, quoted, shortened
from renderer.templating.environment import (
    FILE_MARK,
    Environment,
    NamesLoader,
    TextLoader,
    TreeLoader,
    environment_of,
    page_environment,
)
from renderer.templating.limits import ALL_STEPS, STEPS, Budget, RenderingError
from renderer.templating.printing import as_data, no_number
from renderer.yaml_io import Document

_SEE = "correct it; `upgradeplan phases NAME --context` lists the names that a template can use"


def has_marks(text: str) -> bool:
    """True if there is anything to fill in."""
    return "{{" in text or "{%" in text


class Templates:
    """A tree of templates. Each is compiled once; with `code`, not even that where an earlier run has done it.

    `code` maps a key to compiled code as bytes; newly compiled code is put into it.
    """

    def __init__(self, tree: Mapping[str, Template], code: MutableMapping[str, bytes] | None = None) -> None:
        self._tree = tree
        self._code = code
        self._environment = environment_of(TreeLoader(tree), code)
        self._strings = environment_of(TextLoader(), code, quoted=False)
        self._left = ALL_STEPS

    def begin(self) -> None:
        """A new rendering: all its templates and expressions together have so many steps."""
        self._left = ALL_STEPS

    def render_text(self, path: str, context: Mapping[str, Any]) -> str:
        """The text of one manifest template. Raises `Problems` with the template's line."""
        with self._bounded(self._environment), _Explained(self, path):
            return self._environment.get_template(path).render(context)
        raise AssertionError("unreachable")

    def render_string(self, text: str, context: Mapping[str, Any], *, of: Document) -> str:
        """A string of a declaration with its marks filled in; text without marks comes back as it is."""
        if not has_marks(text):
            return text
        with self._bounded(self._strings), _Explained(self, of.file, text, of):
            return self._strings.get_template(text).render(context)
        raise AssertionError("unreachable")

    def render_message(self, text: str, context: Mapping[str, Any], *, of: Document) -> str:
        """A text about an object: what is absent is empty, and the macros of the names file are at hand."""
        if not has_marks(text):
            return text
        environment, macros = self._messages
        with self._bounded(environment), _Explained(self, of.file, text, of):
            return environment.get_template(text).render({**macros, **context})
        raise AssertionError("unreachable")

    @cached_property
    def _messages(self) -> tuple[Environment, Mapping[str, Any]]:
        """The environment for words about objects, and the macros that they may use."""
        environment = environment_of(NamesLoader(self._tree, NAMES_FILE), self._code, quoted=False, lenient=True)
        if NAMES_FILE not in self._tree:
            return environment, {}
        with self._bounded(environment), _Explained(self, NAMES_FILE):
            module = environment.get_template(NAMES_FILE).module
            return environment, {name: made for name, made in vars(module).items() if not name.startswith("_")}
        raise AssertionError("unreachable")

    def page(self, path: str, context: Mapping[str, Any]) -> str:
        """A page for people, in which all text is escaped as HTML. Raises `Problems` with the template's line."""
        environment = page_environment(TreeLoader(self._tree))
        environment.budget = Budget(ALL_STEPS)
        with _Explained(self, path):
            return environment.get_template(path).render(context)
        raise AssertionError("unreachable")

    def evaluate(self, expression: str, context: Mapping[str, Any], *, of: Document) -> Any:
        """The value of an expression of a declaration, plain data."""
        with self._bounded(self._strings), _Explained(self, of.file, expression, of):
            template = self._strings.get_template(f"{{% set value = ({expression}) %}}")
            scope = template.new_context(dict(context))
            deque(template.root_render_func(scope), maxlen=0)
            value = scope.vars["value"]
            as_data(value, self._strings.budget)
            return value
        raise AssertionError("unreachable")

    def holds(self, expression: str, context: Mapping[str, Any], *, of: Document) -> bool:
        """True if an expression about objects is true: what is absent is empty, as in words about objects."""
        environment, macros = self._messages
        with self._bounded(environment), _Explained(self, of.file, expression, of):
            template = environment.get_template(f"{{% if {expression} %}}1{{% endif %}}")
            return bool(template.render({**macros, **context}))
        raise AssertionError("unreachable")

    def unknown_names(self, text: str, known: Collection[str], *, of: Document, words: bool) -> tuple[str, ...]:
        """The names of a text with marks that are not `known`; `words`: of one about objects. Raises `Problems` if it
        cannot be compiled."""
        environment, macros = self._messages if words else (self._strings, {})
        with self._bounded(environment), _Explained(self, of.file, text, of):
            environment.get_template(text)
            named = find_undeclared_variables(environment.parse(text))
            return tuple(sorted(named.difference(known, macros, environment.globals)))
        raise AssertionError("unreachable")

    @property
    def filters(self) -> Mapping[str, Callable[..., Any]]:
        """Every filter that a template may use."""
        return {name: made for name, made in self._environment.filters.items() if name.isidentifier()}

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions that a template may call in any context."""
        return self._environment.globals

    def check_syntax(self, path: str) -> None:
        """Raises `Problems` where a template cannot be compiled."""
        with self._bounded(self._environment), _Explained(self, path):
            self._environment.get_template(path)

    @contextmanager
    def _bounded(self, environment: Environment) -> Iterator[None]:
        """Each template has its own budget, and all have one."""
        budget = environment.budget = Budget(min(STEPS, self._left))
        try:
            yield
        finally:
            self._left -= budget.whole - budget.left

    def __contains__(self, path: object) -> bool:
        return path in self._tree

    def shown(self, path: str) -> str:
        """The name by which errors call a template."""
        return self._tree[path].shown if path in self._tree else path


class _Explained:
    """Turns whatever a template can raise into one `Problems` with file, line and remedy. `text` is a string of a
    declaration, the document `of`."""

    def __init__(self, templates: Templates, path: str, text: str | None = None, of: Document | None = None) -> None:
        self._templates, self._path, self._text, self._of = templates, path, text, of

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is None or isinstance(error, Problems) or not isinstance(error, Exception):
            return
        reason, message, remedy = _explained(error)
        file, line = self._place(error)
        where = f" (in `{shortened(self._text)}`)" if self._text else ""
        raise problem(reason, f"{message}{where}", file=file, line=line, remedy=remedy) from error

    def _place(self, error: Exception) -> tuple[str, int | None]:
        if self._text is not None and self._of is not None:
            return self._of.file, self._of.line_with(self._text)
        if isinstance(error, TemplateSyntaxError):
            name = (error.name or self._path).removeprefix(
                FILE_MARK
            )  # of some errors Jinja gives the file for the name
            return self._templates.shown(name), error.lineno
        from traceback import extract_tb  # only where something is wrong, as with difflib below

        frames = [f for f in extract_tb(error.__traceback__) if f.filename.startswith(FILE_MARK)]
        if frames:
            return self._templates.shown(frames[-1].filename.removeprefix(FILE_MARK)), frames[-1].lineno
        return self._templates.shown(self._path), None


def _explained(error: Exception) -> tuple[str, str, str]:
    """Reason, message and remedy."""
    match error:
        case TemplateSyntaxError():
            return "TemplateSyntax", shortened(_lower(error.message or "cannot be read")), "correct the template"
        case UndefinedError():
            return "UndefinedVariable", shortened(_lower(str(error))), _SEE
        case RenderingError():
            return "TemplateFailed", str(error), _SEE
        case TemplateNotFound():
            return (
                "TemplateNotFound",
                f"template {quoted(error.name)} not found",
                "write its path from the root of the template tree",
            )
        case SecurityError():
            return "TemplateForbidden", f"not allowed in a template: {shortened(_lower(str(error)))}", _SEE
        case RecursionError():
            return "TemplateFailed", "nests too deeply: a macro, include or import may lead back to itself", _SEE
        case NameError(name="inf" | "nan" as name):  # a constant: Jinja writes it into its code as Python shows it
            return "TemplateFailed", str(no_number(name)), _SEE
        case OverflowError():
            return "TemplateFailed", "makes a number that is too large", _SEE
        case ZeroDivisionError():
            return "TemplateFailed", "divides by zero", _SEE
        case MemoryError():
            return "TemplateFailed", "takes more memory than is available", "make it smaller"
        case _:
            return "TemplateFailed", f"{type(error).__name__}: {shortened(str(error))}", _SEE


def _lower(text: str) -> str:
    text = text.rstrip(".")
    return text[:1].lower() + text[1:] if not text[1:2].isupper() else text
