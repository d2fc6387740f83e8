"""The last lines of the pods of a step that has failed, for the report of its run: from the cluster, or from what a
manager has collected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.protocol import Cluster
from reconcile.objects import label
from reconcile.observe.container_log import LogUnavailableError, read_log
from reconcile.observe.source import Source
from reconcile.pod_logs.folder import LogEntry, LogFolder
from reconcile.pod_logs.log_record import LogRecords
from reconcile.pod_logs.plan_pods import PlanPod, pods_of_plan
from reconcile.probes.look import Group, ReadFailure
from reconcile.report_page.recorded_run import LogExcerpt
from renderer.model.ref import Body, Ref, ref_of

LINES = 40
_LONGEST_BASE, _RANDOM = 58, 5
"""The API server cuts what a generated name begins with, and adds so many characters."""
_JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")


def excerpts_of(cluster: Cluster, source: Source, plan: Body, made: Iterable[Ref]) -> tuple[LogExcerpt, ...]:
    """Of the Jobs among these objects; what cannot be read is left out."""
    jobs = {ref for ref in made if ref.kind == "Job"}
    if not jobs:
        return ()
    pods = pods_of_plan(source, plan).pods
    owned = {ref_of(body) for ref in jobs for body in _pods_of_job(source, ref)}
    found = (excerpt for pod in pods if pod.ref in owned for excerpt in _of_pod(cluster, pod))
    return tuple(found)


def excerpts_in(folder: LogFolder | LogRecords, plan: str, made: Iterable[Ref]) -> tuple[LogExcerpt, ...]:
    """The same in a folder of logs, or in what was read of one, by the names that the Job controller gives to pods.

    Raises `OSError`.
    """
    jobs = {(ref.namespace, f"{ref.name}-"[:_LONGEST_BASE]) for ref in made if ref.kind == "Job"}
    kept = [entry for entry in folder.entries.values() if entry.plan == plan]
    found = [entry for entry in kept if (entry.namespace, entry.pod[:-_RANDOM]) in jobs]
    return tuple(filter(lambda excerpt: excerpt.lines, (_kept_excerpt(folder, entry) for entry in found)))


def _kept_excerpt(folder: LogFolder | LogRecords, entry: LogEntry) -> LogExcerpt:
    """The lines without their times."""
    last = deque(folder.lines(entry), maxlen=LINES)
    lines = tuple(line.partition(" ")[2] for line in last)
    return LogExcerpt(object=f"Pod {entry.namespace}/{entry.pod}", container=entry.container, lines=lines)


def _pods_of_job(source: Source, job: Ref) -> Iterator[Body]:
    found = source.list(Group(api_version="v1", kind="Pod", namespace=job.namespace))
    for body in () if isinstance(found, ReadFailure) else found:
        if any(label(body, name) == job.name for name in _JOB_NAMES):
            yield body


def _of_pod(cluster: Cluster, pod: PlanPod) -> Iterator[LogExcerpt]:
    for container in pod.containers:
        try:
            lines = tuple(line.text for line in read_log(cluster, pod.ref, container, last=LINES))
        except (LogUnavailableError, ClusterError):
            continue
        if lines:
            yield LogExcerpt(object=str(pod.ref), container=container, lines=lines)
