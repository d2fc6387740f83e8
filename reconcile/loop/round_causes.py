"""Looks for causes around a round, with what the loop reads with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache

from reconcile.diagnosis.chain import Logs
from reconcile.diagnosis.diagnosing import Diagnosis, diagnose, knowledge_of
from reconcile.diagnosis.of_plan import situation_of, waits_for_nothing
from reconcile.diagnosis.situation import entries, text
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.round import Round
from reconcile.observe.container_log import LogUnavailableError, read_log
from reconcile.observe.facts import Unreadable, gather
from reconcile.observe.snapshot import Judged, Needs, Snapshot, judge
from reconcile.observe.source import Source
from reconcile.preflight.check_context import CheckContext
from reconcile.probes.look import Look, Need, ReadFailure
from renderer.model.ref import Body, Ref

_LINES = 200
"""Of a container's log so many lines are looked at, from its end."""


def diagnose_round(
    done: Round, parts: ReconcilerDeps, now: datetime, source: Source | None = None, logs: Logs | None = None
) -> Diagnosis:
    """All causes of what the round waits for, by what `source` reads and by these logs; both are the cluster's by
    default. Nothing is read where nothing is waited for. Raises `Away` and its like."""
    return judge_round(done, parts, now, source or parts.source, logs).answer


def judge_round(
    done: Round,
    parts: ReconcilerDeps,
    now: datetime,
    source: Source,
    logs: Logs | None = None,
    likely: Iterable[Need] = (),
) -> Judged[Diagnosis]:
    """The same, with all that was looked at; what is `likely` looked at is read first."""
    plan = done.plan
    if plan is None or waits_for_nothing(plan, done.decision):
        return Judged(answer=Diagnosis(), snapshot=Snapshot(), looked_at=Needs())
    knowledge = knowledge_of(parts.rendering.catalog, check_context_of(parts, plan, now))
    said = logs_on(parts) if logs is None else logs

    def ask(look: Look) -> Diagnosis:
        situation = situation_of(plan, done.decision, done.rendered, look, now, is_rendered=not done.unrendered)
        return diagnose(knowledge, situation, said)

    return judge(ask, source, parts.readings, likely)


def check_context_of(parts: ReconcilerDeps, plan: Body | None, now: datetime) -> CheckContext:
    """The context in which checks and causes are looked for on this cluster. What cannot be read of what rendering
    looks at is said of each kind that is looked at."""
    try:
        objects = tuple(gather(parts.source, plan or {}))
    except Unreadable:
        objects = ()
    return parts.rendering.check_context(plan or {}, objects, parts.schemas, now)


def logs_on(parts: ReconcilerDeps) -> Logs:
    """The ends of the logs of pods of the cluster; of one that cannot be read there is none. Raises `Away`."""

    @cache
    def logs_of(ref: Ref) -> Mapping[str, str]:
        body = parts.source.get(ref)
        pod = {} if body is None or isinstance(body, ReadFailure) else body
        names = [text(item, "name") for key in ("initContainers", "containers") for item in entries(pod, "spec", key)]
        found: dict[str, str] = {}
        for name in names:
            with suppress(LogUnavailableError):
                found[name] = "\n".join(line.text for line in read_log(parts.cluster, ref, name, last=_LINES))
        return found

    return logs_of
