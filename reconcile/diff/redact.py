"""Hides secret values before anything is compared or printed. The same value has the same number all through a run.

Numbers and not hashes, since a short secret can be guessed from its hash. Where both sides of a comparison have a
value and it differs, kubectl's own words are used: `*** (before)` and `*** (after)`.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from reconcile.diff.masks import DiffRule, edited, matches, paths_for
from renderer.model.path import Path
from renderer.model.ref import Body

_SHORTEST = 4  # characters; a shorter text would be found in the middle of every other word


class Redactor:
    """Gives out the numbers of one run."""

    def __init__(self, rules: tuple[DiffRule, ...]) -> None:
        self._rules = rules
        self._numbers: dict[bytes, int] = {}
        self._texts: dict[str, str] = {}

    def learn(self, body: Body) -> None:
        """Its values get their numbers, and texts are freed of them from now on."""
        self._secrets(body)

    def pair(self, before: Body, after: Body) -> tuple[Body, Body]:
        """Both sides of one comparison."""
        old, new = self._secrets(before), self._secrets(after)
        differ = {path for path in old.keys() & new.keys() if old[path] != new[path]}
        return (
            self._marked(before, {path: "*** (before)" if path in differ else mark for path, mark in old.items()}),
            self._marked(after, {path: "*** (after)" if path in differ else mark for path, mark in new.items()}),
        )

    def one(self, body: Body) -> Body:
        """An object that is compared with nothing."""
        return self._marked(body, self._secrets(body))

    def value(self, body: Body, path: Path, value: Any) -> Any:
        """A present or former value at a path of the object."""
        hidden = any(matches(rule, path) for rule in paths_for(self._rules, body))
        return self._mark(path, value) if hidden else value

    def text(self, text: str) -> str:
        """A message in which a server may have repeated a value that was hidden before."""
        for secret in sorted(self._texts, key=len, reverse=True):
            text = text.replace(secret, self._texts[secret])
        return text

    def _secrets(self, body: Body) -> dict[Path, str]:
        """The mark of each value that is to be hidden."""
        found: dict[Path, str] = {}

        def look(path: Path, value: Any) -> Any:
            if value is not None:
                found[path] = self._mark(path, value)
            return value

        for path in paths_for(self._rules, body):
            edited(body, path, look)
        return found

    def _marked(self, body: Body, marks: dict[Path, str]) -> Body:
        for path in paths_for(self._rules, body):
            body = edited(body, path, lambda where, value: marks.get(where, value))
        return body

    def _mark(self, path: Path, value: Any) -> str:
        content = _content(path, value)
        number = self._numbers.setdefault(content, len(self._numbers) + 1)
        mark = f"*** ({number})"
        for text in (str(value), content.decode(errors="ignore"), base64.b64encode(content).decode()):
            if len(text) >= _SHORTEST:
                self._texts[text] = mark
        return mark


def _content(path: Path, value: Any) -> bytes:
    """The content that counts as the value: of a Secret's `data`, what is encoded in it, so that `stringData` gets its
    number."""
    if not isinstance(value, str):
        return json.dumps(value, sort_keys=True).encode()
    if path[0] == "data":
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
    return value.encode()
