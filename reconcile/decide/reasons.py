"""How a step says why it does not go on, or has failed: in the words of those who know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconcile.decide.builder import DecisionBuilder
from reconcile.probes.verdict import Verdict
from renderer.model.path import look_up
from renderer.model.rendered import Pending, RenderedStep

_NODES_TOLD = 5


def describe_pending(pending: Iterable[Pending]) -> str:
    """What is missing, and where it comes from."""
    return "; ".join(f"{item.input} is not known yet: {item.remedy}" for item in pending)


def explain_failure(builder: DecisionBuilder, verdict: Verdict) -> tuple[str, str]:
    """Reason and message of the condition by which an object says that it has failed; else the probe's words."""
    for ref in verdict.offenders:
        body = builder.observation.look.get(ref)
        for condition in look_up(body, ("status", "conditions")) or () if isinstance(body, Mapping) else ():
            if condition.get("type") == "Failed" and condition.get("status") == "True":
                return condition.get("reason", ""), condition.get("message") or verdict.reason
    return "", verdict.reason


def describe_failure(builder: DecisionBuilder, item: RenderedStep, message: str, why: str) -> str:
    """A failure in the API's words, then why, then on which nodes."""
    whole = message if not why or why in message else f"{message}: {why}"
    return "; ".join([whole, *_failed_nodes(builder, item)])


def _failed_nodes(builder: DecisionBuilder, item: RenderedStep) -> list[str]:
    """What the Jobs have said that somebody else made for the step, by node; of many nodes the first."""
    failed = item.step.job_states.states.failed if item.step.job_states else None
    entries = {node: entry for node, entry in builder.status.node_states.items() if entry.get("state") == failed}
    said = [f"{node}: {entry['message']}" for node, entry in entries.items() if entry.get("message")]
    return said[:_NODES_TOLD] + [f"and {len(said) - _NODES_TOLD} more nodes"] * (len(said) > _NODES_TOLD)
