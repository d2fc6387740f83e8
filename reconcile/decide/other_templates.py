"""Holds a plan before its next phase where the manager's templates are others than those that the plan began with.

Which these are is recorded when the plan begins. What has begun is finished by its record; whatever has not waits
until somebody has approved the templates of the manager that is there now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconcile.decide.builder import DecisionBuilder
from renderer.model.rendered import RenderedPhase

TEMPLATES = "templates"
"""The field of the status: `digest`, and `files` with the digest of each."""
TEMPLATES_APPROVED = "TemplatesApproved"
_MOST_NAMED = 5


def note_templates(builder: DecisionBuilder) -> None:
    """Records the templates that the plan begins with, and those that are approved in their place."""
    now, before = builder.observation.templates, builder.status.field(TEMPLATES)
    if now is None or (before is not None and before["digest"] == now.digest):
        return
    if before is not None and builder.observation.approved_templates != now.digest:
        return
    builder.status = builder.status.with_field(TEMPLATES, {"digest": now.digest, "files": dict(now.files)})
    if before is not None:
        changed = _named([*_changes(before["files"], now.files)])
        builder.event("Normal", TEMPLATES_APPROVED, f"Continuing with the manager's templates, as approved: {changed}")


def are_others(builder: DecisionBuilder, completed: RenderedPhase, upcoming: RenderedPhase) -> bool:
    """True if the upcoming phase has not begun, and what it is rendered from is not what the plan began with."""
    now, before = builder.observation.templates, builder.status.field(TEMPLATES)
    if now is None or before is None or any(builder.status.of(upcoming.phase.name)):
        return False
    numbers = range(completed.phase.number + 1, upcoming.phase.number + 1)
    changes = [text for path, text in _changes(before["files"], now.files).items() if _concerns(path, numbers)]
    if not changes:
        return False
    name, plan = upcoming.phase.name, builder.observation.rendered.plan
    text = (
        f"phase {name} has not begun, since the manager's templates differ from those that the plan began with: "
        f"{_named(changes)}; review what they change (upgradeplan diff {plan}) and run upgradeplan approve {plan}, "
        "or run the manager that the plan began with"
    )
    builder.wait_for_operator(text, step=name, since=builder.waiting_since(f"{name}: other templates"))
    return True


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Names each file that is not the same, and says whether it is new or gone; by path."""
    paths = sorted(before.keys() | now.keys())
    return {path: _change(path, before, now) for path in paths if before.get(path) != now.get(path)}


def _change(path: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return f"{path} (removed)" if path not in now else f"{path} (added)" if path not in before else path


def _concerns(path: str, numbers: range) -> bool:
    """True if a phase of these numbers is rendered from the file. What is in no phase's folder concerns all phases."""
    number = path[:2]
    return not number.isdecimal() or int(number) in numbers


def _named(changes: Sequence[str]) -> str:
    more = len(changes) - _MOST_NAMED
    return ", ".join(changes[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
