"""Seals: the digest of each phase as a reviewer would see it now, and what was approved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from reconcile.loop.parts import Parts
from reconcile.observe.facts import gather
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan

APPROVED = "management.harvesterhci.io/approved-digests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """`phases` has those that can be rendered whole now; `pending` the names of the others."""

    plan: str
    phases: Mapping[str, str]
    pending: tuple[str, ...]


def digests_of(parts: Parts, plan: Body) -> Digests:
    """Renders the plan from the live cluster, with marks for what is captured at run time. Raises `Problems`."""
    return digests(parts.rendering.sealed(plan, gather(parts.source, plan), {}))


def digests(rendered: RenderedPlan) -> Digests:
    whole = {phase.phase.name: phase.digest for phase in rendered.phases if is_whole(phase.phase.name, rendered)}
    names = (phase.phase.name for phase in rendered.phases)
    return Digests(plan=rendered.digest, phases=whole, pending=tuple(name for name in names if name not in whole))


def is_whole(name: str, rendered: RenderedPlan) -> bool:
    """Whether nothing of the phase is pending."""
    phase = next(item for item in rendered.phases if item.phase.name == name)
    return not phase.pending and not any(step.pending for step in phase.steps)


def approved_of(plan: Body) -> Mapping[str, str]:
    """The digests that were approved, by phase; none where nobody did, or what is written there is no such thing."""
    text = (plan["metadata"].get("annotations") or {}).get(APPROVED, "")
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}
