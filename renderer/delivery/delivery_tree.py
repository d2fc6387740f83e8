"""A rendered plan as the tree that agents pull.

```
index.yaml, SUMMARY.md   for people
kustomization.yaml       lists plan/ alone
plan/                    the UpgradePlan, where that is what is delivered
phases/NN-name/          manifests that agents deliver
review/                  what must not be applied from outside
agents/AGENT/            the agent's own objects
```

A folder that agents pull is the same for all of them. Its kustomization.yaml lists manifests under names that nothing
else reads as YAML, so that `kubectl apply -R` on the tree does not make all phases at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.catalog.places import DELIVERY
from renderer.delivery.agent_files import AgentTemplates, context_of
from renderer.delivery.agents import LAYOUT, DeliveryShape
from renderer.delivery.delivery_rules import DeliveryRules, Dressing
from renderer.delivery.dress import dressed, undressed
from renderer.delivery.gate_document import GateContent
from renderer.delivery.gate_files import PLAN_GATE, GateWriter
from renderer.delivery.linter import FLEET_FILE, LintedDocument, LintedFolder, lint, lint_folders
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.phase_choice import chosen_phases, delivered_steps
from renderer.delivery.phase_units import PHASES, kinds_defined_in, place_taken, units_of_phase
from renderer.delivery.summary import AgentPatch, given_to, patches_in, summary
from renderer.delivery.units import KUSTOMIZATION, Unit, in_a_row, kustomization, unit_name
from renderer.delivery.upgrade_plan import plan_for_git
from renderer.errors import Problems
from renderer.layout import plain
from renderer.layout.credentials import RenderedCredential, refuse_credentials
from renderer.layout.index import index_of
from renderer.layout.manifests import Tree
from renderer.layout.trees import PAGE
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedPhase, RenderedPlan, RenderedStep
from renderer.redaction import Redactor
from renderer.render.manifest import NOT_READ, REVIEW, step_for_review
from renderer.yaml_io import dump, each_document

PLAN_FOLDER = "plan"
PLAN_FILE = "upgradeplan.yaml"
SUMMARY = "SUMMARY.md"
_ONE_BY_ONE = "give-the-agent-each-folder-below-phases-and-not-this-one"
"""Names no file: an agent that is given all phases at once would make all of them at once, and reports that instead."""


@dataclass(frozen=True, kw_only=True)
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
        if not self.allow_secrets:
            refuse_credentials(self.credentials, LAYOUT)
        tree = plain.files(self._placed) | self._pulled | self._for_people()
        rules = self.rules
        folders = lint_folders(rules.lint, rules.definitions, self._folders(tree))
        if found := [*lint(rules.lint, self._linted(tree)), *folders]:
            raise Problems(found)
        tree[SUMMARY] = summary(self.plan, self.options, self.units, self.patches)
        return tree

    def index(self, files: Iterable[str], redactor: Redactor | None = None) -> dict[str, Any]:
        """The tree's index; `files` are all others."""
        own = {**self.options.document(), "dressings": [_dressing(item) for item in self.rules.dressings]}
        return index_of(self._placed, self.kinds, files, LAYOUT, self.credentials, redactor, own)

    def given(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """For each agent its title, the folder whose files are applied once, and the folders that it pulls."""
        return tuple(given_to(self.options, self.units))

    @property
    def patches(self) -> tuple[AgentPatch, ...]:
        """Changes of objects of the agents that others have made, to be made once."""
        return tuple(patch for agent in self.options.agents for patch in patches_in(agent, self._pulled))

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """All that agents deliver, in its order. Raises `Problems` for what they must not."""
        name = self.plan.plan
        if self.options.shape is DeliveryShape.PLAN:
            body = dressed(self._plan_for_git, self.rules)
            return (Unit(name=unit_name(name), folder=PLAN_FOLDER, files={PLAN_FILE: (body,)}),)
        defined = kinds_defined_in(self._phases, self.rules)
        units = (units_of_phase(phase, name, self.rules, self.gates, defined) for phase in self._phases)
        return in_a_row(unit for found in units for unit in found)

    def waited_plan(self) -> Unit:
        """The plan with a gate that passes once it has succeeded, for an agent that cannot judge it."""
        files: dict[str, tuple[Body, ...]] = {PLAN_FILE: (dressed(self._plan_for_git, self.rules),)}
        content = GateContent(name=PLAN_GATE, gates=self.gates.after_plan())
        if content:
            files[self.rules.gate_file] = tuple(dressed(body, self.rules) for body in self.gates.bodies(content))
        return Unit(name=unit_name(self.plan.plan), folder=PLAN_FOLDER, files=files, timeout=self.rules.timeout)

    @cached_property
    def _phases(self) -> Sequence[RenderedPhase]:
        """The phases that agents deliver; none where they deliver the plan, or nothing."""
        is_phases = self.options.shape is DeliveryShape.PHASES
        return chosen_phases(self.plan, self.options, self.rules) if is_phases else ()

    @cached_property
    def _placed(self) -> RenderedPlan:
        """The plan with every manifest where it is in the tree: with its phase where agents deliver it, or where nobody
        applies it."""
        delivered = {step.id for phase in self._phases for step in delivered_steps(phase, self.rules)}
        return replace(self.plan, phases=tuple(_phase(phase, delivered) for phase in self.plan.phases))

    @cached_property
    def _plan_for_git(self) -> Body:
        return plan_for_git(self.upgrade_plan, self.plan)

    @cached_property
    def _pulled(self) -> Tree:
        """The folders that agents pull, and their own objects."""
        if not self.units:
            return {}
        tree: Tree = {}
        context = context_of(self.plan, self.options, self.units, self.kinds)
        for unit, names in zip(self.units, context["units"], strict=True):
            kind = PLAN_FOLDER if unit.folder == PLAN_FOLDER else "phase"
            own, more = unit.tree(), self.templates.files(kind, {**context, "unit": names})
            if taken := [name for name in more if f"{unit.folder}/{name}" in own]:
                raise place_taken(f"{DELIVERY}/{kind}/{taken[0]}.j2", taken[0])
            tree |= own | _below(unit.folder, more)
        for agent in self.options.agents:
            tree |= _below(f"agents/{agent}", self.templates.files(agent, context))
        return tree

    def _for_people(self) -> Tree:
        """The files beside the folders that agents pull."""
        tree: Tree = {PAGE: self.page} if self.page else {}
        if self.options.shape is DeliveryShape.PLAN:
            return tree | {KUSTOMIZATION: dump(kustomization([PLAN_FOLDER]))}
        tree[f"{REVIEW}{PLAN_FILE}{NOT_READ}"] = dump(self._plan_for_git)
        if self.options.shape is DeliveryShape.PHASES:
            tree |= dict.fromkeys((KUSTOMIZATION, f"{PHASES}/{KUSTOMIZATION}"), dump(kustomization([_ONE_BY_ONE])))
        return tree

    def _folders(self, tree: Tree) -> Iterator[LintedFolder]:
        for unit in self.units:
            above = f"{unit.folder}/"
            files = {path.removeprefix(above): text for path, text in tree.items() if path.startswith(above)}
            manifests = frozenset(unit.files)
            yield LintedFolder(folder=unit.folder, bodies=unit.objects, files=files, manifests=manifests)

    def _linted(self, tree: Tree) -> Iterator[LintedDocument]:
        """Manifests as they were before they were dressed, by their templates; and what agents read beside them."""
        templates = {str(manifest.ref): manifest.template for manifest in self.plan.manifests()}
        for unit in self.units:
            for ref, body in zip(unit.refs, unit.objects, strict=True):
                file = templates.get(str(ref), unit.folder)
                yield LintedDocument(file=file, body=undressed(body, self.rules), delivered=True)
        for path, text in tree.items():
            if path.startswith("agents/") or path.endswith(f"/{FLEET_FILE[1]}"):
                yield from (
                    LintedDocument(file=path, body=it.value, delivered=False) for it in each_document(text, path)
                )


def _dressing(dressing: Dressing) -> dict[str, Any]:
    annotations = {"annotations": dict(dressing.annotations)} if dressing.annotations else {}
    return {"name": dressing.name, "description": dressing.description, **annotations}


def _below(folder: str, files: Tree) -> Tree:
    return {f"{folder}/{name}": text for name, text in files.items()}


def _phase(phase: RenderedPhase, delivered: set[str]) -> RenderedPhase:
    above = f"{PHASES}/" if any(step.id in delivered for step in phase.steps) else REVIEW
    shown = replace(phase.phase, folder=f"{above}{phase.phase.folder}")
    return replace(phase, phase=shown, steps=tuple(_step(step, delivered) for step in phase.steps))


def _step(step: RenderedStep, delivered: set[str]) -> RenderedStep:
    if step.id not in delivered:
        return step_for_review(step)
    return replace(step, manifests=tuple(map(_in_phases, step.manifests)))


def _in_phases(manifest: Manifest) -> Manifest:
    file = manifest.file.removeprefix(REVIEW).removesuffix(NOT_READ)
    return replace(manifest, file=f"{PHASES}/{file}{NOT_READ}")
