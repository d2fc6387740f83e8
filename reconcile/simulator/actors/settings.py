"""The durations of operations in a simulation, and the contents of the release; the times of a small, fast cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

_WORK: Mapping[str, timedelta] = {
    "host-check": timedelta(seconds=5),
    "image-preload": timedelta(seconds=600),
    "cluster-upgrade": timedelta(seconds=1500),
    "skip-manifest-apply": timedelta(seconds=10),
    "skip-manifest-remove": timedelta(seconds=10),
    "pre-drain": timedelta(seconds=60),
    "post-drain": timedelta(seconds=420),
    "single-node-upgrade": timedelta(seconds=1800),
    "restore-vm": timedelta(seconds=20),
    "image-cleanup": timedelta(seconds=60),
}
"""The durations of an upgrade's Jobs; any other takes `other_work`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`release` is the release file; `previous_images` and `current_images` are the ISO's image lists, None where the
    ISO has none; `kubelets` is what kubelets report of their disks, by node, as `facts.kubelet` has it, and `hosts`
    what hosts report, as `facts.hosts` has it; of others all is well."""

    release: Mapping[str, Any] = field(default_factory=dict)
    previous_images: Sequence[str] | None = None
    current_images: Sequence[str] | None = None
    kubelets: Mapping[str, Any] = field(default_factory=dict)
    hosts: Mapping[str, Any] = field(default_factory=dict)

    image_import: timedelta = timedelta(seconds=480)
    pod_start: timedelta = timedelta(seconds=5)
    work: Mapping[str, timedelta] = field(default_factory=lambda: dict(_WORK))
    other_work: timedelta = timedelta(seconds=30)
    job_back_off: timedelta = timedelta(seconds=10)
    finished_node_job: timedelta = timedelta(seconds=900)
    pick: timedelta = timedelta(seconds=10)
    drain: timedelta = timedelta(seconds=60)
    kubernetes: timedelta = timedelta(seconds=240)
    reboot_watch: timedelta = timedelta(seconds=10)
    reboot: timedelta = timedelta(seconds=300)
    migration: timedelta = timedelta(seconds=30)
    vm_stop: timedelta = timedelta(seconds=20)
    vm_start: timedelta = timedelta(seconds=30)
    kubevirt: timedelta = timedelta(seconds=300)
    rebuild: timedelta = timedelta(seconds=120)
    addon: timedelta = timedelta(seconds=20)

    @classmethod
    def given(cls, release: Mapping[str, Any], facts: Mapping[str, Any]) -> Settings:
        """The usual pace, with a release file and the sections of a facts document."""
        lists = facts.get("imageLists") or {}
        return cls(
            release=release,
            previous_images=lists.get("previous"),
            current_images=lists.get("current"),
            kubelets=facts.get("kubelet") or {},
            hosts=facts.get("hosts") or {},
        )

    def work_of(self, operation: str) -> timedelta:
        return self.work.get(operation, self.other_work)

    @property
    def kubevirt_version(self) -> str:
        """The new KubeVirt; a release file may leave it out, but it is never the old one."""
        return str(self.release.get("kubevirt") or f"of-{self.release.get('harvester', 'the-release')}")
