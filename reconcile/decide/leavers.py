"""What was made for nodes that have left the cluster: nothing is rendered for them any more, and where a node was done
there is no record of its objects. Their labels still tell whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reconcile.decide.decision import Wait
from reconcile.decide.draft import Draft
from reconcile.objects import NODE_LABEL
from reconcile.probes.look import Group, Unseen
from renderer.model.path import look_up
from renderer.model.phase import Occasion, Owned
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedStep

_LABELS = ("metadata", "labels")


def groups_of_leavers(steps: Iterable[RenderedStep], occasion: Occasion | None = None) -> tuple[Group, ...]:
    """Where such objects are: those labelled as a step's for some node, whichever node. On an occasion, only those that
    go then."""
    found = (_group_of(manifest) for item in steps if item.step.node for manifest in _going(item, occasion))
    return tuple(dict.fromkeys(group for group in found if group is not None))


def made_for_leavers(draft: Draft, steps: Iterable[RenderedStep], occasion: Occasion) -> tuple[Body, ...] | None:
    """The objects that go on an occasion; None where they could not be looked for, which is a wait."""
    found: list[Body] = []
    for group in groups_of_leavers(steps, occasion):
        items = draft.world.look.list(group)
        if isinstance(items, Unseen):
            draft.waits.append(Wait(text=f"{group.kind} objects of nodes that left cannot be looked for: {items.why}"))
            return None
        found += [body for body in items if _node_of(body) not in (None, *draft.nodes)]
    return tuple(found)


def _going(item: RenderedStep, occasion: Occasion | None) -> Iterator[Manifest]:
    for manifest in item.manifests:
        if isinstance(manifest.spec, Owned) and (occasion in manifest.spec.cleanup or occasion is None):
            yield manifest


def _group_of(manifest: Manifest) -> Group | None:
    labels: Any = look_up(manifest.body, _LABELS)
    if not labels or NODE_LABEL not in labels:
        return None
    kept = tuple(sorted((key, str(value)) for key, value in labels.items() if key != NODE_LABEL))
    ref = manifest.ref
    return Group(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace, labels=kept)


def _node_of(body: Body) -> str | None:
    node = look_up(body, (*_LABELS, NODE_LABEL))
    return str(node) if node else None
