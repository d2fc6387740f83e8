"""Puts the pieces together: inputs and a template tree become a catalog, compiled templates and facts."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from renderer.catalog.load import Catalog, load_catalog
from renderer.catalog.places import own_knowledge
from renderer.catalog.template_tree import TemplateTree
from renderer.context.build import context_of
from renderer.context.facts import Facts
from renderer.documents import Inputs, plan_of
from renderer.errors import Problems
from renderer.frozen import frozen
from renderer.model.rendered import RenderedPlan
from renderer.render.plan import render
from renderer.templating import Templates
from renderer.validation import document_problems, load

_PLAN_SCHEMA = "built/upgradeplan.json"


@frozen
class TemplateSet:
    """A template tree that was loaded: all that rendering needs but a plan and facts."""

    tree: TemplateTree
    catalog: Catalog
    templates: Templates
    spec_fields: Mapping[str, Any]


@frozen
class Assembly:
    """All that one rendering needs."""

    template_set: TemplateSet
    facts: Facts

    @property
    def catalog(self) -> Catalog:
        return self.template_set.catalog

    @property
    def templates(self) -> Templates:
        return self.template_set.templates

    def render(self) -> RenderedPlan:
        """Raises `Problems`."""
        return render(self.catalog, self.templates, context_of(self.facts))


def open_template_set(tree: TemplateTree, *, code: MutableMapping[str, bytes] | None = None) -> TemplateSet:
    """`code` keeps compiled templates from one run to the next.

    Raises `Problems` for a template tree that does not hold together.
    """
    found = TemplateSet(
        tree=tree,
        catalog=load_catalog(tree, document_problems),
        templates=Templates(tree, code),
        spec_fields=_fields(load(_PLAN_SCHEMA)["properties"]["spec"]),
    )
    if own_knowledge(tree):
        from renderer.text_rules import text_problems

        if problems := text_problems(found.catalog, found.templates, found.spec_fields):
            raise Problems(problems, warnings=found.catalog.warnings)
    return found


def assemble(
    inputs: Inputs, tree: TemplateTree, *, retry: int = 0, code: MutableMapping[str, bytes] | None = None
) -> Assembly:
    """As `open_template_set`, with the facts of the inputs. Raises `Problems` too if no plan is among them."""
    plan_of(inputs)  # before the templates, so that a missing plan is reported first
    return assembly_of(inputs, open_template_set(tree, code=code), retry=retry)


def assembly_of(inputs: Inputs, template_set: TemplateSet, *, retry: int = 0) -> Assembly:
    """The same with a template set that is open. Raises `Problems` if no plan is among the inputs."""
    plan = plan_of(inputs)
    facts = Facts(
        plan=plan.body,
        release=inputs.release.body if inputs.release else None,
        objects=tuple(source.body for source in inputs.objects),
        image_lists=inputs.facts.get("imageLists"),
        values=template_set.catalog.values,
        spec_fields=template_set.spec_fields,
        retry=retry,
    )
    return Assembly(template_set=template_set, facts=facts)


def _fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The field names that a schema declares, nested as they are."""
    properties = schema.get("properties", {})
    return {name: _fields(inner) if "properties" in inner else None for name, inner in properties.items()}
