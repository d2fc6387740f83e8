"""One log line for each thing that happens: JSON for machines, `key=value` on a terminal. Never an object's body.

Each has a level. Lines about a plan say its phase, and the step, the node and the object where there is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, TextIO

from renderer.redaction import Redactor

Log = Callable[[str, Mapping[str, Any]], None]
"""Takes what happened, and its fields."""


class LogLevel(IntEnum):
    """Levels in their order. A field `level` of a line is one of these names in lower case."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


LEVELS: Mapping[str, LogLevel] = {
    "round": LogLevel.DEBUG,
    "away": LogLevel.WARNING,
    "log collector not scaled": LogLevel.WARNING,
    "not checked": LogLevel.WARNING,
    "not ready": LogLevel.WARNING,
    "warning": LogLevel.WARNING,
    "webhook not ready": LogLevel.WARNING,
    "bug": LogLevel.ERROR,
    "not decided": LogLevel.ERROR,
    "refused": LogLevel.ERROR,
}
"""The level of a line by what happened, unless its fields have one; INFO for all others."""

_PLAIN = re.compile(r"[^\s\"=]+")


def json_lines(stream: TextIO, now: Callable[[], datetime], least: LogLevel = LogLevel.INFO) -> Log:
    """A JSON object a line; none below the level `least`."""

    def written(level: LogLevel, what: str, fields: Mapping[str, Any]) -> str:
        line = {"time": now().isoformat(timespec="milliseconds"), "level": level.name.lower(), "msg": what, **fields}
        return json.dumps(line, ensure_ascii=False, default=str)

    return _lines(stream, written, least)


def text_lines(stream: TextIO, now: Callable[[], datetime], least: LogLevel = LogLevel.INFO) -> Log:
    """Time, level, what happened and `key=value`; none below the level `least`."""

    def written(level: LogLevel, what: str, fields: Mapping[str, Any]) -> str:
        said = " ".join(f"{key}={_short(value)}" for key, value in fields.items() if value not in (None, "", [], ()))
        return f"{now():%H:%M:%S} {level.name:<7} {what} {said}".rstrip()

    return _lines(stream, written, least)


def _lines(stream: TextIO, written: Callable[[LogLevel, str, Mapping[str, Any]], str], least: LogLevel) -> Log:
    def log(what: str, fields: Mapping[str, Any]) -> None:
        level = fields.get("level", LEVELS.get(what, LogLevel.INFO))
        if level >= least:
            others = {key: value for key, value in fields.items() if key != "level"}
            stream.write(f"{written(level, what, others)}\n")
            stream.flush()

    return log


def redacted(log: Log, redactor: Redactor) -> Log:
    """The same without what is secret."""

    def log_redacted(what: str, fields: Mapping[str, Any]) -> None:
        level = {"level": fields["level"]} if "level" in fields else {}
        shown = redactor.value({key: value for key, value in fields.items() if key != "level"})
        log(what, {**shown, **level})

    return log_redacted


def _short(value: Any) -> str:
    text = "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
