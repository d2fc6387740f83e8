"""Decides whether a node may begin a step of a lane now. Pure: it gets what it needs to know of the lane, and reads
nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from renderer.model.phase import Lane

_NAMED = 3
"""Reasons of other nodes that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdmitted:
    """The reason why a step may not begin now, though it could. `patient`: it is just not its turn yet; `out_of_turn`:
    somebody has asked for it before."""

    text: str
    patient: bool
    out_of_turn: bool = False


AdmissionCheck = Callable[[], NotAdmitted | None]
"""None where the step may begin."""


def always_admit() -> NotAdmitted | None:
    """Nothing keeps the step from beginning."""
    return None


def admit(node: str, lane: Lane, inside: Mapping[str, int], unhealthy: Sequence[str] = ()) -> NotAdmitted | None:
    """None where the node may begin the lane's next step.

    `inside` has the nodes that are in the lane, in the order of the upgrade, and how many of its steps each has begun:
    if another manager has let too many in, those that are furthest go on. `unhealthy` says of other nodes what is wrong
    with them; one of them is enough to wait, before two are down.
    """
    furthest = sorted(inside, key=lambda name: -inside[name])[: lane.at_most]
    if node not in furthest and node in inside:
        return NotAdmitted(text=f"{lane.waiting}: {', '.join(furthest)}", patient=True)
    if node not in furthest and len(inside) >= lane.at_most:
        return NotAdmitted(text=f"{lane.waiting}: {', '.join(inside)}", patient=True, out_of_turn=True)
    if lane.require_peers is not None and unhealthy:
        return NotAdmitted(text=f"{lane.require_peers.waiting}: {'; '.join(unhealthy[:_NAMED])}", patient=False)
    return None
