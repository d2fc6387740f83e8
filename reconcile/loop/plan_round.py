"""One round for one plan: read, decide, record the intent, write, record the result, emit events.

A crash between any two of these leads to the same end: what was intended is in the status, and writing it again changes
nothing. The round itself keeps nothing but how often gates passed, what was fetched, events, and the last errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reconcile.act.apply import ObjectWriter
from reconcile.act.belonging import Plan
from reconcile.act.status import write_status
from reconcile.cluster.errors import ClusterError
from reconcile.decide.decision import Decision, recorded
from reconcile.decide.observation import FetchFailure, Observation, OtherUpgrades
from reconcile.decide.plan import decide, is_over
from reconcile.decide.unchanged import decides_the_same, steady_for
from reconcile.loop.active_plan import beside_of, blocker_of, lent_by_others, rival_of
from reconcile.loop.degraded_causes import find_failure, known_causes, with_causes
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.executor import ActionExecutor, ExecutedAction
from reconcile.loop.journal import Attended, JournalEntry, Seen
from reconcile.loop.needed_fetches import needed_fetches
from reconcile.loop.plan_events import emit_events, events_of, pipeline_error
from reconcile.loop.round import Memory, Round
from reconcile.loop.sealing import approved_of, approved_templates_of, sealed_now, unapproved
from reconcile.objects import deletion_timestamp
from reconcile.observe.facts import gather
from reconcile.observe.fetching import fetch_all
from reconcile.observe.snapshot import Judged, Snapshot, judge
from reconcile.probes.look import Group, ReadFailure
from reconcile.status.attempt import is_taken_back, unanswered_retry
from reconcile.status.conditions import PlanCondition
from reconcile.status.plan import PlanStatus, is_ending
from reconcile.status.plan_body import status_of
from renderer.cluster_rules import unusable_nodes
from renderer.errors import Problem, Problems, in_a_line, one_line
from renderer.frozen import frozen
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan

PLANS = Group(api_version=PLAN_API_VERSION, kind="UpgradePlan")
_UPGRADES = Group(api_version="harvesterhci.io/v1beta1", kind="Upgrade", namespace="harvester-system")

_BEHIND = 1.0
"""Seconds to the next round where this one could do nothing since what it saw is not so any more: a watch is late."""


@frozen
class _Gathered:
    """The objects and files that a plan is rendered from, and the rendering. `missing` could not be fetched."""

    objects: tuple[Body, ...]
    fetched: Mapping[str, Any]
    rendered: RenderedPlan
    missing: Mapping[str, FetchFailure]


class PlanRound:
    """One round of one plan."""

    def __init__(self, deps: ReconcilerDeps, memory: Memory, plan: Body) -> None:
        self.deps = deps
        self.memory = memory
        self.plan = plan
        self.status = memory.status = status_of(plan, memory.status)
        self.name = str(plan["metadata"]["name"])
        self.kinds = deps.kinds

    def run(self, journal: Callable[[JournalEntry], None]) -> Round:
        try:
            seen, decision = self._decide()
            if find_failure(self._looked(seen, decision), self.deps, self.memory, self.status):
                seen, decision = self._decide()
        except Problems as error:
            if isinstance(error, ClusterError):
                raise
            return self.undecided(in_a_line(error.problems))
        before, observation = self.status, seen.observation
        self.memory.passes = decision.passes
        results: list[ExecutedAction] = []
        try:
            if not self._write_status(decision.status):
                return Round(name=self.name, plan=self.plan, again=True)
            self.memory.pending_events += (
                decision.events
            )  # emitted even if the API server goes away before this round ends
            self._act(decision, seen.snapshot, results)
        finally:
            journal(JournalEntry(seen=seen, decision=decision, results=tuple(results)))
        after = self._record(decision, results)
        told = events_of(results, observation.rendered, self.memory.errors)
        emit_events(self.deps, self.plan, (*self.memory.pending_events, *told))
        self.memory.pending_events = ()
        self.memory.errors = tuple(r.problem for r in results if r.problem and not r.stale)
        unrendered = self._unrendered(observation.rendered)
        behind = after == before and bool(results) and all(result.stale for result in results)
        done = Round(
            name=self.name,
            plan=self.plan,
            decision=replace(decision, status=after),
            results=tuple(results),
            rendered=observation.rendered,
            problems=(*self._shown(unrendered), *self.memory.errors),
            unrendered=unrendered,
            again=(decision.again or bool(observation.errors)) and not self.memory.errors and not behind,
            recheck=_BEHIND if behind else decision.recheck,
            steady=self._steady(seen, decision) if after == before and not results else None,
        )
        return with_causes(done, self.deps, self.memory, observation.causes)

    def _steady(self, seen: Seen, decision: Decision) -> float | None:
        """A reading is another one each time."""
        if seen.snapshot.readings or self.memory.errors:
            return None
        return steady_for(seen.observation, decision, self.memory.cache)

    def look(self) -> Round:
        try:
            seen, decision = self._decide()
        except Problems as error:
            if isinstance(error, ClusterError):
                raise
            shown = self._shown(error.problems)
            return Round(name=self.name, plan=self.plan, problems=shown, unrendered=error.problems)
        return self._looked(seen, decision)

    def _looked(self, seen: Seen, decision: Decision) -> Round:
        """A round of which nothing was written."""
        rendered = seen.observation.rendered
        unrendered = self._unrendered(rendered)
        return Round(
            name=self.name,
            plan=self.plan,
            decision=decision,
            rendered=rendered,
            problems=self._shown(unrendered),
            unrendered=unrendered,
        )

    def _unrendered(self, rendered: RenderedPlan) -> tuple[Problem, ...]:
        """Returns what keeps the plan from going on; one that ends is still taken back."""
        return () if is_ending(self.plan, self.status) or is_over(self.status) else rendered.problems

    def _shown(self, problems: tuple[Problem, ...]) -> tuple[str, ...]:
        return tuple(self.deps.rendering.redactor.text(one_line(item)) for item in problems)

    # ----------------------------------------------------------------------------------------------------- observing

    def _decide(self) -> tuple[Seen, Decision]:
        """Reads, and decides once everything that the decision looks at was read."""
        deps, read, attended = self.deps, self._gather(), Attended(self.deps.attended)
        observation = self._observation(read, attended)
        judged = judge(
            lambda look: decide(replace(observation, look=look), self.memory.cache),
            deps.source,
            deps.readings,
            self.memory.looked_at,
            partial(_as_before, self.memory, observation),
        )
        self.memory.last = (observation, judged)
        self.memory.looked_at = judged.looked_at
        seen = Seen(
            observation=replace(observation, look=judged.snapshot),
            snapshot=judged.snapshot,
            objects=read.objects,
            fetched=read.fetched,
            attended=attended,
            overrides=deps.rendering.overrides,
        )
        return seen, judged.answer

    def _gather(self) -> _Gathered:
        """Reads what the plan is rendered from, and renders it; again where a file was fetched in between."""
        rendering, status = self.deps.rendering, self.status
        objects = () if is_over(status) and not self._is_deleted() else gather(self.deps.source, self.plan)
        if not status.phase and not self._is_deleted() and (found := unusable_nodes(objects)):
            raise Problems(found)
        fetched = dict(self.memory.fetched)
        rendered = rendering.of(self.plan, status, objects, fetched)
        missing = self._fetch(rendered, status)
        if missing is None:
            fetched = dict(self.memory.fetched)
            rendered = rendering.of(self.plan, status, objects, fetched)
        return _Gathered(objects=tuple(objects), fetched=fetched, rendered=rendered, missing=missing or {})

    def _observation(self, read: _Gathered, attended: Attended) -> Observation:
        deps, plan, approved = self.deps, self.plan, approved_of(self.plan)
        can_be_reviewed = approved and not read.rendered.problems
        review = deps.rendering.sealed(plan, read.objects, read.fetched) if can_be_reviewed else None
        preflight = partial(deps.rendering.preflight, plan, read.objects, read.fetched, deps.schemas)
        return Observation(
            plan=plan,
            rendered=read.rendered,
            kinds=self.kinds,
            schemas=deps.schemas,
            look=Snapshot(),
            now=deps.now(),
            attended=attended,
            others=self._others(is_over(self.status)),
            fetched=frozenset(self.memory.fetched),
            fetch_failures=read.missing,
            passes=self.memory.passes,
            errors=self.memory.errors,
            templates=deps.rendering.templates,
            approved_templates=approved_templates_of(plan),
            approved=approved,
            sealed=sealed_now(plan, review) if review else {},
            unapproved=unapproved(plan, review, deps.rendering.overrides) if review else {},
            preflight=preflight if deps.checked else None,
            causes=known_causes(self.memory, self.status),
            redactor=deps.rendering.redactor,
        )

    def _is_deleted(self) -> bool:
        return deletion_timestamp(self.plan) is not None

    def _others(self, over: bool) -> OtherUpgrades:
        is_asked = unanswered_retry(self.plan, self.status) or is_taken_back(self.plan)
        if over and not self._is_deleted() and not is_asked:
            return OtherUpgrades()
        plans, upgrades = self.deps.source.list(PLANS), self.deps.source.list(_UPGRADES)
        if isinstance(plans, ReadFailure) or isinstance(upgrades, ReadFailure):
            why = next(found.why for found in (plans, upgrades) if isinstance(found, ReadFailure))
            return OtherUpgrades(lookup_error=f"other upgrades cannot be read: {why}")
        return OtherUpgrades(
            blocker=None if over else blocker_of(self.plan, plans, upgrades),
            beside=beside_of(self.plan, upgrades),
            lent=lent_by_others(self.plan, plans),
            rival=rival_of(self.plan, plans, upgrades) if over else None,
        )

    def _fetch(self, rendered: RenderedPlan, status: PlanStatus) -> Mapping[str, FetchFailure] | None:
        """Reads what steps under way need; None where something was read."""
        needed = [f for f in needed_fetches(rendered, status, self.memory.cache) if f.name not in self.memory.fetched]
        if not needed:
            return {}
        fetched = fetch_all(needed, self.deps.read)
        self.memory.fetched |= fetched.values
        return fetched.missing if not fetched.values or fetched.missing else None

    def undecided(self, message: str) -> Round:
        """Nothing can be decided, such as where the plan cannot be rendered from what the cluster has now: the status
        says so, and the next round tries again."""
        status, message = self.status, self.deps.rendering.redactor.text(message)
        known = status.condition("Degraded") or {}
        condition = PlanCondition(type="Degraded", status="True", reason="ReconcileError", message=message)
        generation = int(self.plan["metadata"].get("generation") or 0)
        self._write_status(status.with_condition(condition, self.deps.now(), generation))
        if known.get("message") != message:
            emit_events(self.deps, self.plan, [pipeline_error(message)])
        return Round(name=self.name, plan=self.plan, problems=(message,), recheck=10.0)

    # -------------------------------------------------------------------------------------------------------- writing

    def _write_status(self, new: PlanStatus) -> bool:
        """True if the status is the intended one now; False where the plan has changed since it was read."""
        written = write_status(self.deps.cluster, self.kinds, self.plan, self.status, new)
        if written is None:
            return False
        if written is not self.plan:
            self.deps.source.note(written)
        self.plan, self.status = written, new
        return True

    def _act(self, decision: Decision, snapshot: Snapshot, results: list[ExecutedAction]) -> None:
        """Adds a result for each action, as far as it gets."""
        writer = ObjectWriter(
            cluster=self.deps.cluster, kinds=self.kinds, schemas=self.deps.schemas, plan=Plan.of(self.plan)
        )
        executor = ActionExecutor(self.deps, writer, self.plan, snapshot, decision.status.loans)
        for action in decision.actions:
            results.append(executor.carry_out(action))
        self.plan = executor.plan

    def _record(self, decision: Decision, results: list[ExecutedAction]) -> PlanStatus:
        after = recorded(decision.status, decision, results, self.deps.now())
        self._write_status(after)
        return after


def _as_before(memory: Memory, now: Observation, snapshot: Snapshot) -> Judged[Decision] | None:
    """The last decision, if it would be made again."""
    if memory.last is None:
        return None
    then, judged = memory.last
    is_same = snapshot.has_same(judged.snapshot) and decides_the_same(then, now, judged.answer, memory.cache)
    return judged if is_same else None
