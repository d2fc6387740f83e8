"""The result of rendering: manifests, and the phases and steps that they belong to, resolved for one plan.

The same for a reviewer, a pull agent and the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.manifest_spec import Borrowed, ManifestSpec
from renderer.model.node_state import NodeStates
from renderer.model.path import Path
from renderer.model.phase import Phase, Step
from renderer.model.ref import Body, Ref, ref_of


@frozen
class Manifest:
    """An object to apply, or the fields that are borrowed on somebody else's object.

    `file` is its place below the plan's folder, `template` its place in the template tree. `run_time` lists the paths
    whose values are known only at run time; `body` has placeholders there. `digest` is of `body` alone.
    """

    file: str
    template: str
    spec: ManifestSpec
    body: Body
    run_time: tuple[Path, ...]
    images: tuple[str, ...]
    digest: str

    @property
    def ref(self) -> Ref:
        return ref_of(self.body)

    @property
    def borrowed(self) -> bool:
        return isinstance(self.spec, Borrowed)


@frozen
class Pending:
    """An input that was not given, and how to give it."""

    input: str
    remedy: str


@frozen
class RenderedStep:
    """A step with its text filled in, for one node where it fans out; its manifests in the order of their writes. When
    a plan ends, an idle step has those that it would have made.

    `skipped` is why it will not run; `skipped_if` why it may not, where what decides is captured while the upgrade
    runs; `pending` what must be given before it can be rendered; `held` whether its hold is on; `records` are the
    status fields that the step sets, known once what it fetches is; `left_out` names the manifests that this plan does
    not need, and why.
    """

    phase: str
    step: Step
    manifests: tuple[Manifest, ...] = ()
    skipped: str | None = None
    skipped_if: tuple[str, ...] = ()
    pending: tuple[Pending, ...] = ()
    held: bool = False
    digest: str = ""
    records: tuple[tuple[str, Any], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    undo: RenderedStep | None = None

    @property
    def id(self) -> str:
        """`Phase/Step`, or `Phase/Step/node`; unique in a plan and the key of the run-once record."""
        parts = (self.phase, self.step.name, self.step.node)
        return "/".join(part for part in parts if part)


@frozen
class RenderedPhase:
    """`shapes` has each step that fans out, filled in for no node in particular."""

    phase: Phase
    steps: tuple[RenderedStep, ...] = ()
    shapes: tuple[Step, ...] = ()
    skipped: str | None = None
    pending: tuple[Pending, ...] = ()
    digest: str = ""

    def manifests(self) -> Iterator[Manifest]:
        """Every manifest of the phase, undo steps included, in the order of the steps; none of an idle step's."""
        for step in self.steps:
            yield from manifests_of(step)


def manifests_of(step: RenderedStep) -> Iterator[Manifest]:
    """The step's manifests, those of its undo step included; none of its own where it is idle."""
    yield from () if step.skipped is not None or step.pending else step.manifests
    if step.undo:
        yield from step.undo.manifests


@frozen
class RenderedPlan:
    """`plan` is the UpgradePlan's name; `nodes` those that it upgrades, `node_states` the states that they go through;
    `images` all that any manifest uses, sorted; `problems` why some steps could not be rendered, where that is no
    reason to render nothing."""

    plan: str
    nodes: tuple[str, ...] = ()
    node_states: NodeStates = field(default_factory=NodeStates, repr=False, compare=False)
    phases: tuple[RenderedPhase, ...]
    images: tuple[str, ...]
    digest: str
    problems: tuple[Problem, ...] = ()

    def manifests(self) -> Iterator[Manifest]:
        for phase in self.phases:
            yield from phase.manifests()
