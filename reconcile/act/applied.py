"""The result of one write, or of trying it, as a value; and a cluster's refusal as a problem that names the
manifest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from reconcile.cluster.errors import (
    ClusterError,
    Conflict,
    Denied,
    Forbidden,
    Invalid,
    NoSuchKind,
    NotFound,
    ServerFailed,
    text_of,
)
from renderer.errors import Problem
from renderer.model.ref import Body, Ref

REFUSALS = (Conflict, Invalid, Denied, Forbidden, NotFound, NoSuchKind, ServerFailed)
"""The errors that a cluster may answer about one object; the rest (away, throttled, credentials) ends the whole run."""


class ApplyResult(StrEnum):
    """The result of applying a manifest."""

    CREATED = "created"
    CHANGED = "changed"
    ADOPTED = "adopted"  # it was this plan's, but not applied by us
    UNCHANGED = "unchanged"
    TAKEN = "taken"
    RETURNED = "returned"
    WAITING = "waiting"  # the object must appear, or go, first
    MISSING = "missing"  # it was made, and somebody has removed it; it is not made again
    STALE = "stale"  # it has changed since it was read: read it again and retry
    REFUSED = "refused"


WROTE = (ApplyResult.CREATED, ApplyResult.CHANGED, ApplyResult.ADOPTED, ApplyResult.TAKEN, ApplyResult.RETURNED)
"""Something was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One manifest's result. `body` is the object as the cluster answered, None where nothing was asked of it;
    `because` explains an outcome that is not plain success."""

    ref: Ref
    file: str
    outcome: ApplyResult
    because: str = ""
    body: Body | None = None
    problem: Problem | None = None
    error: ClusterError | None = None
    warnings: tuple[str, ...] = ()


def refused(ref: Ref, file: str, error: ClusterError) -> Applied:
    """The result for a write that the cluster did not take. Only for `REFUSALS`."""
    outcome = ApplyResult.STALE if is_stale(ref, error) else ApplyResult.REFUSED
    problem = replace(error.problem, file=file)
    return Applied(ref=ref, file=file, outcome=outcome, because=text_of(problem), problem=problem, error=error)


def is_stale(ref: Ref, error: ClusterError) -> bool:
    """True if the object has changed since it was read, or is gone, or another one."""
    if isinstance(error, NotFound):
        return error.ref == ref
    if isinstance(error, Invalid):
        return any(cause.field == "metadata.uid" for cause in error.causes)
    return isinstance(error, Conflict) and not error.claims
