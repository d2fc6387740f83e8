"""Decides which upgrade goes first: one at a time in a cluster, of either kind. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from reconcile.decide.observation import BorrowedElsewhere
from reconcile.decide.plan import is_over
from reconcile.status.plan_body import loans_of, outline_of
from renderer.model.path import ABSENT, look_up
from renderer.model.ref import Body

_STATE = ("metadata", "labels", "harvesterhci.io/upgradeState")
_ENDED = ("Succeeded", "Failed")


def blocker_of(plan: Body, plans: Iterable[Body], upgrades: Iterable[Body]) -> str | None:
    """The name of the upgrade that has to end before this plan may begin; None where it may.

    A plan that has begun goes before one that has not, then the older, then by name; a built-in Upgrade that runs goes
    before all that have not begun. A plan that says that it does not progress goes before none.
    """
    rivals = [other for other in plans if not _is_at_rest(other) and not _is_same(other, plan)]
    first = min([plan, *rivals], key=_turn)
    if not _is_same(first, plan):
        return str(first["metadata"]["name"])
    return None if outline_of(plan).phase else _running(upgrades)


def beside_of(plan: Body, upgrades: Iterable[Body]) -> str | None:
    """The name of a built-in Upgrade that somebody has begun although this plan runs."""
    status = outline_of(plan)
    return _running(upgrades) if status.phase and not is_over(status) else None


def rival_of(plan: Body, plans: Iterable[Body], upgrades: Iterable[Body]) -> str | None:
    """Says what keeps a plan that has ended from being retried: an upgrade under way, or a plan that has taken over."""
    others = [other for other in plans if not _is_same(other, plan)]
    active = [str(other["metadata"]["name"]) for other in others if not _is_at_rest(other)]
    if (first := min(active, default=None) or _running(upgrades)) is not None:
        return f'another upgrade "{first}" is in progress'
    ended = (outline_of(plan).condition("Progressing") or {}).get("lastTransitionTime", "")
    later = [other for other in others if str(other["metadata"].get("creationTimestamp") or "") > ended]
    began = min((str(other["metadata"]["name"]) for other in later if outline_of(other).phase), default=None)
    return f'plan "{began}" was started after this one had ended' if began is not None else None


def lent_by_others(plan: Body, plans: Iterable[Body]) -> tuple[BorrowedElsewhere, ...]:
    """The fields that other plans have on loan: one that has failed keeps what protects a half-upgraded cluster."""
    return tuple(
        BorrowedElsewhere(plan=str(other["metadata"]["name"]), active=not is_over(outline_of(other)), loan=loan)
        for other in plans
        if not _is_same(other, plan)
        for loan in loans_of(other)
        if loan.returned is None
    )


def _turn(plan: Body) -> tuple[bool, str, str]:
    metadata = plan["metadata"]
    return (
        _is_at_rest(plan) or not outline_of(plan).phase,
        str(metadata.get("creationTimestamp") or ""),
        str(metadata["name"]),
    )


def _is_at_rest(plan: Body) -> bool:
    progressing = outline_of(plan).condition("Progressing")
    return progressing is not None and progressing["status"] == "False"


def _is_same(left: Body, right: Body) -> bool:
    return bool(left["metadata"]["name"] == right["metadata"]["name"])


def _running(upgrades: Iterable[Body]) -> str | None:
    return min((str(item["metadata"]["name"]) for item in upgrades if _is_running(item)), default=None)


def _is_running(upgrade: Body) -> bool:
    """A built-in Upgrade without a state has just been created, and counts."""
    state = look_up(upgrade, _STATE)
    return state is ABSENT or state not in _ENDED
