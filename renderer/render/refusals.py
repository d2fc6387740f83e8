"""Decides the gates that need no cluster, so that a reviewer sees what would fail the upgrade later.

The rules are those of the catalogue that say `render_time`; each has a row here. The loop carries them out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from renderer.catalog.rules import RULES
from renderer.frozen import frozen
from renderer.model.probe import RulePredicate, Severity
from renderer.model.rendered import RenderedPlan, RenderedStep
from renderer.versions import explained_refusal

Arguments = Mapping[str, Any]


@frozen
class Refusal:
    """A gate that cannot pass. `message` is what the plan would fail with."""

    reason: str
    message: str
    step: RenderedStep


def refusals(plan: RenderedPlan) -> Iterator[Refusal]:
    """Of every step that is neither skipped nor pending, in the order in which they run."""
    for step in (step for phase in plan.phases for step in phase.steps if step.skipped is None and not step.pending):
        gates = (gate for gate in step.step.gates if gate.failure.severity is Severity.TERMINAL)
        predicates = (predicate for gate in gates for predicate in gate.probe.all)
        for rule in (item for item in predicates if isinstance(item, RulePredicate) and RULES[item.name].render_time):
            reason, decide = DECIDED[rule.name]
            if message := decide(dict(rule.arguments)):
                yield Refusal(reason=reason, message=message, step=step)


def _version(arguments: Arguments) -> str | None:
    return explained_refusal(
        current=str(arguments["current"]),
        target=str(arguments["target"]),
        minimum=str(arguments.get("minimum") or ""),
        strict=str(arguments.get("strict", True)).lower() not in ("false", "f", "0"),
    )


DECIDED: Mapping[str, tuple[str, Callable[[Arguments], str | None]]] = {
    "versionEligible": ("VersionNotEligible", _version)
}
"""Rule to the reason of a refusal and what decides. A test holds it to the rules that say `render_time`."""
