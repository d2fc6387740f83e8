"""Kubernetes' Job controller: pods for a Job, and its status. Not used on a real API server, which has its own.

Conditions and reasons were compared with kube-controller-manager 1.35 by tests/actors/test_real.py, which runs the
same Jobs on it. Not here: pod failure policies, indexed Jobs, deadlines, time to live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from reconcile.simulator.actors.actor_client import JOB, POD
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    Timers,
    conditions,
    has_condition,
    is_deleted,
    mark,
    owner_reference,
    status_of,
)
from reconcile.status.times import time_text
from renderer.model.ref import Body


class JobController:
    """One pod after the other until one has succeeded or too many have failed. Jobs that ran before are not its."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager("kube-controller-manager")
        self._timers = Timers()
        self._begun: set[str] = set()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for job in self._client.those(JOB, _is_open):
            if self._is_ours(job):
                self._control(job, now)
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def _is_ours(self, job: Body) -> bool:
        uid = str(job["metadata"]["uid"])
        if uid not in self._begun and not status_of(job).get("startTime"):
            self._begun.add(uid)
        return uid in self._begun

    def _control(self, job: Body, now: datetime) -> None:
        phases = [status_of(pod).get("phase") for pod in self._client.owned(POD, job)]
        succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
        active = len(phases) - succeeded - failed
        spec = job["spec"]
        if succeeded >= spec.get("completions", 1):
            over: tuple[Mapping[str, str], ...] = _COMPLETE
        elif failed > spec.get("backoffLimit", 6):
            over = _FAILED
        else:
            over = ()
            active += self._start(job, active, failed, now)
        started = status_of(job).get("startTime") or time_text(now)
        counts = {"active": active, "succeeded": succeeded, "failed": failed}
        ended = {"completionTime": time_text(now)} if over == _COMPLETE else {}
        reported = conditions(job, now, *_probed(over, now)) if over else status_of(job).get("conditions")
        begun = {} if spec.get("suspend") else {"startTime": started}
        self._client.patch_status(
            job, {**begun, **_nonzero(counts), **ended, **({"conditions": reported} if reported else {})}
        )

    def _start(self, job: Body, active: int, failed: int, now: datetime) -> int:
        """Returns the number of pods that were started; a failed one is followed by another only after a while."""
        spec = job["spec"]
        if spec.get("suspend") or active >= spec.get("parallelism", 1):
            return 0
        if failed and not self._timers.passed(
            (job["metadata"]["uid"], failed), self._context.settings.job_back_off * 2 ** (failed - 1)
        ):
            return 0
        self._client.create(pod_of(job, mark(str(job["metadata"]["uid"]), str(failed))))
        return 1


def _is_open(job: Body) -> bool:
    return not (has_condition(job, "Complete") or has_condition(job, "Failed") or is_deleted(job))


def pod_of(owner: Body, suffix: str) -> Body:
    """A pod by the owner's template."""
    template, metadata = owner["spec"]["template"], owner["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **{key: value for key, value in (template.get("metadata") or {}).items() if key != "creationTimestamp"},
            "name": f"{metadata['name']}-{suffix}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": template["spec"],
    }


def _conditions(reason: str, message: str, *types: str) -> tuple[Mapping[str, str], ...]:
    return tuple({"type": type_, "status": "True", "reason": reason, "message": message} for type_ in types)


_COMPLETE = _conditions(
    "CompletionsReached", "Reached expected number of succeeded pods", "SuccessCriteriaMet", "Complete"
)
_FAILED = _conditions("BackoffLimitExceeded", "Job has reached the specified backoff limit", "FailureTarget", "Failed")


def _probed(expected: Iterable[Mapping[str, str]], now: datetime) -> list[Mapping[str, str]]:
    return [{**each, "lastProbeTime": time_text(now)} for each in expected]


def _nonzero(counts: Mapping[str, int]) -> dict[str, Any]:
    """A count of zero is left out; null removes it."""
    return {name: count or None for name, count in counts.items()}
