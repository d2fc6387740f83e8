"""Refuses texts and expressions of an overlay's checks and known causes that cannot be evaluated.

Such a text is filled in only when something is found, and that is no time to find out that it cannot be. Packaged ones
are filled in by the tests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from renderer.catalog.cause_rules import CauseWorld, names_of_texts
from renderer.catalog.causes import DeclaredCause, read_causes
from renderer.catalog.checks import DeclaredCheck, read_checks
from renderer.catalog.entries import DeclarationPlace, texts_of
from renderer.catalog.file_reader import FileReader
from renderer.catalog.load import Catalog
from renderer.catalog.places import own_knowledge
from renderer.context.checks import check_names
from renderer.context.facts import Facts
from renderer.errors import Problem, Problems
from renderer.frozen import frozen
from renderer.model.path import look_up
from renderer.suggest import did_you_mean
from renderer.templating import Templates, has_marks
from renderer.validation import document_problems

_OF_PROBES = ("installed",)
"""The names that probe and condition of a check see beside those of the upgrade."""
_OF_FINDINGS = ("object", "reason")
"""The names that its words see beside them."""


def text_problems(catalog: Catalog, templates: Templates, spec_fields: Mapping[str, Any]) -> list[Problem]:
    """Of a tree that was loaded: texts and expressions that are no Jinja, and names that nothing has."""
    reader = FileReader(own_knowledge(catalog.tree), document_problems)  # whatever else is wrong has been told
    checks = read_checks(reader, catalog.kinds)
    causes = read_causes(reader, CauseWorld(kinds=catalog.kinds, phases=(), checks=()))
    facts = Facts(plan={}, release=None, objects=(), values=catalog.values, spec_fields=spec_fields)
    names = tuple(check_names(facts, ()).names)
    texts = [text for check in checks for text in _of_check(check, names)]
    texts += [text for cause in causes for text in _of_cause(cause)]
    return [problem for text in texts for problem in text.problems(templates)]


@frozen
class _Text:
    """A text of a declaration, `at` a path in it. `words`: about objects, else strict, and an error where it fails."""

    place: DeclarationPlace
    at: tuple[str, ...]
    text: str
    known: Collection[str]
    words: bool = True

    def problems(self, templates: Templates) -> Iterator[Problem]:
        try:
            unknown = templates.unknown_names(self.text, self.known, of=self.place.document, words=self.words)
        except Problems as error:
            yield from (self._problem(item.reason, item.message, item.remedy or "") for item in error.problems)
            return
        for name in unknown:
            message = f"'{name}' is undefined{did_you_mean(name, self.known)}"
            yield self._problem("UndefinedVariable", message, f"write one of {', '.join(sorted(self.known))}")

    def _problem(self, reason: str, message: str, remedy: str) -> Problem:
        return self.place.problem(reason, f"{'.'.join(self.at)}: {message}", remedy, *self.at)


def _of_check(declared: DeclaredCheck, names: tuple[str, ...]) -> Iterator[_Text]:
    node = ("node",) if declared.check.per_node else ()
    place, strict = declared.place, (*names, *_OF_PROBES, *node)
    if declared.check.applies:
        yield _Text(
            place=place, at=("applies", "expr"), text=_braced(declared.check.applies.expr), known=strict, words=False
        )
    for text in filter(has_marks, texts_of(place.raw["probe"])):
        yield _Text(place=place, at=("probe",), text=text, known=strict, words=False)
    yield from _texts(place, ("offender", "says", "remedy"), (*names, *_OF_FINDINGS, *node))


def _of_cause(declared: DeclaredCause) -> Iterator[_Text]:
    place, cause = declared.place, declared.cause
    known = names_of_texts(cause)
    for at, text in ((("if",), cause.condition), (("patience", "if"), cause.patience)):
        if text is not None:
            yield _Text(place=place, at=at, text=_braced(text), known=known)
    yield from _texts(place, ("offender", "node", "what", "since", "remedy", "patience.says"), known)


def _texts(place: DeclarationPlace, keys: Iterable[str], known: Collection[str]) -> Iterator[_Text]:
    for key in keys:
        at = tuple(key.split("."))
        text = look_up(place.raw, at)
        if isinstance(text, str) and has_marks(text):
            yield _Text(place=place, at=at, text=text, known=known)


def _braced(expression: str) -> str:
    return f"{{{{ ({expression}) }}}}"
