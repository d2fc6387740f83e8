"""Finds the owner of an object: this plan, another plan's, another owner's, nobody's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.objects import PLAN_LABEL, is_owned_by, label
from renderer.errors import Problem
from renderer.model.ref import Body, ref_of
from renderer.model.rendered import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The UpgradePlan that owns what is applied."""

    api_version: str
    kind: str
    name: str
    uid: str

    @classmethod
    def of(cls, body: Body) -> Plan:
        """Of the live plan; a plan that has no uid yet owns nothing."""
        metadata = body["metadata"]
        return cls(
            api_version=str(body["apiVersion"]),
            kind=str(body["kind"]),
            name=str(metadata["name"]),
            uid=str(metadata["uid"]),
        )

    def reference(self) -> dict[str, Any]:
        """The controlling owner reference. It is set when an object is applied, since no rendering knows the uid."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


def owned_by(plan: Plan, manifest: Manifest) -> dict[str, Any]:
    """The object to send: the manifest, with our label and the owner reference."""
    body = manifest.body
    metadata = dict(body["metadata"])
    metadata["labels"] = {**(metadata.get("labels") or {}), PLAN_LABEL: plan.name}
    metadata["ownerReferences"] = [plan.reference()]
    return {**body, "metadata": metadata}


def is_controlled_by(plan: Plan, live: Body) -> bool:
    """True if the object has our owner reference already."""
    return is_owned_by(live, plan.uid)


def refusal_of(plan: Plan, live: Body, file: str) -> Problem | None:
    """Explains why an existing object may not be applied over; None if it is this plan's."""
    who = holder_of(plan, live)
    if who is None:
        return None
    ref = ref_of(live)
    return Problem(
        reason="NotOurs",
        message=f"{ref} exists and {who}; expected an object of plan {plan.name!r}",
        file=file,
        remedy=f"delete or rename it, or, if the plan is to take it over, label it {PLAN_LABEL}={plan.name}",
    )


def holder_of(plan: Plan, live: Body) -> str | None:
    """Names the holder of the object, as the end of a sentence."""
    controller = next((owner for owner in _owners(live) if owner.get("controller")), None)
    if controller is not None and controller.get("uid") != plan.uid:
        if (controller.get("kind"), controller.get("name")) == (plan.kind, plan.name):
            return f"belongs to an earlier plan of the same name, with uid {controller.get('uid')}"
        return f"is controlled by {controller.get('kind')} {controller.get('name')}"
    name = label(live, PLAN_LABEL)
    if not name and not is_controlled_by(plan, live):
        return "does not belong to an upgrade plan"
    return f"belongs to plan {name!r}" if name and name != plan.name else None


def _owners(live: Body) -> tuple[Mapping[str, Any], ...]:
    return tuple(live["metadata"].get("ownerReferences") or ())
