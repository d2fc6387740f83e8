"""Finds what keeps work from getting done: images that are being imported, pods that do not start or were killed, nodes
that the system-upgrade-controller has lost track of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from reconcile.diagnosis.situation import (
    DATA_VOLUMES,
    IMAGES,
    JOBS,
    NODE_PLANS,
    PODS,
    Cause,
    Situation,
    condition_of,
    entries,
    text,
)
from reconcile.objects import label, node_name
from reconcile.status.attempt import RETRY
from reconcile.status.times import time_text
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

_STUCK = timedelta(minutes=30)
_KILLED = 137
_OUT_OF_MEMORY = "OOMKilled"
_NOT_YET = ("ContainerCreating", "PodInitializing")
_IMPORTER = "importer"
_CLAIM_REFUSED = ("ErrorClaim", "ErrClaimNotValid", "ErrExceededQuota")
"""A DataVolume's reasons where a volume that it needs is not created; no transfer has begun."""


def images(situation: Situation) -> Iterator[Cause]:
    """Image imports that are under way, or fail again and again."""
    for image in situation.ours(IMAGES):
        imported = condition_of(image, "Imported")
        if imported.get("status") == "True":
            continue
        progress = text(image, "status", "progress") or "0"
        said = [text(c, "message") for c in (imported, *reversed(entries(image, "status", "conditions")))]
        message = next((f": {words}" for words in said if words), "")
        failed = text(image, "status", "failed")
        tried = f", failed {failed} times" if failed not in ("", "0") else ""
        ref = ref_of(image)
        volume = _volume_condition(situation, ref)
        yield Cause(
            object=str(ref),
            what=f"is imported to {progress}%{tried}{message}"
            + (f"; DataVolume {ref.name} reports: {text(volume, 'message')}" if volume else ""),
            since=text(imported, "lastUpdateTime") or text(image, "metadata", "creationTimestamp"),
            remedy=_refused_claim(image)
            if volume.get("reason") in _CLAIM_REFUSED
            else "check that its URL can be reached and that its checksum matches the file: "
            f"kubectl get virtualmachineimage -n {ref.namespace} {ref.name} -o yaml",
        )


def _volume_condition(situation: Situation, image: Ref) -> Mapping[str, Any]:
    """Returns what the DataVolume of an image, which has its name, says while it is not filled; empty if nothing."""
    same = [volume for volume in situation.all(DATA_VOLUMES) if ref_of(volume).name == image.name]
    said = [condition_of(volume, kind) for kind in ("Running", "Bound") for volume in same]
    return next((c for c in said if c.get("status") != "True" and text(c, "message")), {})


def _refused_claim(image: Body) -> str:
    ref, storage_class = ref_of(image), text(image, "spec", "targetStorageClassName")
    return (
        f"check StorageClass {storage_class}, or set values.isoStorageClass of the templates to another one: "
        f"kubectl describe datavolumes.cdi.kubevirt.io -n {ref.namespace} {ref.name}"
    )


def pods(situation: Situation) -> Iterator[Cause]:
    """Pods of the plan's Jobs and Deployments, and importers of its images: why they do not run, or did not live."""
    jobs = {(ref_of(job).namespace, ref_of(job).name) for job in situation.ours(*JOBS)}
    for pod in situation.all(PODS):
        if _is_ours(pod, situation, jobs) and (what := _trouble(pod)):
            ref = ref_of(pod)
            yield Cause(
                object=str(ref),
                what=what,
                node=text(pod, "spec", "nodeName"),
                since=text(pod, "metadata", "creationTimestamp"),
                remedy=f"kubectl describe pod -n {ref.namespace} {ref.name}",
            )


def failed_jobs(situation: Situation) -> Iterator[Cause]:
    """Jobs of the plan that have failed, kept as evidence with their logs."""
    for job in situation.ours(*JOBS):
        failed, ref = condition_of(job, "Failed"), ref_of(job)
        if failed.get("status") == "True":
            yield Cause(
                object=str(ref),
                what=f"failed: {failed.get('message') or failed.get('reason') or 'no reason given'}",
                node=node_name(job),
                since=text(failed, "lastTransitionTime"),
                remedy=f"read its log: kubectl logs -n {ref.namespace} job/{ref.name} --all-containers",
            )


def gone_objects(situation: Situation) -> Iterator[Cause]:
    """Finds objects that a step under way has made and waits for, and that somebody has deleted."""
    for wait in situation.waits:
        for ref in (ref for ref in wait.refs if ref in situation.gone):
            yield Cause(
                object=str(ref),
                what=f"was created at {time_text(situation.gone[ref])} and is gone; "
                "run-once objects are never recreated automatically",
                node=wait.node or "",
                remedy="retry its step, which creates the object under a new name: "
                f"kubectl annotate upgradeplan {situation.plan} {RETRY}={situation.attempt + 1} --overwrite",
            )


def stuck_plans(situation: Situation) -> Iterator[Cause]:
    """A Plan that still applies to a node without an active Job: the controller has missed its end."""
    waiting = {ref: w.since for w in situation.waits for ref in w.refs if ref.kind == "Plan" and w.since}
    for plan in situation.ours(NODE_PLANS):
        ref, applying = ref_of(plan), look_up(plan, ("status", "applying"))
        since = waiting.get(ref)
        names = dict.fromkeys(map(str, applying)) if isinstance(applying, (list, tuple)) else {}
        lost = [name for name in names if not _has_job(situation, ref.name, name)]
        if lost and since and situation.now - since > _STUCK:
            yield Cause(
                object=str(ref),
                what=f"applies to {', '.join(lost)}, but none of its Jobs is active there",
                node=lost[0],
                since=time_text(since),
                remedy="kubectl rollout restart deployment -n cattle-system system-upgrade-controller",
            )


def _has_job(situation: Situation, plan: str, node: str) -> bool:
    return any(
        label(job, "upgrade.cattle.io/plan") == plan
        and label(job, "upgrade.cattle.io/node") == node
        and text(job, "status", "active") not in ("", "0")
        for job in situation.all(*JOBS)
    )


def _is_ours(pod: Body, situation: Situation, jobs: set[tuple[str, str]]) -> bool:
    namespace = ref_of(pod).namespace
    job = label(pod, "batch.kubernetes.io/job-name") or label(pod, "job-name")
    node_plans = {ref_of(plan).name for plan in situation.ours(NODE_PLANS)}
    importing = label(pod, "cdi.kubevirt.io") == _IMPORTER and any(situation.named("VirtualMachineImage"))
    return (
        situation.is_ours(pod)
        or (namespace, job) in jobs
        or label(pod, "upgrade.cattle.io/plan") in node_plans
        or importing
    )


def _trouble(pod: Body) -> str:
    """The trouble of a pod; empty for one that is well."""
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return f"cannot be scheduled: {scheduled.get('message') or scheduled.get('reason') or 'no reason given'}"
    containers = (*entries(pod, "status", "initContainerStatuses"), *entries(pod, "status", "containerStatuses"))
    return next(filter(None, map(_trouble_of_container, containers)), "")


def _trouble_of_container(container: Mapping[str, Any]) -> str:
    name = text(container, "name")
    ended = [look_up(container, (when, "terminated")) for when in ("state", "lastState")]
    for state in (state for state in ended if isinstance(state, Mapping)):
        if state.get("exitCode") == _KILLED or state.get("reason") == _OUT_OF_MEMORY:
            return f"container {name} was killed with exit code {_KILLED}: out of memory"
    waiting = look_up(container, ("state", "waiting"))
    if isinstance(waiting, Mapping) and waiting.get("reason") not in (None, *_NOT_YET):
        message = f": {waiting['message']}" if waiting.get("message") else ""
        image = f" (image {text(container, 'image')})" if "Image" in str(waiting["reason"]) else ""
        return f"container {name} is waiting: {waiting['reason']}{image}{message}"
    return ""
