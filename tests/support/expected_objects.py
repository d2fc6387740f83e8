"""What all objects have in common: labels, tolerations, the frame of a Job and of a node plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from support.rendered_plans import EXAMPLES, PREFIX, Rendered, one_node, render_example, render_made, three_nodes

TOOLKIT = "rancher/harvester-upgrade-toolkit"
RUN_TIME = "<known at run time: "
NAMED_PLAN = [{"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"}]
POD_NAME = {"name": "HARVESTER_UPGRADE_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}

TOLERATIONS = (  # in the order in which the manager writes them
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node-role.kubernetes.io/etcd", "operator": "Exists", "effect": "NoExecute"},
    {"key": "kubernetes.io/arch", "operator": "Equal", "value": "amd64", "effect": "NoSchedule"},
    {"key": "kubernetes.io/arch", "operator": "Equal", "value": "arm64", "effect": "NoSchedule"},
    {"key": "kubernetes.io/arch", "operator": "Equal", "value": "arm", "effect": "NoSchedule"},
    {"key": "kubevirt.io/drain", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
)
OF_A_DRAIN = {"node.kubernetes.io/unschedulable", "node.kubernetes.io/unreachable", "kubevirt.io/drain"}


def labels(component: str, job_type: str | None = None, node_name: str = "n1", plan_name: str = "up") -> dict[str, str]:
    base = {f"{PREFIX}upgrade-plan": plan_name, f"{PREFIX}upgrade-component": component}
    return base | ({f"{PREFIX}job-type": job_type, f"{PREFIX}node": node_name} if job_type else {})


def sorted_tolerations(body: Any) -> Any:
    """The body with its tolerations in the order of their keys: their order means nothing."""
    if isinstance(body, Mapping):
        return {
            key: sorted(value, key=lambda item: sorted(item.items()))
            if key == "tolerations"
            else sorted_tolerations(value)
            for key, value in body.items()
        }
    return [sorted_tolerations(item) for item in body] if isinstance(body, list) else body


def same(body: Any, expected: Any) -> bool:
    found, other = sorted_tolerations(body), sorted_tolerations(expected)
    assert found == other
    return True


def multi(**spec: Any) -> Rendered:
    return render_made(*three_nodes(**spec))


def single(**spec: Any) -> Rendered:
    return render_made(*one_node(**spec))


def node_plan(component: str, concurrency: int, **upgrade: Any) -> dict[str, Any]:
    return {
        "apiVersion": "upgrade.cattle.io/v1",
        "kind": "Plan",
        "metadata": {"name": f"up-{component}", "namespace": "cattle-system", "labels": labels(component)},
        "spec": {
            "concurrency": concurrency,
            "jobActiveDeadlineSecs": 0,
            "nodeSelector": {"matchLabels": {"harvesterhci.io/managed": "true"}},
            "serviceAccountName": "system-upgrade-controller",
            "tolerations": list(TOLERATIONS),
            "version": "v1.8.0",
            "upgrade": {"image": TOOLKIT, "securityContext": {"privileged": True, "runAsUser": 0}, **upgrade},
        },
    }


def job(name: str, its_labels: Mapping[str, str], pod: Mapping[str, Any], backoff_limit: int) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "harvester-system", "labels": its_labels},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": backoff_limit,
            "template": {"metadata": {"labels": its_labels}, "spec": pod},
        },
    }


def everything() -> Iterator[Rendered]:
    yield from (render_example(name) for name in EXAMPLES)
    yield render_made(*three_nodes(version="v1.8.0", restoreVM=True), retry=1)
