"""A phase and its steps, as declared in `phase.yaml` or as resolved for one plan: the same shapes, text filled in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from typing import Any

from renderer.frozen import frozen
from renderer.model.check import CheckTime
from renderer.model.manifest_spec import Expression, ManifestSpec
from renderer.model.path import Path
from renderer.model.probe import Event, Gate, Predicate, Probe, RulePredicate, Target, Trigger
from renderer.model.ref import Ref


class Deletion(StrEnum):
    """The rule for deleting a plan during a phase."""

    FREE = "free"
    CAREFUL = "careful"  # with the allow-deletion annotation
    FORBIDDEN = "forbidden"


class Position(StrEnum):
    """The time when a step runs, relative to the phase's two status values."""

    ENTER = "enter"  # before the active value is recorded
    DURING = "steps"
    LEAVE = "leave"  # after the completed value is recorded


@frozen
class SkipUnless:
    """The step runs only if this probe passes when the step's turn comes; otherwise it is skipped for `reason`."""

    probe: Probe
    reason: str


@frozen
class StepChecks:
    """The time whose pre-flight checks must not block when the step begins. After `slow_after` seconds a check that
    cannot look is reported; `patient`: so is a finding, which at other times is reported at once."""

    when: CheckTime
    slow_after: int
    patient: bool = False


@frozen
class Again:
    """The step is carried out again, as another round, while a pre-flight check whose id matches the glob `checks`
    keeps the phase from being left: after `every` seconds, and at once if the plan's annotation gets another value."""

    checks: str
    every: int
    annotation: str


@frozen
class Hold:
    """A step that has not started waits while `when` is true. Then `state`, `reason` and `message` are the node's, and
    `waiting`, followed by the nodes' names, is the plan's message. `event` is emitted once for each node."""

    when: str
    state: str
    reason: str
    message: str
    waiting: str
    event: Event | None = None


@frozen
class ValueOnTakeOver:
    """The value that counts as captured if the Harvester Upgrade Manager has started the step and the expression `when`
    is true."""

    value: Any
    when: str


@frozen
class Unite:
    """The value is a list with commas: what the phase has captured under this name, what `rule` finds when the step
    starts, and every name that the field has while the step is under way."""

    rule: RulePredicate | None = None


@frozen
class ValueIf:
    """The value that counts as captured if the probe passes when the step starts."""

    probe: Probe
    value: Any


@frozen
class ValueBefore:
    """The value that counts as captured from when the field has it, before this step of the same node begins."""

    step: str
    value: Any


@frozen
class Capture:
    """A field that is read when the step starts and recorded; `add` is added to a number; `record` names a status field
    that gets the value as well. `unite`: the value is a list of names, and nothing is ever taken out of it. Of an
    `EveryTarget` no field is read: the value is the list of its objects' names."""

    name: str
    target: Target
    path: Path
    default: Any = None
    add: int = 0
    record: str | None = None
    value_on_take_over: ValueOnTakeOver | None = None
    unite: Unite | None = None
    value_if: ValueIf | None = None
    value_before: ValueBefore | None = None


class FetchAs(StrEnum):
    """The form in which fetched text is read."""

    RELEASE = "release"  # a YAML mapping, every scalar is text
    LINES = "lines"  # one entry a line, blanks dropped


@frozen
class Absence:
    """The fetched document does not exist (HTTP 404): the rest of the phase is skipped.

    `proven_by` is a path of the same Service that must be readable: a Service without endpoints answers 404 as well.
    """

    reason: str
    proven_by: str
    event: Event | None = None


@frozen
class Fetch:
    """A document read over HTTP from a Service of the cluster; keys in `required` must not be empty."""

    name: str
    namespace: str
    service: str
    port: int
    path: str
    read_as: FetchAs
    required: tuple[str, ...] = ()
    non_empty: bool = False
    absent: Absence | None = None


@frozen
class StatesOfWork:
    """States of a node while work on it runs, after it succeeded, after it failed. None leaves the state alone."""

    active: str | None = None
    completed: str | None = None
    failed: str | None = None


@frozen
class InitialNodeState:
    """Every managed node without a state, or with one of `replaces`, gets `state`."""

    state: str
    replaces: tuple[str, ...] = ()


@frozen
class FieldToRemove:
    """A field that other controllers leave on the objects of a kind; removed when the plan is cleaned up."""

    api_version: str
    kind: str
    path: Path


@frozen
class LateNodes:
    """The signs of a node that joined after the phase had begun.

    Everything in `by` is younger than the phase, or than what was done for an earlier node of that name. If `done`
    passes, the node is skipped for `reason` unless the step's trigger fires for it.
    """

    by: tuple[Ref, ...]
    done: Probe
    reason: str


@frozen
class JobStates:
    """Node states that follow Jobs of another controller: found by labels, the node named by `node_label`."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    node_label: str
    states: StatesOfWork


@frozen
class Step:
    """One step. `for_each` fans it out over nodes; `node` is set once it has been resolved for one.

    `reconsider`: that the step was skipped is not final as long as the plan runs.
    `ignore_unhealthy_peers`: the step begins even if the lane's peers are not healthy. While `hold_slot_while` passes,
    a node that has run all steps of the lane keeps its slot. `with_value` names the value without which the catalog
    leaves the step out.
    """

    name: str
    position: Position
    description: str = ""
    node: str | None = None
    for_each: str | None = None
    lane: str | None = None
    ignore_unhealthy_peers: bool = False
    hold_slot_while: Probe | None = None
    requires: tuple[str, ...] = ()
    with_value: str | None = None
    skip_when: tuple[Expression, ...] = ()
    skip_unless: SkipUnless | None = None
    trigger: Trigger | None = None
    late_nodes: LateNodes | None = None
    repeat: bool = False
    reconsider: bool = False
    again: Again | None = None
    hold: Hold | None = None
    checks: StepChecks | None = None
    captures: tuple[Capture, ...] = ()
    fetches: tuple[Fetch, ...] = ()
    records: tuple[tuple[str, str], ...] = ()
    initial_node_state: InitialNodeState | None = None
    manifests: tuple[ManifestSpec, ...] = ()
    gates: tuple[Gate, ...] = ()
    no_gate: str | None = None
    node_states: StatesOfWork | None = None
    job_states: JobStates | None = None
    started: Event | None = None
    completed: Event | None = None
    remove_fields: tuple[FieldToRemove, ...] = ()
    undo: Step | None = None

    def skip_warnings(self, because: str) -> Iterator[str]:
        """Warnings of the expressions that skip the step for this reason."""
        return (item.warning for item in self.skip_when if item.warning and item.reason == because)


@frozen
class RequirePeers:
    """The conditions for every other node before a node begins a step of a lane."""

    all: tuple[Predicate, ...]
    waiting: str


@frozen
class Lane:
    """At most `at_most` nodes are between the first and the last step of a lane; the others wait with `waiting`."""

    name: str
    at_most: int
    waiting: str
    require_peers: RequirePeers | None = None


@frozen
class Phase:
    """`number` and `folder` come from the folder's name; steps are in the order in which they run. `emit_events`: an
    event is emitted when the phase is entered and when it is completed. `no_retry` is why its steps are not retried.
    `also_completed` are values of another manager that mean the same as `completed`."""

    name: str
    number: int
    folder: str
    description: str
    active: str
    completed: str
    deletion: Deletion
    also_completed: tuple[str, ...] = ()
    emit_events: bool = True
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    skip_when: tuple[Expression, ...] = ()
    no_retry: str | None = None
    lanes: tuple[Lane, ...] = ()
    steps: tuple[Step, ...] = field(default_factory=tuple)
