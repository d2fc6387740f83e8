"""The API of UpgradePlan: its group, and what is called by that group on other objects."""

from __future__ import annotations

GROUP = "management.harvesterhci.io"

PREFIX = f"{GROUP}/"
"""Of every annotation, label and finalizer that belongs to upgrades."""

PLAN_API_VERSION = f"{GROUP}/v1beta1"
