"""The result of one round of a plan, and the memory that is kept for the next one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from reconcile.decide.decision import Decision
from reconcile.decide.decision_cache import DecisionCache
from reconcile.decide.observation import Observation
from reconcile.decide.plan import is_over
from reconcile.loop.executor import ExecutedAction
from reconcile.observe.snapshot import Judged, Needs
from reconcile.status.attempt import is_taken_back
from reconcile.status.plan import PlanStatus
from reconcile.status.plan_body import status_of
from renderer.errors import Problem
from renderer.model.probe import Event
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan


class RoundResult(StrEnum):
    """The end of an attempt at a round."""

    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    THROTTLED = "throttled"
    AWAY = "away"
    BUG = "bug"


@dataclass(frozen=True, slots=True, kw_only=True)
class CausesOfWaits:
    """`texts` are the causes that were found at a time for what was waited for too long then, and `looked_at` is where
    they were looked for."""

    waits: frozenset[str]
    at: datetime
    texts: tuple[str, ...]
    looked_at: Needs


@dataclass
class Memory:
    """The memory of a plan from one round to the next; all of it can be lost. `errors` begins with the status's;
    `failed_by` are the causes of a failure, None where nobody has looked for them, `status` is the last one that was
    read."""

    passes: dict[tuple[str, int], int] = field(default_factory=dict)
    fetched: dict[str, Any] = field(default_factory=dict)
    looked_at: Needs = field(default_factory=Needs)
    errors: tuple[str, ...] = ()
    pending_events: tuple[Event, ...] = ()
    over: bool = False
    cache: DecisionCache = field(default_factory=DecisionCache)
    last: tuple[Observation, Judged[Decision]] | None = None
    status: PlanStatus | None = None
    causes: CausesOfWaits | None = None
    failed_by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The result of one round. `decision` is None where the plan is gone or could not be rendered; `problems` are what
    the cluster or a template refused, and `unrendered` those of templates, because of which no step begins. Another
    round within `steady` seconds comes to the same if nothing in the cluster changes; None where that is not known."""

    name: str
    plan: Body | None = None
    decision: Decision | None = None
    results: tuple[ExecutedAction, ...] = ()
    rendered: RenderedPlan | None = None
    problems: tuple[str, ...] = ()
    unrendered: tuple[Problem, ...] = ()
    again: bool = False
    recheck: float | None = None
    steady: float | None = None

    @property
    def over(self) -> bool:
        """The plan is gone, or has ended for good. One that could not be read is not gone, and one of which a write was
        refused, such as its last one, that removes the finalizer, has not ended; nor has one that is being taken
        back."""
        if self.problems:
            return False
        if self.plan is None or self.decision is None:
            return self.plan is None
        is_busy = is_taken_back(self.plan) and bool(self.decision.actions or self.decision.waits)
        return is_over(self.decision.status) and not is_busy

    @property
    def is_at_its_end(self) -> bool:
        """The same of a plan that was only looked at: by what its status says, and not by what would be decided."""
        return not self.problems and (self.plan is None or is_over(status_of(self.plan)))
