"""A rendered plan as the tree that agents pull.

```
index.yaml, SUMMARY.md   for people
kustomization.yaml       lists plan/ alone
plan/                    the UpgradePlan, where that is what is delivered
phases/NN-name/          manifests that agents deliver
review/                  what must not be applied from outside
agents/AGENT/            the agent's own objects
```

A folder that agents pull is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.delivery.agent_files import AgentTemplates, context_of
from renderer.delivery.agents import LAYOUT, DeliveryShape
from renderer.delivery.delivery_rules import DeliveryRules
from renderer.delivery.dress import dressed
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.summary import given_to, summary
from renderer.delivery.units import KUSTOMIZATION, Unit, kustomization, unit_name
from renderer.delivery.upgrade_plan import plan_for_git
from renderer.frozen import frozen
from renderer.layout import plain
from renderer.layout.credentials import RenderedCredential, refuse_credentials
from renderer.layout.index import index_of
from renderer.layout.manifests import Tree
from renderer.layout.trees import PAGE
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedPhase, RenderedPlan, RenderedStep
from renderer.redaction import Redactor
from renderer.render.manifest import REVIEW, file_for_review
from renderer.yaml_io import dump

PLAN_FOLDER = "plan"
PLAN_FILE = "upgradeplan.yaml"
SUMMARY = "SUMMARY.md"


@frozen
class Delivery:
    """All that a tree is made of."""

    plan: RenderedPlan
    upgrade_plan: Body
    options: DeliveryOptions
    rules: DeliveryRules
    kinds: Kinds
    templates: AgentTemplates
    credentials: Sequence[RenderedCredential] = ()
    allow_secrets: bool = False
    page: str = ""

    def files(self) -> Tree:
        """All files of the tree but the index. Raises `Problems`."""
        return delivery_files(self)

    def index(self, files: Iterable[str], redactor: Redactor | None = None) -> dict[str, Any]:
        """The tree's index; `files` are all others."""
        return index_document(self, files, redactor)

    def given(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """For each agent its title, the folder whose files are applied once, and the folders that it pulls."""
        return tuple(given_to(self.options, units_of(self)))


def delivery_files(delivery: Delivery) -> Tree:
    """All files of the tree but the index. Raises `Problems`."""
    if not delivery.allow_secrets:
        refuse_credentials(delivery.credentials, LAYOUT)
    units = units_of(delivery)
    context = context_of(delivery.plan, delivery.options, units, delivery.kinds)
    tree = plain.files(_for_review(delivery.plan))
    for unit in units:
        tree |= unit.tree()
        own = {**context, "unit": unit.context(delivery.options.repository)}
        tree |= _below(unit.folder, delivery.templates.files(PLAN_FOLDER, own))
    if units:
        tree |= _agents(delivery, context)
    if delivery.options.shape is DeliveryShape.PLAN:
        tree[KUSTOMIZATION] = dump(kustomization([PLAN_FOLDER]))
    else:
        tree[f"{REVIEW}{PLAN_FILE}.txt"] = dump(plan_for_git(delivery.upgrade_plan, delivery.plan))
    if delivery.page:
        tree[PAGE] = delivery.page
    tree[SUMMARY] = summary(delivery.plan, delivery.options, units)
    return tree


def index_document(delivery: Delivery, files: Iterable[str], redactor: Redactor | None = None) -> dict[str, Any]:
    """The tree's index."""
    placed = _for_review(delivery.plan)
    own = {**delivery.options.document(), "dressings": [_dressing(item) for item in delivery.rules.dressings]}
    return index_of(placed, delivery.kinds, files, LAYOUT, delivery.credentials, redactor, own)


def _dressing(dressing: Any) -> dict[str, Any]:
    return {
        "name": dressing.name,
        "description": dressing.description,
        "annotations": dict(dressing.annotations),
    }


def units_of(delivery: Delivery) -> tuple[Unit, ...]:
    if delivery.options.shape is not DeliveryShape.PLAN:
        return ()
    body = dressed(plan_for_git(delivery.upgrade_plan, delivery.plan), delivery.rules)
    return (Unit(name=unit_name(delivery.plan.plan), folder=PLAN_FOLDER, files={PLAN_FILE: (body,)}),)


def _agents(delivery: Delivery, context: dict[str, Any]) -> Tree:
    found: Tree = {}
    for agent in delivery.options.agents:
        found |= _below(f"agents/{agent}", delivery.templates.files(agent, context))
    return found


def _below(folder: str, files: Tree) -> Tree:
    return {f"{folder}/{name}": text for name, text in files.items()}


def _for_review(plan: RenderedPlan) -> RenderedPlan:
    """The same plan with every manifest where nobody applies it."""
    return replace(plan, phases=tuple(map(_phase_for_review, plan.phases)))


def _phase_for_review(phase: RenderedPhase) -> RenderedPhase:
    shown = replace(phase.phase, folder=f"{REVIEW}{phase.phase.folder}")
    return replace(phase, phase=shown, steps=tuple(map(_step_for_review, phase.steps)))


def _step_for_review(step: RenderedStep) -> RenderedStep:
    undo = _step_for_review(step.undo) if step.undo else None
    return replace(step, manifests=tuple(map(_manifest_for_review, step.manifests)), undo=undo)


def _manifest_for_review(manifest: Manifest) -> Manifest:
    return replace(manifest, file=file_for_review(manifest.file))
