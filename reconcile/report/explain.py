"""Why a plan waits, in the words of what blocks it, and what to do about it: schemas/explain.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from reconcile.loop.reconciler import Round
from reconcile.observe.facts import MACHINE_PLAN_FIELDS
from reconcile.observe.source import Source
from reconcile.probes.look import Group, Unseen
from reconcile.report.causes import cause as c
from reconcile.report.causes import storage, turns, work, workloads
from reconcile.report.causes.cause import Cause, Sight
from reconcile.report.progress import Model, progress_of, wait_lines
from reconcile.status.plan import FAILED, status_of
from reconcile.status.times import time_text
from renderer.model.ref import Body

GROUPS: tuple[Group, ...] = (
    c.NODES,
    c.PODS,
    c.BUDGETS,
    c.VIRTUAL_MACHINES,
    c.MIGRATIONS,
    c.VOLUMES,
    c.ENGINES,
    c.MACHINES,
    c.CLUSTERS,
    c.MACHINE_PLANS,
    c.IMAGES,
    c.JOBS,
    c.NODE_PLANS,
)
"""What is looked at beside what the plan itself waits for."""

SEARCHES: tuple[Callable[[Sight], Iterator[Cause]], ...] = (
    turns.paused_cluster,
    turns.held,
    workloads.budgets,
    workloads.machines,
    storage.volumes,
    work.images,
    work.failed_jobs,
    work.pods,
    work.stuck_plans,
    turns.unpicked,
)
"""In the order in which people want to read them: what somebody has to act on comes first."""


def explanation_of(done: Round, source: Source, now: datetime) -> Model:
    """Looks around and searches. Raises `Away` and its like; what could not be read is listed as unread."""
    sight, unread = _look(done, source, now)
    causes = causes_of(sight)
    progress = progress_of(done, now)
    kept = ("plan", "phase", "message", "waits", "problems", "at")
    return {
        **{key: progress[key] for key in kept},
        "failed": progress["phase"] == FAILED,
        "causes": [_model(cause) for cause in causes],
        "unread": list(unread),
        "next": _next(progress, causes),
    }


def absence_of(plan: str, why: str, now: datetime) -> Model:
    """The same where the API server does not answer."""
    cause = Cause(
        object="API server",
        what=f"does not answer: {why}",
        remedy="during its own upgrade that is normal for some minutes, and no clock runs meanwhile; try again",
    )
    return {
        "plan": plan,
        "phase": "",
        "message": "the API server does not say how far it is",
        "waits": [],
        "problems": [],
        "at": time_text(now),
        "failed": False,
        "causes": [_model(cause)],
        "unread": [],
        "next": f"upgradeplan explain {plan}".strip(),
    }


def causes_of(sight: Sight) -> tuple[Cause, ...]:
    """Everything that is found, each thing once."""
    return tuple(dict.fromkeys(cause for search in SEARCHES for cause in search(sight)))


def explanation_lines(model: Model) -> Iterator[str]:
    said = [text for text in (model["phase"], model["message"]) if text] or ["not begun"]
    yield ": ".join([model["plan"] or "UpgradePlan", *said])
    yield from wait_lines(model)
    for cause in model["causes"]:
        since = f" since {cause['since']}" if cause["since"] else ""
        node = f" [{cause['node']}]" if cause["node"] else ""
        yield f"  because {cause['object']}{node} {cause['what']}{since}"
        yield f"    do: {cause['remedy']}"
    for problem in model["problems"]:
        yield f"  problem: {problem}"
    for text in model["unread"]:
        yield f"  not looked at: {text}"
    if model["next"]:
        yield f"  next: {model['next']}"


def _look(done: Round, source: Source, now: datetime) -> tuple[Sight, tuple[str, ...]]:
    status = status_of(done.plan or {})
    waits = done.decision.waits if done.decision else ()
    wanted = GROUPS if waits or status.phase == FAILED else ()  # nothing is read where nothing is waited for
    found = {group: source.list(group, _selector(group)) for group in wanted}
    sight = Sight(
        plan=done.name,
        waits=tuple(waits),
        states={node: str(entry.get("state", "")) for node, entry in status.node_states.items()},
        now=now,
        groups={group: _typed(group, items) for group, items in found.items() if not isinstance(items, Unseen)},
    )
    unread = tuple(f"{group.kind} objects: {item.why}" for group, item in found.items() if isinstance(item, Unseen))
    return sight, unread


def _selector(group: Group) -> str:
    return MACHINE_PLAN_FIELDS if group == c.MACHINE_PLANS else ""


def _typed(group: Group, items: Iterable[Body]) -> tuple[Body, ...]:
    """Items of a list need not repeat what the list is of."""
    return tuple({"apiVersion": group.api_version, "kind": group.kind, **body} for body in items)


def _model(cause: Cause) -> Model:
    return {
        "object": cause.object,
        "node": cause.node,
        "what": cause.what,
        "since": cause.since,
        "remedy": cause.remedy,
    }


def _next(progress: Model, causes: tuple[Cause, ...]) -> str:
    """What `status` says, but where that is to come here."""
    if causes:
        return causes[0].remedy
    if progress["phase"] == FAILED:
        return f"kubectl describe upgradeplan {progress['plan']}"
    here = progress["next"] == f"upgradeplan explain {progress['plan']}"
    return f"upgradeplan status {progress['plan']} --watch" if here else str(progress["next"])
