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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.delivery.agent_files import AgentTemplates, context_of, unit_context
from renderer.delivery.agents import LAYOUT, DeliveryShape
from renderer.delivery.delivery_rules import DeliveryRules, Dressing
from renderer.delivery.dress import dressed, undressed
from renderer.delivery.gate_files import GateWriter
from renderer.delivery.linter import FLEET_FILE, LintedDocument, lint
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.phase_choice import chosen_phases, delivered_steps
from renderer.delivery.phase_units import PHASES, units_of_phase
from renderer.delivery.summary import given_to, summary
from renderer.delivery.units import KUSTOMIZATION, Unit, in_a_row, kustomization, unit_name
from renderer.delivery.upgrade_plan import plan_for_git
from renderer.errors import Problems
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
from renderer.yaml_io import dump, parse

PLAN_FOLDER = "plan"
PLAN_FILE = "upgradeplan.yaml"
SUMMARY = "SUMMARY.md"
_ONE_BY_ONE = "give-the-agent-each-folder-below-phases-and-not-this-one"
"""Names no file: an agent that is given all phases at once would make all of them at once, and is told so instead."""


@frozen
class Delivery:
    """All that a tree is made of."""

    plan: RenderedPlan
    upgrade_plan: Body
    options: DeliveryOptions
    rules: DeliveryRules
    kinds: Kinds
    templates: AgentTemplates
    gates: GateWriter
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
    tree = plain.files(_placed(delivery))
    for unit in units:
        tree |= unit.tree()
        own = {**context, "unit": unit_context(unit, delivery.options.repository, delivery.kinds)}
        kind = PLAN_FOLDER if unit.folder == PLAN_FOLDER else "phase"
        tree |= _below(unit.folder, delivery.templates.files(kind, own))
    if units:
        tree |= _agents(delivery, context)
    if delivery.options.shape is DeliveryShape.PLAN:
        tree[KUSTOMIZATION] = dump(kustomization([PLAN_FOLDER]))
    else:
        tree[f"{REVIEW}{PLAN_FILE}.txt"] = dump(plan_for_git(delivery.upgrade_plan, delivery.plan))
    if delivery.options.shape is DeliveryShape.PHASES:
        tree |= dict.fromkeys((KUSTOMIZATION, f"{PHASES}/{KUSTOMIZATION}"), dump(kustomization([_ONE_BY_ONE])))
    if delivery.page:
        tree[PAGE] = delivery.page
    if found := lint(delivery.rules.lint, _linted(delivery, units, tree)):
        raise Problems(found)
    tree[SUMMARY] = summary(delivery.plan, delivery.options, units)
    return tree


def index_document(delivery: Delivery, files: Iterable[str], redactor: Redactor | None = None) -> dict[str, Any]:
    """The tree's index."""
    placed = _placed(delivery)
    own = {**delivery.options.document(), "dressings": [_dressing(item) for item in delivery.rules.dressings]}
    return index_of(placed, delivery.kinds, files, LAYOUT, delivery.credentials, redactor, own)


def _dressing(dressing: Dressing) -> dict[str, Any]:
    annotations = {"annotations": dict(dressing.annotations)} if dressing.annotations else {}
    return {"name": dressing.name, "description": dressing.description, **annotations}


def units_of(delivery: Delivery) -> tuple[Unit, ...]:
    """All that agents deliver, in its order. Raises `Problems` for what they must not."""
    match delivery.options.shape:
        case DeliveryShape.PLAN:
            body = dressed(plan_for_git(delivery.upgrade_plan, delivery.plan), delivery.rules)
            return (Unit(name=unit_name(delivery.plan.plan), folder=PLAN_FOLDER, files={PLAN_FILE: (body,)}),)
        case DeliveryShape.PHASES:
            phases = chosen_phases(delivery.plan, delivery.options, delivery.rules)
            units = (units_of_phase(item, delivery.plan.plan, delivery.rules, delivery.gates) for item in phases)
            return in_a_row(unit for found in units for unit in found)
        case _:
            return ()


def _agents(delivery: Delivery, context: dict[str, Any]) -> Tree:
    found: Tree = {}
    for agent in delivery.options.agents:
        found |= _below(f"agents/{agent}", delivery.templates.files(agent, context))
    return found


def _linted(delivery: Delivery, units: Sequence[Unit], tree: Tree) -> Iterator[LintedDocument]:
    """Manifests as they were before they were dressed, by their templates; and what agents read beside them."""
    templates = {str(manifest.ref): manifest.template for manifest in delivery.plan.manifests()}
    for unit in units:
        for ref, body in zip(unit.refs, unit.objects, strict=True):
            file = templates.get(str(ref), unit.folder)
            yield LintedDocument(file=file, body=undressed(body, delivery.rules), delivered=True)
    for path, text in tree.items():
        if path.startswith("agents/") or path.endswith(f"/{FLEET_FILE[1]}"):
            yield from (LintedDocument(file=path, body=it.value, delivered=False) for it in parse(text, path))


def _below(folder: str, files: Tree) -> Tree:
    return {f"{folder}/{name}": text for name, text in files.items()}


def _placed(delivery: Delivery) -> RenderedPlan:
    """The plan with every manifest where it is in the tree: with its phase where agents deliver it, or where nobody
    applies it."""
    delivered: set[str] = set()
    if delivery.options.shape is DeliveryShape.PHASES:
        phases = chosen_phases(delivery.plan, delivery.options, delivery.rules)
        steps = (step for phase in phases for step in delivered_steps(phase, delivery.rules))
        delivered = {step.id for step in steps}
    return replace(delivery.plan, phases=tuple(_phase(phase, delivered) for phase in delivery.plan.phases))


def _phase(phase: RenderedPhase, delivered: set[str]) -> RenderedPhase:
    above = f"{PHASES}/" if any(step.id in delivered for step in phase.steps) else REVIEW
    shown = replace(phase.phase, folder=f"{above}{phase.phase.folder}")
    return replace(phase, phase=shown, steps=tuple(_step(step, delivered) for step in phase.steps))


def _step(step: RenderedStep, delivered: set[str]) -> RenderedStep:
    undo = _step(step.undo, delivered) if step.undo else None
    place = _in_phases if step.id in delivered else _for_review
    return replace(step, manifests=tuple(map(place, step.manifests)), undo=undo)


def _for_review(manifest: Manifest) -> Manifest:
    return replace(manifest, file=file_for_review(manifest.file))


def _in_phases(manifest: Manifest) -> Manifest:
    return replace(manifest, file=f"{PHASES}/{manifest.file}")
