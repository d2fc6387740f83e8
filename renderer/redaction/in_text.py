"""Finds secrets in a text, and replaces each of them where it stands: the rest of a message stays readable.

A text that was redacted already stays as it is, and so does what is built of redacted parts: a replay relies on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from renderer.redaction.listed import RedactionRules

Mark = Callable[[str], str]
"""Gives what is shown in place of a secret."""

_USER = (
    r"(?i)(?P<scheme>\bhttps?://)(?P<user>[^\s/?#\"<>]+)@"
    r"|(?P<other>\b[a-z][a-z0-9+.-]*://)(?P<pair>[^\s/?#:@\"<>]*:[^\s/?#\"<>]+)@"
    r"|(?P<slashed>\b[a-z][a-z0-9+.-]*://)(?P<odd>[^\s/?#:@\"<>]*:(?!\d{1,5}(?:[/?#]|$))[^\s\"<>]{0,2047}?)@"
)
"""The user part of an address. A password may have any sign in it, as people write them."""
_ADDRESS = r"(?i)(\b[a-z][a-z0-9+.-]*://)(?:[^\s/?#]*@)?([^\s?#]*)(?:[?#]\S*)?"
_PARAMETER = re.compile(
    r"(?P<head>(?:[?&#;]|\\u0026|&amp;|%26)(?P<name>[A-Za-z][\w.-]{0,99})(?:=|%3D))(?P<secret>[^&#\s\"'<>\\,]+)"
)
_OPAQUE = r"(?=[\w+/=%.~-]*\d)(?=[\w+/=%.~-]*[A-Za-z])[\w+/=%~-]{24,}(?:\.[\w+/=%~-]+)*"
"""A long value that is not a word, in the query of an address."""
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(?P<name>[A-Za-z][\w.-]{0,99})(?P<head>[\\"']*[ \t]*[:=])"""
    r"""(?:(?P<gap>[ \t]*)(?:"(?P<double>(?:\\.|[^"\\])*)|'(?P<single>(?:[^']|'')*)"""
    r"""|(?P<quote>\\+["'])(?P<escaped>.*?)(?=(?<!\\)(?P=quote)|\Z)))?"""
)
"""A name, and its value if that stands in quotes; `_bare` reads the others."""
_FLAG = re.compile(
    r"""(?<![\w-])--?(?P<name>[A-Za-z][\w-]{0,99})(?:[\s=]+"(?P<double>(?:\\.|[^"\\])*)|[\s=]+'(?P<single>[^']*)"""
    r"""|\\*["'][\s,]*\\*["'](?P<item>[^"'\\]+)|[\s=]+(?P<bare>[^\s"'=-][^\s"']*))"""
)
_TOLD = r"""(?<![\w-])(?P<name>[A-Za-z][\w./-]{0,99})["'\]]* (?:of [^;\n]{1,200}? )?is (?=['"])[^;\n]*"""
"""`spec.token is 'x', expected 'y'`: what a probe says of a field, to the end of the clause."""
_QUOTED = r"""'(?P<single>(?:\\.|[^'\\])*)'|"(?P<double>(?:\\.|[^"\\])*)\""""
_OBJECT = r"\b(?:Node |[A-Z]\w+ [\w.-]+/|[A-Z][A-Za-z0-9]+/(?:[A-Z][A-Za-z0-9]+/)?)$"
"""`Secret default/`, `Node `, `Phase/` or `Phase/Step/` before a name: that of an object or a step, and no field."""
_LINE = r"[\w.-]+\.(?:j2|json|ya?ml):\d+: "
"""`token.yaml.j2:1: ` before a message."""
_LITERAL = r"(?:true|false|null|\{\}|\[\])(?=[\s,;})\]]|$)"


def redact_text(text: str, rules: RedactionRules, mark: Mark) -> str:
    """The text with a mark for each secret."""
    if rules.forms.search(text):
        for pattern in rules.patterns:
            text = re.sub(pattern, lambda found: _marked(found, mark), text)
    if any(name in text for name in rules.programs):
        for command in rules.commands:
            text = re.sub(command.programs, partial(_options, command.option, mark), text)
    if "://" in text:
        text = re.sub(_USER, lambda found: _marked(found, mark), text)
    if "=" in text or "%3D" in text:
        text = _PARAMETER.sub(lambda found: _parameter(found, rules, mark), text)
    if "-" in text:
        text = _FLAG.sub(lambda found: _marked(found, mark) if rules.is_secret(found["name"]) else found[0], text)
    if " is '" in text or ' is "' in text:
        text = re.sub(_TOLD, lambda found: _told(found, rules, mark), text)
    return _assigned(text, rules, mark) if ":" in text or "=" in text else text


def bare_address(text: str) -> str:
    """Addresses without what may be secret: no user, no password, no query."""
    return re.sub(_ADDRESS, r"\1\2", text) if "://" in text else text


_SECRETS = ("secret", "user", "pair", "odd", "double", "single", "escaped", "item", "bare")
"""Groups of which one has the secret; without such a group it is the whole match."""


def _marked(found: re.Match[str], mark: Mark) -> str:
    """The text that was found, with a mark in place of its secret."""
    groups = found.groupdict()
    name = next((name for name in _SECRETS if groups.get(name) is not None), None)
    if name is None:
        return mark(found[0])
    start, end = (position - found.start() for position in found.span(name))
    return f"{found[0][:start]}{mark(found[name])}{found[0][end:]}" if found[name] else found[0]


def _options(option: str, mark: Mark, command: re.Match[str]) -> str:
    return re.sub(option, lambda found: _marked(found, mark), command[0])


def _parameter(found: re.Match[str], rules: RedactionRules, mark: Mark) -> str:
    is_secret = rules.is_secret_parameter(found["name"]) or re.fullmatch(_OPAQUE, found["secret"])
    return f"{found['head']}{mark(found['secret'])}" if is_secret else found[0]


def _told(found: re.Match[str], rules: RedactionRules, mark: Mark) -> str:
    """The clause with a mark for each value, if its field is secret."""
    name = last_name(found["name"])
    head = found[0].index(" is ")
    return found[0][:head] + without_quoted(found[0][head:], name, mark) if rules.is_secret(name) else found[0]


def last_name(path: str) -> str:
    """The field at the end of a path: `callsign` of `metadata.labels["callsign"]`."""
    return path.rstrip("\"']").rpartition(".")[2].rpartition('"')[2]


def without_quoted(text: str, name: str, mark: Mark) -> str:
    """The text with a mark for everything in quotes but the name itself."""
    return re.sub(_QUOTED, lambda found: found[0] if found[0][1:-1] == name else _marked(found, mark), text)


def _assigned(text: str, rules: RedactionRules, mark: Mark) -> str:
    """`password: x`, `"token":"x"`, `API_KEY=x`."""
    done, position = [], 0
    while found := _ASSIGNED.search(text, position):
        if not rules.is_secret(found["name"]) or _is_place(text, found):
            done.append(text[position : found.end("head")])
            position = found.end("head")
            continue
        done.append(text[position : found.start()])
        if found["gap"] is not None:
            done.append(_marked(found, mark))
            position = found.end()
            continue
        end = _bare(text, found)
        start = found.end("head") + len(text[found.end("head") : end]) - len(text[found.end("head") : end].lstrip())
        done.append(text[found.start() : start])
        done.append(mark(text[start:end]) if end > start else "")
        position = end
    return "".join([*done, text[position:]])


def _is_place(text: str, found: re.Match[str]) -> bool:
    """True if the name is that of an object, or of a file with the line after it, and no field."""
    if re.search(_OBJECT, text[max(0, found.start() - 99) : found.start()]):
        return True
    return re.match(_LINE, text[found.start() :]) is not None


def _bare(text: str, found: re.Match[str]) -> int:
    """The end of a value without quotes: after a colon with its line or block, after `=` with the word. Nothing where a
    literal, or nothing at all, stands there."""
    start = found.end("head")
    if found["head"].endswith("="):
        gap = r"[ \t]*" if found["head"][0] in " \t" else ""  # `name = value`, as configuration files have it
        match = re.compile(gap + r"[^\s\"'&\\]*").match(text, start)
    elif literal := re.compile(r"[ \t]*" + _LITERAL).match(text, start):
        return literal.start()
    elif re.compile(r"[ \t]*(?:[|>][+-]?\d*|[&!]\S+)?[ \t]*\n").match(text, start):
        match = _block(text, found)
    else:
        match = re.compile(r"[^\n]*").match(text, start)
    return match.end() if match else start


def _block(text: str, found: re.Match[str]) -> re.Match[str] | None:
    """The lines below the name that are indented deeper than it."""
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    depth = len(line) - len(line.lstrip(" -"))
    return re.compile(rf"[^\n]*(?:\n(?:[ \t]*(?=\n|$)|[ ]{{{depth + 1},}}[^\n]*))*").match(text, found.end("head"))
