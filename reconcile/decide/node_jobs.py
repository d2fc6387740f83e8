"""States of nodes as told by Jobs that somebody else makes for an object of ours, one a node."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.decide.builder import DecisionBuilder
from reconcile.probes.evaluate import group_of
from reconcile.probes.look import ReadFailure
from renderer.model.path import look_up
from renderer.model.probe import EveryTarget
from renderer.model.ref import Body
from renderer.model.rendered import RenderedStep


def job_group(item: RenderedStep) -> EveryTarget | None:
    """The Jobs that tell the states of nodes for this step."""
    told = item.step.job_states
    if told is None:
        return None
    return EveryTarget(api_version="batch/v1", kind="Job", namespace=told.namespace, labels=told.labels)


def note_jobs(builder: DecisionBuilder, item: RenderedStep) -> None:
    """Puts each node where its Job is."""
    if (told := item.step.job_states) is None:
        return
    for job in _jobs_of(builder, item):
        node = ((job.get("metadata") or {}).get("labels") or {}).get(told.node_label)
        state = getattr(told.states, _word(job))
        if node and state:
            builder.status = builder.status.with_node(str(node), state, *_failure(job))


def jobs_are_done(builder: DecisionBuilder, item: RenderedStep) -> None:
    """The object that they were made for has ended well. Their own end may be seen later: two watches bring them."""
    if (told := item.step.job_states) is None:
        return
    for node, entry in builder.status.node_states.items():
        if entry.get("state") == told.states.active and told.states.completed:
            builder.status = builder.status.with_node(node, told.states.completed)


def _jobs_of(builder: DecisionBuilder, item: RenderedStep) -> Iterator[Body]:
    target = job_group(item)
    found = builder.observation.look.list(group_of(target)) if target else ()
    if not isinstance(found, ReadFailure):
        yield from found


def _word(job: Body) -> str:
    for condition in look_up(job, ("status", "conditions")) or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            return "completed" if condition["type"] == "Complete" else "failed"
    return "active"


def _failure(job: Body) -> tuple[str, str]:
    """Reason and message of a Job that has failed."""
    for condition in look_up(job, ("status", "conditions")) or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            return condition.get("reason", ""), condition.get("message", "")
    return "", ""
