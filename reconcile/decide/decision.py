"""What is decided: the status to record, then the writes to make, then the events to tell; and what is waited for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from reconcile.borrow.fields import Patch
from reconcile.borrow.loan import Loan
from reconcile.status.plan import PlanStatus, StepKey
from renderer.model.path import Path
from renderer.model.probe import Event
from renderer.model.ref import Ref
from renderer.model.rendered import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Make an owned object what the manifest says. `step` is None to bring back one that is maintained."""

    manifest: Manifest
    step: StepKey | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrow:
    """Set fields on somebody else's object. Their originals are in the status by now."""

    manifest: Manifest
    patch: Patch
    step: StepKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """Put originals back, then take our claim off the object. `settled` are the loans that are over then."""

    ref: Ref
    patch: Patch | None
    settled: tuple[Loan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete an object of ours; `uid` makes sure that it is the one that was seen."""

    ref: Ref
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTrace:
    """Take away a field that others left on an object because of us."""

    ref: Ref
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFinalizer:
    """Add our finalizer to the plan, or take it off: then a deleted plan is gone."""

    present: bool


Action = Apply | Borrow | Return | Remove | RemoveTrace | SetFinalizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Something that is waited for: which step, on which node, what, and since when.

    `slow`: somebody has to act, be it that it takes longer than `limit` seconds. `unknown`: it could not be looked at.
    """

    text: str
    step: str = ""
    node: str | None = None
    since: datetime | None = None
    limit: int | None = None
    slow: bool = False
    unknown: bool = False
    refs: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`status` is written first if it differs from what was read, then `actions` are carried out, then `events` told.

    `recheck` asks for another look in so many seconds although nothing may change before. `again`: there is more to do
    at once after this round. `passes` goes into the next `World`.
    """

    status: PlanStatus
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    waits: tuple[Wait, ...] = ()
    recheck: float | None = None
    again: bool = False
    passes: dict[tuple[str, int], int] = field(default_factory=dict)
