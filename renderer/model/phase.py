"""A phase and its steps, as declared in `phase.yaml` or as resolved for one plan: the same shapes, text filled in."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.model.probe import Event, Gate, Predicate, Probe, Target, Trigger
from renderer.model.ref import Ref


class Deletion(StrEnum):
    """May a plan be deleted in this phase?"""

    FREE = "free"
    CAREFUL = "careful"  # with the allow-deletion annotation
    FORBIDDEN = "forbidden"


class Position(StrEnum):
    """When a step runs, relative to the phase's two status values."""

    ENTER = "enter"  # before the active value is recorded
    DURING = "steps"
    LEAVE = "leave"  # after the completed value is recorded


class Occasion(StrEnum):
    """When a borrowed field may be given back, or an owned object removed."""

    COMPLETED = "completed"  # this step has ended
    SUCCESS = "success"
    ABORT = "abort"
    FAILURE = "failure"


class WhenAbsent(StrEnum):
    """What a borrowed manifest does when its object is not there."""

    SKIP = "skip"
    WAIT = "wait"


@frozen
class Expression:
    """An expression of the templates' language and the reason that is recorded where it decides."""

    expr: str
    because: str


@frozen
class ProbeCondition:
    """The step runs only if this probe passes when the step's turn comes; else it is skipped with `because`."""

    probe: Probe
    because: str


@frozen
class Owned:
    """We create it, label it, and clean it up on `cleanup`. `maintained`: kept alive until the plan ends. `take_over`:
    fields that are made as rendered on an object that the Harvester Upgrade Manager has made for this very plan; all
    else of that stays as it is."""

    file: str
    when: Expression | None = None
    maintained: bool = False
    cleanup: tuple[Occasion, ...] = (Occasion.SUCCESS, Occasion.ABORT)
    take_over: tuple[Path, ...] = ()


@frozen
class Union:
    """A list that we add to and take from, entry by entry: `keys` identify an entry, and within an entry the text list
    at `values` is the set that we add to."""

    keys: tuple[str, ...]
    values: str


@frozen
class BorrowOption:
    """Another way than the plain one to write, hold and give back the field at `path`, or (no path) every field of the
    manifest. `name` is its key in `phase.yaml` and its row in the tables of options."""

    name: str
    path: Path = ()
    argument: Any = None


@frozen
class Inherited:
    """What stood at `path` before the Harvester Upgrade Manager changed it, as far as its own bookkeeping says, for a
    plan that we take over from it. Counts only if the expression `when` holds; `value` ABSENT: nothing stood there."""

    path: Path
    value: Any
    when: str | None = None


@frozen
class Borrowed:
    """Just the fields that we set on somebody else's object.

    `returns` says for each occasion which paths go back: `()` stands for all that we set.
    """

    file: str
    when: Expression | None = None
    returns: tuple[tuple[Occasion, tuple[Path, ...]], ...] = ()
    when_absent: WhenAbsent = WhenAbsent.WAIT
    options: tuple[BorrowOption, ...] = ()
    inherits: tuple[Inherited, ...] = ()


ManifestSpec = Owned | Borrowed


@frozen
class Hold:
    """A step that has not started waits while `when` is true; `state`, `reason` and `message` are the node's meanwhile,
    and `waiting` (followed by the nodes' names) is what the plan says."""

    when: str
    state: str
    reason: str
    message: str
    waiting: str


@frozen
class Assumed:
    """What counts as captured where the Harvester Upgrade Manager has begun the step, if the expression `when` is
    true."""

    value: Any
    when: str


@frozen
class Capture:
    """A field that is read when the step starts and recorded; `add` is added to a number; `record` names a status field
    that gets the value as well."""

    name: str
    target: Target
    path: Path
    default: Any = None
    add: int = 0
    record: str | None = None
    inherits: Assumed | None = None


class FetchAs(StrEnum):
    """How fetched text is read."""

    RELEASE = "release"  # a YAML mapping, every scalar is text
    LINES = "lines"  # one entry a line, blanks dropped


@frozen
class Absence:
    """The fetched document is not there (HTTP 404): the rest of the phase is skipped.

    `proven_by` is a path of the same Service that must be readable then: one without endpoints answers 404 as well.
    """

    because: str
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
class NodeStates:
    """States of a node while its step runs, after it passed, after it failed. None leaves the state alone."""

    active: str | None = None
    completed: str | None = None
    failed: str | None = None


@frozen
class Seed:
    """Every managed node without a state, or with one of `replaces`, gets `state`."""

    state: str
    replaces: tuple[str, ...] = ()


@frozen
class Trace:
    """A field that others leave on every object of a kind because of us; removed when the plan is cleaned up."""

    api_version: str
    kind: str
    path: Path


@frozen
class Joins:
    """How a node is known that joined later: everything in `by` is younger than the phase, or than what was done for
    an earlier node of that name. If `done` passes, nothing is left to do for it unless it is asked for."""

    by: tuple[Ref, ...]
    done: Probe
    because: str


@frozen
class JobStates:
    """Node states that come from Jobs which somebody else makes: found by labels, the node named by `node_label`."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    node_label: str
    states: NodeStates


@frozen
class Step:
    """One step. `for_each` fans it out over nodes; `node` is set once it has been resolved for one.

    Trouble on other nodes does not keep a step with `despite_others` from beginning. While `keeps_lane` holds, a node
    that has gone through its lane counts as being inside.
    """

    name: str
    position: Position
    description: str = ""
    node: str | None = None
    for_each: str | None = None
    lane: str | None = None
    despite_others: bool = False
    keeps_lane: Probe | None = None
    requires: tuple[str, ...] = ()
    skip_when: tuple[Expression, ...] = ()
    skip_unless: ProbeCondition | None = None
    trigger: Trigger | None = None
    joins: Joins | None = None
    repeat: bool = False
    hold: Hold | None = None
    captures: tuple[Capture, ...] = ()
    fetches: tuple[Fetch, ...] = ()
    records: tuple[tuple[str, str], ...] = ()
    seed: Seed | None = None
    manifests: tuple[ManifestSpec, ...] = ()
    gates: tuple[Gate, ...] = ()
    no_gate: str | None = None
    node_states: NodeStates | None = None
    job_states: JobStates | None = None
    started: Event | None = None
    traces: tuple[Trace, ...] = ()
    undo: Step | None = None


@frozen
class Others:
    """What must hold of every other node before one begins a step of a lane."""

    all: tuple[Predicate, ...]
    waiting: str


@frozen
class Lane:
    """At most `at_most` nodes are between the first and the last step of a lane; the others wait and say `waiting`."""

    name: str
    at_most: int
    waiting: str
    others: Others | None = None


@frozen
class Phase:
    """`number` and `folder` come from the folder's name; steps are in the order in which they run. `announce`: events
    say that the phase was entered and completed."""

    name: str
    number: int
    folder: str
    description: str
    active: str
    completed: str
    deletion: Deletion
    announce: bool = True
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    skip_when: tuple[Expression, ...] = ()
    lanes: tuple[Lane, ...] = ()
    steps: tuple[Step, ...] = field(default_factory=tuple)
