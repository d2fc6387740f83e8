"""The last lines of the pods of a step that has failed, for the report of its run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.protocol import Cluster
from reconcile.objects import label
from reconcile.observe.container_log import LogUnavailableError, read_log
from reconcile.observe.source import Source
from reconcile.pod_logs.plan_pods import PlanPod, pods_of_plan
from reconcile.probes.look import Group, ReadFailure
from reconcile.report_page.recorded_run import LogExcerpt
from renderer.model.ref import Body, Ref, ref_of

LINES = 40
_JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")


def excerpts_of(cluster: Cluster, source: Source, plan: Body, made: Iterable[Ref]) -> tuple[LogExcerpt, ...]:
    """Of the Jobs among these objects; what cannot be read is left out."""
    jobs = {ref for ref in made if ref.kind == "Job"}
    pods = pods_of_plan(source, plan)
    if isinstance(pods, ReadFailure) or not jobs:
        return ()
    owned = {ref_of(body) for ref in jobs for body in _pods_of_job(source, ref)}
    found = (excerpt for pod in pods if pod.ref in owned for excerpt in _of_pod(cluster, pod))
    return tuple(found)


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
