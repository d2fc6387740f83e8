"""What may stand in those fields of a kubeconfig that we read, as a table; fields that nobody reads are left alone.

kubectl decodes the file into Go types and so refuses another kind of value as well. No message shows a value.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconcile.cluster.wire import header_fault, token_fault, url_fault
from renderer.model.path import Path

SERVER_SCHEMES = ("https", "http")
PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
PROXY_REMEDY = "write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong at `path` below the value that was looked at, and how to mend it."""

    path: Path = ()
    message: str
    remedy: str


Rule = Callable[[Any], Iterator[Fault]]
"""All that is wrong with a value. None is no fault, as for Go: the field counts as left out."""


def _is(wanted: type, words: str, remedy: str) -> Rule:
    def rule(value: Any) -> Iterator[Fault]:
        if value is not None and not isinstance(value, wanted):
            yield Fault(message=f"is {_found(value)}; {words} is wanted", remedy=remedy)

    return rule


def _text(fault: Callable[[str], str | None], remedy: str) -> Rule:
    """A text in which the function finds nothing wrong. An empty one counts as left out."""

    def rule(value: Any) -> Iterator[Fault]:
        yield from _TEXT(value)
        if isinstance(value, str) and value and (message := fault(value)):
            yield Fault(message=message, remedy=remedy)

    return rule


def _one_of(*words: str) -> Rule:
    return _text(
        lambda text: None if text in words else f"is none of {', '.join(words)}", f"write {' or '.join(words)}"
    )


def _list(item: Rule) -> Rule:
    def present(value: Any) -> Iterator[Fault]:
        if value is None:
            yield Fault(message="has no value", remedy="give it a value, or remove the item")
        yield from item(value)

    return _parts(_LIST, enumerate, lambda index: present)


def _mapping(rules: Mapping[str, Rule], required: Sequence[str] = ()) -> Rule:
    fields = _parts(_MAPPING, Mapping.items, rules.get)

    def rule(value: Any) -> Iterator[Fault]:
        yield from fields(value)
        for name in required if isinstance(value, Mapping) else ():
            if not value.get(name):
                yield Fault(path=(name,), message="is missing", remedy=f"add {name}")

    return rule


def _mapping_to(values: Rule) -> Rule:
    return _parts(_MAPPING, Mapping.items, lambda key: values)


def _parts(whole: Rule, steps: Callable[[Any], Any], rule_for: Callable[[Any], Rule | None]) -> Rule:
    def rule(value: Any) -> Iterator[Fault]:
        wrong = tuple(whole(value))
        yield from wrong
        for step, part in () if wrong or value is None else steps(value):
            for fault in (rule_for(step) or _anything)(part):
                yield replace(fault, path=(step, *fault.path))

    return rule


def _anything(value: Any) -> Iterator[Fault]:
    return iter(())


def _found(value: Any) -> str:
    return next(words for kind, words in _FOUND if isinstance(value, kind))


def _base64_fault(text: str) -> str | None:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return "is not base64"
    return None


_FOUND: Sequence[tuple[type, str]] = (
    (str, "text"),
    (bool, "true or false"),
    (list, "a list"),
    (dict, "a mapping"),
    (object, "a number"),
)
_TEXT = _is(str, "text", "write it as text, in quotes")
_BOOLEAN = _is(bool, "true or false", "write true or false, without quotes")
_LIST = _is(list, "a list", "write each item on a line of its own that begins with a dash")
_MAPPING = _is(dict, "a mapping", "write key: value lines below it")
_BASE64 = _text(_base64_fault, "write what `base64 -w0 FILE` prints")
_HEADER = _text(header_fault, "write it anew, without that character")

_EXEC = _mapping(
    {
        "apiVersion": _TEXT,
        "command": _TEXT,
        "args": _list(_TEXT),
        "env": _list(_mapping({"name": _TEXT, "value": _TEXT}, required=("name",))),
        "installHint": _TEXT,
        "interactiveMode": _one_of("Never", "IfAvailable", "Always"),
        "provideClusterInfo": _BOOLEAN,
    },
    required=("command",),
)

RULES: Mapping[str, Rule] = {
    "context": _mapping({"cluster": _TEXT, "user": _TEXT, "namespace": _TEXT}),
    "cluster": _mapping(
        {
            "server": _text(lambda text: url_fault(text, SERVER_SCHEMES), "write it as https://HOST:PORT"),
            "certificate-authority": _TEXT,
            "certificate-authority-data": _BASE64,
            "insecure-skip-tls-verify": _BOOLEAN,
            "tls-server-name": _TEXT,
            "proxy-url": _text(lambda text: url_fault(text, PROXY_SCHEMES), PROXY_REMEDY),
            "extensions": _list(_mapping({"name": _TEXT})),
        }
    ),
    "user": _mapping(
        {
            "token": _text(token_fault, "write the token anew, on one line and without anything around it"),
            "tokenFile": _TEXT,
            "username": _TEXT,
            "password": _TEXT,
            "client-certificate": _TEXT,
            "client-certificate-data": _BASE64,
            "client-key": _TEXT,
            "client-key-data": _BASE64,
            "as": _HEADER,
            "as-uid": _HEADER,
            "as-groups": _list(_HEADER),
            "as-user-extra": _mapping_to(_list(_HEADER)),
            "auth-provider": _MAPPING,
            "exec": _EXEC,
        }
    ),
}
"""By the kind of entry."""
