"""The answer of a check: its outcome, everything that was found, what could not be looked at, and what accepts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconcile.probes.look import ReadFailure
from renderer.catalog.upgrade_notes import UpgradeNotes
from renderer.model.check import Check, CheckSeverity
from renderer.model.ref import Ref

_VERBS = frozenset(("is", "has", "does", "will", "cannot", "runs", "makes", "keeps", "lacks"))
"""The words by which a predicate begins: what is wrong with an object follows its name directly."""


class CheckOutcome(StrEnum):
    """Blocked, warned and advised are findings by the check's severity; unknown is that we could not look."""

    BLOCKED = "blocked"
    WARNED = "warned"
    ADVISED = "advised"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    PASSED = "passed"
    NOT_APPLICABLE = "notApplicable"


FOUND: Mapping[CheckSeverity, CheckOutcome] = {
    CheckSeverity.BLOCK: CheckOutcome.BLOCKED,
    CheckSeverity.WARN: CheckOutcome.WARNED,
    CheckSeverity.ADVISE: CheckOutcome.ADVISED,
}
"""The outcome of a check of which something was found, and nothing accepts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinding:
    """One thing that does not pass. `offender` is what people call the object, empty for the cluster as a whole; `says`
    is what is wrong with it; `text` is both as one sentence; `node` the node that it was found for, where a check runs
    for each. `proof` are the probe's own words where it was measured and is bad, and not just not so yet."""

    ref: Ref | None
    offender: str
    says: str
    text: str
    remedy: str
    node: str = ""
    proof: str = ""


def finding_text(offender: str, says: str, node: str = "") -> str:
    """`PVC default/disk-1 has 1 replica`, or `Node node-1: condition Ready is False` if it is not a predicate."""
    joint = " " if says.split(" ", 1)[0] in _VERBS else ": "
    return joint.join(filter(None, (offender, says))) + (f" (before {node} is upgraded)" if node else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The thing that accepts a risk, such as `annotation management.harvesterhci.io/accept-risk` or
    `field spec.restoreVM`, and its value."""

    by: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """`reason` is a line: what passed, why it does not apply, or what was found first. `notes` are what somebody should
    know although it passes. `read_failures` may stand beside findings: of many objects some could not be looked at, or
    not at what is to be known about them; these are the `undecided`, as far as they have names."""

    check: Check
    outcome: CheckOutcome
    reason: str
    findings: tuple[CheckFinding, ...] = ()
    read_failures: tuple[ReadFailure, ...] = ()
    undecided: tuple[Ref, ...] = ()
    accepted: Acceptance | None = None
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """True if a step waits for it: it blocks, or it would block, could not look and might yet."""
        if self.outcome is CheckOutcome.UNKNOWN:
            in_reach = not self.read_failures or any(not failure.out_of_reach for failure in self.read_failures)
            return self.check.severity is CheckSeverity.BLOCK and in_reach
        return self.outcome is CheckOutcome.BLOCKED


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """All answers, in the order of the catalogue. `upgrade` is None where the two versions are not known."""

    results: tuple[CheckResult, ...]
    upgrade: UpgradeNotes | None = None

    @property
    def counts(self) -> Mapping[CheckOutcome, int]:
        """The number of checks that came to each outcome, all outcomes there."""
        found = Counter(result.outcome for result in self.results)
        return {outcome: found[outcome] for outcome in CheckOutcome}
