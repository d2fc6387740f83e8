"""Looks for causes around a round, with what the loop reads with."""

from __future__ import annotations

from datetime import datetime

from reconcile.diagnosis.diagnosing import Diagnosis, diagnose, knowledge_of
from reconcile.diagnosis.of_plan import situation_of, waits_for_nothing
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.round import Round
from reconcile.observe.facts import Unreadable, gather
from reconcile.observe.snapshot import judge
from reconcile.probes.look import Look
from renderer.model.ref import Body


def diagnose_round(done: Round, parts: ReconcilerDeps, now: datetime) -> Diagnosis:
    """All causes of what the round waits for. Nothing is read where nothing is waited for. Raises `Away` and its
    like."""
    plan = done.plan
    if plan is None or waits_for_nothing(plan, done.decision):
        return Diagnosis()
    context = parts.rendering.check_context(plan, _objects(parts, plan), parts.schemas, now)
    knowledge = knowledge_of(parts.rendering.catalog, context)

    def ask(look: Look) -> Diagnosis:
        situation = situation_of(plan, done.decision, done.rendered, look, now, is_rendered=not done.unrendered)
        return diagnose(knowledge, situation)

    return judge(ask, parts.source, parts.readings).answer


def _objects(parts: ReconcilerDeps, plan: Body) -> tuple[Body, ...]:
    """The objects that rendering looks at; none where they cannot be read, which is said of each kind that is looked
    at."""
    try:
        return tuple(gather(parts.source, plan))
    except Unreadable:
        return ()
