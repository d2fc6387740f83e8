"""Dressings: all that an agent's copy of a manifest has beside the manifest. Digests never include them."""

from __future__ import annotations

from typing import Any

from renderer.delivery.delivery_rules import DeliveryRules
from renderer.model.ref import Body
from renderer.render.manifest import written


def dressed(body: Body, rules: DeliveryRules) -> Body:
    """The body with every dressing."""
    metadata = {**body["metadata"], "annotations": {**(body["metadata"].get("annotations") or {}), **_added(rules)}}
    return written({**body, "metadata": metadata})


def undressed(body: Body, rules: DeliveryRules) -> Body:
    """The body as it was before it was dressed."""
    added = _added(rules)
    annotations: dict[str, Any] = body["metadata"].get("annotations") or {}
    kept = {key: text for key, text in annotations.items() if added.get(key) != text}
    return written({**body, "metadata": {**body["metadata"], "annotations": kept}})


def _added(rules: DeliveryRules) -> dict[str, str]:
    return {key: text for dressing in rules.dressings for key, text in dressing.annotations.items()}
