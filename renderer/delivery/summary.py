"""Writes `SUMMARY.md` of a tree: what the plan does, and what each agent is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.delivery.agents import AGENTS, SHAPES
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.units import Unit
from renderer.model.rendered import RenderedPhase, RenderedPlan


def summary(plan: RenderedPlan, options: DeliveryOptions, units: Sequence[Unit]) -> str:
    return "\n".join((*_lines(plan, options, units), ""))


def _lines(plan: RenderedPlan, options: DeliveryOptions, units: Sequence[Unit]) -> Iterator[str]:
    yield from (f"# {plan.plan}", "", f"Digest `{plan.digest}`.", "")
    yield from ("| phase | objects | what it does |", "| --- | --- | --- |")
    for phase in plan.phases:
        yield f"| {phase.phase.name} | {len(list(phase.manifests()))} | {_what(phase)} |"
    yield from ("", "## Delivery", "", f"Delivered: {SHAPES[options.shape]}.")
    if units:
        yield from ("", "| agent | apply once | it pulls |", "| --- | --- | --- |")
        yield from (f"| {title} | `{apply}` | {_code(paths)} |" for title, apply, paths in given_to(options, units))


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
