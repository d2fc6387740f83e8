"""The UpgradePlan as Git has it: the fields that its author wrote, and the digests that were reviewed with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPhase, RenderedPlan
from renderer.render.manifest import written

_OF_THE_SERVER = (
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation"),
    *("managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"),
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PENDING = "pending"


def plan_for_git(body: Body, rendered: RenderedPlan) -> Body:
    """The plan without what a server has added. The loop enters no phase whose own rendering has another digest than
    the approved one."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in _OF_THE_SERVER}
    kept = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED}
    annotations = {**kept, **_review(rendered)}
    return written(
        {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {**metadata, "annotations": annotations}}
        | {key: body[key] for key in ("spec",) if key in body}
    )


def _review(rendered: RenderedPlan) -> Mapping[str, str]:
    return {
        f"{PREFIX}rendered-digest": rendered.digest,
        f"{PREFIX}approved-digests": json.dumps(dict(_digests(rendered.phases))),
    }


def _digests(phases: Iterable[RenderedPhase]) -> Iterable[tuple[str, Any]]:
    for phase in phases:
        pending = phase.pending or any(step.pending for step in phase.steps)
        yield phase.phase.name, _PENDING if pending else phase.digest
