"""Recognizes a node that joined since its phase began, and a machine that replaced another one.

What was done for a machine does not count for the one that replaced it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from reconcile.decide.builder import LONG, DecisionBuilder, WaitRequest
from reconcile.decide.decision import Remove
from reconcile.decide.owned import groups_of_nodes, node_of
from reconcile.decide.probing import scope_of
from reconcile.decide.step_run import Progress
from reconcile.objects import deletion_timestamp
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import ReadFailure
from reconcile.status.plan import key_of
from reconcile.status.times import time_of
from renderer.model.path import look_up
from renderer.model.phase import LateNodes
from renderer.model.ref import Body, ref_of
from renderer.model.rendered import RenderedStep
from renderer.names import label_value

_REASON = "JoinedUpgraded"


def welcome(builder: DecisionBuilder, steps: Sequence[RenderedStep]) -> Progress | None:
    """Handles a node that joined since the phase began. None where it goes through its steps, or was there before.

    What was done for a machine does not count for the one that replaced it: the records are dropped, and the objects
    that were made for it are deleted first. A node that joined with the new release has nothing to do, unless it is
    requested.
    """
    item = next((item for item in steps if item.step.late_nodes is not None and item.skipped is None), None)
    if item is None or (joins := item.step.late_nodes) is None:
        return None
    joined = _joined(builder, joins)
    if joined is None or joined <= _entered(builder, item.phase):
        return None
    if _makes_room(builder, item, steps, joined):
        return Progress.BUSY
    return Progress.DONE if _has_nothing_to_do(builder, item, joins, steps) else None


def _entered(builder: DecisionBuilder, phase: str) -> datetime:
    """The time when the phase was entered; a retry does not count."""
    values = (found.phase.active for found in builder.observation.rendered.phases if found.phase.name == phase)
    return builder.status.first_entered(next(values, "")) or builder.since


def _makes_room(builder: DecisionBuilder, item: RenderedStep, steps: Sequence[RenderedStep], joined: datetime) -> bool:
    """True if objects of the replaced machine have to be deleted first."""
    phase, node = item.phase, str(item.step.node)
    began = builder.status.began(phase, node)
    if began is not None and began < joined:
        builder.event(
            "Normal", "NodeReplaced", f"Node {node} is a different machine than before: its upgrade starts over"
        )
        builder.status = builder.status.without_node(phase, node)
    old = [body for body in _made_for(builder, steps, node) if _made(body) < joined]
    for body in old:
        ref = ref_of(body)
        text = f"waiting for {ref} of the replaced machine to be deleted"
        builder.ask(WaitRequest(text=text, node=node, since=max(joined, builder.since), limit=LONG, refs=(ref,)))
        if not deletion_timestamp(body):
            builder.actions.append(Remove(ref=ref, uid=str(body["metadata"]["uid"])))
    return bool(old)


def _has_nothing_to_do(
    builder: DecisionBuilder, item: RenderedStep, joins: LateNodes, steps: Sequence[RenderedStep]
) -> bool:
    if (trigger := item.step.trigger) is None or any(builder.status.has_begun(key_of(other)) for other in steps):
        return False
    scope, node = scope_of(builder, item), str(item.step.node)
    done, asked = (evaluate(probe, builder.observation.look, scope).passed for probe in (joins.done, trigger.probe))
    if asked or not done:
        return False
    if (entry := builder.status.node_states.get(node)) is not None:
        builder.move_node(node, entry["state"], _REASON, joins.reason)
    return True


def _joined(builder: DecisionBuilder, joins: LateNodes) -> datetime | None:
    """The time when the first of the objects was created that identify the node; None if one of them does not exist."""
    found = [builder.observation.look.get(ref) for ref in joins.by]
    bodies = [body for body in found if body is not None and not isinstance(body, ReadFailure)]
    return min(map(_made, bodies)) if len(bodies) == len(found) else None


def _made_for(builder: DecisionBuilder, steps: Sequence[RenderedStep], node: str) -> list[Body]:
    groups, name = [builder.observation.look.list(group) for group in groups_of_nodes(steps)], label_value(node)
    return [body for found in groups if not isinstance(found, ReadFailure) for body in found if node_of(body) == name]


def _made(body: Body) -> datetime:
    """The time when the object was created; the earliest time if it does not say."""
    text = look_up(body, ("metadata", "creationTimestamp"))
    return time_of(text) if isinstance(text, str) else datetime.min.replace(tzinfo=UTC)
