"""Runs rounds for plans by their names, and remembers of each what the next round may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reconcile.decide.decision import Wait
from reconcile.decide.plan_conditions import WAITING_LONG
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.journal import JournalEntry, keep_nothing
from reconcile.loop.plan_round import PlanRound
from reconcile.loop.round import Memory, Round
from reconcile.probes.look import ReadFailure
from reconcile.status.plan_body import outline_of
from reconcile.status.times import time_of
from renderer.model.plan_api import plan_ref
from renderer.model.ref import Body

_LOOKS_AGAIN = 2


class Reconciler:
    """Runs rounds. One plan at a time may be in a round; the caller sees to that."""

    def __init__(self, deps: ReconcilerDeps, journal: Callable[[JournalEntry], None] = keep_nothing) -> None:
        self._deps = deps
        self._journal = journal
        self._memory: dict[str, Memory] = {}

    def on(self, deps: ReconcilerDeps) -> Reconciler:
        """One that has had no round, on these."""
        return Reconciler(deps, self._journal)

    @property
    def active(self) -> tuple[str, ...]:
        """The plans that have had a round and are not over."""
        return tuple(name for name, memory in list(self._memory.items()) if not memory.over)

    def round(self, name: str) -> Round:
        """Raises `Away`, `Throttled` and `Unauthorized`; whatever else is wrong is part of the result."""
        ref = plan_ref(name)
        plan = self._deps.source.get(ref)
        if plan is None:
            self._memory.pop(name, None)
            self._deps.rendering.forget(name)
            return Round(name=name)
        if isinstance(plan, ReadFailure):
            return Round(name=name, problems=(plan.why,), recheck=10.0)
        if name not in self._memory:
            self._memory[name] = Memory(errors=_reported_errors(plan))
        memory = self._memory[name]
        done = PlanRound(self._deps, memory, plan).run(self._journal)
        memory.over = done.over and not done.again
        return done

    def look(self, name: str) -> Round:
        """Decides as a round would now. Nothing is written, and nothing is remembered. Looks again where the manager
        has written the plan meanwhile: what was read after the plan may then be later than the plan says. Where it
        writes all the time, only what two looks agree on is said to need an operator."""
        done = self._look(name)
        for _ in range(_LOOKS_AGAIN):
            if self._is_as_it_was(done):
                return done
            before, done = done, self._look(name)
        return done if self._is_as_it_was(done) else _in_both(done, before)

    def _is_as_it_was(self, done: Round) -> bool:
        now = self._deps.source.get(plan_ref(done.name)) if done.plan is not None else None
        if done.plan is None or isinstance(now, ReadFailure):
            return True
        return now is not None and now["metadata"]["resourceVersion"] == done.plan["metadata"]["resourceVersion"]

    def _look(self, name: str) -> Round:
        plan = self._deps.source.get(plan_ref(name))
        if plan is None or isinstance(plan, ReadFailure):
            return Round(name=name, problems=(plan.why,) if plan else ())
        done = PlanRound(self._deps, Memory(), plan).look()
        # who looks writes nothing, so the manager alone knows what is refused
        return _with_the_managers_wait(plan, replace(done, problems=done.problems or _reported_errors(plan)))

    def report(self, name: str, message: str) -> None:
        """Puts an error that ended a round on the plan."""
        plan = self._deps.source.get(plan_ref(name))
        if plan is not None and not isinstance(plan, ReadFailure):
            PlanRound(self._deps, Memory(), plan).undecided(message)


def _in_both(done: Round, before: Round) -> Round:
    """Without waits that are said to take too long for the first time, of a plan that is written all the time."""
    if done.decision is None:
        return done
    known = {(wait.step, wait.node, wait.text) for wait in (before.decision.waits if before.decision else ())}
    waits = tuple(wait for wait in done.decision.waits if not wait.slow or (wait.step, wait.node, wait.text) in known)
    return replace(done, decision=replace(done.decision, waits=waits))


def _with_the_managers_wait(plan: Body, done: Round) -> Round:
    """With what the manager waits for too long, by its own status, where this program would wait for nothing of the
    kind: the manager may be another release, with other templates."""
    degraded = outline_of(plan).condition("Degraded") or {}
    if done.decision is None or (degraded.get("status"), degraded.get("reason")) != ("True", WAITING_LONG):
        return done
    waits = done.decision.waits
    if any(wait.slow or wait.unknown for wait in waits):
        return done
    text, since = f"{degraded['message']}, as the manager says", time_of(degraded["lastTransitionTime"])
    return replace(done, decision=replace(done.decision, waits=(*waits, Wait(text=text, since=since, slow=True))))


def _reported_errors(plan: Body) -> tuple[str, ...]:
    """Returns what the status says of writes that were refused to an earlier process."""
    degraded = outline_of(plan).condition("Degraded") or {}
    return (degraded["message"],) if degraded.get("reason") == "ReconcileError" and degraded["status"] == "True" else ()
