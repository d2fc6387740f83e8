"""Where a journal's decisions would differ today: schemas/replay.json. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reconcile.loop.replay import Replayed
from reconcile.report.progress import Model

_LONGEST = 200


def replay_of(journal: str, lines: Iterable[Replayed]) -> Model:
    """`same` is False also where a line could not be replayed, or none was there."""
    found = list(lines)
    return {
        "journal": journal,
        "replayed": sum(1 for line in found if line.problem is None),
        "same": bool(found) and not any(line.differs or line.problem for line in found),
        "lines": [_line(line) for line in found if line.differs or line.problem],
    }


def replay_lines(model: Model) -> Iterator[str]:
    for line in model["lines"]:
        where = " ".join(part for part in (f"{model['journal']}:{line['line']}:", line["time"], line["plan"]) if part)
        yield f"{where} {line['problem'] or 'differs'}"
        for part in line["differs"]:
            yield f"  {part['part']}: was {_short(part['was'])}"
            yield f"  {' ' * len(part['part'])}  now {_short(part['now'])}"
    differing = sum(1 for line in model["lines"] if line["differs"])
    yield f"{model['replayed']} decisions replayed, {differing} differ"


def _line(line: Replayed) -> Model:
    return {
        "line": line.line,
        "time": line.time,
        "plan": line.plan,
        "problem": line.problem or "",
        "differs": [
            {"part": place, "was": before, "now": after}
            for part, was, now in line.differs
            for place, before, after in _pairs(part, was, now)
        ],
    }


def _pairs(part: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parts of a mapping that differ, one level down; else the whole."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        yield part, was, now
        return
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            yield f"{part}.{key}", was.get(key), now.get(key)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
