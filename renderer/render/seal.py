"""Digests of a rendering that an approval consists of: of each phase that can be rendered whole, and of its steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby

from renderer.digest import digest_of, short_digest
from renderer.frozen import frozen
from renderer.model.plan_api import PREFIX
from renderer.model.rendered import RenderedPhase, RenderedPlan

APPROVED = f"{PREFIX}approved-digests"
APPROVED_STEPS = f"{PREFIX}approved-steps"
PENDING = "pending"
"""Stands for the digest of a phase that cannot be rendered whole yet."""


@frozen
class Digests:
    """`phases` has those that can be rendered whole now; `pending` the names of the others."""

    plan: str
    phases: Mapping[str, str]
    pending: tuple[str, ...]


def digests(rendered: RenderedPlan) -> Digests:
    whole = {phase.phase.name: phase.digest for phase in rendered.phases if is_whole(phase.phase.name, rendered)}
    names = (phase.phase.name for phase in rendered.phases)
    return Digests(plan=rendered.digest, phases=whole, pending=tuple(name for name in names if name not in whole))


def digest_annotations(rendered: RenderedPlan) -> dict[str, str]:
    """The annotations that approve what can be rendered whole."""
    found = digests(rendered)
    phases = {**found.phases, **dict.fromkeys(found.pending, PENDING)}
    steps = {phase.phase.name: step_digests(phase) for phase in rendered.phases if phase.phase.name in found.phases}
    return {APPROVED: json.dumps(phases), APPROVED_STEPS: json.dumps(steps)}


def is_whole(name: str, rendered: RenderedPlan) -> bool:
    """True if nothing of the phase is pending."""
    phase = next(item for item in rendered.phases if item.phase.name == name)
    return not phase.pending and not any(step.pending for step in phase.steps)


def step_digests(phase: RenderedPhase) -> dict[str, str]:
    """A short digest of each step, of one that fans out over all nodes; empty where something is pending."""
    groups = ((name, [*steps]) for name, steps in groupby(phase.steps, key=lambda item: item.step.name))
    return {
        name: "" if any(item.pending for item in steps) else short_digest(digest_of([item.digest for item in steps]))
        for name, steps in groups
    }
