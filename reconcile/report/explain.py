"""Explains why a plan waits, in the words of what blocks it, and what to do about it: schemas/explain.json."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from reconcile.diagnosis.situation import Cause, kubectl
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.round import Round
from reconcile.loop.round_causes import diagnose_round
from reconcile.report.causes_found import cause_lines, cause_model
from reconcile.report.progress import Model, progress_of
from reconcile.report.progress_view import wait_lines
from reconcile.report.ways_out import ways_out, ways_out_lines, ways_out_model
from reconcile.status.plan import FAILED, SUCCEEDED
from reconcile.status.times import time_text
from renderer.errors import Problem


def explanation_of(done: Round, parts: ReconcilerDeps, now: datetime) -> Model:
    """Looks around and searches. Raises `Away` and its like; what could not be read is listed as unread."""
    found = diagnose_round(done, parts, now)
    causes = (*map(partial(_unrendered, done.name), done.unrendered), *found.causes)
    progress = progress_of(done, now)
    kept = ("plan", "phase", "message", "waits", "at")
    return {
        **{key: progress[key] for key in kept},
        "problems": [] if done.unrendered else progress["problems"],  # they are causes
        "failed": progress["phase"] == FAILED,
        "causes": [cause_model(cause) for cause in causes],
        "unread": list(found.unread),
        "waysOut": ways_out_model(ways_out(done)),
        "next": _next(progress, done, causes),
    }


def absence_of(plan: str, why: str, now: datetime) -> Model:
    """The same where the API server does not answer."""
    cause = Cause(
        object="API server",
        what=f"is unavailable: {why}",
        remedy="this is normal for some minutes during its own upgrade, and no timeout counts meanwhile; try again",
    )
    return {
        "plan": plan,
        "phase": "",
        "message": "the API server is unavailable",
        "waits": [],
        "problems": [],
        "at": time_text(now),
        "failed": False,
        "causes": [cause_model(cause)],
        "unread": [],
        "waysOut": [],
        "next": f"upgradeplan explain {plan}".strip(),
    }


def explanation_lines(model: Model) -> Iterator[str]:
    said = [text for text in (model["phase"], model["message"]) if text] or ["not started"]
    yield ": ".join([model["plan"] or "UpgradePlan", *said])
    yield from wait_lines(model)
    yield from cause_lines(model)
    for problem in model["problems"]:
        yield f"  problem: {problem}"
    for text in model["unread"]:
        yield f"  not checked: {text}"
    if model["failed"]:
        yield from ways_out_lines(model["waysOut"])
    if model["next"]:
        yield f"  next: {model['next']}"


def _unrendered(plan: str, problem: Problem) -> Cause:
    return Cause(
        object=f"UpgradePlan {plan}",
        what=f"cannot be rendered: {replace(problem, remedy=None)}",
        remedy=problem.remedy or f"kubectl describe upgradeplan {plan}",
    )


def _next(progress: Model, done: Round, causes: tuple[Cause, ...]) -> str:
    """The first cause's remedy, unless that is patience and something takes too long; else the object that knows more,
    and for a plan that is well what `status` says, or to follow it. It never leads to somebody who sends back here."""
    waits = done.decision.waits if done.decision else ()
    patient = {cause.node for cause in causes if cause.patient}
    slow = [wait for wait in waits if (wait.slow or wait.unknown) and wait.node not in patient]
    if causes and not (causes[0].patient and slow):
        return causes[0].remedy
    if slow and slow[0].refs:
        return kubectl("describe", slow[0].refs[0])
    if progress["phase"] == FAILED or slow or done.problems:
        return f"kubectl describe upgradeplan {progress['plan']}"
    if progress["phase"] == SUCCEEDED:
        return ""
    return str(progress["next"]) or f"upgradeplan status {progress['plan']} --watch"
