"""One log line for each thing that happens: JSON for machines, plain words on a terminal. Never an object's body."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TextIO

from reconcile.loop.round import Round
from renderer.redaction import Redactor

Tell = Callable[[str, Mapping[str, Any]], None]


def json_lines(stream: TextIO, now: Callable[[], datetime]) -> Tell:
    def tell(what: str, fields: Mapping[str, Any]) -> None:
        line = {"time": now().isoformat(timespec="milliseconds"), "msg": what, **fields}
        stream.write(f"{json.dumps(line, ensure_ascii=False, default=str)}\n")
        stream.flush()

    return tell


def text_lines(stream: TextIO, now: Callable[[], datetime]) -> Tell:
    def tell(what: str, fields: Mapping[str, Any]) -> None:
        said = " ".join(f"{key}={_short(value)}" for key, value in fields.items() if value not in (None, "", [], ()))
        stream.write(f"{now():%H:%M:%S} {what} {said}".rstrip() + "\n")
        stream.flush()

    return tell


def redacted(tell: Tell, redactor: Redactor) -> Tell:
    """The same without what is secret."""

    def tell_redacted(what: str, fields: Mapping[str, Any]) -> None:
        tell(what, redactor.value(fields))

    return tell_redacted


class RoundLog:
    """Logs rounds that did something, and waits that are new."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._waits: dict[str, tuple[str, ...]] = {}

    def __call__(self, done: Round) -> None:
        decision = done.decision
        if decision is None:
            if done.problems:
                self._tell("not decided", {"plan": done.name, "problems": list(done.problems)})
            return
        waits = tuple(wait.words for wait in decision.waits)
        if not done.results and waits == self._waits.get(done.name) and not decision.events:
            return
        self._waits[done.name] = waits
        self._tell(
            "round",
            {
                "plan": done.name,
                "phase": decision.status.phase,
                "did": [described(result.action) for result in done.results if not result.problem],
                "problems": [result.problem for result in done.results if result.problem],
                "waits": [_times(text, count) for text, count in Counter(waits).items()],
            },
        )


def described(action: object) -> str:
    """An action in a few words: what, and on which object."""
    ref = getattr(action, "ref", None) or getattr(getattr(action, "manifest", None), "ref", "")
    return f"{type(action).__name__} {ref}".strip()


def _times(text: str, count: int) -> str:
    """The text of a wait, with the number of nodes that share it."""
    return text if count == 1 else f"{text} ({count} times)"


def _short(value: Any) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
