"""Puts a delivery together from what a rendering was made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from renderer.catalog.load import Catalog
from renderer.catalog.places import DELIVERY
from renderer.context.facts import Facts
from renderer.delivery.agent_files import AgentTemplates
from renderer.delivery.delivery_rules import load_rules
from renderer.delivery.delivery_tree import Delivery
from renderer.delivery.options import DeliveryOptions
from renderer.layout.credentials import RenderedCredential
from renderer.model.rendered import RenderedPlan
from renderer.templating import Templates
from renderer.validation import document_problems


class Assembled(Protocol):
    """The parts that a plan was rendered from."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def templates(self) -> Templates: ...
    @property
    def facts(self) -> Facts: ...


def prepare_delivery(
    assembly: Assembled,
    plan: RenderedPlan,
    options: DeliveryOptions,
    credentials: Sequence[RenderedCredential] = (),
    page: str = "",
    *,
    allow_secrets: bool = False,
) -> Delivery:
    """The delivery of a plan that the assembly has rendered. Raises `Problems` for rules that cannot be read."""
    tree = assembly.catalog.tree
    paths = tuple(path for path in tree if path.startswith(f"{DELIVERY}/") and path.endswith(".j2"))
    return Delivery(
        plan=plan,
        upgrade_plan=assembly.facts.plan,
        options=options,
        rules=load_rules(tree, document_problems),
        kinds=assembly.catalog.kinds,
        templates=AgentTemplates(templates=assembly.templates, paths=paths),
        credentials=credentials,
        allow_secrets=allow_secrets,
        page=page,
    )
