"""How an upgrade ended, as data by which two runs are compared; and what must be so at every good end, whatever it is
compared with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconcile.borrow.loan import Loan
from reconcile.objects import FIELD_MANAGER, PLAN_LABEL
from reconcile.simulator.actors.simulation_log import SimulationEvent, SimulationEventType
from reconcile.simulator.rehearsal.rehearsal import Rehearsal
from reconcile.status.plan import SUCCEEDED
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of
from support.invariants import violations
from support.rehearsals import inputs_of

_TRANSIENT = (
    *("Event", "CustomResourceDefinition", "Lease", "Pod", "ReplicaSet", "EndpointSlice"),
    "VirtualMachineInstanceMigration",
)
"""Come and go by themselves, or are named after uids."""
_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "observedGeneration")
_UIDS = ("controller-uid", "batch.kubernetes.io/controller-uid", "bootID")
_TIMES = ("lastTransitionTime", "phaseTransitionTimestamp", "started", "ended", "taken", "returned", "time")
_TIMES_OF_OTHERS = ("lastUpdateTime", "startTime", "completionTime", "lastProbeTime", "lastHeartbeatTime")
_TIME_IN_TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ( \d+s)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalState:
    """`objects` without what differs from run to run; `jobs` whose work was started, sorted."""

    objects: Mapping[Ref, Any]
    jobs: Sequence[str]


def final_state_of(scene: Rehearsal, example: str) -> FinalState:
    """The end of an example's upgrade on the embedded cluster."""
    return successful_end(
        (source.body for source in inputs_of(example).objects), scene.cluster.store.everything(), scene.log.events
    )


def successful_end(before: Iterable[Body], bodies: Iterable[Body], facts: Sequence[SimulationEvent]) -> FinalState:
    """The end of a success: nothing forbidden happened, no work ran twice, what was borrowed is as it was `before`."""
    live = {ref_of(body): body for body in bodies if body["kind"] not in _TRANSIENT}
    plan = next(body for body in live.values() if body["kind"] == "UpgradePlan")
    assert plan["status"]["currentPhase"] == SUCCEEDED
    assert not plan["metadata"].get("finalizers")
    assert violations(facts) == ()
    jobs = [f"{fact.subject} on {fact.node}" for fact in facts if fact.what is SimulationEventType.WORK_STARTED]
    assert jobs
    assert [job for job, count in Counter(jobs).items() if count > 1] == []
    _all_is_back({ref_of(body): body for body in before}, plan, live)
    assert [str(ref) for ref, body in live.items() if _is_claimed(body)] == []
    return FinalState(objects=objects_of(live.values()), jobs=sorted(jobs))


def objects_of(bodies: Iterable[Body]) -> dict[Ref, Any]:
    """What stays, without times and identities."""
    return {ref_of(body): steady(body) for body in bodies if body["kind"] not in _TRANSIENT}


def _all_is_back(before: Mapping[Ref, Body], plan: Body, live: Mapping[Ref, Body]) -> None:
    """Every loan is returned, and the field is what it was before the plan was made."""
    loans = [Loan.from_status(item) for item in plan["status"]["borrowed"]]
    assert loans
    for loan in loans:
        assert loan.returned, loan
        path = loan.original.path
        assert look_up(live[loan.ref], path) == look_up(before[loan.ref], path), loan


def _is_claimed(body: Body) -> bool:
    """Whether a claim of ours is left on an object that is not."""
    if body["kind"] == "UpgradePlan" or PLAN_LABEL in (body["metadata"].get("labels") or {}):
        return False
    return any(entry["manager"] == FIELD_MANAGER for entry in body["metadata"].get("managedFields") or ())


def steady(value: Any) -> Any:
    """A value without times and identities."""
    if isinstance(value, dict):
        dropped = (*_VOLATILE, *_TIMES, *_UIDS, *_TIMES_OF_OTHERS)
        return {key: steady(item) for key, item in value.items() if key not in dropped}
    if isinstance(value, (list, tuple)):
        return sorted((steady(item) for item in value), key=_type_of)
    return _TIME_IN_TEXT.sub("then", value) if isinstance(value, str) else value


def _type_of(item: Any) -> str:
    """Conditions are known by their types, and come in any order; all else keeps its place."""
    return str(item.get("type", "")) if isinstance(item, dict) and "status" in item else ""


def assert_same(found: FinalState, undisturbed: FinalState) -> None:
    """The same objects with the same contents, and the same work done. Names the first object that differs."""
    assert found.jobs == undisturbed.jobs
    assert sorted(found.objects) == sorted(undisturbed.objects)
    for ref, body in undisturbed.objects.items():
        assert found.objects[ref] == body, ref
