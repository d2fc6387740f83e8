"""What a Job's pod does, by the name of the act: between those who run pods and those who know the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconcile.simulator.actors.actor_context import labels_of
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body

_COMPONENT = f"{PREFIX}upgrade-component"
_JOB_TYPE = f"{PREFIX}job-type"
_PLAN = f"{PREFIX}upgrade-plan"
_NODE_PLAN_NODE = "upgrade.cattle.io/node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One pod's task. `node` is empty for a Job that may run anywhere; `host` is where it does."""

    operation: str
    node: str
    host: str
    plan: str
    job: Body


def _nothing(task: Task, now: datetime) -> None:
    """Leaves no trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEffect:
    """`do` does what can be done of the work now, as often as it is asked, and says whether all of it is done; `after`
    is what happens once the pod has ended well."""

    do: Callable[[Task, datetime], bool]
    after: Callable[[Task, datetime], None] = _nothing


JobEffectTable = Mapping[str, JobEffect]


def task_of(job: Body, pod: Body) -> Task:
    labels, spec = labels_of(job), job["spec"]["template"]["spec"]
    operation = labels.get(_JOB_TYPE) or labels.get(_COMPONENT) or str(job["metadata"]["name"])
    return Task(
        operation=operation,
        node=str(spec.get("nodeName") or labels.get(_NODE_PLAN_NODE) or ""),
        host=str(pod["spec"].get("nodeName") or ""),
        plan=labels.get(_PLAN, ""),
        job=job,
    )
