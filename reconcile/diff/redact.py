"""Hides secret values before anything is compared or printed. The same value has the same number all through a run.

Where both sides of a comparison have a value and it differs, kubectl's own words are used: `*** (before)` and
`*** (after)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.model.path import Path
from renderer.model.path_rule import edited, matches
from renderer.model.ref import Body
from renderer.redaction import RedactionRules, Redactor, is_mark


class DiffRedactor:
    """Gives out the numbers of one run."""

    def __init__(self, rules: RedactionRules) -> None:
        self._rules = rules
        self._redactor = Redactor(rules, mark=lambda number: f"*** ({number})")

    def learn(self, body: Body) -> None:
        """Its values get their numbers, and texts are freed of them from now on."""
        self._redactor.learn(body)

    def pair(self, before: Body, after: Body) -> tuple[Body, Body]:
        """Both sides of one comparison."""
        old, new = self.one(before), self.one(after)
        return _told_apart(old, new, "*** (before)"), _told_apart(new, old, "*** (after)")

    def one(self, body: Body) -> Body:
        """An object that is compared with nothing."""
        marked = body
        for path in self._rules.paths_for(body):
            marked = edited(marked, path, lambda where, value: self._whole(where, value))
        shown: Body = self._redactor.value(marked)
        return shown

    def value(self, body: Body, path: Path, value: Any) -> Any:
        """A present or former value at a path of the object."""
        copies = tuple(("metadata", "annotations", name) for name in self._rules.copies)
        if any(matches(rule, path) for rule in (*self._rules.paths_for(body), *copies)):
            return self._whole(path, value)
        return self._redactor.value(value, str(path[-1]))

    def text(self, text: str) -> str:
        """A message in which a server may have repeated a value that was hidden before."""
        return self._redactor.text(text)

    def _whole(self, path: Path, value: Any) -> Any:
        return None if value is None else self._redactor.known(path, value)


def _told_apart(value: Any, other: Any, mark: str) -> Any:
    """The value with `mark` wherever it and the other one have marks that differ."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return {key: _told_apart(item, other.get(key), mark) for key, item in value.items()}
    if isinstance(value, list) and isinstance(other, list):
        others = [*other, *[None] * len(value)]
        return [_told_apart(item, others[index], mark) for index, item in enumerate(value)]
    differ = isinstance(value, str) and isinstance(other, str) and value != other
    return mark if differ and is_mark(value) and is_mark(other) else value
