"""Support for the property test of the loop: everybody else in a small world, moved by hand, and what they have seen.

Nothing here judges. Rancher takes one node after the other, but may be made to begin with another one too early.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconcile.objects import NODE_LABEL, PLAN_LABEL
from renderer.model.ref import Ref
from support.rendered_plans import Json, machine, machine_plan
from support.small_cluster import POST, POST_HOOK, PRE, PRE_HOOK, PREFIX, Small, node

OUT = ("PreDraining", "PreDrained", "PostDraining", "WaitingReboot")
SAME = b"docker.io/rancher/same:v1\n"
REPO: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "up-repo", "namespace": "harvester-system", "labels": {PLAN_LABEL: "up"}},
    "spec": {"ports": [{"port": 80}]},
}
WHILE_IT_RUNS = {"pre-drain": "PreDraining", "post-drain": "PostDraining"}
GENERATION = 5
"""The small world's before the upgrade."""


@dataclass
class ManualActors:
    """`turns` are the nodes that Rancher is busy with, `done` those that it has taken back, `asked` its values; `lost`
    are the Jobs that somebody deleted before the loop could see their end, `booted` the nodes that came back."""

    found: Small
    turns: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    booted: set[str] = field(default_factory=set)
    asked: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    left: set[str] = field(default_factory=set)
    stragglers: list[Json] = field(default_factory=list)
    """What a node that has left leaves behind for now."""

    # --------------------------------------------------------------------------------------------------- looking

    def nodes(self) -> list[str]:
        return sorted(body["metadata"]["name"] for body in self.found.all("Node"))

    def running(self) -> list[str]:
        jobs = self.found.all("Job")
        return [job["metadata"]["name"] for job in jobs if not (job.get("status") or {}).get("conditions")]

    def has_secret(self, name: str) -> bool:
        return self.found.get("v1", "Secret", f"p-{name}", "fleet-local") is not None

    def __post_init__(self) -> None:
        """The repository stands, as earlier phases have left it."""
        if self.found.get("v1", "Service", "up-repo", "harvester-system") is None:
            self.found.create(REPO)
        self.found.scene.cluster.backends.serve_read("Service", "proxy", _image_list)

    # ---------------------------------------------------------------------------------------------- all together

    def do_their_part(self, *, jobs: bool = True) -> None:
        """Whatever is to be done now, each of them once; `jobs` whether one of those ends too."""
        self.the_rest_goes()
        self.plans_complete()
        self.rancher_goes_on()
        if jobs:
            self.job_ends()
        for name in self.nodes():
            self.host_reboots(name)

    # --------------------------------------------------------------------------------------------------- Rancher

    def rancher_goes_on(self, number: int = 0) -> None:
        """Picks a machine, asks before the drain, asks after it, takes it back: each once the answer is there."""
        self.turns = [name for name in self.turns if self.has_secret(name)]
        for name in tuple(self.turns):
            self._go_on(name)
        if not self.turns:
            self.rancher_picks(number)

    def rancher_picks(self, number: int) -> None:
        """The next one; it may be before the others have come back."""
        waiting = [name for name in self.waiting() if name not in self.turns]
        if waiting and self._is_told():
            self.turns.append(waiting[number % len(waiting)])
            self._ask(self.turns[-1], PRE)

    def rancher_asks_again(self, number: int) -> None:
        turns = [name for name in self.turns if self.has_secret(name)]
        if turns:
            name = turns[number % len(turns)]
            self._ask(name, POST if self.found.annotation(name, POST) else PRE)

    def _go_on(self, name: str) -> None:
        if self._is_answered(name, POST, POST_HOOK):
            for key in (PRE, POST):
                self.found.ask(name, key, None)
            self.done.add(name)
            self.turns.remove(name)
        elif self._is_answered(name, PRE, PRE_HOOK) and self.found.annotation(name, POST) is None:
            self._ask(name, POST)

    def waiting(self) -> list[str]:
        """Nodes that Rancher has still to upgrade."""
        return [name for name in self.nodes() if name not in self.done and self.has_secret(name)]

    def _is_told(self) -> bool:
        """Whether the Cluster asks for the new version."""
        body = self.found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
        return int(body["spec"]["rkeConfig"]["provisionGeneration"]) > GENERATION

    def _ask(self, name: str, key: str) -> None:
        values = self.asked[name, key]
        values.append(f"attempt {len(values) + 1} {key} of {name}")
        self.found.ask(name, key, values[-1])

    def _is_answered(self, name: str, key: str, hook: str) -> bool:
        value = self.found.annotation(name, key)
        return value is not None and value == self.found.annotation(name, hook)

    # ------------------------------------------------------------------------------------- controllers and hosts

    def plans_complete(self) -> None:
        for body in self.found.all("Plan"):
            self.found.end_plan(body["metadata"]["name"])

    def job_ends(self, number: int = 0) -> None:
        running = self.running()
        if running:
            self.found.end_job(running[number % len(running)])
            self.succeeded.add(running[number % len(running)])

    def job_fails(self) -> None:
        name = self.running()[0]
        self.found.end_job(name, failed=True, message="no")
        self.failed.add(name)

    def host_reboots(self, name: str) -> None:
        if f"up-node-upgrade-post-drain-{name}" in self.succeeded and name not in self.booted:
            self.found.reboot(name)
            self.booted.add(name)

    # ------------------------------------------------------------------------------------------------- operators

    def job_is_deleted(self) -> None:
        """While it runs."""
        name = self.running()[0]
        self.lost.add(name)
        self._remove(self._job(name))

    def ended_job_is_deleted(self, number: int) -> None:
        running = self.running()
        ended = [job for job in self.found.all("Job") if job["metadata"]["name"] not in running]
        if ended:
            job = ended[number % len(ended)]
            labels = job["metadata"]["labels"]
            if self.found.state(labels[NODE_LABEL]) == WHILE_IT_RUNS.get(labels[f"{PREFIX}job-type"]):
                self.lost.add(job["metadata"]["name"])
            self._remove(job)

    def node_joins(self, name: str) -> None:
        """By writes, which watches tell of."""
        joined, its_machine = node(name), machine(f"m-{name}", name)
        for body in (joined, its_machine, machine_plan(f"p-{name}", f"m-{name}")):
            self.found.create(body)
        self.found.patch(joined, {"status": joined["status"]}, "status")
        self.found.patch(its_machine, {"status": its_machine["status"]}, "status")

    def node_leaves(self, name: str, first: str) -> None:
        """`first` is the kind that goes first; the rest of what makes a node follows with `the_rest_goes`."""
        self.left.add(name)
        parts: list[Any] = [
            self.found.get("v1", "Node", name),
            self.found.get("cluster.x-k8s.io/v1beta1", "Machine", f"m-{name}", "fleet-local"),
            self.found.secret(name),
        ]
        parts.sort(key=lambda body: body["kind"] != first)
        self._remove(parts[0])
        self.stragglers += parts[1:]

    def the_rest_goes(self) -> None:
        for body in self.stragglers:
            self._remove(body)
        self.stragglers.clear()

    def _job(self, name: str) -> Json:
        return next(job for job in self.found.all("Job") if job["metadata"]["name"] == name)

    def _remove(self, body: Json) -> None:
        store = self.found.scene.cluster.store
        metadata = body["metadata"]
        live = self.found.get(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))
        if live is not None:
            with store.changed:
                store.remove(live)


def _image_list(service: Ref, path: str, query: Mapping[str, str]) -> bytes:
    """The repository's lists: one image of the old version is not in the new one."""
    return b"".join((SAME, b"" if "current" in path else b"docker.io/rancher/old:v1\n"))
