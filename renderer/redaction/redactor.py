"""The redactor: hides values and texts, and gives the same value the same number as long as it lives.

Numbers and not hashes, since a short secret can be guessed from its hash.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from renderer.model.path import Path
from renderer.model.path_rule import edited
from renderer.model.ref import Body
from renderer.redaction.in_text import bare_address, last_name, redact_text, without_quoted
from renderer.redaction.listed import RedactionRules

REDACTED = "REDACTED"
"""The mark that stands in place of a secret."""

_NUMBERED = re.compile(rf"{REDACTED}-\d+")
_REDACTED = re.compile(rf"\b{REDACTED}(?:-\d+)?\b")
_MARK = rf"{REDACTED}(?:-\d+)?|\*\*\* \((?:\d+|before|after)\)"
_CLEAN = 65_536
"""Texts without a secret that are remembered."""
_KEYED_BY_NAME = {"done": 2, "nodeUpgradeStatuses": 1, "records": 1, "steps": 1}
"""Fields of a plan's status whose keys are names of phases, steps and nodes, and on how many levels."""
_SCALARS = (str, int, float, bool, type(None))
_SHORTEST = 4
"""Characters; a shorter text would be found in the middle of every other word."""


def numbered(number: int) -> str:
    """A mark that tells one value from another."""
    return f"{REDACTED}-{number}"


def without_numbers(value: Any) -> Any:
    """The value with marks that do not tell one value from another, as a message has them."""
    if isinstance(value, Mapping):
        return {without_numbers(key): without_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_numbers(item) for item in value]
    return _NUMBERED.sub(REDACTED, value) if isinstance(value, str) else value


def _unnumbered(_: int) -> str:
    return REDACTED


class Redactor:
    """`mark` makes the mark of a number. `untouched` are texts in which the rules find nothing; redactors of the same
    rules may share them."""

    def __init__(
        self,
        rules: RedactionRules,
        mark: Callable[[int], str] = _unnumbered,
        untouched: set[str] | None = None,
    ) -> None:
        self.rules = rules
        self._untouched = set[str]() if untouched is None else untouched
        self._mark_of = mark
        self._numbers: dict[bytes, int] = {}
        self._texts: dict[str, str] = {}
        self._clean: set[str] = set()
        self._open: set[tuple[object, ...]] = set()

    def text(self, text: str) -> str:
        """A text, or a message about something."""
        if text in self._clean:
            return text
        redacted = text
        for secret in sorted(self._texts, key=len, reverse=True):
            redacted = redacted.replace(secret, self._texts[secret])
        if redacted not in self._untouched:
            redacted = self._by_rules(redacted)
        if redacted == text and len(self._clean) < _CLEAN:
            self._clean.add(text)
        return redacted

    def _by_rules(self, text: str) -> str:
        redacted = redact_text(text, self.rules, self.mark)
        if redacted == text and len(self._untouched) < _CLEAN:
            self._untouched.add(text)
        return redacted

    def message(self, text: str, path: str) -> str:
        """A message about the field at the path: if that is secret, so is each value that the message quotes."""
        name = last_name(path)
        return without_quoted(text, name, self.mark) if self.rules.is_secret(name) else text

    def argument(self, word: str) -> str:
        """A word of a command line; of an address neither user nor query, whatever they are."""
        return self.text(bare_address(word))

    def value(self, value: Any, name: str = "") -> Any:
        """The value without secrets; `name` is the field that it stands in. Its form stays, except for a number under a
        secret name: it becomes a text."""
        if name in _KEYED_BY_NAME and isinstance(value, Mapping):
            return {key: self._keyed(item, _KEYED_BY_NAME[name]) for key, item in value.items()}
        if name and (self.rules.is_secret(name) or (name in self.rules.contents and not isinstance(value, list))):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return self.mark(json.dumps(value)) if is_number else self.marked(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._pair({key: self.value(item, str(key)) for key, item in value.items()})
        return self._items(value) if isinstance(value, (list, tuple)) else value

    def _keyed(self, value: Any, levels: int) -> Any:
        """The value below the names of things, which are not fields."""
        if levels > 1 and isinstance(value, Mapping):
            return {key: self._keyed(item, levels - 1) for key, item in value.items()}
        return self.value(value)

    def field(self, api_version: str, kind: str, path: Path, value: Any) -> Any:
        """The value of one field of an object, as `body` would have it; a mark for what would be left out."""
        asked = (api_version, kind, path, type(value), value) if isinstance(value, _SCALARS) else None
        if asked in self._open:
            return value
        shown = self._field(api_version, kind, path, value)
        if asked and shown is value and len(self._open) < _CLEAN:
            self._open.add(asked)
        return shown

    def _field(self, api_version: str, kind: str, path: Path, value: Any) -> Any:
        body = value
        for step in reversed(path):
            body = [body] if isinstance(step, int) else {step: body}
        shown: Any = self.body({**body, "apiVersion": api_version, "kind": kind}) if path else self.value(body)
        for step in path:
            if step not in shown if isinstance(step, str) else False:
                return self.marked(value)
            shown = shown[0 if isinstance(step, int) else step]
        return shown

    def body(self, body: Body) -> Body:
        """An object: what its kind keeps secret as well, and without the annotations that repeat objects."""
        for path in self.rules.paths_for(body):
            body = edited(body, path, lambda where, value: self._content(where, value))
        redacted: Body = self.value(self.without_copies(body))
        return redacted

    def without_copies(self, body: Body) -> Body:
        """The object without the annotations that repeat objects."""
        copies = self.rules.copies_in(body)
        if not copies:
            return body
        kept = {name: value for name, value in body["metadata"]["annotations"].items() if name not in copies}
        return {**body, "metadata": {**body["metadata"], "annotations": kept}}

    def learn(self, body: Body) -> None:
        """Hides in every text from now on what the object's kind keeps secret."""
        for path in self.rules.paths_for(body):
            edited(body, path, lambda where, value: value if value is None else self.known(where, value))

    def known(self, path: Path, value: Any) -> str:
        """The mark of a secret value, by which texts are freed of it from now on."""
        if isinstance(value, str) and is_mark(value):
            return value
        content = content_of(path, value)
        mark = self.mark_of(content)
        for text in (str(value), content.decode(errors="ignore"), base64.b64encode(content).decode()):
            if len(text) >= _SHORTEST:
                self._texts[text] = mark
                self._clean.clear()
                self._open.clear()
        return mark

    def found(self, body: Body) -> Iterator[Path]:
        """The path of each part of an object that is hidden."""
        redacted = self.body(body)
        if redacted != body:
            yield from _differing(body, redacted)

    def marked(self, value: Any) -> Any:
        """Every text in it is hidden; its form stays."""
        if isinstance(value, Mapping):
            return {key: self.marked(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.marked(item) for item in value]
        return self.mark(value) if isinstance(value, str) and value else value

    def mark(self, text: str) -> str:
        """The mark of one value; a mark is its own."""
        return text if is_mark(text) else self.mark_of(text.encode())

    def mark_of(self, content: bytes) -> str:
        return self._mark_of(self._numbers.setdefault(content, len(self._numbers) + 1))

    def _content(self, path: Path, value: Any) -> Any:
        if isinstance(value, str) and value and not is_mark(value):
            return self.mark_of(content_of(path, value))
        return self.marked(value)

    def _pair(self, value: dict[Any, Any]) -> dict[Any, Any]:
        """An entry of a list of names and values, such as environment variables, or of fields that are on loan."""
        if {"apiVersion", "kind", "path", "value"} <= value.keys() and str(value["path"]).startswith("/"):
            return {**value, "value": self._lent(value)}
        named = value.get("name", value.get("key"))
        if isinstance(named, str) and "value" in value and self.rules.is_secret(named):
            return {**value, "value": self.value(value["value"], named)}
        return value

    def _lent(self, loan: Mapping[str, Any]) -> Any:
        """The original value of a field, as `status.borrowed` keeps it."""
        path = tuple(step.replace("~1", "/").replace("~0", "~") for step in str(loan["path"]).split("/")[1:])
        return self.field(str(loan["apiVersion"]), str(loan["kind"]), path, loan["value"])

    def _items(self, items: list[Any] | tuple[Any, ...]) -> list[Any]:
        """A command may stand in a list, word by word: an option's value is known by the word before it."""
        redacted = [self.value(item) for item in items]
        if len(items) < 2 or not all(isinstance(item, str) for item in items):
            return redacted
        flat = _WORD_END.join(map(_flat, items))
        words = (shown := redact_text(flat, self.rules, _hide)).split(_WORD_END)
        if (shown == flat and redacted == [*items]) or len(words) != len(items):
            return redacted
        alone = [redact_text(_flat(item), self.rules, _hide) for item in items]
        return [
            item if word == own else self.mark(whole)
            for item, word, own, whole in zip(redacted, words, alone, items, strict=True)
        ]


_WORD_END = " \x1f "


def _flat(item: str) -> str:
    """A word of a command as one word."""
    return re.sub(r"\s", "\x1e", item) if item else "''"


def _hide(_: str) -> str:
    return REDACTED


def is_mark(text: str) -> bool:
    """True if the text is a mark, of whatever output."""
    return re.fullmatch(_MARK, text) is not None


def is_redacted(text: str) -> bool:
    """True if there is a mark in the text."""
    return REDACTED in text and _REDACTED.search(text) is not None


def content_of(path: Path, value: Any) -> bytes:
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


def _differing(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(before, str):
        if before != after:
            yield path
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for key, item in before.items():
            yield from _differing(item, after.get(key), (*path, key))
    elif isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        for index, item in enumerate(before):
            yield from _differing(item, after[index], (*path, index))
    elif before != after:
        yield path
