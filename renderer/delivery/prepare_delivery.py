"""Puts a delivery together from what a rendering was made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from renderer.catalog.load import Catalog
from renderer.catalog.places import DELIVERY
from renderer.catalog.template_tree import TemplateTree
from renderer.context.build import context_of
from renderer.context.facts import Facts
from renderer.delivery.agent_files import AgentTemplates
from renderer.delivery.delivery_rules import DeliveryRules, load_rules
from renderer.delivery.delivery_tree import Delivery
from renderer.delivery.gate_files import GateWriter
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.upgrade_plan import plan_for_git
from renderer.layout.credentials import RenderedCredential
from renderer.model.rendered import RenderedPlan
from renderer.templating import Templates
from renderer.validation import document_problems

_PROGRAM = "upgradeplan"
"""Repository of this program's image where no value names one, as an installation has it."""


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
    version: str,
    allow_secrets: bool = False,
    rules: DeliveryRules | None = None,
) -> Delivery:
    """The delivery of a plan that the assembly has rendered. `rules` are those of its tree, if they were read. Raises
    `Problems` for rules that cannot be read."""
    tree = assembly.catalog.tree
    rules = rules or load_rules(tree, document_problems)
    values = assembly.catalog.values
    registry = values.get("imageRegistry")
    image = values.get("managerImage") or "/".join(part for part in (registry, f"{_PROGRAM}:{version}") if part)
    return Delivery(
        plan=plan,
        upgrade_plan=assembly.facts.plan,
        options=options,
        rules=rules,
        kinds=assembly.catalog.kinds,
        templates=agent_templates(assembly.templates, tree),
        gates=GateWriter(
            plan=plan,
            upgrade_plan=plan_for_git(assembly.facts.plan, plan),
            release=assembly.facts.release,
            tree=tree,
            templates=assembly.templates,
            kinds=assembly.catalog.kinds,
            rules=rules,
            names=context_of(assembly.facts).names,
            image=image,
        ),
        credentials=credentials,
        allow_secrets=allow_secrets,
        page=page,
    )


def agent_templates(templates: Templates, tree: TemplateTree) -> AgentTemplates:
    """The templates of the tree from which agents' own files are made."""
    paths = tuple(path for path in tree if path.startswith(f"{DELIVERY}/") and path.endswith(".j2"))
    return AgentTemplates(templates=templates, paths=paths)
