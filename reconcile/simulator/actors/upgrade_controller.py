"""The system-upgrade-controller: a Job on each node that a Plan selects, a label on each node that is done.

Verified against github.com/rancher/system-upgrade-controller (pkg/upgrade: handle_upgrade.go, handle_batch.go,
plan/plan.go, job/job.go), and the life of `Complete` also by running v0.17.0: SyncJob when `status.applying` changes,
JobFailed when a Job fails and again when that Job is deleted, Complete when no node is left. A Job that is of another
version, of a Plan or node that is gone, out of turn, or finished for longer than its time to live is deleted. Not
here: channels, windows, secrets in the hash, prepare, cordon and drain, postCompleteDelay, events; and nodes begin by
name, not by a hash of uids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any

from reconcile.objects import selects
from reconcile.simulator.actors.actor_client import JOB, NODE, NODE_PLAN
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    Timers,
    conditions,
    has_condition,
    is_deleted,
    labels_of,
    status_of,
)
from reconcile.simulator.actors.kind_cache import Test
from reconcile.status.times import time_text
from renderer.model.ref import Body
from renderer.names import safe_concat

ACT = "system-upgrade-controller"
_GROUP = "upgrade.cattle.io/"
_PLAN, _NODE, _VERSION, _CONTROLLER = f"{_GROUP}plan", f"{_GROUP}node", f"{_GROUP}version", f"{_GROUP}controller"


class UpgradeController:
    """One for all Plans. An injected fault on its own name makes it notice the end of a Job late, or never."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager(ACT)
        self._timers = Timers()
        self._reported: set[str] = set()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for job in self._client.those(JOB, _is_ours):
            self._sync_job(job, now)
        for plan in self._client.all(NODE_PLAN):
            if not is_deleted(plan):
                self._sync_plan(plan, now)
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    # --------------------------------------------------------------------------------------------------------- Jobs

    def _sync_job(self, job: Body, now: datetime) -> None:
        labels = labels_of(job)
        plan = self._client.find(NODE_PLAN, labels[_PLAN], job["metadata"]["namespace"])
        node = self._client.find(NODE, labels[_NODE])
        if plan is None or node is None or labels[_VERSION] != _version(plan):
            self._client.delete(job)
        elif not _is_finished(job):
            if _hostname(node) not in _applying(plan):
                self._client.delete(job)
        elif self._has_noticed(job):
            self._finish(job, plan, node, now)

    def _finish(self, job: Body, plan: Body, node: Body, now: datetime) -> None:
        uid, is_over = str(job["metadata"]["uid"]), self._is_over(job)
        if has_condition(job, "Complete"):
            key = _label(plan)
            self._client.patch(node, {"metadata": {"labels": {key: labels_of(job)[key]}}})
        elif uid not in self._reported or is_over:
            self._reported.add(uid)
            self._client.patch_status(plan, {"conditions": _updated(plan, now, _job_failed(job))})
        if is_over:
            self._client.delete(job)

    def _has_noticed(self, job: Body) -> bool:
        late = self._context.faults.lasts(ACT, timedelta(0))
        return self._timers.passed((job["metadata"]["uid"], "noticed"), late)

    def _is_over(self, job: Body) -> bool:
        return self._timers.passed((job["metadata"]["uid"], "ttl"), self._context.settings.finished_node_job)

    # -------------------------------------------------------------------------------------------------------- Plans

    def _sync_plan(self, plan: Body, now: datetime) -> None:
        hash_ = _hash(plan)
        jobs = {labels_of(job)[_NODE]: job for job in self._jobs(plan)}
        selector = json.dumps(plan["spec"].get("nodeSelector"), sort_keys=True)
        nodes = _next_nodes(plan, self._client.those(NODE, _is_left(_label(plan), hash_, selector)))
        for node in nodes:
            self._let_go(jobs.get(node["metadata"]["name"]) or self._client.create(_job(plan, node, hash_)))
        applying = [_hostname(node) for node in nodes]
        self._client.patch_status(
            plan,
            {
                "latestHash": hash_,
                "latestVersion": _version(plan),
                "applying": applying or None,
                "conditions": _conditions(plan, now, applying),
            },
        )

    def _jobs(self, plan: Body) -> list[Body]:
        metadata = plan["metadata"]
        jobs = self._client.those(JOB, _of_plan(metadata["namespace"], metadata["name"]))
        return [job for job in jobs if not is_deleted(job)]

    def _let_go(self, job: Body) -> None:
        """A Job is created with parallelism 0, so that it cannot run before its node is in `status.applying`."""
        if job["spec"].get("parallelism") == 0:
            self._client.patch(job, {"spec": {"parallelism": 1}})


def _next_nodes(plan: Body, left: Iterable[Body]) -> list[Body]:
    """The nodes whose Jobs may run now, by name. Those in `status.applying` go on before others begin."""
    under_way = set(_applying(plan))
    going = [node for node in left if _hostname(node) in under_way]
    others = (node for node in left if _hostname(node) not in under_way)
    at_once = max(int(plan["spec"].get("concurrency") or 1), len(going))
    return sorted((*going, *islice(others, at_once - len(going))), key=lambda node: str(node["metadata"]["name"]))


@cache
def _is_left(label: str, hash_: str, selector: str) -> Test:
    """Asks of a node whether a Plan selects it and is not done with it. One without a hostname label is never
    selected."""
    wanted = json.loads(selector)

    def test(node: Body) -> bool:
        labels = labels_of(node)
        return (
            labels.get(label) not in (hash_, "disabled")
            and "kubernetes.io/hostname" in labels
            and selects(wanted, labels)
        )

    return test


@cache
def _of_plan(namespace: str, name: str) -> Test:
    """Asks of a Job whether it is that Plan's."""
    return lambda job: job["metadata"]["namespace"] == namespace and labels_of(job).get(_PLAN) == name


def _is_ours(job: Body) -> bool:
    return labels_of(job).get(_CONTROLLER) == ACT and not is_deleted(job)


def _is_finished(job: Body) -> bool:
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def _applying(plan: Body) -> Sequence[str]:
    found: Sequence[str] = status_of(plan).get("applying") or ()
    return found


def _job_failed(job: Body) -> Mapping[str, str]:
    metadata = job["metadata"]
    failed = next(each for each in status_of(job)["conditions"] if each["type"] == "Failed")
    where = f"Job {metadata['namespace']}/{metadata['name']} failed on Node {labels_of(job)[_NODE]}"
    message = f"{where}: {failed.get('reason', '')}: {failed.get('message', '')}"
    return {"type": "Complete", "status": "False", "reason": "JobFailed", "message": message}


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
            "name": safe_concat("apply", metadata["name"], "on", name.partition(".")[0], "with", hash_),
            "namespace": metadata["namespace"],
            "labels": labels,
        },
        "spec": {
            "parallelism": 0,
            "completions": 1,
            "backoffLimit": 2,
            "ttlSecondsAfterFinished": 900,
            **({"activeDeadlineSeconds": deadline} if deadline else {}),
            "template": {"metadata": {"labels": labels}, "spec": _pod(plan, node)},
        },
    }


def _pod(plan: Body, node: Body) -> dict[str, Any]:
    spec = plan["spec"]
    upgrade = spec["upgrade"]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [_hostname(node)]}
    terms = [{"matchExpressions": [here]}]
    return {
        "hostIPC": True,
        "hostPID": True,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "restartPolicy": "Never",
        "serviceAccountName": spec.get("serviceAccountName"),
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
                    {"name": "SYSTEM_UPGRADE_NODE_NAME", "value": node["metadata"]["name"]},
                    {"name": "SYSTEM_UPGRADE_PLAN_NAME", "value": plan["metadata"]["name"]},
                    *(upgrade.get("envs") or ()),
                ],
                "volumeMounts": [{"name": "host-root", "mountPath": "/host"}],
            }
        ],
        "volumes": [{"name": "host-root", "hostPath": {"path": "/", "type": "Directory"}}],
    }


def _conditions(plan: Body, now: datetime, applying: Sequence[str]) -> list[Any]:
    """`Complete` is written again only when `applying` changes: a JobFailed stays until then, and no longer."""
    return _updated(
        plan,
        now,
        {"type": "Validated", "status": "True", "reason": "PlanIsValid"},
        {"type": "LatestResolved", "status": "True", "reason": "Version"},
        *([_COMPLETE] if not applying else [_SYNC_JOB] if list(applying) != list(_applying(plan)) else []),
    )


def _updated(plan: Body, now: datetime, *expected: Mapping[str, str]) -> list[Any]:
    """The plan's conditions with the expected ones; the time of the last update is kept where nothing is new."""
    old = {each["type"]: each for each in status_of(plan).get("conditions") or ()}
    same = {each["type"] for each in expected if each.items() <= old.get(each["type"], {}).items()}
    news = [each if each["type"] in same else {"lastUpdateTime": time_text(now), **each} for each in expected]
    return conditions(plan, now, *news)


_COMPLETE = {"type": "Complete", "status": "True", "reason": "Complete", "message": ""}
_SYNC_JOB = {"type": "Complete", "status": "False", "reason": "SyncJob", "message": ""}


def _hash(plan: Body) -> str:
    """Of version and service account alone: a Plan that is changed otherwise does not run again."""
    return hashlib.sha224(f"{_version(plan)}{plan['spec'].get('serviceAccountName') or ''}".encode()).hexdigest()


def _version(plan: Body) -> str:
    """As a tag and a label can hold it."""
    return str(plan["spec"].get("version") or "").replace("+", "-")


def _label(plan: Body) -> str:
    return f"plan.{_GROUP}{plan['metadata']['name']}"[: len(f"plan.{_GROUP}") + 63]


def _hostname(node: Body) -> str:
    return str(labels_of(node)["kubernetes.io/hostname"])
