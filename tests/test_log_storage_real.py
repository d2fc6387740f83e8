"""Logs on a volume on a real API server: the collector and the reader run as their pods say, a folder is the volume.

Scheduler and kubelet are played; Deployments and permissions are Kubernetes' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane import waiting
from controlplane.cluster import ControlPlane
from support.installed import ACCOUNT
from support.played_kubelet import PlayedKubelet, played_kubelet
from support.real_upgrade import client

from reconcile.loop.round import Round
from reconcile.objects import PLAN_LABEL
from reconcile.pod_logs.collector_scale import CollectorScale
from reconcile.pod_logs.plan_pods import COMPONENT_LABEL
from renderer.cli.program import run
from renderer.model.ref import Ref

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.full(
        "a collector as a process on a real API server; kills and what is read back (test_pod_logs.py), its role and "
        "its scale (test_log_storage.py) stand for it"
    ),
]

NAME = "harvester-upgrade-manager-log-collector"
COLLECTOR = Ref(api_version="apps/v1", kind="Deployment", namespace="harvester-system", name=NAME)
PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"
USER = f"system:serviceaccount:harvester-system:{NAME}"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "namespace": "harvester-system",
    "name": "up-pre-drain-one",
    "digest": "0123456789ab",
}
NODE_PLAN = {
    "apiVersion": "upgrade.cattle.io/v1",
    "kind": "Plan",
    "namespace": "cattle-system",
    "name": "up",
    "digest": "0123456789ab",
}
VALUES = "webhook: {enable: false}\nlogs: {storage: {enable: true}}\n"
LABELS = {PLAN_LABEL: "up", COMPONENT_LABEL: "node-upgrade"}


class Storage:
    """An installation that stores logs, a plan under way, and the manager's part in it."""

    def __init__(
        self, plane: ControlPlane, kubelet: PlayedKubelet, capsys: pytest.CaptureFixture[str], folder: Path
    ) -> None:
        self.plane, self.kubelet, self._capsys = plane, kubelet, capsys
        values = folder / "values.yaml"
        values.write_text(VALUES, encoding="utf-8")
        self.upgradeplan("install", "--values", str(values))
        body = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": {"name": "up"}}
        plane.api.create(PLANS, {**body, "spec": {"version": "v1.8.0"}})
        self.plan("NodeUpgrading", "True")
        manager = client(plane.service_account_kubeconfig(*ACCOUNT))
        self.said: list[Any] = []
        self.scale = CollectorScale(manager, COLLECTOR, lambda what, fields: self.said.append(fields), every_plan=True)

    def plan(self, phase: str, progressing: str) -> Any:
        began = {"started": "2026-01-01T00:00:00Z"}
        failed = {**began, "state": "Failed", "ended": "2026-01-01T00:01:00Z", "objects": [JOB], "message": "it failed"}
        records = {"PreDrain/one": failed, "Other": {**began, "state": "Started", "objects": [NODE_PLAN]}}
        condition = {"type": "Progressing", "status": progressing, "reason": "X", "message": ""}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        steps = {"NodeUpgrade": {"records": records}}
        status = {"currentPhase": phase, "conditions": [condition], "steps": steps}
        return self.plane.api.patch(f"{PLANS}/up/status", {"status": status})

    def upgradeplan(self, *words: str, code: int = 0) -> tuple[str, str]:
        found = run(["upgradeplan", *words, "--kubeconfig", str(self.plane.kubeconfig)])
        said = self._capsys.readouterr()
        assert found == code, said
        return said.out, said.err

    def collector(self) -> str:
        """The collector's pod once it runs."""
        return waiting.until("a collector", self.kubelet.collectors)[0]

    def stored(self, text: str) -> bool:
        return any(text in file.read_text(encoding="utf-8") for file in self.kubelet.volume.glob("*.log"))


@pytest.fixture
def storage(wiped_control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Storage]:
    volume = tmp_path / "volume"
    volume.mkdir()
    with played_kubelet(wiped_control_plane, volume) as kubelet:
        yield Storage(wiped_control_plane, kubelet, capsys, tmp_path)


def test_logs_outlast_pods_kills_and_the_collector(storage: Storage) -> None:
    kubelet, plane = storage.kubelet, storage.plane
    mark = plane.audit_mark()
    storage.scale.look()
    assert storage.said == [{"object": f"Deployment harvester-system/{NAME}", "replicas": 1}]
    kubelet.runs.set()
    first = storage.collector()
    kubelet.make_pod("up-pre-drain-one-abcde", LABELS)
    kubelet.make_pod("apply-up-on-one", {"upgrade.cattle.io/plan": "up"}, "cattle-system")
    kubelet.make_pod("somebody-elses", {})
    kubelet.line("up-pre-drain-one-abcde", 1, "drains")
    kubelet.line("up-pre-drain-one-abcde", 2, "password=hunter2secret")
    kubelet.line("apply-up-on-one", 1, "preloads", "cattle-system")
    kubelet.line("somebody-elses", 1, "private")
    waiting.until("the first lines", lambda: storage.stored("hunter2") or storage.stored("password="))
    waiting.until("lines of the node's Plan", lambda: storage.stored("preloads"))

    kubelet.kill(first)
    kubelet.line("up-pre-drain-one-abcde", 3, "while nobody looked")
    kubelet.line("up-pre-drain-one-abcde", 4, "no space left on device")
    waiting.until("what was printed meanwhile", lambda: storage.stored("no space left"))
    kubelet.remove_pod("up-pre-drain-one-abcde")
    kubelet.remove_pod("apply-up-on-one", "cattle-system")

    storage.scale.on_round(Round(name="up", plan=storage.plan("Failed", "False")))
    storage.scale.on_round(Round(name="up"))
    storage.scale.look()
    waiting.until("no collector", lambda: not kubelet.collectors())
    out, err = storage.upgradeplan("logs", "up", "--stored")
    where = "[harvester-system/up-pre-drain-one-abcde/main]"
    assert [line.partition("Z ")[2] for line in out.splitlines() if where in line] == [
        "drains",
        "password=REDACTED",
        "while nobody looked",
        "no space left on device",
    ]
    assert "preloads" in out
    assert "private" not in out
    assert "hunter2secret" not in "".join(file.read_text() for file in kubelet.volume.iterdir())
    assert f"{where} lost: what was printed after 2026-01-01T00:00:04.5Z: the pod is gone" in err
    out, _ = storage.upgradeplan("logs", "up", "--stored", "--phase", "NodeUpgrade", "--tail", "1")
    assert out == f"{where} 2026-01-01T00:00:04.5Z no space left on device\n"
    out, _ = storage.upgradeplan("report", "up", "--stored-logs", "-o", "json")
    (failure,) = json.loads(out)["failures"]
    assert failure["logs"][0]["lines"][-1] == "no space left on device"
    names = [pod["metadata"]["name"] for pod in plane.api.get("/api/v1/namespaces/harvester-system/pods")["items"]]
    assert [name for name in names if "log-collector" in name] == []

    calls = plane.audit(since=mark, user=USER)
    used = {(call.verb, call.resource, call.subresource, call.namespace) for call in calls}
    assert [str(call) for call in calls if call.code == 403] == []
    logs = {("get", "pods", "log", place) for place in ("harvester-system", "cattle-system")}
    pods = {("list", "pods", "", place) for place in ("harvester-system", "cattle-system")}
    assert used == {("list", "upgradeplans", "", ""), *logs, *pods}
