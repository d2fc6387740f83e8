"""A diff as values: one entry a manifest, hidden and masked already. No cluster, no text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from reconcile.diff.trial import GoesBack, Operation
from renderer.errors import ExitCode, Problem
from renderer.model.path import Path
from renderer.model.ref import Body, Ref
from renderer.model.rendered import Pending

_REFUSALS = (Operation.CONFLICT, Operation.REFUSED)
_NOTHING = (Operation.UNCHANGED, Operation.RETURN_LATER, Operation.SKIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field; ABSENT where a side does not have it."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffEntry:
    """The effect of applying one manifest. `before` and `after` are None if there is nothing to show on that side;
    `run_time` are the fields whose values nobody can know yet; `skipped_if` why the step may be skipped then."""

    operation: Operation
    step: str
    ref: Ref
    file: str
    template: str
    changes: tuple[Change, ...] = ()
    goes_back: tuple[GoesBack, ...] = ()
    run_time: tuple[Path, ...] = ()
    skipped_if: tuple[str, ...] = ()
    waits_for: str = ""
    because: str = ""
    problem: Problem | None = None
    warnings: tuple[str, ...] = ()
    before: Body | None = None
    after: Body | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Untried:
    """A step that was not tried: why it is skipped, or what it needs to be rendered."""

    step: str
    skipped: str | None = None
    pending: tuple[Pending, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The effect of applying one phase, in the order in which it would be done."""

    plan: str
    phase: str
    entries: tuple[DiffEntry, ...]
    untried: tuple[Untried, ...] = ()

    def counts(self) -> Counter[Operation]:
        return Counter(entry.operation for entry in self.entries)

    def exit_code(self) -> ExitCode:
        """As `kubectl diff`: 0 no difference, 1 differences, more if something went wrong. What cannot be known yet
        counts as a difference."""
        if any(entry.operation in _REFUSALS for entry in self.entries):
            return ExitCode.CLUSTER
        changes = any(entry.operation not in _NOTHING for entry in self.entries)
        return ExitCode.NO if changes or any(step.pending for step in self.untried) else ExitCode.YES
