"""The UpgradePlan as Git has it: the fields that its author wrote, and the digests that were reviewed with it."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan
from renderer.render.manifest import written
from renderer.render.seal import digest_annotations

_OF_THE_SERVER = (
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation"),
    *("managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"),
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


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
    return {f"{PREFIX}rendered-digest": rendered.digest, **digest_annotations(rendered)}
