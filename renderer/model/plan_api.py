"""The API of UpgradePlan: its group, and what is called by that group on other objects."""

from __future__ import annotations

from renderer.model.ref import Ref

GROUP = "management.harvesterhci.io"

PREFIX = f"{GROUP}/"
"""Of every annotation, label and finalizer that belongs to upgrades."""

PLAN_API_VERSION = f"{GROUP}/v1beta1"


def plan_ref(name: str) -> Ref:
    """The UpgradePlan of this name; it has no namespace."""
    return Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=name)
