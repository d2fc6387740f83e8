"""Explains why a plan waits, in the words of what blocks it, and what to do about it: schemas/explain.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from reconcile.loop.round import Round
from reconcile.observe.source import Source
from reconcile.report.causes import leaving, machines, nodes, rancher, refusals, storage, turns, work, workloads
from reconcile.report.causes.cause import Cause, DiagnosisInput, kubectl
from reconcile.report.diagnosis_input import collect_input
from reconcile.report.progress import Model, age_of, progress_of, wait_lines
from reconcile.status.plan import FAILED
from reconcile.status.times import time_text
from renderer.errors import Problem

SEARCHES: tuple[Callable[[DiagnosisInput], Iterator[Cause]], ...] = (
    refusals.conflicts,
    refusals.others,
    turns.paused_cluster,
    turns.held,
    work.gone_objects,
    nodes.unwell,
    nodes.overdue,
    machines.nobodys_nodes,
    machines.nodeless,
    workloads.budgets,
    workloads.machines,
    storage.volumes,
    work.images,
    work.failed_jobs,
    work.pods,
    work.stuck_plans,
    rancher.nodeless_machines,
    rancher.provisioning,
    rancher.reports,
    turns.unanswered,
    turns.untaken,
    turns.asked_together,
    turns.unpicked,
)
"""In the order in which people look for them; of all that is found, what somebody has to act on comes first."""

SEARCHES_WHILE_LEAVING = (leaving.objects, leaving.refused, work.gone_objects, work.stuck_plans)
"""Of a plan that is being deleted nothing else matters any more."""


def explanation_of(done: Round, source: Source, now: datetime) -> Model:
    """Looks around and searches. Raises `Away` and its like; what could not be read is listed as unread."""
    diagnosis, unread = collect_input(done, source, now)
    causes = (*map(partial(_unrendered, done.name), done.unrendered), *causes_of(diagnosis))
    progress = progress_of(done, now)
    kept = ("plan", "phase", "message", "waits", "at")
    return {
        **{key: progress[key] for key in kept},
        "problems": [] if done.unrendered else progress["problems"],  # they are causes
        "failed": progress["phase"] == FAILED,
        "causes": [_model(cause) for cause in causes],
        "unread": list(unread),
        "next": _next(progress, diagnosis, causes),
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
        "causes": [_model(cause)],
        "unread": [],
        "next": f"upgradeplan explain {plan}".strip(),
    }


def causes_of(diagnosis: DiagnosisInput) -> tuple[Cause, ...]:
    """All causes, each once. Those that resolve themselves come last."""
    searches = SEARCHES_WHILE_LEAVING if diagnosis.leaving else SEARCHES
    found = dict.fromkeys(cause for search in searches for cause in search(diagnosis))
    return tuple(sorted(found, key=lambda cause: cause.patient))


def explanation_lines(model: Model) -> Iterator[str]:
    said = [text for text in (model["phase"], model["message"]) if text] or ["not started"]
    yield ": ".join([model["plan"] or "UpgradePlan", *said])
    yield from wait_lines(model)
    for cause in model["causes"]:
        node = f" [{cause['node']}]" if cause["node"] else ""
        yield f"  because {cause['object']}{node} {cause['what']}{age_of(cause['since'], model['at'])}"
        yield f"    remedy: {cause['remedy']}"
    for problem in model["problems"]:
        yield f"  problem: {problem}"
    for text in model["unread"]:
        yield f"  not checked: {text}"
    if model["next"]:
        yield f"  next: {model['next']}"


def _model(cause: Cause) -> Model:
    return {
        "object": cause.object,
        "node": cause.node,
        "what": cause.what,
        "since": cause.since,
        "remedy": cause.remedy,
    }


def _unrendered(plan: str, problem: Problem) -> Cause:
    return Cause(
        object=f"UpgradePlan {plan}",
        what=f"cannot be rendered: {replace(problem, remedy=None)}",
        remedy=problem.remedy or f"kubectl describe upgradeplan {plan}",
    )


def _next(progress: Model, diagnosis: DiagnosisInput, causes: tuple[Cause, ...]) -> str:
    """The first cause's remedy, unless that is patience and something takes too long; else what `status` says, but
    where that is to come here."""
    patient = {cause.node for cause in causes if cause.patient}
    slow = [wait for wait in diagnosis.waits if (wait.slow or wait.unknown) and wait.node not in patient]
    if causes and not (causes[0].patient and slow):
        return causes[0].remedy
    if slow and slow[0].refs:
        return kubectl("describe", slow[0].refs[0])
    if progress["phase"] == FAILED or slow:
        return f"kubectl describe upgradeplan {progress['plan']}"
    here = progress["next"] == f"upgradeplan explain {progress['plan']}"
    return f"upgradeplan status {progress['plan']} --watch" if here else str(progress["next"])
