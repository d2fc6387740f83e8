"""Warns that Git reverts a change of a plan that an agent delivers, and prints the change to commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reconcile.cli.connect import Target, template_set_of

if TYPE_CHECKING:
    from renderer.delivery.agent_marks import AgentMarks


def change_to_commit(target: Target, plan: Mapping[str, Any], patch: Mapping[str, Any]) -> list[str]:
    """The lines; none for a plan that no agent delivers."""
    return [*change_lines(_marks(target), plan, patch)]


def removal_to_commit(target: Target, plan: Mapping[str, Any]) -> list[str]:
    """The same for a plan that is to be deleted."""
    return [*removal_lines(_marks(target), plan)]


def delivery_of(target: Target, plan: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The agents that deliver the plan, and the change to commit if there are any, for an answer to machines."""
    return delivery_model(_marks(target), plan, patch)


def delivery_model(marks: Sequence[AgentMarks], plan: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    from renderer.delivery.agent_marks import agents_of

    found = [{"agent": item.agent, "mark": item.mark} for item in agents_of(plan, marks)]
    return {"delivered": found, **({"commit": _change(plan, patch)} if found else {})}


def change_lines(marks: Sequence[AgentMarks], plan: Mapping[str, Any], patch: Mapping[str, Any]) -> Iterator[str]:
    from renderer.yaml_io import dump

    if found := _agents(marks, plan):
        yield f"{found}: Git sets this back unless it is committed as well:"
        yield from (f"  {line}" for line in dump(_change(plan, patch)).splitlines())


def _change(plan: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the plan's file that a patch changes."""
    metadata = {"name": plan["metadata"]["name"], **patch.get("metadata", {})}
    head = {"apiVersion": plan["apiVersion"], "kind": plan["kind"], "metadata": metadata}
    return head | {part: value for part, value in patch.items() if part != "metadata"}


def removal_lines(marks: Sequence[AgentMarks], plan: Mapping[str, Any]) -> Iterator[str]:
    if found := _agents(marks, plan):
        name = plan["metadata"]["name"]
        yield f"{found}: Git creates the plan again, and with it the upgrade; first commit this:"
        yield f"  remove the file of {plan['kind']} {name}, and its entry in kustomization.yaml"


def _agents(marks: Sequence[AgentMarks], plan: Mapping[str, Any]) -> str:
    """`warning: Flux delivers up (label x)`; empty if no agent does."""
    from renderer.delivery.agent_marks import agents_of

    found = agents_of(plan, marks)
    if not found:
        return ""
    verb = "delivers" if len(found) == 1 else "deliver"
    named = " and ".join(f"{item.agent} ({item.mark})" for item in found)
    return f"warning: {named} {verb} {plan['metadata']['name']}"


def _marks(target: Target) -> Sequence[AgentMarks]:
    from renderer.delivery.delivery_rules import load_rules
    from renderer.validation import document_problems

    return load_rules(template_set_of(target.templates).tree, document_problems).marks
