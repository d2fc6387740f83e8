"""What was made for nodes: of one that has left the cluster, or is done, neither a rendering nor a record need name the
objects. Their labels still tell whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reconcile.objects import NODE_LABEL
from reconcile.probes.look import Group
from renderer.model.path import look_up
from renderer.model.phase import Occasion, Owned
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedStep

_LABELS = ("metadata", "labels")


def node_of(body: Body) -> str | None:
    """The label by which an object says for which node it was made."""
    node = look_up(body, (*_LABELS, NODE_LABEL))
    return str(node) if node else None


def groups_of_nodes(steps: Iterable[RenderedStep], occasion: Occasion | None = None) -> tuple[Group, ...]:
    """Where such objects are: those labelled as a step's for some node, whichever node. On an occasion, only those that
    go then."""
    found = (_group_of(manifest) for item in steps if item.step.node for manifest in _going(item, occasion))
    return tuple(dict.fromkeys(group for group in found if group is not None))


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
