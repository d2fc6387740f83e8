"""The status of one plan as a value: typed look-ups, and changes that give a new value.

`reconcile.status.plan_body` reads it from an UpgradePlan and writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain, compress
from operator import attrgetter, itemgetter, methodcaller
from typing import Any

from reconcile.borrow.loan import Loan
from reconcile.objects import deletion_timestamp
from reconcile.status.conditions import PlanCondition, find_condition, with_condition
from reconcile.status.record import OwnedObject, StepRecord, StepState, folded
from reconcile.status.times import time_of, time_text
from renderer.model.node_state import NodeStates
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedStep
from renderer.model.sharing import SameObject

SUCCEEDED, FAILED = "Succeeded", "Failed"
TERMINAL = (SUCCEEDED, FAILED)
"""The phase values of a plan that has ended."""

StepKey = tuple[str, str, str | None]
"""(phase, step, node)."""

Place = tuple[str, str | None]
"""(phase, node): where a step ran; the node is None for the cluster as a whole."""

_NOTHING_CAPTURED: Mapping[str, Any] = {}
_STARTED, _ENDED = attrgetter("started"), attrgetter("ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSteps:
    """The `steps` of a status as the API has them, and what was read from them."""

    body: Mapping[str, Any] = field(default_factory=dict)
    records: Mapping[Place, Mapping[str, StepRecord]] = field(default_factory=dict)
    attempts: Mapping[Place, Mapping[str, tuple[StepRecord, ...]]] = field(default_factory=dict)
    done: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatus:
    """`rest` is every field that has no attribute of its own. `records` has steps under way and over, by
    place and step; a node that has ended a phase is folded into `done`: (phase, node) to step to a short text.
    `waiting` says since when each wait has held whose beginning no record of a step tells. `attempts` has records of
    steps that begin, or have begun, once more, oldest first. `read` has the steps as they were read: of many, few
    have changed since."""

    phase: str = ""
    conditions: tuple[Mapping[str, Any], ...] = ()
    node_states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    records: Mapping[Place, Mapping[str, StepRecord]] = field(default_factory=dict)
    attempts: Mapping[Place, Mapping[str, tuple[StepRecord, ...]]] = field(default_factory=dict)
    done: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    loans: tuple[Loan, ...] = ()
    waiting: Mapping[str, datetime] = field(default_factory=dict)
    rest: Mapping[str, Any] = field(default_factory=dict)
    read: ReadSteps = field(default_factory=ReadSteps, repr=False, compare=False)

    # ---------------------------------------------------------------------------------------------------- look-ups

    def record(self, key: StepKey) -> StepRecord | None:
        phase, step, node = key
        return self.records.get((phase, node), {}).get(step)

    def attempts_of(self, key: StepKey) -> tuple[StepRecord, ...]:
        """The step's attempts before this one, oldest first."""
        phase, step, node = key
        return self.attempts.get((phase, node), {}).get(step, ())

    def objects_of(self, key: StepKey) -> tuple[OwnedObject, ...]:
        """All objects that the step has made or is about to, those of earlier attempts included."""
        record = self.record(key)
        records = (*([record] if record else ()), *self.attempts_of(key))
        return tuple(made for each in records for made in each.all_objects)

    def all_objects(self) -> Iterator[OwnedObject]:
        """The same of all steps."""
        for records in self.records.values():
            yield from (made for record in records.values() for made in record.all_objects)
        for attempts in self.attempts.values():
            yield from (made for tried in attempts.values() for record in tried for made in record.all_objects)

    def former_objects(self) -> frozenset[Ref]:
        """Objects that attempts before this one have made, and this one has not."""
        now = {made.ref for records in self.records.values() for record in records.values() for made in record.objects}
        return frozenset(made.ref for made in self.all_objects()) - now

    def records_of(self, phase: str) -> Iterator[tuple[StepKey, StepRecord]]:
        """The phase's records, those of nodes by name."""
        places = sorted((place for place in self.records if place[0] == phase), key=lambda place: place[1] or "")
        for place in places:
            for step, record in self.records[place].items():
                yield (phase, step, place[1]), record

    def is_over(self, key: StepKey) -> bool:
        """True if the step is completed or skipped, folded or not."""
        record = self.record(key)
        return record.is_over if record else self._is_folded(key)

    def has_begun(self, key: StepKey) -> bool:
        return self.record(key) is not None or self._is_folded(key)

    def has_completed(self, key: StepKey) -> bool:
        """True if the step is completed, and not just skipped."""
        record = self.record(key)
        if record:
            return record.state is StepState.COMPLETED
        return self._is_folded(key) and not self.done[key[0], str(key[2])][key[1]].endswith("skipped")

    def is_under_way(self, phase: str, step: str, node: str | None) -> bool:
        """True if the step has started and was not skipped; it may have ended."""
        record = self.record((phase, step, node))
        if record:
            return record.state is not StepState.SKIPPED
        return self.has_completed((phase, step, node))

    def made_by(self, phase: str, step: str, node: str | None) -> tuple[str, ...] | None:
        """The templates whose objects the step has made; None if it has not yet, or its record does not say."""
        record = self.record((phase, step, node))
        if record is None or not record.made_its_objects or (record.is_over and not record.objects):
            return None
        made = tuple(dict.fromkeys(made.template for made in record.objects))
        return made if all(made) else None

    def at(self, phase: str, node: str | None) -> tuple[Any, ...]:
        """All that is recorded of the phase for this node, or for the cluster, to be compared."""
        return (self.records.get((phase, node)), self.attempts.get((phase, node)), self.done.get((phase, node or "")))

    def of(self, phase: str) -> tuple[Mapping[str | None, Any], ...]:
        """All that is recorded of the phase, by node, to be compared."""
        records = {node: records for (name, node), records in self.records.items() if name == phase}
        return records, {node: texts for (name, node), texts in self.done.items() if name == phase}

    def captured(self, phase: str, node: str | None) -> Mapping[str, Any]:
        """The values that the phase's steps have captured for this node, or for the cluster."""
        found = [record.captured for record in self.records.get((phase, node), {}).values() if record.captured]
        if len(found) > 1:
            return {name: value for captured in found for name, value in captured.items()}
        return found[0] if found else _NOTHING_CAPTURED

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        return find_condition(self.conditions, kind)

    def field(self, path: str) -> Any:
        """A field of the API that has no attribute of its own, by its dotted path; None where it is not there."""
        found: Any = self.rest
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def _is_folded(self, key: StepKey) -> bool:
        phase, step, node = key
        return node is not None and step in self.done.get((phase, node), {})

    # ----------------------------------------------------------------------------------------------------- changes

    def with_field(self, path: str, value: Any) -> PlanStatus:
        """A field of the API, by its dotted path; None removes it."""
        first, _, below = path.partition(".")
        if below:
            value = {**(self.rest.get(first) or {}), below: value}
            value = {key: item for key, item in value.items() if item is not None}
        rest = {**self.rest, first: value}
        return replace(self, rest={key: item for key, item in rest.items() if item is not None})

    def with_condition(self, condition: PlanCondition, now: datetime, generation: int) -> PlanStatus:
        return replace(self, conditions=with_condition(self.conditions, condition, now=now, generation=generation))

    def with_node(
        self, node: str, state: str, states: NodeStates, *, reason: str = "", message: str = ""
    ) -> PlanStatus:
        """The node's entry in a state, unless the node is past that state by the table `states`."""
        before = self.node_states.get(node)
        if before and states.is_ahead(before.get("state"), state):
            return self
        parts = {"state": state, "reason": reason, "message": message}
        entry = {key: value for key, value in parts.items() if value}
        return self if entry == before else self._with_nodes({node: entry})

    def reset_node(self, node: str, state: str) -> PlanStatus:
        """Sets the node's state whatever it was: nodes start over at one place only."""
        return self._with_nodes({node: {"state": state}})

    def _with_nodes(self, entries: Mapping[str, Mapping[str, Any]]) -> PlanStatus:
        return replace(self, node_states={**self.node_states, **entries})

    def with_record(self, key: StepKey, record: StepRecord) -> PlanStatus:
        phase, step, node = key
        here = {**self.records.get((phase, node), {}), step: record}
        return replace(self, records={**self.records, (phase, node): here})

    def with_another_attempt(self, key: StepKey) -> PlanStatus:
        """The step has not begun; its record is one of its attempts."""
        phase, step, node = key
        here = dict(self.records[phase, node])
        record = here.pop(step)
        before = self.attempts.get((phase, node), {})
        others = {place: records for place, records in self.records.items() if place != (phase, node)}
        return replace(
            self,
            records={**others, **({(phase, node): here} if here else {})},
            attempts={**self.attempts, (phase, node): {**before, step: (*before.get(step, ()), record)}},
        )

    def with_skipped(self, phase: str, because: str) -> PlanStatus:
        return replace(self, skipped={**self.skipped, phase: because})

    def with_loans(self, loans: Iterable[Loan]) -> PlanStatus:
        return replace(self, loans=tuple(loans))

    def with_phase(self, phase: str, now: datetime) -> PlanStatus:
        """Sets the phase and appends it to `phaseTransitionTimestamps`; the same phase twice in a row is one entry."""
        if phase == self.phase:
            return self
        history = list(self.rest.get("phaseTransitionTimestamps") or ())
        history.append({"phase": phase, "phaseTransitionTimestamp": time_text(now)})
        return replace(self, phase=phase, rest={**self.rest, "phaseTransitionTimestamps": history})

    def last_transition(self) -> str | None:
        """The time when the phase last changed."""
        history = self.rest.get("phaseTransitionTimestamps") or ()
        return str(history[-1]["phaseTransitionTimestamp"]) if history else None

    def first_entered(self, value: str) -> datetime | None:
        """The time when the phase value was first reached; a retry reaches it once more."""
        history = self.rest.get("phaseTransitionTimestamps") or ()
        times = (entry["phaseTransitionTimestamp"] for entry in history if entry["phase"] == value)
        return next(map(time_of, times), None)

    def last_progress(self, phase: str) -> datetime | None:
        """The time when a step of the phase last began or ended, on any node."""
        at_places = compress(self.records.values(), map(phase.__eq__, map(itemgetter(0), self.records)))
        records = tuple(chain.from_iterable(map(methodcaller("values"), at_places)))
        moved = chain(map(_STARTED, records), filter(None, map(_ENDED, records)))
        return max([*moved, *_folded_end(SameObject(self.done), phase)], default=None)

    def last_end_at(self, phase: str, node: str | None) -> datetime | None:
        """The time when a step of the phase last ended for this node, or for the cluster as a whole."""
        places = dict.fromkeys(((phase, None), (phase, node)))
        ended = [record.ended for place in places for record in self.records.get(place, {}).values() if record.ended]
        return max(ended, default=None)

    def without_node(self, phase: str, node: str) -> PlanStatus:
        """As if nothing had been done for the node in the phase."""
        return replace(
            self,
            records={place: records for place, records in self.records.items() if place != (phase, node)},
            attempts={place: steps for place, steps in self.attempts.items() if place != (phase, node)},
            done={place: texts for place, texts in self.done.items() if place != (phase, node)},
            node_states={name: entry for name, entry in self.node_states.items() if name != node},
        )

    def began(self, phase: str, node: str) -> datetime | None:
        """The time when the first step started or ended for the node in the phase; None before."""
        records = [record.started for record in self.records.get((phase, node), {}).values()]
        ends = [time_of(text.partition(" ")[0]) for text in self.done.get((phase, node), {}).values()]
        return min([*records, *ends], default=None)

    def last_end(self) -> datetime | None:
        """The time when a step last ended, or a loan was last returned."""
        ended = [record.ended for steps in self.records.values() for record in steps.values() if record.ended]
        returned = [time_of(loan.returned) for loan in self.loans if loan.returned]
        return max([*ended, *returned], default=None)

    def forget(self, key: StepKey) -> PlanStatus:
        """Without the short text of a step that a node has ended."""
        phase, step, node = key
        if not self._is_folded(key):
            return self
        left = {name: text for name, text in self.done[phase, str(node)].items() if name != step}
        others = {place: texts for place, texts in self.done.items() if place != (phase, node)}
        return replace(self, done={**others, **({(phase, str(node)): left} if left else {})})

    def fold(self, phase: str, node: str) -> PlanStatus:
        """Shortens the records of a node that has ended the phase to one line each, so that a thousand nodes fit."""
        texts = {step: folded(record) for step, record in self.records.get((phase, node), {}).items()}
        kept = {place: records for place, records in self.records.items() if place != (phase, node)}
        before = self.done.get((phase, node), {})
        return replace(self, records=kept, done={**self.done, (phase, node): {**before, **texts}})


@lru_cache(maxsize=4)  # a decision asks several times
def _folded_end(done: SameObject, phase: str) -> tuple[datetime, ...]:
    """The time when a step of the phase last ended on a node that is through with it, if there is any."""
    folded: Mapping[tuple[str, str], Mapping[str, str]] = done.it
    ends = (_last_end(SameObject(texts)) for (name, _), texts in folded.items() if name == phase and texts)
    return tuple(sorted(ends)[-1:])


@lru_cache(maxsize=8192)  # a folded record does not change any more
def _last_end(folded: SameObject) -> datetime:
    texts: Mapping[str, str] = folded.it
    return max(time_of(text.partition(" ")[0]) for text in texts.values())


def is_ending(plan: Mapping[str, Any], status: PlanStatus) -> bool:
    """True if the plan is ending: it has failed, or is being deleted."""
    return status.phase == FAILED or deletion_timestamp(plan) is not None


def key_of(item: RenderedStep) -> StepKey:
    """The key of a step's record."""
    return (item.phase, item.step.name, item.step.node)
