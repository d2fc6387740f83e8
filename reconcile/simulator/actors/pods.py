"""Scheduler and kubelets as pods see them: a node, a start, the work of a Job's pod, and the end.

Placement follows the Kubernetes documentation of taints, selectors and required node affinity; resources, preferences
and volume limits are not modelled. A pod with a claim that is placed on a witness waits there: Longhorn attaches no
volume to it. A pod that ran before the simulation began is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reconcile.simulator.actors.actor_client import CLAIM, JOB, NODE, POD, REPLICA_SET, KindName, PodHandler
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    Timers,
    conditions,
    has_condition,
    is_deleted,
    status_of,
)
from reconcile.simulator.actors.job_effects import JobEffect, JobEffectTable, Task, task_of
from reconcile.simulator.actors.placement import can_host, is_ready
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.status.times import time_text
from renderer.model.node_labels import is_witness
from renderer.model.ref import Body

REPO_ACT = "repo"
_ENDED = ("Succeeded", "Failed")


class Kubelets:
    """Plays pods of Jobs and ReplicaSets. Pods that ran when the simulation began are left alone."""

    def __init__(self, context: ActorContext, effects: JobEffectTable, pods: PodHandler) -> None:
        self._context = context
        self._client = context.client.as_manager("kubelet")
        self._effects = effects
        self._pods = pods
        self._timers = Timers()
        self._tries: Counter[tuple[str, str, str]] = Counter()
        self._tried: dict[str, int] = {}
        self._working: dict[str, tuple[str, str]] = {}
        self._boots: dict[str, str] = {}
        self._addresses = 0
        self._owed: list[tuple[JobEffect, Task]] = []

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for pod in sorted((*self._client.those(POD, _is_open), *self._to_conclude()), key=_place):
            self._play(pod, now)
        while self._owed:
            effect, task = self._owed[0]
            effect.after(task, now)
            del self._owed[0]
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def _play(self, pod: Body, now: datetime) -> None:
        if is_deleted(pod):
            self._pods.end(self._client, pod)
        elif not pod["spec"].get("nodeName"):
            self._place(pod)
        elif status_of(pod).get("phase", "Pending") == "Pending":
            self._start(pod, now)
        elif status_of(pod).get("phase") == "Running":
            self._run(pod, now)
        else:
            self._conclude(pod, now)

    def _to_conclude(self) -> list[Body]:
        """Those that have ended their work since it was last concluded."""
        found = [(uid, self._client.find(POD, name, namespace)) for uid, (namespace, name) in self._working.items()]
        return [pod for uid, pod in found if pod and pod["metadata"]["uid"] == uid and not _is_open(pod)]

    # ------------------------------------------------------------------------------------------------------ placing

    def _place(self, pod: Body) -> None:
        """The node that fits and runs the fewest of the same owner's pods, then by name. A pod with a volume goes
        to a witness if it may, where it cannot start: the real scheduler does not know that."""
        owner = self._job(pod) or self._replica_set(pod)
        if owner is None:
            return
        others = [other for other in self._client.owned(POD, owner) if not is_deleted(other)]
        hosts = Counter(other["spec"].get("nodeName") for other in others)
        fits = {str(node["metadata"]["name"]): node for node in self._candidates(pod) if can_host(node, pod["spec"])}
        mounts = any(_claims(pod))
        if fits:
            worst = {name: not (mounts and is_witness(node)) for name, node in fits.items()}
            self._pods.bind(self._client, pod, min(fits, key=lambda name: (hosts[name], worst[name], name)))

    def _candidates(self, pod: Body) -> Sequence[Body]:
        """One node where the Job is for one, else all: who has many does not look at each for each."""
        job = self._job(pod)
        node = self._client.find(NODE, task_of(job, pod).node) if job else None
        return (node,) if node else self._client.all(NODE)

    # ------------------------------------------------------------------------------------------------------ running

    def _start(self, pod: Body, now: datetime) -> None:
        node = self._client.find(NODE, pod["spec"]["nodeName"])
        if node is None or not is_ready(node) or not self._mounts(pod, node):
            return
        job = self._job(pod)
        if job is None and self._replica_set(pod) is None:
            return
        usual = self._context.settings.pod_start
        lasts = usual if job else self._context.faults.lasts(REPO_ACT, usual, str(node["metadata"]["name"]))
        if not self._timers.passed((pod["metadata"]["uid"], "start"), lasts):
            return
        self._client.patch_status(pod, _running(pod, now, self._address()))
        if job is not None:
            self._begin(pod, task_of(job, pod), now)

    def _begin(self, pod: Body, task: Task, now: datetime) -> None:
        whose = (task.operation, task.node, task.plan)
        uid = str(pod["metadata"]["uid"])
        self._tried[uid], self._working[uid] = self._tries[whose], _place(pod)
        self._boots[uid] = _boot_id(self._client.find(NODE, task.host))
        self._tries[whose] += 1
        self._context.log.add(now, SimulationEventType.WORK_STARTED, task.operation, task.node, _job_name(task))
        lasts = self._context.faults.outage(task.operation, task.node)
        if lasts is not None and self._tries[whose] == 1:
            self._context.outage.begin(now, lasts, task.operation)

    def _run(self, pod: Body, now: datetime) -> None:
        job = self._job(pod)
        if job is not None:
            self._work(pod, task_of(job, pod), now)
        elif self._replica_set(pod) is not None:
            self._follow_node(pod, now)

    def _work(self, pod: Body, task: Task, now: datetime) -> None:
        uid, faults = str(pod["metadata"]["uid"]), self._context.faults
        if uid not in self._tried:
            self._begin(pod, task, now)
        node = self._client.find(NODE, task.host)
        if node is None or not is_ready(node):
            return
        if _boot_id(node) != self._boots[uid]:  # its containers went with the node
            self._client.patch_status(pod, _over(pod, "Failed", now))
            return
        lasts = faults.lasts(task.operation, self._context.settings.work_of(task.operation), task.node)
        over = self._timers.passed((uid, "work"), lasts)
        # one that is to be repeated does its work and still fails
        if faults.fails(task.operation, task.node, self._tried[uid]):
            if over:
                self._client.patch_status(pod, _over(pod, "Failed", now))
            return
        effect = self._effects.get(task.operation)
        done = effect.do(task, now) if effect else True
        if over and done:
            again = self._tried[uid] < faults.repeats(task.operation, task.node)
            said = effect.says(task, now) if effect and not again else ""
            self._client.patch_status(pod, _over(pod, "Failed" if again else "Succeeded", now, said))

    def _conclude(self, pod: Body, now: datetime) -> None:
        """Once for each pod, and only when the cluster has it that it ended: an answer can be lost."""
        job = self._job(pod)
        if job is None:
            return
        task, succeeded = task_of(job, pod), status_of(pod).get("phase") == "Succeeded"
        uid = str(pod["metadata"]["uid"])
        del self._tried[uid], self._working[uid], self._boots[uid]
        what = SimulationEventType.WORK_SUCCEEDED if succeeded else SimulationEventType.WORK_FAILED
        self._context.log.add(now, what, task.operation, task.node, _job_name(task))
        effect = self._effects.get(task.operation)
        self._owed += [(effect, task)] if effect and succeeded else []

    def _follow_node(self, pod: Body, now: datetime) -> None:
        """A server's pod is not ready while its node is away, and starts again with it."""
        node = self._client.find(NODE, pod["spec"]["nodeName"])
        up = node is not None and is_ready(node)
        key = (pod["metadata"]["uid"], "back")
        if not up:
            self._timers.forget(key)
            self._client.patch_status(pod, {"conditions": _readiness(pod, now, ready=False)})
        elif not has_condition(pod, "Ready") and self._timers.passed(key, self._context.settings.pod_start):
            self._client.patch_status(pod, {"conditions": _readiness(pod, now, ready=True)})

    # ------------------------------------------------------------------------------------------------------- looking

    def _job(self, pod: Body) -> Body | None:
        return self._owner(pod, JOB)

    def _replica_set(self, pod: Body) -> Body | None:
        return self._owner(pod, REPLICA_SET)

    def _owner(self, pod: Body, kind: KindName) -> Body | None:
        for owner in pod["metadata"].get("ownerReferences") or ():
            found = self._client.find(kind, owner["name"], pod["metadata"]["namespace"])
            if found is not None and found["metadata"]["uid"] == owner["uid"]:
                return found
        return None

    def _mounts(self, pod: Body, node: Body) -> bool:
        """True if the pod's volumes are there and can be attached: Longhorn does not run on a witness, and the
        scheduler does not know that."""
        claims = [self._client.find(CLAIM, name, pod["metadata"]["namespace"]) for name in _claims(pod)]
        bound = all(claim is not None and status_of(claim).get("phase") == "Bound" for claim in claims)
        return bound and not (claims and is_witness(node))

    def _address(self) -> str:
        self._addresses += 1
        return f"10.52.{self._addresses // 250}.{self._addresses % 250 + 2}"


def _claims(pod: Body) -> Sequence[str]:
    """The names of the claims that it mounts."""
    sources = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or ())
    return [str(source["claimName"]) for source in sources if source]


def _place(pod: Body) -> tuple[str, str]:
    return str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"])


def _is_open(pod: Body) -> bool:
    return is_deleted(pod) or not pod["spec"].get("nodeName") or status_of(pod).get("phase") not in _ENDED


def _boot_id(node: Body | None) -> str:
    return str((status_of(node or {}).get("nodeInfo") or {}).get("bootID", ""))


def _job_name(task: Task) -> str:
    return f"Job {task.job['metadata']['name']} {task.job['metadata']['uid']}"


def _readiness(pod: Body, now: datetime, *, ready: bool) -> list[Any]:
    status = "True" if ready else "False"
    return conditions(pod, now, *({"type": type_, "status": status} for type_ in ("Ready", "ContainersReady")))


def _running(pod: Body, now: datetime, address: str) -> dict[str, Any]:
    return {
        "phase": "Running",
        "startTime": time_text(now),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _readiness(pod, now, ready=True),
        "containerStatuses": [
            _container(each, {"running": {"startedAt": time_text(now)}}) for each in _containers(pod)
        ],
    }


def _over(pod: Body, phase: str, now: datetime, said: str = "") -> dict[str, Any]:
    succeeded = phase == "Succeeded"
    end = {
        "exitCode": 0 if succeeded else 1,
        "reason": "Completed" if succeeded else "Error",
        "startedAt": status_of(pod).get("startTime"),
        "finishedAt": time_text(now),
        **({"message": said} if said else {}),
    }
    return {
        "phase": phase,
        "conditions": _readiness(pod, now, ready=False),
        "containerStatuses": [_container(each, {"terminated": end}) for each in _containers(pod)],
    }


def _containers(pod: Body) -> Sequence[Body]:
    found: Sequence[Body] = pod["spec"]["containers"]
    return found


def _container(container: Body, state: dict[str, Any]) -> dict[str, Any]:
    running = "running" in state
    named = {"name": container["name"], "image": container["image"], "imageID": ""}
    return {**named, "restartCount": 0, "ready": running, "started": running, "state": state}
