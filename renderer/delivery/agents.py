"""The tables of agents and of shapes of delivery. They load nothing: `--help` and the completion of a shell read
them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

AGENTS: Mapping[str, str] = {"fleet": "Fleet", "argocd": "Argo CD", "flux": "Flux"}
"""Name to title of each agent; each has a folder of that name in `templates/delivery/`."""

LAYOUT = "delivery"
"""The layout of a tree that agents pull, as `index.yaml` calls it."""


class DeliveryShape(StrEnum):
    """The part of the tree that an agent delivers."""

    PLAN = "plan"
    PHASES = "phases"
    REVIEW = "review"


SHAPES: Mapping[DeliveryShape, str] = {
    DeliveryShape.PLAN: "the UpgradePlan, and the manager does the rest",
    DeliveryShape.PHASES: "the phases that need no manager, each after a gate",
    DeliveryShape.REVIEW: "nothing; the tree is for people",
}


def agents_help() -> str:
    """The agents as a sentence."""
    names = ", ".join(f"{name} ({title})" for name, title in AGENTS.items())
    return f"For a tree that an agent pulls from Git: {names}; may be given for each agent."


def shapes_help() -> str:
    """The shapes as a sentence."""
    rows = ", ".join(f"{shape} ({text})" for shape, text in SHAPES.items())
    return f"What the agents deliver: {rows}. Default: {DeliveryShape.PLAN}."
