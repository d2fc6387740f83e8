"""The pods of a plan: those that have its label, and those of the node Plans that it has made; and whether its logs
are collected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconcile.objects import NODE_PLAN_LABEL, PLAN_LABEL, items, label
from reconcile.observe.source import Source
from reconcile.probes.look import Group, ReadFailure
from reconcile.status.plan_body import status_of
from renderer.model.path import look_up
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body, Ref, ref_of

COMPONENT_LABEL = f"{PREFIX}upgrade-component"
COLLECT_LOGS = f"{PREFIX}collect-logs"
NAMESPACE = "harvester-system"
"""The namespace of an upgrade's own pods."""
_ENDED = ("Succeeded", "Failed")
_HAVE_PODS = ("DaemonSet", "Deployment", "Job", "Pod", "StatefulSet")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPod:
    """`component` is that of its label, or the name of its node Plan. `containers` are those that have begun, in the
    order in which they run; `restarts` says how often each was started again. `ended`: none of them will print any
    more."""

    ref: Ref
    component: str
    node: str
    containers: tuple[str, ...]
    restarts: Mapping[str, int]
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPods:
    """The pods that are there now, by namespace and name; and why those of a namespace cannot be listed."""

    pods: tuple[PlanPod, ...] = ()
    unread: Mapping[str, ReadFailure] = field(default_factory=dict)


def is_collected(plan: Body, *, unless_annotated: bool) -> bool:
    """True if the plan's annotation wants its logs collected; without one, or with another text, what is usual."""
    asked = look_up(plan, ("metadata", "annotations", COLLECT_LOGS))
    return {"true": True, "false": False}.get(asked, unless_annotated)


def pods_of_plan(source: Source, plan: Body) -> PlanPods:
    found: dict[Ref, PlanPod] = {}
    unread: dict[str, ReadFailure] = {}
    for group in _groups(plan):
        bodies = source.list(group)
        if isinstance(bodies, ReadFailure):
            unread[group.namespace] = bodies
        else:
            found |= {ref_of(body): _pod(body) for body in bodies}
    return PlanPods(pods=tuple(found[ref] for ref in sorted(found, key=str)), unread=unread)


def _groups(plan: Body) -> Iterator[Group]:
    """Only in namespaces in which the plan has made something that has pods."""
    records = (record for steps in status_of(plan).records.values() for record in steps.values())
    made = dict.fromkeys(made.ref for record in records for made in (*record.objects, *record.earlier))
    namespaces = dict.fromkeys((NAMESPACE, *(ref.namespace for ref in made if ref.kind in _HAVE_PODS)))
    for namespace in namespaces:
        yield _pods(namespace, PLAN_LABEL, str(plan["metadata"]["name"]))
    for ref in (ref for ref in made if ref.kind == "Plan"):
        yield _pods(ref.namespace, NODE_PLAN_LABEL, ref.name)


def _pods(namespace: str, key: str, value: str) -> Group:
    return Group(api_version="v1", kind="Pod", namespace=namespace, labels=((key, value),))


def _pod(body: Body) -> PlanPod:
    begun = tuple(_begun(body))
    return PlanPod(
        ref=ref_of(body),
        component=label(body, COMPONENT_LABEL) or label(body, NODE_PLAN_LABEL),
        node=str(look_up(body, ("spec", "nodeName")) or ""),
        containers=tuple(str(status["name"]) for status in begun),
        restarts={str(status["name"]): int(status.get("restartCount") or 0) for status in begun},
        ended=look_up(body, ("status", "phase")) in _ENDED,
    )


def _begun(body: Body) -> Iterator[Body]:
    for name in ("initContainerStatuses", "containerStatuses"):
        for status in items(look_up(body, ("status", name))):
            state = status.get("state") or {}
            if "running" in state or "terminated" in state or status.get("lastState"):
                yield status
