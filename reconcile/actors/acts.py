"""What can be told to go wrong: the acts of the played world, as data for the parser and for help texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconcile.actors.script import Trouble


class On(StrEnum):
    """What an act takes place on, if it can be told apart."""

    NOTHING = ""
    NODE = "node"
    MACHINE = "virtual machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """`troubles` are those that make sense for it."""

    name: str
    what: str
    on: On = On.NOTHING
    troubles: frozenset[Trouble] = frozenset((Trouble.STALL, Trouble.SLOW))
    is_job: bool = False


_FAILS = frozenset((Trouble.FAIL, Trouble.STALL, Trouble.SLOW))
_ASKS = frozenset((Trouble.REPEAT, Trouble.STALL, Trouble.SLOW))


def _job(name: str, what: str, on: On = On.NODE) -> Act:
    return Act(name=name, what=f"the Job {what}", on=on, troubles=frozenset(Trouble), is_job=True)


_ACTS = (
    Act(name="image-import", what="Harvester imports the ISO", troubles=_FAILS),
    Act(name="repo", what="a pod of the repository starts", on=On.NODE),
    Act(name="release-file", what="the repository answers with the release file", troubles=_FAILS),
    Act(name="image-list", what="the repository answers with an image list", troubles=_FAILS),
    _job("image-preload", "that loads images on a node"),
    _job("cluster-upgrade", "that upgrades the cluster's services", On.NOTHING),
    Act(name="kubevirt", what="KubeVirt rolls out its new version"),
    _job("skip-manifest-apply", "that keeps RKE2 from re-applying charts"),
    _job("skip-manifest-remove", "that takes that back"),
    Act(name="rancher", what="Rancher picks a machine", on=On.NODE),
    Act(
        name="one-at-a-time",
        what="Rancher keeps to one machine; if that fails it asks for two",
        troubles=frozenset((Trouble.FAIL,)),
    ),
    Act(name="pre-drain-request", what="Rancher asks before a drain", on=On.NODE, troubles=_ASKS),
    _job("pre-drain", "before a drain"),
    Act(name="vm-migration", what="a virtual machine moves", on=On.MACHINE, troubles=_FAILS),
    Act(name="drain", what="Rancher drains a node", on=On.NODE),
    Act(name="kubernetes", what="Rancher upgrades a node's Kubernetes", on=On.NODE),
    Act(name="post-drain-request", what="Rancher asks after a drain", on=On.NODE, troubles=_ASKS),
    _job("post-drain", "after a drain"),
    _job("single-node-upgrade", "that upgrades the only node"),
    Act(
        name="reboot",
        what="a node reboots; if that fails it comes up with the OS that it had",
        on=On.NODE,
        troubles=_FAILS,
    ),
    Act(name="volume-rebuild", what="Longhorn rebuilds a volume"),
    _job("restore-vm", "that starts virtual machines again"),
    _job("image-cleanup", "that removes old images from a node"),
    Act(name="system-upgrade-controller", what="the controller notices that a node's Job has ended"),
    Act(name="addon", what="an add-on is switched on or off"),
)

ACTS: Mapping[str, Act] = {act.name: act for act in _ACTS}


def with_jobs(names: tuple[str, ...]) -> Mapping[str, Act]:
    """The acts, and Jobs of components that only the plan at hand has."""
    own = {name: _job(name, f"of component {name}") for name in names if name not in ACTS}
    return {**ACTS, **own}
