"""`preflight` on a real API server, with the permissions that `install` renders for it: none is missing or unused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from support.installed import VERSION
from support.real_commands import PLAN, CommandSite, SeededCluster

from renderer.files.templates import read_templates
from renderer.install.prepare import prepare_installation
from renderer.model.ref import Body

pytestmark = pytest.mark.controlplane

ACCOUNT = ("default", "preflight-reader")
USER = f"system:serviceaccount:{ACCOUNT[0]}:{ACCOUNT[1]}"

SELDOM = {
    ("", "nodes/proxy", "get"),  # this plan skips the check of disks
    ("", "persistentvolumeclaims", "list"),  # claims that were made from an image
    ("harvesterhci.io", "upgradelogs", "list"),  # verify
    ("helm.cattle.io", "helmchartconfigs", "list"),
    ("harvesterhci.io", "virtualmachineimages", "list"),  # a plan that names one, and those claims
    ("longhorn.io", "nodes", "list"),
    ("longhorn.io", "instancemanagers", "list"),  # a storage network
    ("longhorn.io", "backingimagemanagers", "list"),
    ("whereabouts.cni.cncf.io", "ippools", "list"),
}
"""Calls that checks make in other clusters: where there is what stands behind them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    plane: ControlPlane
    kubeconfig: Path


@pytest.fixture(scope="module")
def roles() -> list[Body]:
    installed = prepare_installation(read_templates(), [{"rbacHelpers": {"enable": True}}], VERSION)
    bodies = (body for file in installed.files for body in file.objects)
    return [body for body in bodies if str(body["metadata"]["name"]).endswith("-preflight")]


@pytest.fixture(scope="module")
def reader(control_plane: ControlPlane) -> Asked:
    """An account that may do nothing."""
    SeededCluster(control_plane).site()
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT[1], "namespace": ACCOUNT[0]}}
    control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(account))
    return Asked(plane=control_plane, kubeconfig=control_plane.service_account_kubeconfig(*ACCOUNT))


def preflight(reader: Asked) -> tuple[int, str]:
    done = CommandSite(reader.plane, ("--kubeconfig", str(reader.kubeconfig))).run("preflight", "--plan", PLAN)
    return done.returncode, done.stdout + done.stderr


def bound(role: Body) -> Body:
    kind = str(role["kind"])
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": {key: role["metadata"][key] for key in ("name", "namespace") if key in role["metadata"]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": ACCOUNT[0], "name": ACCOUNT[1]}],
    }


def test_without_them_each_missing_rule_is_said(reader: Asked) -> None:
    status, text = preflight(reader)
    assert status == 3
    for resource in ("upgradeplans", "nodes", "machines", "secrets", "settings", "volumes", "virtualmachines"):
        assert f'"resources": ["{resource}"]' in text


def test_with_them_every_call_is_permitted_and_every_permission_is_used(reader: Asked, roles: list[Body]) -> None:
    assert {role["kind"] for role in roles} == {"ClusterRole", "Role"}
    items: list[Any] = [*roles, *map(bound, roles)]
    reader.plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    mark = reader.plane.audit_mark()
    status, text = preflight(reader)
    calls = reader.plane.audit(since=mark, user=USER)
    assert [str(call) for call in calls if call.code == 403] == []
    assert status in (0, 1, 3), text
    used = {(call.group, call.resource, call.verb) for call in calls}
    granted = {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted - used == SELDOM


@pytest.mark.full(
    "what few clusters have, on a real API server; that each of these kinds is looked at by a check stands for it "
    "(test_preflight_cases.py)"
)
def test_what_is_seldom_asked_is_permitted_and_asked_where_there_is_what_stands_behind_it(
    reader: Asked, tmp_path: Path
) -> None:
    """A storage network, an upgrade to v1.10 and one from v1.4, the disks, and the checks after an upgrade."""
    api, mark = reader.plane.api, reader.plane.audit_mark()
    settings = "/apis/harvesterhci.io/v1beta1/settings"
    network = {"metadata": {"name": "storage-network"}, "value": '{"range": "192.0.2.0/24"}'}
    api.create(settings, {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Setting", **network})
    site, plan = CommandSite(reader.plane, ("--kubeconfig", str(reader.kubeconfig))), tmp_path / "plan.yaml"
    plan.write_text(
        "{apiVersion: management.harvesterhci.io/v1beta1, kind: UpgradePlan, metadata: {name: up}, "
        "spec: {version: v1.10.0}}",
        encoding="utf-8",
    )
    checks = ("storage-network-addresses", "volume-smaller-than-image", "disk-headroom")
    site.run("preflight", str(plan), *(word for check in checks for word in ("--check", check)))
    api.patch(f"{settings}/server-version", {"value": "v1.4.1"})
    site.run("preflight", str(plan), "--check", "longhorn-eviction")
    site.run("verify", PLAN)
    calls = reader.plane.audit(since=mark, user=USER)
    assert [str(call) for call in calls if call.code == 403] == []
    asked = {(call.group, f"{call.resource}/{call.subresource}".rstrip("/"), call.verb) for call in calls}
    assert SELDOM - asked == set()


def test_what_may_not_be_read_leaves_the_other_checks_their_answers(reader: Asked, roles: list[Body]) -> None:
    """Also where rendering starts from it: a finding still blocks, and the rule is named."""
    refused = ("nodes", "settings", "versions", "machines")
    fewer = [{**role, "rules": [rule for rule in role["rules"] if not _reads(rule, refused)]} for role in roles]
    items: list[Any] = [*fewer, *map(bound, roles)]
    reader.plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    volume = {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Volume",
        "metadata": {"name": "faulted", "namespace": "longhorn-system"},
        "spec": {"numberOfReplicas": 3},
        "status": {"state": "attached", "robustness": "faulted"},
    }
    site = CommandSite(reader.plane, ("--kubeconfig", str(reader.kubeconfig)))
    path = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/volumes"
    reader.plane.api.create(path, volume)
    reader.plane.api.patch(f"{path}/faulted/status", {"status": volume["status"]})
    done = site.run("preflight", "--plan", PLAN, "-o", "json")
    reader.plane.api.delete(f"{path}/faulted")
    found = json.loads(done.stdout)
    outcomes = {check["id"]: check["outcome"] for check in found["checks"]}
    assert (done.returncode, outcomes["volume-faulted"]) == (1, "blocked")
    assert {outcomes[id_] for id_ in ("node-ready", "server-version", "version-exists", "machine-running")} == {
        "unknown"
    }
    remedies = [warning["remedy"] for warning in found["warnings"]]
    assert [any(f'"resources": ["{resource}"]' in remedy for remedy in remedies) for resource in refused] == [True] * 4
    assert preflight(reader)[0] == 3


def _reads(rule: Any, resources: Sequence[str]) -> bool:
    return rule["apiGroups"] != ["longhorn.io"] and not {*resources}.isdisjoint(rule["resources"])
