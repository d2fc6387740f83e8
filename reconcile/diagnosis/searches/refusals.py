"""Writes that the API server, or another tool's claim, refuses: whose the object is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.diagnosis.situation import Cause, Situation, entries, kubectl, text


def conflicts(situation: Situation) -> Iterator[Cause]:
    """Objects that the plan has to create and that exist already, without being the plan's."""
    for ref, found in situation.conflicts.items():
        who = next((text(entry, "manager") for entry in entries(found.body, "metadata", "managedFields")), "")
        yield Cause(
            object=str(ref),
            what=f"exists and {found.holder}" + (f"; it was created by {who!r}" if who else ""),
            since=text(found.body, "metadata", "creationTimestamp"),
            remedy=f"if nobody else needs it, delete it, and the plan creates its own: {kubectl('delete', ref)}",
        )


def others(situation: Situation) -> Iterator[Cause]:
    """Any other refusal, in the API server's words."""
    if situation.refused and not situation.conflicts:
        yield Cause(
            object=f"UpgradePlan {situation.plan}",
            what=f"cannot go on: {situation.refused}",
            remedy="find out what refuses the request, and why; it is retried automatically",
        )
