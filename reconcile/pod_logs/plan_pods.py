"""The pods of a plan: those that have its label, and those of the node Plans that it has made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconcile.objects import PLAN_LABEL, items, label
from reconcile.observe.source import Source
from reconcile.probes.look import Group, ReadFailure
from reconcile.status.plan_body import status_of
from renderer.model.path import look_up
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body, Ref, ref_of

COMPONENT_LABEL = f"{PREFIX}upgrade-component"
_NODE_PLAN = "upgrade.cattle.io/plan"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPod:
    """`component` is that of its label, or the name of its node Plan. `containers` are those that have begun, in the
    order in which they run; `ended`: none of them will print any more."""

    ref: Ref
    component: str
    node: str
    containers: tuple[str, ...]
    ended: bool


def pods_of_plan(source: Source, plan: Body) -> tuple[PlanPod, ...] | ReadFailure:
    """The pods that are there now, by namespace and name; or why they cannot be listed."""
    found: dict[Ref, PlanPod] = {}
    for group in _groups(plan):
        bodies = source.list(group)
        if isinstance(bodies, ReadFailure):
            return bodies
        found |= {ref_of(body): _pod(body) for body in bodies}
    return tuple(found[ref] for ref in sorted(found, key=str))


def _groups(plan: Body) -> Iterator[Group]:
    name = str(plan["metadata"]["name"])
    yield Group(api_version="v1", kind="Pod", labels=((PLAN_LABEL, name),))
    for ref in _node_plans(plan):
        yield Group(api_version="v1", kind="Pod", namespace=ref.namespace, labels=((_NODE_PLAN, ref.name),))


def _node_plans(plan: Body) -> Iterable[Ref]:
    records = (record for steps in status_of(plan).records.values() for record in steps.values())
    made = (made.ref for record in records for made in (*record.objects, *record.earlier))
    return dict.fromkeys(ref for ref in made if ref.kind == "Plan")


def _pod(body: Body) -> PlanPod:
    return PlanPod(
        ref=ref_of(body),
        component=label(body, COMPONENT_LABEL) or label(body, _NODE_PLAN),
        node=str(look_up(body, ("spec", "nodeName")) or ""),
        containers=tuple(_begun(body)),
        ended=look_up(body, ("status", "phase")) in _ENDED,
    )


def _begun(body: Body) -> Iterator[str]:
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in items(look_up(body, ("status", field))):
            state = status.get("state") or {}
            if "running" in state or "terminated" in state or status.get("lastState"):
                yield str(status["name"])
