"""The list of what is secret, read from documents that have passed `schemas/redaction-rules.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.model.path_rule import PathRule, path_rule
from renderer.model.ref import Body


@frozen
class CommandRule:
    """Programs, and what stands before a value of theirs that is secret: options, or `NAME=`; as regular expressions.
    Most runs never compile them."""

    programs: str
    option: str


@frozen
class RedactionRules:
    """`names` and `harmless` are of names as `plain_name` gives them, `parameters` are more names for the query of an
    address. `copies` and `copy_names` are annotations that repeat a whole object. `programs` are the names of all
    commands, `forms` finds any of the patterns: most texts have neither. What most runs never need is not compiled."""

    names: re.Pattern[str]
    harmless: str
    parameters: str
    contents: frozenset[str]
    copies: frozenset[str]
    copy_names: str
    kinds: tuple[PathRule, ...]
    commands: tuple[CommandRule, ...]
    programs: tuple[str, ...]
    patterns: tuple[str, ...]
    forms: re.Pattern[str]
    _known: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    def is_secret(self, name: str) -> bool:
        """True if the value of a field, variable or option of this name is secret."""
        found = self._known.get(name)
        if found is None:
            plain = plain_name(name)
            found = self._known[name] = self.names.search(plain) is not None and not re.search(self.harmless, plain)
        return found

    def is_secret_parameter(self, name: str) -> bool:
        return self.is_secret(name) or re.search(self.parameters, plain_name(name)) is not None

    def is_copy(self, annotation: str) -> bool:
        """True if an annotation of this name repeats a whole object."""
        return annotation in self.copies or re.search(self.copy_names, _dashed(annotation)) is not None

    def copies_in(self, body: Body) -> tuple[str, ...]:
        """The annotations of an object that repeat a whole object."""
        metadata = body.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
        return tuple(filter(self.is_copy, annotations)) if isinstance(annotations, Mapping) else ()

    def paths_for(self, body: Body) -> tuple[Path, ...]:
        """The secret paths of the object's kind."""
        return tuple(path for rule in self.kinds if rule.applies_to(body) for path in rule.paths)


def redaction_rules(documents: Iterable[Mapping[str, Any]]) -> RedactionRules:
    """The rules of all documents together, whose patterns have been checked. Raises ValueError for an unusable path."""
    merged: dict[str, list[Any]] = {key: [] for key in _KEYS}
    for document in documents:
        for key in _KEYS:
            merged[key] += document.get(key, ())
    return RedactionRules(
        names=re.compile(_any(merged["names"])),
        harmless=_any(merged["harmless"]),
        parameters=_any(merged["parameters"]),
        contents=frozenset(merged["contents"]),
        copies=frozenset(merged["copies"]),
        copy_names=_any(merged["copyNames"]),
        kinds=tuple(map(path_rule, merged["kinds"])),
        commands=tuple(map(_command, merged["commands"])),
        programs=tuple(name for item in merged["commands"] for name in item["names"]),
        patterns=tuple(merged["patterns"]),
        forms=re.compile(_any(text.replace("(?P<secret>", "(?:") for text in merged["patterns"])),
    )


_KEYS = ("names", "harmless", "parameters", "contents", "copies", "copyNames", "kinds", "commands", "patterns")


def rules_of_overlay(document: Mapping[str, Any]) -> RedactionRules:
    """The rules of one document. Raises ValueError for an invalid pattern."""
    for text in (text for key in _PATTERNS for text in document.get(key, ())):
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"pattern {text!r} is not a regular expression: {error}") from error
    return redaction_rules([document])


_PATTERNS = ("names", "harmless", "parameters", "copyNames", "patterns")


def _any(patterns: Iterable[str]) -> str:
    """All patterns in one. No patterns match nothing."""
    return "|".join(f"(?:{text})" for text in patterns) or r"(?!)"


def _command(item: Mapping[str, Any]) -> CommandRule:
    """A program to the end of its command; quotes may hold what would end it."""
    names = "|".join(map(re.escape, item["names"]))
    rest = r"""(?:\\\n|"(?:\\.|[^"\\])*"|'[^']*'|[^\n|;"']|["'])*"""
    return CommandRule(
        programs=rf"(?<![\w-])(?:{names})(?![\w-]){rest}",
        option=rf"(?<![\w-])(?:{'|'.join(_before_values(item))}){_VALUE}",
    )


def _before_values(item: Mapping[str, Any]) -> Iterator[str]:
    yield from map(_option, item.get("options", ()))
    if item.get("values"):
        yield r"[A-Za-z_][\w.-]*(?==)"


def _option(option: str) -> str:
    """A letter may stand at the end of others: `-sSu`."""
    return re.escape(option) if option.startswith("--") else f"-[A-Za-z]*{re.escape(option[1:])}"


_VALUE = (
    r"""(?:\\*["']\s*,\s*\\*["'](?P<item>[^"'\\]+)|[\s=]*"(?P<double>(?:\\.|[^"\\])*)"|[\s=]*'(?P<single>[^']*)'"""
    r"""|[\s=]*(?P<bare>[^\s"'=][^\s"']*))"""
)
"""The next item of a list in JSON, quoted, or bare."""


def plain_name(name: str) -> str:
    """`sshKey`, `SSH_KEY` and `ssh.key` alike: `ssh-key`."""
    return re.sub(r"[^A-Za-z0-9]+", "-", _dashed(name)).lower()


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
