"""Nodes that joined since a phase began: machines that are new, or that were put in under the name of another one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from reconcile.decide.captures import scope_of
from reconcile.decide.decision import Remove
from reconcile.decide.draft import Draft
from reconcile.decide.made_for_nodes import groups_of_nodes, node_of
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import Unseen
from reconcile.status.plan import key_of
from reconcile.status.times import time_of
from renderer.model.path import look_up
from renderer.model.phase import Joins
from renderer.model.ref import Body, ref_of
from renderer.model.rendered import RenderedStep
from renderer.names import label_value

REASON = "JoinedUpgraded"


def makes_room(draft: Draft, steps: Sequence[RenderedStep]) -> bool:
    """What was done for a machine says nothing of the one that has taken its place: it is forgotten, and what was made
    for it goes. Returns whether something has to go first."""
    item = _joining(steps)
    joined = _joined(draft, item.step.joins) if item and item.step.joins else None
    if item is None or joined is None or joined <= draft.since:
        return False
    phase, node = item.phase, str(item.step.node)
    began = draft.status.began(phase, node)
    if began is not None and began < joined:
        draft.event("Normal", "NodeReplaced", f"Node {node} is another machine than the one that was worked on before")
        draft.status = draft.status.without_node(phase, node)
    old = [body for body in _made_for(draft, steps, node) if _made(body) < joined]
    for body in old:
        ref = ref_of(body)
        draft.wait(f"{ref} was made for another machine and has to go first", node=node, refs=(ref,))
        if not look_up(body, ("metadata", "deletionTimestamp")):
            draft.actions.append(Remove(ref=ref, uid=str(body["metadata"]["uid"])))
    return bool(old)


def has_nothing_to_do(draft: Draft, steps: Sequence[RenderedStep]) -> bool:
    """Whether the node joined since the phase began, as the others are to become, and nobody asks for it."""
    item = _joining(steps)
    if item is None or (joins := item.step.joins) is None or (trigger := item.step.trigger) is None:
        return False
    joined = _joined(draft, joins)
    if joined is None or joined <= draft.since or any(draft.status.has_begun(key_of(other)) for other in steps):
        return False
    scope, node = scope_of(draft, item), str(item.step.node)
    done, asked = (evaluate(probe, draft.world.look, scope).passed for probe in (joins.done, trigger.probe))
    if asked or not done:
        return False
    if (entry := draft.status.node_states.get(node)) is not None:
        draft.status = draft.status.with_node(node, entry["state"], REASON, joins.because)
    return True


def _joining(steps: Sequence[RenderedStep]) -> RenderedStep | None:
    return next((item for item in steps if item.step.joins is not None and item.skipped is None), None)


def _joined(draft: Draft, joins: Joins) -> datetime | None:
    """When the first of the objects was made that a node is known by; None if one is not there."""
    found = [draft.world.look.get(ref) for ref in joins.by]
    bodies = [body for body in found if body is not None and not isinstance(body, Unseen)]
    return min(map(_made, bodies)) if len(bodies) == len(found) else None


def _made_for(draft: Draft, steps: Sequence[RenderedStep], node: str) -> list[Body]:
    groups, name = [draft.world.look.list(group) for group in groups_of_nodes(steps)], label_value(node)
    return [body for found in groups if not isinstance(found, Unseen) for body in found if node_of(body) == name]


def _made(body: Body) -> datetime:
    """An object that does not say when it was made is as old as can be."""
    text = look_up(body, ("metadata", "creationTimestamp"))
    return time_of(text) if isinstance(text, str) else datetime.min.replace(tzinfo=UTC)
