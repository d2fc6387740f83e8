"""The waits of a run: each once, from its beginning to the first moment at which it was over."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reconcile.report_page.recorded_run import RecordedRun, RunMoment, Words
from reconcile.report_page.timeline import RunTimes

Model = dict[str, Any]

_Key = tuple[str, str, str]
"""Step, node, and since when; if the start is unknown, the text."""


def waits_of_run(run: RecordedRun, times: RunTimes) -> list[Model]:
    """In the order in which they began. What was over within a second is left out."""
    found: dict[_Key, Model] = {}
    open_: set[_Key] = set()
    for moment in run.moments:
        now = {_key(wait): wait for wait in moment.waits}
        for key in open_ - now.keys():
            found[key]["ended"] = times.at(moment.time)
        for key, wait in now.items():
            began = found[key]["began"] if key in found else _began(wait, moment, times)
            found[key] = {**_wait(wait), "began": began, "ended": None}
        open_ = set(now)
    for key in open_ if times.over else ():
        found[key]["ended"] = times.took
    kept = (wait for wait in found.values() if (times.took if wait["ended"] is None else wait["ended"]) > wait["began"])
    return sorted(kept, key=lambda wait: (wait["began"], wait["step"]))


def blocked_checks(run: RecordedRun, times: RunTimes) -> list[Model]:
    """The pre-flight checks because of which a step did not begin, each with the time when it was first met."""
    found: dict[tuple[str, str], Model] = {}
    for moment in run.moments:
        for wait in moment.waits:
            if check := wait.get("check"):
                found.setdefault((check["id"], wait.get("node") or ""), _check(wait, times.at(moment.time)))
    return list(found.values())


def _check(wait: Words, at: int) -> Model:
    check = wait["check"]
    return {
        "check": check["id"],
        "title": check["title"],
        "node": wait.get("node") or "",
        "at": at,
        "unknown": bool(wait["unknown"]),
        "found": list(check["found"]),
        "remedies": list(check["remedies"]),
    }


def _key(wait: Words) -> _Key:
    return (wait["step"], wait.get("node") or "", wait["since"] or _text(wait))


def _began(wait: Words, moment: RunMoment, times: RunTimes) -> int:
    return times.at(datetime.fromisoformat(wait["since"]) if wait["since"] else moment.time)


def _wait(wait: Words) -> Model:
    return {
        "step": wait["step"],
        "node": wait.get("node") or "",
        "text": _text(wait),
        "slow": bool(wait["slow"]),
        "unknown": bool(wait["unknown"]),
    }


def _text(wait: Words) -> str:
    if check := wait.get("check"):
        return "; ".join([f"{check['id']}: {check['title']}", *check["found"]])
    return str(wait["summary"] or wait["text"])
