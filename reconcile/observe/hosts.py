"""The reading `hosts`: what the Jobs on the nodes have answered, each by the termination message of its pod.

A node's last Job that has ended counts; while a new one runs, that is the one before. What is no report as
schemas/facts.json describes it is no answer.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock

from reconcile.cluster.errors import Away, ClusterError
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.objects import NODE_LABEL, Condition, condition, controller, items, label, uid
from reconcile.observe.selection import read_failures
from reconcile.probes.look import Answer, ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.document_type import FACTS
from renderer.model.path import look_up
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body, ref_of
from renderer.names import label_value
from renderer.source_document import without_lines
from renderer.validation import document_problems

_COMPONENT = f"{PREFIX}upgrade-component"
_HOST_CHECK = f"{_COMPONENT}=host-check"
"""The label of Jobs that look at a host, and of their pods."""

_NAMESPACE = "harvester-system"
_LARGEST_ANSWER = 4096  # bytes that a kubelet keeps of a termination message

_NOBODY_LOOKED = ReadFailure(
    why="it has not been checked: a plan does that when it begins, with a Job on each node", out_of_reach=True
)
_REMEDY = "see its Job and pod: kubectl -n harvester-system get jobs,pods -l " + _HOST_CHECK


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """A Job that looks at a node's host, and its pods."""

    job: Body
    pods: tuple[Body, ...]

    @property
    def began(self) -> tuple[str, str]:
        metadata = self.job["metadata"]
        return str(metadata.get("creationTimestamp") or ""), str(metadata["name"])

    @property
    def end(self) -> Condition | None:
        """The condition that has ended the Job; None while it is under way."""
        found = (condition(self.job, name) for name in ("Complete", "Failed"))
        return next((each for each in found if each is not None and each.status == "True"), None)


_Visits = Mapping[str, tuple[_Visit, ...]]
"""Those of each node, by the label that names it, in the order in which they began."""


def hosts_of(cluster: Cluster, kinds: Kinds, nodes: Iterable[Body]) -> Mapping[str, Callable[[], Answer]]:
    """By node name: how to ask. Jobs and pods are listed once, when the first is asked for."""
    visits = _once(partial(_visits, cluster, kinds))
    return {ref.name: partial(_answer, visits, ref.name) for ref in map(ref_of, nodes)}


def _once(read: Callable[[], _Visits | ReadFailure]) -> Callable[[], _Visits | ReadFailure]:
    """The same, read when it is first asked for, by whichever thread."""
    lock, found = Lock(), list[_Visits | ReadFailure]()

    def known() -> _Visits | ReadFailure:
        with lock:
            if not found:
                found.append(read())
            return found[0]

    return known


def _visits(cluster: Cluster, kinds: Kinds) -> _Visits | ReadFailure:
    def listed(api_version: str, kind: str) -> tuple[Body, ...]:
        kind_of = kinds.row(api_version, kind).kind
        return cluster.list(Selection(kind=kind_of, namespace=_NAMESPACE, labels=_HOST_CHECK)).items

    try:
        jobs, pods = listed("batch/v1", "Job"), listed("v1", "Pod")
    except Away:
        raise
    except ClusterError as error:
        return read_failures(error)
    made: dict[str, list[Body]] = defaultdict(list)
    for pod in pods:
        made[str((controller(pod) or {}).get("uid"))].append(pod)
    found: dict[str, list[_Visit]] = defaultdict(list)
    for job in jobs:
        found[label(job, NODE_LABEL)].append(_Visit(job=job, pods=tuple(made[uid(job)])))
    return {node: tuple(sorted(visits, key=lambda visit: visit.began)) for node, visits in found.items()}


def _answer(visits: Callable[[], _Visits | ReadFailure], node: str) -> Answer:
    found = visits()
    if isinstance(found, ReadFailure):
        return found
    of_node = found.get(label_value(node), ())
    if not of_node:
        return _NOBODY_LOOKED
    return _report(next((visit for visit in reversed(of_node) if visit.end), of_node[-1]), node)


def _report(visit: _Visit, node: str) -> Answer:
    job, end = f"Job {visit.job['metadata']['name']} on node {node}", visit.end
    for message, ended in _messages(visit.pods):
        report = _read_report(message, node, job)
        return {**report, "reportedAt": ended} if ended and not isinstance(report, ReadFailure) else report
    if end is None:
        why = "; ".join([f"{job} has not ended yet", *_waits(visit.pods)])
    else:
        why = f"{job} has not answered" + (f": {end.reason}, {end.message}" if end.type == "Failed" else "")
    return ReadFailure(why=why, remedy=_REMEDY)


def _waits(pods: Iterable[Body]) -> Iterator[str]:
    """Yields what the pods wait for, such as an image."""
    for pod in pods:
        scheduled = condition(pod, "PodScheduled")
        if scheduled is not None and scheduled.status == "False":
            yield f"its pod cannot be scheduled: {scheduled.message or scheduled.reason}"
        for status in items(look_up(pod, ("status", "containerStatuses"))):
            waiting = look_up(status, ("state", "waiting"))
            if isinstance(waiting, Mapping) and waiting.get("reason") != "ContainerCreating":
                yield ": ".join(["its pod waits", *map(str, filter(None, map(waiting.get, ("reason", "message"))))])


def _messages(pods: Iterable[Body]) -> Iterator[tuple[str, str]]:
    """Yields the termination messages, each with the time at which its container ended, empty if unknown."""
    for pod in pods:
        for status in items(look_up(pod, ("status", "containerStatuses"))):
            end = look_up(status, ("state", "terminated"))
            if isinstance(end, Mapping) and isinstance(message := end.get("message"), str) and message:
                yield message, str(end.get("finishedAt") or "")


def _read_report(message: str, node: str, job: str) -> Answer:
    """The report that the termination message of a pod of the job holds."""
    if len(message.encode(errors="surrogatepass")) > _LARGEST_ANSWER:
        return ReadFailure(why=f"the answer of {job} is longer than {_LARGEST_ANSWER} bytes", remedy=_REMEDY)
    try:
        report = json.loads(message)
    except (ValueError, RecursionError):
        return ReadFailure(why=f"the answer of {job} is not JSON", remedy=_REMEDY)
    facts = FACTS.document({"facts": {"hosts": {node: report}}})
    if not isinstance(report, Mapping) or document_problems(without_lines(facts, ""), FACTS):
        return ReadFailure(why=f"the answer of {job} is not a report of a host", remedy=_REMEDY)
    return report
