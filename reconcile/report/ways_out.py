"""Lists the ways out of the present state of a plan: which are allowed in its phase, and what each does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reconcile.decide.retry import phase_of
from reconcile.loop.round import Round
from reconcile.status.attempt import is_taken_back
from reconcile.status.plan import FAILED, SUCCEEDED, PlanStatus
from reconcile.status.plan_body import status_of
from renderer.model.phase import Deletion
from renderer.model.probe import ObjectTarget
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedPhase

REPAIR, RETRY, TAKE_BACK, START_OVER = "repair and go on", "retry", "take back", "start over"
_HOOKS = "Rancher upgrades the remaining nodes without the drain hooks then"
_RETRIED = (
    "runs {steps} again, under a new name and beside its failed objects; drain hooks and other borrowed fields stay, "
    "what the failure has returned is borrowed again with its first original, and nodes that are done stay done"
)
_NEW_PLAN = (
    "create a new plan with the same target: it begins with the first phase, takes over what this plan has borrowed "
    "with the first originals, and drains nodes that are done again if Rancher asks for it, without another reboot"
)
_RETURNED = (
    "returns all borrowed fields, drain hooks included, and removes the plan's objects; nodes that are done stay"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """`effect` is what it does, or why it is not allowed. `command` is empty if there is none to give."""

    way: str
    allowed: bool
    effect: str
    command: str = ""


def ways_out(done: Round) -> tuple[WayOut, ...]:
    """None of a plan that has not begun, that has succeeded, or that is being deleted."""
    plan, phases = done.plan or {}, done.rendered.phases if done.rendered else ()
    status = status_of(plan)
    is_deleted = bool((plan.get("metadata") or {}).get("deletionTimestamp"))
    phase = None if is_deleted or status.phase in ("", SUCCEEDED) else phase_of(status, phases)
    if phase is None:
        return ()
    if status.phase == FAILED:
        return tuple(_of_failed(done.name, status, phase, taken_back=is_taken_back(plan)))
    return tuple(_of_running(done.name, phase))


def ways_out_model(ways: Sequence[WayOut]) -> list[dict[str, Any]]:
    return [asdict(way) for way in ways]


def ways_out_lines(ways: Sequence[dict[str, Any]]) -> Iterator[str]:
    for way in ways:
        allowed = f"way out: {way['way']}" if way["allowed"] else f"not allowed: {way['way']}"
        yield f"  {allowed}: {way['effect']}" + (f": {way['command']}" if way["command"] else "")


def _of_failed(name: str, status: PlanStatus, phase: RenderedPhase, *, taken_back: bool) -> Iterator[WayOut]:
    yield WayOut(
        way=REPAIR,
        allowed=False,
        effect="a failed plan does not continue automatically; take a support bundle, repair the cause, and retry",
        command=f"upgradeplan explain {name} --support-bundle",
    )
    if taken_back or phase.phase.no_retry is not None:
        why = phase.phase.no_retry or "the plan was taken back"
        yield WayOut(way=RETRY, allowed=False, effect=why)
    else:
        failed = [key[1] for key, record in status.records_of(phase.phase.name) if record.failed]
        steps = ", ".join(f"{phase.phase.name}/{step}" for step in dict.fromkeys(failed)) or phase.phase.name
        effect, first = _RETRIED.format(steps=steps), ", ".join(map(str, _made_by_others(phase, failed)))
        if first:
            effect = (
                f"repair {first} first, which the plan does not make: as it is now, the retry fails again; {effect}"
            )
        yield WayOut(way=RETRY, allowed=True, effect=effect, command=f"upgradeplan retry {name}")
    if taken_back:
        yield WayOut(way=TAKE_BACK, allowed=False, effect="the plan was taken back")
    else:
        lent = any(loan.returned is None for loan in status.loans)
        warned = f"; {_HOOKS}" if lent and phase.phase.deletion is Deletion.FORBIDDEN else ""
        kept = f"{_RETURNED}, and so does the record of the plan{warned}"
        yield WayOut(way=TAKE_BACK, allowed=True, effect=kept, command=f"upgradeplan abort {name}")
    yield WayOut(way=START_OVER, allowed=True, effect=_NEW_PLAN)


def _made_by_others(phase: RenderedPhase, steps: Sequence[str]) -> Iterator[Ref]:
    """The objects that these steps only look at: those that make something get it under a new name."""
    for step in phase.steps:
        if step.step.name in steps and all(manifest.borrowed for manifest in step.manifests):
            targets = (gate.probe.target for gate in step.step.gates)
            yield from (target.ref for target in targets if isinstance(target, ObjectTarget))


def _of_running(name: str, phase: RenderedPhase) -> Iterator[WayOut]:
    yield WayOut(way=REPAIR, allowed=True, effect="the plan continues automatically once what it waits for is there")
    gone = "for an object that was deleted: its step makes another one; nothing else is run again"
    yield WayOut(way=RETRY, allowed=True, effect=gone, command=f"upgradeplan retry {name}")
    if phase.phase.deletion is Deletion.FORBIDDEN:
        half = f"{phase.phase.name} must be completed: the cluster would be left half upgraded"
        yield WayOut(way=TAKE_BACK, allowed=False, effect=half)
        yield WayOut(way=START_OVER, allowed=False, effect=half)
        return
    yield WayOut(
        way=TAKE_BACK, allowed=True, effect=f"{_RETURNED}; the plan is deleted", command=f"upgradeplan abort {name}"
    )
    yield WayOut(way=START_OVER, allowed=True, effect="take the plan back first, then create a new one")
