"""Writes on a real API server: conflicts, strictness, dry runs, preconditions, and what is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cluster_door.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    SERVICE,
    UPGRADE_PLAN,
    VIRTUAL_MACHINE,
    WIDGET,
    config_map,
    ref,
)
from cluster_door.real import create_namespace, deployment
from reconcile.cluster import errors
from reconcile.cluster.events import EVENT, EventSeverity, Occurrence, emit
from reconcile.cluster.protocol import Cluster, Propagation, Selection
from renderer.model.ref import Kind

OLD_KIND = Kind(api_version="v1", kind="ComponentStatus", plural="componentstatuses", namespaced=False)


def test_apply_meets_another_manager(client: Cluster, namespace: str) -> None:
    client.apply(DEPLOYMENT, deployment("d", namespace), field_manager="rancher")
    with pytest.raises(errors.Conflict) as caught:
        client.apply(DEPLOYMENT, deployment("d", namespace, replicas=1))
    assert caught.value.claims == (errors.Claim(manager="rancher", field=".spec.replicas"),)
    assert client.apply(DEPLOYMENT, deployment("d", namespace, replicas=1), force=True).body["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("write", "field"),
    [
        (lambda c, ns: c.apply(DEPLOYMENT, deployment("d", ns, zap=1)), "spec.zap"),
        (lambda c, ns: c.create(DEPLOYMENT, deployment("e", ns, zap=1)), "spec.zap"),
        (lambda c, ns: c.patch(DEPLOYMENT, ref(DEPLOYMENT, "d", ns), {"spec": {"zap": 1}}), "spec.zap"),
        (
            lambda c, ns: c.patch(DEPLOYMENT, ref(DEPLOYMENT, "d", ns), {"status": {"zap": 1}}, subresource="status"),
            "status.zap",
        ),
        (
            lambda c, ns: c.json_patch(
                DEPLOYMENT, ref(DEPLOYMENT, "d", ns), [{"op": "add", "path": "/spec/zap", "value": 1}]
            ),
            "spec.zap",
        ),
    ],
    ids=["apply", "create", "merge patch", "merge patch of the status", "JSON patch"],
)
def test_every_write_is_validated_strictly(
    client: Cluster, write: Callable[[Cluster, str], object], field: str
) -> None:
    if not _exists(client, "door-strict"):
        create_namespace(client, "door-strict")
        client.create(DEPLOYMENT, deployment("d", "door-strict"))
    with pytest.raises(errors.Invalid) as caught:
        write(client, "door-strict")
    assert [cause.field for cause in caught.value.causes] == [field]
    assert len(str(caught.value)) < 200


def _exists(client: Cluster, namespace: str) -> bool:
    try:
        client.get(NAMESPACE, ref(NAMESPACE, namespace))
    except errors.NotFound:
        return False
    return True


def test_dry_run_answers_and_changes_nothing(client: Cluster, namespace: str) -> None:
    a = ref(CONFIG_MAP, "a", namespace)
    dry = client.apply(CONFIG_MAP, config_map("a", namespace, x="1"), dry_run=True)
    assert dry.body["data"] == {"x": "1"}
    with pytest.raises(errors.NotFound):
        client.get(CONFIG_MAP, a)
    before = client.create(CONFIG_MAP, config_map("a", namespace, x="1")).body
    assert client.patch(CONFIG_MAP, a, {"data": {"x": "2"}}, dry_run=True).body["data"] == {"x": "2"}
    assert client.delete(CONFIG_MAP, a, dry_run=True).body == {}
    assert client.get(CONFIG_MAP, a).body == before


def test_merge_patch_under_a_stale_version_conflicts(client: Cluster, namespace: str) -> None:
    a = ref(CONFIG_MAP, "a", namespace)
    old = client.create(CONFIG_MAP, config_map("a", namespace, x="1")).body["metadata"]["resourceVersion"]
    new = client.patch(CONFIG_MAP, a, {"data": {"x": "2"}}).body["metadata"]["resourceVersion"]
    with pytest.raises(errors.Conflict) as caught:
        client.patch(CONFIG_MAP, a, {"metadata": {"resourceVersion": old}, "data": {"x": "3"}})
    assert caught.value.claims == ()
    kept = {"metadata": {"resourceVersion": new}, "data": {"x": None, "y": "3"}}
    assert client.patch(CONFIG_MAP, a, kept).body["data"] == {"y": "3"}


def test_json_patch_takes_our_claim_out_of_managed_fields(client: Cluster, namespace: str) -> None:
    a = ref(CONFIG_MAP, "a", namespace)
    client.create(CONFIG_MAP, config_map("a", namespace, x="1"), field_manager="owner")
    claims = client.patch(CONFIG_MAP, a, {"data": {"x": "2"}}).body["metadata"]["managedFields"]
    ours = next(n for n, claim in enumerate(claims) if claim["manager"] == "upgradeplan")
    path = f"/metadata/managedFields/{ours}"
    removal = [{"op": "test", "path": f"{path}/manager", "value": "upgradeplan"}, {"op": "remove", "path": path}]
    released = client.json_patch(CONFIG_MAP, a, removal).body
    assert ([claim["manager"] for claim in released["metadata"]["managedFields"]], released["data"]) == (
        ["owner"],
        {"x": "2"},
    )
    with pytest.raises(errors.Invalid):
        client.json_patch(CONFIG_MAP, a, [{"op": "test", "path": "/data/x", "value": "1"}])


def test_delete_keeps_to_its_preconditions(client: Cluster, namespace: str) -> None:
    a = ref(CONFIG_MAP, "a", namespace)
    metadata = client.create(CONFIG_MAP, config_map("a", namespace)).body["metadata"]
    with pytest.raises(errors.Conflict):
        client.delete(CONFIG_MAP, a, uid="another")
    with pytest.raises(errors.Conflict):
        client.delete(CONFIG_MAP, a, resource_version="1")
    gone = client.delete(CONFIG_MAP, a, uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    assert gone.body == {}
    with pytest.raises(errors.NotFound):
        client.delete(CONFIG_MAP, a)


def test_delete_of_an_object_with_a_finalizer_leaves_it_for_now(client: Cluster, namespace: str) -> None:
    a = ref(CONFIG_MAP, "a", namespace)
    body = config_map("a", namespace)
    client.create(CONFIG_MAP, {**body, "metadata": {**body["metadata"], "finalizers": ["example.org/hold"]}})
    stays = client.delete(CONFIG_MAP, a, propagation=Propagation.FOREGROUND).body
    assert stays["metadata"]["deletionTimestamp"]
    client.patch(CONFIG_MAP, a, {"metadata": {"finalizers": None}})
    with pytest.raises(errors.NotFound):
        client.get(CONFIG_MAP, a)


ROLE_BINDING = Kind(
    api_version="rbac.authorization.k8s.io/v1", kind="RoleBinding", plural="rolebindings", namespaced=True
)
ACCOUNT = Kind(api_version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
POD = Kind(api_version="v1", kind="Pod", plural="pods", namespaced=True)
JOB = Kind(api_version="batch/v1", kind="Job", plural="jobs", namespaced=True)
CONTAINERS = {"containers": [{"name": "main", "image": "i:1"}], "restartPolicy": "Never"}
ON_THE_HOST = {"hostNetwork": True}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"}
FIXED: tuple[tuple[Kind, dict[str, Any], dict[str, Any], str], ...] = (
    (DEPLOYMENT, deployment("d", "x"), {"spec": {"selector": {"matchLabels": {"app": "other"}}}}, "spec.selector"),
    (POD, {"spec": {**CONTAINERS, "serviceAccountName": "fixed"}}, {"spec": ON_THE_HOST}, "spec"),
    (JOB, {"spec": {"template": {"spec": CONTAINERS}}}, {"spec": {"template": {"spec": ON_THE_HOST}}}, "spec.template"),
    (SERVICE, {"spec": {"ports": [{"port": 80}]}}, {"spec": {"clusterIP": "10.0.0.77"}}, "spec.clusterIPs[0]"),
    (ROLE_BINDING, {"roleRef": ROLE_REF}, {"roleRef": {"name": "other"}}, "roleRef"),
)


def test_a_field_that_is_fixed_is_told_apart(client: Cluster, namespace: str) -> None:
    """Each kind has words of its own for it."""
    account = {"metadata": {"name": "fixed", "namespace": namespace}}  # the default one comes too late for a Pod
    client.create(ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
    for kind, made, patch, field in FIXED:
        metadata = {"name": "fixed", "namespace": namespace}
        client.create(kind, {**made, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
        with pytest.raises(errors.Immutable) as caught:
            client.patch(kind, ref(kind, "fixed", namespace), patch)
        assert field in {cause.field for cause in caught.value.causes}, kind


def test_namespace_that_is_missing_is_named(client: Cluster) -> None:
    with pytest.raises(errors.NotFound) as caught:
        client.apply(CONFIG_MAP, config_map("a", "door-absent"), dry_run=True)
    assert caught.value.ref == ref(NAMESPACE, "door-absent")


def test_event_is_taken_and_counted(client: Cluster, namespace: str) -> None:
    moment = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
    once = Occurrence(
        regarding=ref(CONFIG_MAP, "a", namespace),
        uid="u",
        severity=EventSeverity.NORMAL,
        reason="PhaseStarted",
        message="Initialize started",
        component="upgradeplan-controller",
        first=moment,
        last=moment,
    )
    emit(client, once)
    emit(client, replace(once, count=2))
    listing = client.list(Selection(kind=EVENT, namespace=namespace, fields="involvedObject.name=a"))
    assert [(event["count"], event["reason"]) for event in listing.items] == [(2, "PhaseStarted")]


def test_warnings_of_the_server_reach_the_caller(client: Cluster) -> None:
    assert client.list(Selection(kind=OLD_KIND)).warnings == ("v1 ComponentStatus is deprecated in v1.19+",)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.get(WIDGET, ref(WIDGET, "w", "default")),
        lambda c: c.list(Selection(kind=WIDGET)),
        lambda c: c.watch(Selection(kind=WIDGET), resource_version="1", window=1),
        lambda c: c.apply(
            WIDGET,
            {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}},
        ),
        lambda c: c.list(Selection(kind=replace(DEPLOYMENT, kind="Widget", plural="widgets"))),
        lambda c: c.list(Selection(kind=replace(UPGRADE_PLAN, api_version="management.harvesterhci.io/v9"))),
        lambda c: c.put(VIRTUAL_MACHINE, ref(VIRTUAL_MACHINE, "vm", "default"), "start"),
    ],
    ids=["get", "list", "watch", "apply", "resource of a served group", "version of a served kind", "aggregated API"],
)
def test_kind_that_is_not_served(client: Cluster, ask: Callable[[Cluster], object]) -> None:
    with pytest.raises(errors.NoSuchKind):
        ask(client)


def test_object_that_is_absent_is_not_a_kind_that_is_absent(client: Cluster) -> None:
    with pytest.raises(errors.NotFound):
        client.get(UPGRADE_PLAN, ref(UPGRADE_PLAN, "door-absent"))
    with pytest.raises(errors.NotFound):
        client.read(NODE, ref(NODE, "door-absent"), "proxy/stats/summary")


def test_service_without_endpoints_is_a_failing_backend(client: Cluster, namespace: str) -> None:
    client.create(
        SERVICE,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s", "namespace": namespace},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "none"}},
        },
    )
    with pytest.raises(errors.BackendFailed):
        client.read(SERVICE, ref(SERVICE, "s:80", namespace), "proxy/harvester-iso/harvester-release.yaml")
