"""Finds what a plan that is being deleted waits for."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.diagnosis.situation import Cause, Situation, kubectl
from reconcile.objects import deletion_timestamp
from reconcile.probes.look import ReadFailure
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref


def objects(situation: Situation) -> Iterator[Cause]:
    """Those that cannot be looked for, and those that somebody's finalizer keeps."""
    for ref, found in (situation.leaving.objects if situation.leaving else {}).items():
        if isinstance(found, ReadFailure):
            remedy = f"find out why it cannot be read: {kubectl('get', ref)}"
            yield Cause(object=str(ref), what=f"cannot be read: {found.why}", remedy=remedy)
        elif found is not None and (since := deletion_timestamp(found)):
            yield _kept(ref, found, since)


def refused(situation: Situation) -> Iterator[Cause]:
    """Finds what cannot be given back or removed because the API server, or a webhook, does not let us."""
    if situation.leaving and situation.refused:
        yield Cause(
            object=f"UpgradePlan {situation.plan}",
            what=f"cannot be aborted: {situation.refused}",
            remedy="find out what refuses the request, and why; it is retried automatically",
        )


def _kept(ref: Ref, body: Body, since: str) -> Cause:
    finalizers = look_up(body, ("metadata", "finalizers"))
    whose = ", ".join(map(str, finalizers)) if isinstance(finalizers, (list, tuple)) else ""
    return Cause(
        object=str(ref),
        what="is being deleted" + (f", waiting for finalizer {whose}" if whose else ""),
        since=since,
        remedy=f"find out which controller has to remove it, and why it does not: {kubectl('describe', ref)}",
    )
