"""Writes text that all YAML readers read with the same types: one way to write each value, no aliases, no wrapping,
LF."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import yaml
from yaml.cyaml import CEmitter  # type: ignore[attr-defined]

_TEXT = "tag:yaml.org,2002:str"
_WORDS = {
    "", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nil", "none", "~", "=", "<<",
    *(f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "nan")),
}  # fmt: skip
_LONGEST_WORD = max(map(len, _WORDS))
_NUMBER_BEGINS = frozenset("+-._0123456789eE")
_NUMBER = re.compile(r"[-+]?(?:[._]*[0-9][0-9a-fexobtz_,.:+\- ]*|\.?_*e[-+]?[0-9]+|\.?_+)|[-+]\.")
_FOLDED = "[\u0085\u2028\u2029\ufeff]"
_BLOCK = r"[\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*"
_LAYOUT = {ord(character): None for character in "\t\n"}
_RESOLVER = yaml.resolver.Resolver()
_MAPPING_STARTS = yaml.MappingStartEvent(anchor=None, tag=None, implicit=True, flow_style=False)
_MAPPING_ENDS = yaml.MappingEndEvent()
_SEQUENCE_STARTS = yaml.SequenceStartEvent(anchor=None, tag=None, implicit=True, flow_style=False)
_SEQUENCE_ENDS = yaml.SequenceEndEvent()


def dump(value: Any) -> str:
    """One document as text. Keys keep their order. Raises `TypeError` for what is not a JSON-like value."""
    events = [yaml.StreamStartEvent(), yaml.DocumentStartEvent(explicit=False)]
    _emit(value, events)
    events += [yaml.DocumentEndEvent(explicit=False), yaml.StreamEndEvent()]
    text = yaml.emit(events, Dumper=CEmitter, allow_unicode=True, width=2**31 - 1, line_break="\n")
    return str(text)


def _emit(value: Any, events: list[yaml.Event]) -> None:
    """Adds the value's events. A value is known by its exact type, and written out wherever it stands."""
    kind = type(value)
    if kind is dict:
        events.append(_MAPPING_STARTS)
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError("a key is not a string")
            events.append(_text(key))
            _emit(item, events)
        events.append(_MAPPING_ENDS)
    elif kind is list or kind is tuple:
        events.append(_SEQUENCE_STARTS)
        for item in value:
            _emit(item, events)
        events.append(_SEQUENCE_ENDS)
    else:
        emit = _SCALARS.get(kind)
        if emit is None:
            raise TypeError(f"{kind.__name__} is not a JSON-like value")
        events.append(emit(value))


@lru_cache(maxsize=8192)
def _text(text: str) -> yaml.Event:
    """Keys and values of manifests repeat a lot."""
    plain = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT  # type: ignore[no-untyped-call]
    return yaml.ScalarEvent(None, _TEXT, (plain, True), text, style=_style(text))


def _is_retyped(text: str) -> bool:
    """True if some reader would take the text, written plain, for a number, a truth value or nothing."""
    if text[:1] in _NUMBER_BEGINS and _NUMBER.fullmatch(text.lower()):
        return True
    return len(text) <= _LONGEST_WORD and text.lower() in _WORDS


def _style(text: str) -> str | None:
    if _is_retyped(text) or (not text.isascii() and re.search(_FOLDED, text)):
        return '"'
    if "\n" not in text:
        return None
    plain = text.strip("\n") and text[0] not in " \n\t" and not _ends_in_space(text)
    return "|" if plain and _is_block(text) else '"'


def _ends_in_space(text: str) -> bool:
    """True if a line of it does."""
    return text[-1] in " \t" or " \n" in text or "\t\n" in text


def _is_block(text: str) -> bool:
    """True if every character may stand in a block of text."""
    if text.isascii():
        return text.translate(_LAYOUT).isprintable()
    return re.fullmatch(_BLOCK, text) is not None


def _plain(text: str) -> yaml.Event:
    return yaml.ScalarEvent(None, None, (True, False), text)


def _float(value: float) -> yaml.Event:
    if not math.isfinite(value):
        raise TypeError(f"{value} is not a number that JSON has")
    if value.is_integer() and abs(value) < 1e15:
        return _plain(str(int(value)))
    text = repr(value)
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")  # a reader by YAML 1.1 requires the point
    return _plain(text)


_SCALARS: Mapping[type, Callable[[Any], yaml.Event]] = {
    str: _text,
    bool: lambda value: _plain("true" if value else "false"),
    int: lambda value: _plain(str(value)),
    float: _float,
    type(None): lambda value: _plain("null"),
}
