"""Narrows a rendered plan to phases or a node. The digest stays that of the whole plan, because that is approved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from renderer.errors import Problems, problem
from renderer.model.rendered import RenderedPhase, RenderedPlan
from renderer.suggest import did_you_mean


def select(
    plan: RenderedPlan, *, phases: Iterable[str] = (), through: str | None = None, node: str | None = None
) -> RenderedPlan:
    """The phases of these names, or all up to `through`; with `node`, just the steps that fan out, for that node.

    Raises `Problems` for a name that the plan does not have.
    """
    expected = tuple(phases)
    names = [phase.phase.name for phase in plan.phases]
    for name in (*expected, *([through] if through else ())):
        if name not in names:
            raise unknown("phase", name, names)
    chosen = [phase for phase in plan.phases if not expected or phase.phase.name in expected]
    if through:
        chosen = [phase for phase in chosen if phase.phase.name in names[: names.index(through) + 1]]
        if not chosen:
            message, remedy = f"no phase left: {', '.join(expected)} comes after {through}", "leave one of the two out"
            raise problem("NothingChosen", message, remedy=remedy)
    if node:
        chosen = _of_node(chosen, node, plan.nodes)
    images = sorted({image for phase in chosen for manifest in phase.manifests() for image in manifest.images})
    return replace(plan, phases=tuple(chosen), images=tuple(images))


def _of_node(phases: list[RenderedPhase], node: str, nodes: Sequence[str]) -> list[RenderedPhase]:
    if node not in nodes:
        raise unknown("node", node, sorted(nodes))
    narrowed = (replace(p, steps=tuple(step for step in p.steps if step.step.node == node)) for p in phases)
    found = [phase for phase in narrowed if phase.steps]
    if not found:
        names = ", ".join(phase.phase.name for phase in phases)
        remedy = "leave --node out, or choose phases that have steps for each node"
        raise problem("NothingChosen", f"nothing is done for node {node!r} alone in {names}", remedy=remedy)
    return found


def unknown(what: str, name: str, known: Sequence[str]) -> Problems:
    """The problem of an unknown name, with the one that was probably meant."""
    return problem(
        _UNKNOWN[what],
        f"the plan has no {what} {name!r}{did_you_mean(name, known)}",
        remedy=f"choose one of: {', '.join(known) or 'none'}",
    )


_UNKNOWN = {"phase": "UnknownPhase", "node": "UnknownNode"}
