"""Collects what the searches for causes see: the round, and what is read around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from reconcile.act.belonging import Plan, holder_of
from reconcile.decide.decision import Apply, Wait
from reconcile.decide.phase import all_steps
from reconcile.loop.rendering import attempt_of
from reconcile.loop.round import Round
from reconcile.objects import deletion_timestamp, is_owned_by, uid
from reconcile.observe.source import Source
from reconcile.probes.look import Group, ReadFailure
from reconcile.report.causes import cause as c
from reconcile.report.causes.cause import ConflictingObject, Departure, DiagnosisInput, ExpectedReboot
from reconcile.status.plan import FAILED, PlanStatus, key_of
from reconcile.status.plan_body import status_of
from renderer.model.node_state import NodeStates
from renderer.model.path import Path
from renderer.model.probe import Captured, FieldPredicate, Fixed, ObjectTarget
from renderer.model.ref import Body, Ref
from renderer.model.rendered import RenderedPlan, RenderedStep

GROUPS: tuple[Group, ...] = (
    c.NODES,
    c.PODS,
    c.BUDGETS,
    c.VIRTUAL_MACHINES,
    c.MIGRATIONS,
    c.VOLUMES,
    c.REPLICAS,
    c.ENGINES,
    c.MACHINES,
    c.CLUSTERS,
    c.PROVISIONING_CLUSTERS,
    c.MACHINE_PLANS,
    c.IMAGES,
    c.DATA_VOLUMES,
    c.JOBS,
    c.NODE_PLANS,
)
"""The groups that are read beside what the plan itself waits for."""

_OS: Path = ("status", "nodeInfo", "osImage")
_BOOT: Path = ("status", "nodeInfo", "bootID")


def collect_input(done: Round, source: Source, now: datetime) -> tuple[DiagnosisInput, tuple[str, ...]]:
    """Reads; and says what could not be read. Raises `Away` and its like."""
    plan = done.plan or {}
    status, waits = status_of(plan), done.decision.waits if done.decision else ()
    groups = GROUPS if waits or status.phase == FAILED else ()  # nothing is read where nothing is waited for
    found = {group: source.list(group) for group in groups}
    items, refused = _waited(done.rendered, waits), _refused(done, status)
    diagnosis = DiagnosisInput(
        plan=done.name,
        waits=waits,
        states={node: str(entry.get("state", "")) for node, entry in status.node_states.items()},
        node_states=done.rendered.node_states if done.rendered else NodeStates(),
        now=now,
        groups={group: _typed(group, bodies) for group, bodies in found.items() if not isinstance(bodies, ReadFailure)},
        nodes=done.rendered.nodes if done.rendered else (),
        paused=_paused(done.rendered, status),
        reboots={wait.node: reboot for wait, item in items if wait.node and (reboot := _reboot(wait, item, status))},
        held_up=_held_up(done.rendered, waits),
        gone={ref: made for wait, item in items for ref, made in _gone(wait, item, status, source)},
        attempt=attempt_of(plan) if plan else 0,
        refused=refused,
        conflicts=dict(_conflicts(done, source, refused)),
        leaving=_leaving(done, waits, source),
    )
    return diagnosis, tuple(
        f"{group.kind} objects: {i.why}" for group, i in found.items() if isinstance(i, ReadFailure)
    )


def _typed(group: Group, items: Iterable[Body]) -> tuple[Body, ...]:
    """Items of a list need not repeat what the list is of."""
    return tuple({"apiVersion": group.api_version, "kind": group.kind, **body} for body in items)


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


def _gone(wait: Wait, item: RenderedStep, status: PlanStatus, source: Source) -> Iterator[tuple[Ref, datetime]]:
    """The objects that the step has made and waits for, and that do not exist any more."""
    if (record := status.record(key_of(item))) is not None:
        refs = (made.ref for made in record.objects if made.ref in wait.refs)
        yield from ((ref, record.started) for ref in refs if source.get(ref) is None)


def _leaving(done: Round, waits: Iterable[Wait], source: Source) -> Departure | None:
    if not deletion_timestamp(done.plan or {}):
        return None
    return Departure(objects={ref: source.get(ref) for wait in waits for ref in wait.refs})


def _refused(done: Round, status: PlanStatus) -> str:
    """Returns what the last writes met; a plan that cannot be rendered says so elsewhere."""
    degraded = {} if done.unrendered else status.condition("Degraded") or {}
    is_refused = degraded.get("reason") == "ReconcileError" and degraded.get("status") == "True"
    return str(degraded.get("message", "")) if is_refused else ""


def _conflicts(done: Round, source: Source, refused: str) -> Iterator[tuple[Ref, ConflictingObject]]:
    """Objects that are to be created, are there, and are not the plan's."""
    actions = done.decision.actions if done.decision and done.plan and refused else ()
    for ref in (action.manifest.ref for action in actions if isinstance(action, Apply)):
        body = source.get(ref) if str(ref) in refused else None
        if body is None or isinstance(body, ReadFailure) or is_owned_by(body, uid(done.plan or {})):
            continue
        plan = Plan.of(done.plan or {})
        unowned = f"has the label of plan {plan.name!r}, but no owner reference to it"
        yield ref, ConflictingObject(body=body, holder=holder_of(plan, body) or unowned)
