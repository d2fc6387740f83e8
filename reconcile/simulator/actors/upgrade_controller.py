"""The system-upgrade-controller: a Job on each node that a Plan selects, a label on each node that is done.

Source: behaviour spec 6.1, and what github.com/rancher/system-upgrade-controller does with Jobs of a Plan that is gone,
that are of another version, or that have been over for longer than their time to live.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from reconcile.simulator.actors.actor_client import JOB, NODE, NODE_PLAN
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    conditions,
    has_condition,
    is_deleted,
    labels_of,
    status_of,
)
from reconcile.simulator.actors.placement import selects
from reconcile.simulator.actors.timers import Timers
from reconcile.status.times import time_text
from renderer.model.ref import Body
from renderer.names import safe_concat

ACT = "system-upgrade-controller"
_GROUP = "upgrade.cattle.io/"
_PLAN, _NODE, _VERSION, _CONTROLLER = f"{_GROUP}plan", f"{_GROUP}node", f"{_GROUP}version", f"{_GROUP}controller"


class UpgradeController:
    """One for all Plans. A cue on its own name makes it notice the end of a Job late, or never."""

    def __init__(self, context: ActorContext) -> None:
        self._scene = context
        self._stage = context.client.by(ACT)
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for job in self._stage.all(JOB):
            if labels_of(job).get(_CONTROLLER) == ACT and not is_deleted(job):
                self._look_after(job, now)
        for plan in self._stage.all(NODE_PLAN):
            if not is_deleted(plan):
                self._carry_out(plan, now)
        return self._stage.worked()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    # --------------------------------------------------------------------------------------------------------- Jobs

    def _look_after(self, job: Body, now: datetime) -> None:
        labels, metadata = labels_of(job), job["metadata"]
        plan = self._stage.find(NODE_PLAN, labels[_PLAN], metadata["namespace"])
        node = self._stage.find(NODE, labels[_NODE])
        if plan is None or node is None or labels[_VERSION] != _version(plan):
            self._stage.remove(job)
            return
        if not self._is_over(job, now):
            return
        if has_condition(job, "Complete"):
            key = _label(plan)
            self._stage.change(node, {"metadata": {"labels": {key: labels[key]}}})
        if self._timers.passed((metadata["uid"], "ttl"), self._scene.settings.finished_node_job):
            self._stage.remove(job)

    def _is_over(self, job: Body, now: datetime) -> bool:
        if not (has_condition(job, "Complete") or has_condition(job, "Failed")):
            return False
        late = self._scene.faults.lasts(ACT, now - now)
        return self._timers.passed((job["metadata"]["uid"], "noticed"), late)

    # -------------------------------------------------------------------------------------------------------- Plans

    def _carry_out(self, plan: Body, now: datetime) -> None:
        hash_ = _hash(plan)
        jobs = {labels_of(job)[_NODE]: job for job in self._jobs(plan)}
        left = [
            node
            for node in self._stage.all(NODE)
            if selects(plan["spec"].get("nodeSelector"), labels_of(node)) and labels_of(node).get(_label(plan)) != hash_
        ]
        applying = sorted(left, key=lambda node: (node["metadata"]["name"] not in jobs, node["metadata"]["name"]))
        applying = applying[: int(plan["spec"].get("concurrency") or 1)]
        for node in applying:
            job = jobs.get(node["metadata"]["name"]) or self._stage.create(_job(plan, node, hash_))
            self._let_go(job)
        failed = [name for name, job in jobs.items() if has_condition(job, "Failed") and self._is_over(job, now)]
        self._stage.tell(
            plan,
            {
                "latestHash": hash_,
                "latestVersion": _version(plan),
                "applying": [_short(node) for node in applying] or None,
                "conditions": _verdict(plan, now, failed, done=not left),
            },
        )

    def _jobs(self, plan: Body) -> list[Body]:
        metadata = plan["metadata"]
        jobs = self._stage.all(JOB, metadata["namespace"])
        return [job for job in jobs if labels_of(job).get(_PLAN) == metadata["name"] and not is_deleted(job)]

    def _let_go(self, job: Body) -> None:
        """A Job is made at rest, so that it cannot run before the controller knows of it."""
        if job["spec"].get("parallelism") == 0:
            self._stage.change(job, {"spec": {"parallelism": 1}})


def _job(plan: Body, node: Body, hash_: str) -> Body:
    spec, metadata = plan["spec"], plan["metadata"]
    name = str(node["metadata"]["name"])
    labels = {key: value for key, value in labels_of(plan).items() if "cattle.io/" not in key} | {
        _CONTROLLER: ACT,
        f"{_GROUP}exclusive": str(bool(spec.get("exclusive"))).lower(),
        _NODE: name,
        _PLAN: metadata["name"],
        _VERSION: _version(plan),
        _label(plan): hash_,
    }
    deadline = int(spec.get("jobActiveDeadlineSecs", 600))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": safe_concat("apply", metadata["name"], "on", _short(node), "with", hash_),
            "namespace": metadata["namespace"],
            "labels": labels,
        },
        "spec": {
            "parallelism": 0,
            "completions": 1,
            "backoffLimit": 2,
            "ttlSecondsAfterFinished": 900,
            **({"activeDeadlineSeconds": deadline} if deadline else {}),
            "template": {"metadata": {"labels": labels}, "spec": _pod(plan, name)},
        },
    }


def _pod(plan: Body, node: str) -> dict[str, Any]:
    spec = plan["spec"]
    upgrade = spec["upgrade"]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = [{"matchExpressions": [here]}]
    return {
        "hostIPC": True,
        "hostPID": True,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "restartPolicy": "Never",
        "serviceAccountName": spec["serviceAccountName"],
        "tolerations": [
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
            *(spec.get("tolerations") or ()),
        ],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        "containers": [
            {
                "name": "upgrade",
                "image": f"{upgrade['image']}:{_version(plan)}",
                **{key: upgrade[key] for key in ("command", "args", "securityContext") if key in upgrade},
                "env": [
                    {"name": "SYSTEM_UPGRADE_NODE_NAME", "value": node},
                    {"name": "SYSTEM_UPGRADE_PLAN_NAME", "value": plan["metadata"]["name"]},
                    *(upgrade.get("envs") or ()),
                ],
                "volumeMounts": [{"name": "host-root", "mountPath": "/host"}],
            }
        ],
        "volumes": [{"name": "host-root", "hostPath": {"path": "/", "type": "Directory"}}],
    }


def _verdict(plan: Body, now: datetime, failed: list[str], *, done: bool) -> list[Any]:
    if done:
        complete = {"status": "True", "reason": "Complete", "message": ""}
    elif failed:
        complete = {"status": "False", "reason": "JobFailed", "message": f"Job failed on {', '.join(sorted(failed))}"}
    else:
        complete = {"status": "False", "reason": "InProgress", "message": ""}
    told = (
        {"type": "Validated", "status": "True", "reason": "PlanIsValid"},
        {"type": "LatestResolved", "status": "True", "reason": "Version"},
        {"type": "Complete", **complete},
    )
    updated = [{"lastUpdateTime": time_text(now), **each} for each in told]
    old = {each["type"]: each for each in status_of(plan).get("conditions") or ()}
    return conditions(plan, now, *(_as_before(each, old.get(each["type"])) for each in updated))


def _as_before(new: dict[str, str], old: Any) -> dict[str, str]:
    """The time of the last update is kept where nothing is new."""
    same = old and all(old.get(key) == value for key, value in new.items() if key != "lastUpdateTime")
    return {**new, "lastUpdateTime": old["lastUpdateTime"]} if same and "lastUpdateTime" in old else new


def _hash(plan: Body) -> str:
    text = json.dumps(plan["spec"], sort_keys=True)
    return hashlib.sha224(text.encode()).hexdigest()


def _version(plan: Body) -> str:
    """As a tag and a label can hold it."""
    return str(plan["spec"].get("version") or "").replace("+", "-")


def _label(plan: Body) -> str:
    return f"plan.{_GROUP}{plan['metadata']['name']}"[: len(f"plan.{_GROUP}") + 63]


def _short(node: Body) -> str:
    return str(labels_of(node).get("kubernetes.io/hostname") or node["metadata"]["name"]).partition(".")[0]
