"""Writes `SUMMARY.md` of a tree: what the plan does, and what each agent is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.delivery.agents import AGENTS, SHAPES
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.units import Unit
from renderer.frozen import frozen
from renderer.layout.manifests import Tree
from renderer.model.rendered import RenderedPhase, RenderedPlan
from renderer.yaml_io import parse

PATCH = ".patch"
"""Ends the name of a file that `kubectl patch` takes, and that `kubectl apply` on its folder passes over."""


@frozen
class AgentPatch:
    """A change of an object of the agent's that others have made: the kubectl command, except for the file in the
    tree."""

    agent: str
    command: str
    file: str


def patches_in(agent: str, tree: Tree) -> Iterator[AgentPatch]:
    """The patches in the agent's folder."""
    for path, text in tree.items():
        if path.startswith(f"agents/{agent}/") and path.endswith(PATCH):
            body = parse(text, path)[0].value
            metadata = body["metadata"]
            named = f"{body['kind'].lower()} {metadata['name']}"
            command = f"kubectl -n {metadata['namespace']} patch {named} --patch-file"
            yield AgentPatch(agent=AGENTS[agent], command=command, file=path)


def summary(
    plan: RenderedPlan, options: DeliveryOptions, units: Sequence[Unit], patches: Sequence[AgentPatch] = ()
) -> str:
    return "\n".join((*_lines(plan, options, units, patches), ""))


def _lines(
    plan: RenderedPlan, options: DeliveryOptions, units: Sequence[Unit], patches: Sequence[AgentPatch]
) -> Iterator[str]:
    yield from (f"# {plan.plan}", "", f"Digest `{plan.digest}`.", "")
    yield from ("| phase | objects | what it does |", "| --- | --- | --- |")
    for phase in plan.phases:
        yield f"| {phase.phase.name} | {len(list(phase.manifests()))} | {_what(phase)} |"
    yield from ("", "## Delivery", "", f"Delivered: {SHAPES[options.shape]}.")
    if units:
        yield from ("", "| agent | apply once | it pulls |", "| --- | --- | --- |")
        yield from (f"| {title} | `{apply}` | {_code(paths)} |" for title, apply, paths in given_to(options, units))
    if patches:
        yield from ("", "Once, from this folder:", "")
        yield from (f"- {patch.agent}: `{patch.command} {patch.file}`" for patch in patches)


def given_to(options: DeliveryOptions, units: Sequence[Unit]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """For each agent its title, the folder whose files are applied once, and the folders that it pulls."""
    paths = tuple(options.repository.below(unit.folder) for unit in units)
    for agent in options.agents if units else ():
        yield AGENTS[agent], f"agents/{agent}", paths


def _code(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _what(phase: RenderedPhase) -> str:
    if phase.skipped:
        return f"skipped: {phase.skipped}"
    if phase.pending:
        return f"pending: {', '.join(item.input for item in phase.pending)}"
    return phase.phase.description
