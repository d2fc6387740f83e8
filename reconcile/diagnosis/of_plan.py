"""Works out the situation of a plan: what a round has decided, and what is seen around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from reconcile.act.belonging import Plan, holder_of
from reconcile.decide.decision import Apply, Decision, Wait
from reconcile.decide.phase import all_steps
from reconcile.diagnosis.situation import ConflictingObject, Departure, ExpectedReboot, Situation, refused_in
from reconcile.objects import deletion_timestamp, is_owned_by, uid
from reconcile.probes.look import Look, ReadFailure
from reconcile.status.attempt import attempt_of
from reconcile.status.plan import FAILED, PlanStatus, key_of
from reconcile.status.plan_body import status_of
from renderer.model.node_state import NodeStates
from renderer.model.path import Path
from renderer.model.probe import Captured, FieldPredicate, Fixed, ObjectTarget
from renderer.model.ref import Body, Ref
from renderer.model.rendered import RenderedPlan, RenderedStep

_OS: Path = ("status", "nodeInfo", "osImage")
_BOOT: Path = ("status", "nodeInfo", "bootID")


def situation_of(
    plan: Body,
    decision: Decision | None,
    rendered: RenderedPlan | None,
    look: Look,
    now: datetime,
    *,
    is_rendered: bool = True,
) -> Situation:
    """The situation of a plan, as a round has decided. `is_rendered` is False for one that no template lets go on."""
    status, waits = status_of(plan), decision.waits if decision else ()
    items, refused = _waited(rendered, waits), refused_in(plan) if is_rendered else ""
    return Situation(
        plan=str(plan["metadata"]["name"]),
        waits=waits,
        states={node: str(entry.get("state", "")) for node, entry in status.node_states.items()},
        node_states=rendered.node_states if rendered else NodeStates(),
        now=now,
        look=look,
        phases=_phases(rendered, status),
        nodes=rendered.nodes if rendered else (),
        paused=_paused(rendered, status),
        reboots={wait.node: reboot for wait, item in items if wait.node and (reboot := _reboot(wait, item, status))},
        held_up=_held_up(rendered, waits),
        gone={ref: made for wait, item in items for ref, made in _gone(wait, item, status, look)},
        attempt=attempt_of(plan),
        refused=refused,
        conflicts=dict(_conflicts(plan, decision, look, refused)),
        leaving=_leaving(plan, waits, look),
        former=status.former_objects(),
    )


def waits_for_nothing(plan: Body, decision: Decision | None) -> bool:
    """True if there is nothing to diagnose: no wait, no refusal, and the plan has not failed."""
    status = status_of(plan)
    return not (decision and decision.waits) and status.phase != FAILED and not refused_in(plan)


def _phases(rendered: RenderedPlan | None, status: PlanStatus) -> tuple[str, ...]:
    """The phase that is under way; none between two of them, and where the plan has ended."""
    phases = rendered.phases if rendered else ()
    return tuple(item.phase.name for item in phases if item.phase.active == status.phase)


def _waited(rendered: RenderedPlan | None, waits: Iterable[Wait]) -> list[tuple[Wait, RenderedStep]]:
    """The waits of steps, with their steps."""
    steps = {item.id: item for item in all_steps(rendered.phases if rendered else ())}
    return [(wait, steps[wait.step]) for wait in waits if wait.step in steps]


def _reboot(wait: Wait, item: RenderedStep, status: PlanStatus) -> ExpectedReboot | None:
    """The expected return of the node, where a gate of the step waits for its OS and its boot."""
    captured = status.captured(item.phase, wait.node)
    for gate in (gate for gate in item.step.gates if isinstance(gate.probe.target, ObjectTarget)):
        expected = {field.path: field.operand for field in gate.probe.all if isinstance(field, FieldPredicate)}
        os, boot = expected.get(_OS), expected.get(_BOOT)
        if isinstance(os, Fixed) and isinstance(boot, Captured) and status.has_begun(key_of(item)):
            return ExpectedReboot(os=str(os.value), boot=str(captured.get(boot.name, "")), overdue=wait.slow)
    return None


def _paused(rendered: RenderedPlan | None, status: PlanStatus) -> tuple[str, ...]:
    """Nodes in the state of a step that is held."""
    steps = all_steps(rendered.phases if rendered else ())
    held = {item.step.hold.state for item in steps if item.step.hold}
    return tuple(sorted(node for node, entry in status.node_states.items() if entry.get("state") in held))


def _held_up(rendered: RenderedPlan | None, waits: Iterable[Wait]) -> tuple[str, ...]:
    """Nodes that wait until the others are well."""
    lanes = (lane for phase in (rendered.phases if rendered else ()) for lane in phase.phase.lanes)
    texts = tuple(lane.require_peers.waiting for lane in lanes if lane.require_peers)
    return tuple(sorted({wait.node for wait in waits if wait.node and wait.text.startswith(texts)}))


def _gone(wait: Wait, item: RenderedStep, status: PlanStatus, look: Look) -> Iterator[tuple[Ref, datetime]]:
    """The objects that the step has made and waits for, and that do not exist any more."""
    if (record := status.record(key_of(item))) is not None:
        refs = (made.ref for made in record.objects if made.ref in wait.refs)
        yield from ((ref, record.started) for ref in refs if look.get(ref) is None)


def _leaving(plan: Body, waits: Iterable[Wait], look: Look) -> Departure | None:
    if not deletion_timestamp(plan):
        return None
    return Departure(objects={ref: look.get(ref) for wait in waits for ref in wait.refs})


def _conflicts(
    plan: Body, decision: Decision | None, look: Look, refused: str
) -> Iterator[tuple[Ref, ConflictingObject]]:
    """Objects that are to be created, are there, and are not the plan's."""
    actions = decision.actions if decision and refused else ()
    for ref in (action.manifest.ref for action in actions if isinstance(action, Apply)):
        body = look.get(ref) if str(ref) in refused else None
        if body is None or isinstance(body, ReadFailure) or is_owned_by(body, uid(plan)):
            continue
        of = Plan.of(plan)
        unowned = f"has the label of plan {of.name!r}, but no owner reference to it"
        yield ref, ConflictingObject(body=body, holder=holder_of(of, body) or unowned)
