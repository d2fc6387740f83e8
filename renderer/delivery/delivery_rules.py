"""`delivery/rules.yaml` of a template tree as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.places import DELIVERY_RULES as FILE
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problems
from renderer.frozen import frozen
from renderer.model.document_type import DELIVERY_RULES


@frozen
class Dressing:
    """A part of an agent's copy of a manifest that the manifest does not have."""

    name: str
    description: str
    annotations: Mapping[str, str]


@frozen
class DeliveryRules:
    """All rules of one tree."""

    dressings: tuple[Dressing, ...]


def load_rules(tree: TemplateTree, validate: Validate) -> DeliveryRules:
    """Raises `Problems` for a file that cannot be read."""
    reader = FileReader(tree, validate)
    document = reader.document(FILE, DELIVERY_RULES)
    if document is None:
        raise Problems(reader.problems)
    return rules_from(document.value)


def rules_from(raw: Mapping[str, Any]) -> DeliveryRules:
    return DeliveryRules(dressings=tuple(Dressing(**item) for item in raw["dressings"]))
