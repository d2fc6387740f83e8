"""The API of UpgradePlan: its group, and what is called by that group on other objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.model.ref import Kind, Ref

GROUP = "management.harvesterhci.io"

PREFIX = f"{GROUP}/"
"""Of every annotation, label and finalizer that belongs to upgrades."""

PLAN_API_VERSION = f"{GROUP}/v1beta1"

PLAN_KIND = Kind(api_version=PLAN_API_VERSION, kind="UpgradePlan", plural="upgradeplans", namespaced=False)

_OLDER_PREFIX = "harvesterhci.io/"


def older_spelling(key: str) -> str:
    """The annotation `management.harvesterhci.io/skip-webhook` as managers before this API spelled it:
    `harvesterhci.io/skipWebhook`."""
    first, *others = key.removeprefix(PREFIX).split("-")
    return f"{_OLDER_PREFIX}{first}{''.join(map(str.capitalize, others))}"


SUPPORTED_SPEC: Mapping[str, Any] = {"mode": "automatic", "skipOSUpgrade": False}
"""Fields of early managers' specs, and the only value of each that is carried out. A plan with another one asks for
what is not done here, and must not be run as if it had not asked."""


def plan_ref(name: str) -> Ref:
    """The UpgradePlan of this name; it has no namespace."""
    return Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=name)
