"""`install` and `uninstall` against a real API server, and beside another manager that helm has installed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml
from bench.live import PLANS
from controlplane import binaries
from controlplane.cluster import ControlPlane
from support.installed import VERSION
from support.rehearsals import ROOT

from renderer.cli.program import run

NAME = "harvester-upgrade-manager"
DEPLOYMENT = f"{NAME}-controller-manager"
PLAN = "to-v1-8-0"
PODS = "/api/v1/namespaces/harvester-system/pods"
HELM = binaries.clients_dir() / "helm"
LATE = pytest.mark.full(
    "more of install on a real API server; one round of it, one beside another manager, and the fit of its addon stay; "
    "the chart is rendered and compared in test_install.py"
)
NEEDS_HELM = pytest.mark.skipif(not HELM.exists() and os.environ.get("CI") != "true", reason="helm is not here")


class Place:
    """A cluster with two nodes and a plan, and commands against it."""

    def __init__(self, plane: ControlPlane, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.plane, self._capsys, self.folder = plane, capsys, folder
        for name in ("one", "two"):
            self.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        self.make(plan_named(PLAN))  # before there is a webhook, which nobody answers here

    def make(self, *objects: Mapping[str, Any]) -> None:
        self.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def upgradeplan(self, *words: str, code: int = 0) -> str:
        """The output of a command, stderr included."""
        found = run(["upgradeplan", *words, "--kubeconfig", str(self.plane.kubeconfig)])
        said = "".join(self._capsys.readouterr())
        assert found == code, said
        return said

    def upgradeplan_offline(self, *words: str) -> None:
        assert run(["upgradeplan", *words]) == 0, self._capsys.readouterr()

    def deployments(self) -> list[str]:
        listed = self.plane.kubectl("-n", "harvester-system", "get", "deployments", "-o", "json").stdout
        return sorted(item["metadata"]["name"] for item in json.loads(listed)["items"])

    def deployment(self, name: str = DEPLOYMENT) -> Any:
        return json.loads(self.plane.kubectl("-n", "harvester-system", "get", "deployment", name, "-o", "json").stdout)

    def plan(self, phase: str, progressing: str) -> None:
        """The plan is in this phase from now on."""
        condition = {"type": "Progressing", "status": progressing, "reason": "X", "message": ""}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"status": {"currentPhase": phase, "conditions": [condition]}}
        self.plane.api.patch(f"{PLANS}/{PLAN}/status", status)

    def helm(self, *words: str) -> str:
        done = subprocess.run(
            [str(HELM), *words, f"--kubeconfig={self.plane.kubeconfig}"],
            env={"PATH": os.defpath, "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def carry_out(self, lines: list[str]) -> None:
        """The printed commands, one after the other."""
        for line in lines:
            program, *words = shlex.split(line)
            words = [word for word in words if word != "--kubeconfig" and word != str(self.plane.kubeconfig)]
            if program == "kubectl":
                self.plane.kubectl(*words)
            elif program == "helm":
                self.helm(*words)
            else:
                assert program == "upgradeplan"
                self.upgradeplan(*words)


def plan_named(name: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": name},
        "spec": {"version": "v1.8.0"},
    }


@pytest.fixture
def place(wiped_control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Place:
    return Place(wiped_control_plane, capsys, tmp_path)


def test_installed_changed_and_taken_out_again(place: Place) -> None:
    said = place.upgradeplan("install", "--dry-run")
    assert f"Deployment harvester-system/{DEPLOYMENT} would be created" in said
    assert place.deployments() == []

    said = place.upgradeplan("install")
    assert said.startswith("toolkitTag: v1.8.0, from values.yaml of the templates\n")
    assert f"Deployment harvester-system/{DEPLOYMENT} created" in said
    found = place.plane.kubectl("get", "deploy", "-A", "-l", f"app.kubernetes.io/name={NAME}", "-o", "name").stdout
    assert found == f"deployment.apps/{DEPLOYMENT}\n"
    assert place.deployment()["spec"]["replicas"] == 2
    assert set(kinds_said(place.upgradeplan("install"))) == {"unchanged"}

    values = place.folder / "values.yaml"
    values.write_text("networkPolicy: {enable: true}\nmanager: {replicas: 3}\n")
    said = place.upgradeplan("install", "apply", "--values", str(values))
    assert f"NetworkPolicy harvester-system/{DEPLOYMENT} created" in said
    assert f"Deployment harvester-system/{DEPLOYMENT} configured" in said
    said = place.upgradeplan("install", "--dry-run")
    assert "  spec.replicas: 3 -> 2" in said
    assert f"NetworkPolicy harvester-system/{DEPLOYMENT} would be removed" in said
    assert f"NetworkPolicy harvester-system/{DEPLOYMENT} pruned" in place.upgradeplan("install")

    place.plan("NodeUpgrading", "True")
    said = place.upgradeplan("uninstall", code=1)
    assert "UpgradePlan to-v1-8-0 is under way: it is in phase NodeUpgrading" in said
    assert place.deployments() == [DEPLOYMENT]
    assert place.upgradeplan("uninstall", "--check", code=1)
    place.plan("Succeeded", "False")
    secret = {"name": f"{NAME}-webhook-certificate", "namespace": "harvester-system"}
    labels = {"app.kubernetes.io/managed-by": "upgradeplan"}
    place.make({"apiVersion": "v1", "kind": "Secret", "metadata": {**secret, "labels": labels}})
    said = place.upgradeplan("uninstall")
    assert f"Secret harvester-system/{NAME}-webhook-certificate removed" in said
    assert (
        "stays: CustomResourceDefinition upgradeplans.management.harvesterhci.io\nstays: UpgradePlan to-v1-8-0\n"
        in said
    )
    assert place.plane.kubectl("get", "upgradeplans", "-o", "name").stdout == (
        "upgradeplan.management.harvesterhci.io/to-v1-8-0\n"
    )
    selector = ("-A", "-l", "app.kubernetes.io/part-of=upgradeplan", "-o", "name")
    left = "serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,deployments,pdb"
    assert place.plane.kubectl("get", left, *selector).stdout == ""
    assert "the cluster has no installation" in place.upgradeplan("uninstall", code=1)


def kinds_said(said: str) -> Iterator[str]:
    """The last words of the lines about objects."""
    lines = [line.rpartition(" ")[2] for line in said.splitlines() if not line.startswith(("next: ", "toolkitTag: "))]
    assert len(lines) > 10
    yield from lines


@LATE
def test_one_node_gets_one_manager_that_stays(place: Place) -> None:
    place.plane.kubectl("delete", "node", "two")
    place.upgradeplan("install")
    assert place.deployment()["spec"]["replicas"] == 1
    assert place.plane.kubectl("-n", "harvester-system", "get", "pdb", "-o", "name").stdout == ""


@LATE
def test_a_refusal_changes_nothing(place: Place) -> None:
    """The namespace is missing; all objects that could have been created are not."""
    values = place.folder / "values.yaml"
    values.write_text("namespace: nowhere\n")
    said = place.upgradeplan("install", "--values", str(values), code=3)
    assert "Namespace nowhere" in said
    assert "remedy: install into a Harvester cluster" in said
    assert place.plane.kubectl("get", "clusterrole", NAME, check=False).returncode == 1


@LATE
def test_fields_that_somebody_else_holds(place: Place) -> None:
    place.upgradeplan("install")
    scale = ("apply", "--server-side", "--field-manager=somebody", "--force-conflicts", "-f", "-")
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 4}}
    metadata = {"name": DEPLOYMENT, "namespace": "harvester-system"}
    place.plane.kubectl(*scale, stdin=yaml.safe_dump({**body, "metadata": metadata}))
    said = place.upgradeplan("install", code=3)
    assert "held by 'somebody'" in said
    assert "--force-conflicts" in said
    place.upgradeplan("install", "--force-conflicts")
    assert place.deployment()["spec"]["replicas"] == 2


@LATE
def test_kubectl_and_this_program_share_what_both_apply(place: Place) -> None:
    """None of them has to force anything, whoever comes first."""
    folder = place.folder / "plain"
    place.upgradeplan_offline("install", "--format", "plain", "--output-dir", str(folder))
    apply = ("apply", "--server-side", "-f", str(folder / "install.yaml"))
    place.plane.kubectl(*apply)
    place.upgradeplan("install", "--dry-run")
    assert set(kinds_said(place.upgradeplan("install"))) == {"unchanged"}
    place.plane.kubectl(*apply)


@LATE
def test_kubectl_alone_removes_all_but_the_definition_and_the_plans(place: Place) -> None:
    """By the commands of docs/install.md, whatever was switched on but monitoring, whose kinds are not here."""
    values = place.folder / "values.yaml"
    values.write_text("networkPolicy: {enable: true}\nrbacHelpers: {enable: true}\nlogs: {enable: true}\n")
    folder = place.folder / "plain"
    place.upgradeplan_offline("install", "--values", str(values), "--format", "plain", "--output-dir", str(folder))
    manifests = ("-f", str(folder / "install.yaml"))
    place.plane.kubectl("apply", "--server-side", *manifests)
    secret = {"name": f"{NAME}-webhook-certificate", "namespace": "harvester-system"}
    place.make({"apiVersion": "v1", "kind": "Secret", "metadata": secret})

    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    (block,) = (block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "kubectl delete -A" in block)
    place.carry_out(block.splitlines())
    left = place.plane.kubectl("get", *manifests, "--ignore-not-found", "-o", "name").stdout
    assert left == "customresourcedefinition.apiextensions.k8s.io/upgradeplans.management.harvesterhci.io\n"
    assert place.plane.kubectl("get", "upgradeplans", "-o", "name").stdout
    assert place.plane.kubectl("-n", "harvester-system", "get", "secrets", "-o", "name").stdout == ""


# ------------------------------------------------------------------------------------------- beside another manager


@pytest.fixture
def beside(place: Place) -> Place:
    """A chart of another manager: its Deployment, and a webhook that judges every plan, which nobody answers."""
    chart = place.folder / "other"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {NAME}\nversion: 1.0.0\n")
    labels = {"app.kubernetes.io/name": NAME, "control-plane": "controller-manager"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "other:1"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": "harvester-system", "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }
    rule = {"apiGroups": ["management.harvesterhci.io"], "apiVersions": ["v1beta1"], "resources": ["upgradeplans"]}
    webhook = {
        "name": "vupgradeplan-v1beta1.kb.io",
        "rules": [{**rule, "operations": ["CREATE"]}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "nobody", "namespace": "harvester-system", "path": "/"}},
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"{NAME}-validating-webhook"},
        "webhooks": [webhook],
    }
    (chart / "templates" / "all.yaml").write_text(yaml.safe_dump_all([deployment, configuration]))
    place.helm("install", "-n", "harvester-system", NAME, str(chart))
    return place


def ways(said: str) -> list[list[str]]:
    """The commands of each way that is printed."""
    found: list[list[str]] = []
    for line in said.splitlines():
        if line.startswith("To install "):
            found.append([])
        elif line.startswith("  ") and found:
            found[-1].append(line.strip())
    assert len(found) == 2
    return found


def refused(place: Place) -> list[list[str]]:
    """`install` says whose the objects are and changes nothing."""
    mark = place.plane.audit_mark()
    said = place.upgradeplan("install", code=1)
    assert f"belong to Helm release harvester-system/{NAME}; nothing was changed" in said
    assert f"Deployment harvester-system/{DEPLOYMENT}" in said
    asked = [
        event for event in place.plane.audit(since=mark) if not event.user.startswith("system:serviceaccount:kube-")
    ]
    assert asked
    assert {event.verb for event in asked} <= {"get", "list"}
    return ways(said)


@NEEDS_HELM
def test_beside_another_manager(beside: Place) -> None:
    first, _ = refused(beside)
    beside.carry_out(first)
    assert beside.deployments() == [DEPLOYMENT, "upgradeplan-controller-manager"]
    assert beside.deployment()["spec"]["replicas"] == 0
    assert beside.deployment("upgradeplan-controller-manager")["spec"]["replicas"] == 2
    webhooks = beside.plane.kubectl("get", "validatingwebhookconfigurations", "-o", "name").stdout
    assert f"{NAME}-validating-webhook" not in webhooks
    beside.carry_out(way_back("uninstall --name upgradeplan", beside.folder / "other"))
    assert beside.deployments() == [DEPLOYMENT]
    assert beside.deployment()["spec"]["replicas"] == 1
    webhooks = beside.plane.kubectl("get", "validatingwebhookconfigurations", "-o", "name").stdout
    assert f"{NAME}-validating-webhook\n" in webhooks


@LATE
@NEEDS_HELM
def test_in_place_of_another_manager_and_back(beside: Place) -> None:
    _, second = refused(beside)
    beside.carry_out(second)
    assert beside.deployment()["metadata"]["labels"]["app.kubernetes.io/part-of"] == "upgradeplan"
    beside.carry_out(way_back("helm install", beside.folder / "other"))
    assert beside.deployment()["spec"]["template"]["spec"]["containers"][0]["image"] == "other:1"
    assert PLAN in beside.plane.kubectl("get", "upgradeplans").stdout


@LATE
@NEEDS_HELM
def test_an_addon_is_named_and_disabled(beside: Place) -> None:
    addon = {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "Addon",
        "metadata": {"name": NAME, "namespace": "harvester-system"},
        "spec": {"enabled": True, "repo": "r", "chart": NAME, "version": "1.0.0", "valuesContent": ""},
    }
    beside.make(addon)
    said = beside.upgradeplan("install", code=1)
    assert f"belong to Addon harvester-system/{NAME}" in said
    disable, install = ways(said)[1]
    beside.carry_out([disable])
    assert is_enabled(beside) == "false"
    beside.helm("uninstall", "-n", "harvester-system", NAME)  # as the controller of Addons does it
    beside.carry_out([install])
    beside.carry_out(way_back("patch addons", beside.folder))
    assert beside.deployments() == []
    assert is_enabled(beside) == "true"


def is_enabled(place: Place) -> str:
    shown = ("get", "addons.harvesterhci.io", NAME, "-o", "jsonpath={.spec.enabled}")
    return str(place.plane.kubectl("-n", "harvester-system", *shown).stdout)


def way_back(named: str, chart: Path) -> list[str]:
    """The commands of the guide that have this in them."""
    guide = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    section = guide.partition("## Beside another manager")[2].partition("\n## ")[0]
    (found,) = (block for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) if named in block)
    return [line.replace("CHART", str(chart)) for line in found.splitlines()]


# -------------------------------------------------------------------------------------------------------- the chart


class Kubelet(Thread):
    """Runs the pods of Jobs as the kubelet would: their container's command, as their ServiceAccount, and the end."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(daemon=True)
        self._plane, self.stopped, self.ended = plane, Event(), dict[str, int]()

    def run(self) -> None:
        while not self.stopped.wait(0.1):
            for pod in self._plane.api.get(PODS)["items"]:
                if "job-name" in pod["metadata"]["labels"] and pod["metadata"]["uid"] not in self.ended:
                    self._run(pod)

    def _run(self, pod: Any) -> None:
        (container,) = pod["spec"]["containers"]
        assert container["command"] == ["upgradeplan"]
        account = self._plane.service_account_kubeconfig("harvester-system", pod["spec"]["serviceAccountName"])
        command = [sys.executable, "-m", "renderer.cli", *container["args"], f"--kubeconfig={account}"]
        code = subprocess.run(command, capture_output=True, check=False).returncode
        self.ended[pod["metadata"]["uid"]] = code
        phase = "Failed" if code else "Succeeded"
        self._plane.api.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": phase}})


@pytest.fixture
def kubelet(wiped_control_plane: ControlPlane) -> Iterator[Kubelet]:
    found = Kubelet(wiped_control_plane)
    found.start()
    yield found
    found.stopped.set()
    found.join()


@NEEDS_HELM
@LATE
def test_the_chart_is_installed_upgraded_and_removed_unless_a_plan_is_under_way(place: Place, kubelet: Kubelet) -> None:
    chart = str(place.folder / "chart")
    place.upgradeplan_offline("install", "--format", "helm-chart", "--output-dir", chart)
    at = ("-n", "harvester-system", NAME)
    place.helm("install", *at, chart, "--take-ownership")
    assert place.deployment()["spec"]["replicas"] == 2
    place.helm("upgrade", *at, chart, "--set", "manager.replicas=3")
    assert place.deployment()["spec"]["replicas"] == 3
    assert "belong to Helm release" in place.upgradeplan("install", code=1)
    assert f"helm uninstall -n harvester-system {NAME}" in place.upgradeplan("uninstall", code=1)

    place.plan("NodeUpgrading", "True")
    with pytest.raises(AssertionError, match="pre-delete"):
        place.helm("uninstall", *at)
    assert place.deployments() == [DEPLOYMENT]
    place.plan("Succeeded", "False")
    place.helm("uninstall", *at)
    assert place.deployments() == []
    assert list(kubelet.ended.values()) == [1, 0]
    assert "to-v1-8-0" in place.plane.kubectl("get", "upgradeplans").stdout


def test_an_addon_fits_its_definition_and_is_enabled_as_documented(place: Place) -> None:
    values = place.folder / "values.yaml"
    values.write_text("addon: {repo: 'https://charts.example.com'}\nsingleNode: true\n")
    folder = place.folder / "addon"
    place.upgradeplan_offline("install", "--format", "addon", "--values", str(values), "--output-dir", str(folder))
    place.plane.kubectl("apply", "--server-side", "-f", str(folder / "addon.yaml"))
    guide = (ROOT / "docs" / "install.md").read_text().splitlines()
    (line,) = (line for line in guide if "patch addons" in line and "`" in line)
    place.carry_out([line.split("`")[1]])
    addon = place.plane.kubectl("-n", "harvester-system", "get", "addons.harvesterhci.io", NAME, "-o", "json").stdout
    assert json.loads(addon)["spec"] == {
        "enabled": True,
        "repo": "https://charts.example.com",
        "chart": NAME,
        "version": VERSION,
        "valuesContent": "singleNode: true\n",
    }
