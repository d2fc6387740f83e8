"""Logs on a volume: when the collector's Deployment runs, what it may do, and how its volume is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from support.installed import installation
from support.rehearsals import rehearsal_of, template_set

from reconcile.cli.stored_logs import stored_logs
from reconcile.cluster.errors import Away, BackendFailed
from reconcile.cluster.protocol import Answer, Cluster, Selection
from reconcile.loop.round import Round
from reconcile.observe.container_log import POD
from reconcile.observe.source import DirectSource
from reconcile.pod_logs.collector_pods import other_collector, reader_of, waits_for, why_not_stored
from reconcile.pod_logs.collector_scale import DEPLOYMENT, CollectorScale
from reconcile.pod_logs.folder import LogFolder
from reconcile.pod_logs.log_collector import LogCollector
from reconcile.pod_logs.plan_pods import COLLECT_LOGS
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.seeding import namespace
from renderer.errors import Problems
from renderer.model.ref import Body, Kind, Ref, ref_of
from renderer.redaction import packaged_redactor

NAME = "harvester-upgrade-manager-log-collector"
COLLECTOR = Ref(api_version="apps/v1", kind="Deployment", namespace="harvester-system", name=NAME)
STORED = {"logs": {"storage": {"enable": True}}}


def objects(**values: Any) -> list[Body]:
    return [body for file in installation(values).files for body in file.objects]


def named(kind: str, name: str, **values: Any) -> Body:
    (found,) = (body for body in objects(**values) if (body["kind"], body["metadata"]["name"]) == (kind, name))
    return found


def plan(phase: str = "NodeUpgrading", progressing: str = "True", **annotations: str) -> dict[str, Any]:
    condition = {"type": "Progressing", "status": progressing, "reason": "X", "message": ""}
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "up", "annotations": annotations},
        "spec": {"version": "v1.8.0"},
        "status": {"currentPhase": phase, "conditions": [condition]} if phase else {},
    }


OVER = plan("Succeeded", "False")


class CollectorSite:
    """A cluster with the collector's Deployment, and what is logged of it."""

    def __init__(self, *plans: Body, every_plan: bool = True, there: bool = True) -> None:
        self.cluster = EmbeddedCluster(SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC)))
        self.cluster.seed([namespace("harvester-system"), *plans])
        if there:
            self.cluster.seed([named("Deployment", NAME, **STORED)])
        self.said: list[tuple[str, Mapping[str, Any]]] = []
        self.leads = True
        self.client = self.cluster.client()
        self.scale = CollectorScale(
            self.client, COLLECTOR, lambda what, fields: self.said.append((what, fields)), every_plan=every_plan
        )

    def must_lead(self) -> None:
        if not self.leads:
            raise Away("another one leads")

    def look(self) -> int:
        """The replicas after another look of the manager."""
        self.scale.look(self.must_lead)
        return int(self.client.get(DEPLOYMENT, COLLECTOR).body["spec"].get("replicas", 1))


# ------------------------------------------------------------------------------------------------------- the manager


def test_there_is_a_collector_while_a_plan_is_under_way_and_then_none() -> None:
    site = CollectorSite()
    assert site.look() == 0
    site.scale.on_round(Round(name="up", plan=plan("")))
    assert site.look() == 1
    for _ in range(3):
        assert site.look() == 1
    site.scale.on_round(Round(name="up"))  # gone
    assert site.look() == 0
    assert [fields["replicas"] for _, fields in site.said] == [0, 1, 0]


@pytest.mark.parametrize(
    ("there", "every", "expected"),
    [
        pytest.param(plan(), True, 1, id="under way"),
        pytest.param(plan(""), True, 1, id="not begun"),
        pytest.param(plan("Failed", "True"), True, 1, id="failed, and not yet tidy"),
        pytest.param(OVER, True, 0, id="ended"),
        pytest.param(plan(**{COLLECT_LOGS: "false"}), True, 0, id="annotated with false"),
        pytest.param(plan(), False, 0, id="not annotated"),
        pytest.param(plan(**{COLLECT_LOGS: "true"}), False, 1, id="annotated with true"),
    ],
)
def test_plans_that_are_there_when_a_manager_begins_to_lead_count(there: Body, every: bool, expected: int) -> None:
    assert CollectorSite(there, every_plan=every).look() == expected


@pytest.mark.slow
def test_a_rehearsed_upgrade_is_collected_pod_by_pod_between_one_scaling_up_and_one_down(tmp_path: Path) -> None:
    """The pods that an upgrade makes are gone at its end, and their logs are not."""
    site, rehearsal = CollectorSite(), rehearsal_of("single-node")
    backends, cluster = rehearsal.cluster.backends, rehearsal.cluster.client()
    backends.serve_read("Pod", "log", lambda ref, path, query: f"2026-01-01T00:00:00Z {ref.name} works\n".encode())
    folder = LogFolder(path=tmp_path, limit=2**20)
    folder.open()
    source = DirectSource(cluster, template_set().catalog.kinds)
    collector = LogCollector(cluster, source, folder, packaged_redactor(), lambda what, fields: None)
    site.look()

    def on_round(done: Round) -> None:
        collector.on_round(done)
        collector.collect()
        site.scale.on_round(done)
        site.look()

    rehearsal.play(on_round)
    assert [fields["replicas"] for _, fields in site.said] == [0, 1, 0]
    entries = [*folder.entries.values()]
    components = ["repo", "image-preload", "cluster-upgrade", "node-upgrade", "image-cleanup"]
    assert [entry.component for entry in entries] == components
    assert all(entry.ended for entry in entries)
    assert [[line.split()[1] for line in folder.lines(entry)] for entry in entries] == [[e.pod] for e in entries]


def test_a_manager_that_stands_by_scales_nothing_and_knows_the_plans_when_it_leads() -> None:
    site = CollectorSite(plan())
    site.leads = False
    site.client.patch(DEPLOYMENT, COLLECTOR, {"spec": {"replicas": 0}})
    assert site.look() == 0
    site.leads = True
    assert site.look() == 1
    site.leads = False
    site.client.patch(DEPLOYMENT, COLLECTOR, {"spec": {"replicas": 0}})
    site.look()
    site.leads = True
    assert site.look() == 1


def test_a_collector_that_is_not_there_is_logged_once_and_scaled_when_it_comes() -> None:
    site = CollectorSite(plan(), there=False)
    for _ in range(3):
        site.scale.look(site.must_lead)
    assert [what for what, _ in site.said] == ["log collector not scaled"]
    site.cluster.seed([named("Deployment", NAME, **STORED)])
    assert site.look() == 1


# -------------------------------------------------------------------------------------------------- the installation


def test_the_collector_may_read_the_logs_of_an_upgrade_and_nothing_else() -> None:
    found = objects(**STORED)
    bindings = [body for body in found if body["kind"].endswith("Binding") and body.get("subjects")]
    bound = {(where(body), body["roleRef"]["name"]) for body in bindings if body["subjects"][0]["name"] == NAME}
    roles = [body for body in found if (where(body), body["metadata"]["name"]) in bound and "rules" in body]
    rules = {(where(body), *rule["resources"], *rule["verbs"]) for body in roles for rule in body["rules"]}
    logs = {(place, *read) for place in ("harvester-system", "cattle-system") for read in READS}
    assert rules == {("", "upgradeplans", "list"), *logs}


def where(body: Body) -> str:
    return str(body["metadata"].get("namespace", ""))


READS = (("pods", "list"), ("pods/log", "get"))


def test_the_manager_may_scale_the_collector_and_mounts_no_volume_of_it() -> None:
    role = named("Role", "harvester-upgrade-manager-scale-log-collector", **STORED)
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": [NAME], "verbs": ["patch"]}
    assert role["rules"] == [rule]
    manager = named("Deployment", "harvester-upgrade-manager-controller-manager", **STORED)
    assert f"--logs-collector={NAME}" in manager["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "persistentVolumeClaim" not in str(manager)


def test_a_claim_and_a_deployment_of_its_own() -> None:
    claim = named("PersistentVolumeClaim", "harvester-upgrade-manager-logs", **STORED)
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "5Gi"
    assert "storageClassName" not in claim["spec"]
    spec = named("Deployment", NAME, **STORED)["spec"]
    assert spec["strategy"] == {"type": "Recreate"}
    assert "replicas" not in spec  # the manager's, which nobody who applies the manifests again sets back
    pod = spec["template"]["spec"]
    assert pod["serviceAccountName"] == NAME
    assert "priorityClassName" not in pod
    assert pod["containers"][0]["args"] == ["collect-logs", "/var/log/upgradeplan", "--limit=5Gi", "--plans=all"]
    labels = spec["template"]["metadata"]["labels"]
    assert "control-plane" not in labels  # no Service, budget or policy of the manager's selects it


def test_nothing_of_it_is_there_unless_it_is_wanted() -> None:
    assert "log-collector" not in str(objects())
    assert "log-collector" not in str(objects(logs={"enable": True}))
    assert "pods/log" not in str(objects())


# -------------------------------------------------------------------------------------------------------- the reader


def reader(*words: str, **values: Any) -> Body:
    return reader_of(named("Deployment", NAME, **{**STORED, **values}), words)


def test_a_reader_runs_beside_the_collector_with_its_volume_and_no_token() -> None:
    body = reader("--tail=40", "up", singleNode=True, registry={"pullSecrets": ["one"]})
    spec = body["spec"]
    (container,) = spec["containers"]
    assert container["args"] == ["logs", "--from=/var/log/upgradeplan", "--output=json", "--tail=40", "up"]
    assert {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]} == {
        "/tmp": False,
        "/var/log/upgradeplan": True,
    }
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    assert spec["imagePullSecrets"] == [{"name": "one"}]
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"] == body["metadata"]["labels"]  # without a collector it fits itself
    assert {item["key"] for item in spec["tolerations"]} > {"kubevirt.io/drain"}
    assert body["metadata"]["generateName"] == f"{NAME}-reader-"


def test_a_reader_mounts_templates_as_the_collector_does() -> None:
    (container,) = reader(templates={"values.yaml": "{}"})["spec"]["containers"]
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounts == {"/tmp": False, "/var/log/upgradeplan": True, "/etc/upgradeplan/templates": True}
    assert container["args"][3:] == ["--templates=/etc/upgradeplan/templates"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, "it is not scheduled yet"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "unbound PersistentVolumeClaims"}]},
            "unbound PersistentVolumeClaims",
        ),
        (
            {
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no image"}}}],
            },
            "ImagePullBackOff: no image",
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, "it has not ended"),
    ],
)
def test_a_reader_that_does_not_run_says_why(status: Mapping[str, Any], expected: str) -> None:
    assert waits_for({"status": status}) == expected


# ------------------------------------------------------------------------------------------------------- the commands


class FailingPods:
    """A cluster that names pods, whose pods have failed at once."""

    def __init__(self, client: Cluster, status: Mapping[str, str]) -> None:
        self._client, self._status = client, status

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def create(self, kind: Kind, body: Body) -> Answer:
        metadata = {**body["metadata"], "name": f"{body['metadata']['generateName']}x"}
        made = ref_of(self._client.create(kind, {**body, "metadata": metadata}).body)
        failed = {"status": {"phase": "Failed", **self._status}}
        return self._client.patch(kind, made, failed, subresource="status")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"message": "the node was low on resource"}, "the node was low on resource"),
        ({}, "logs contains no collected logs"),
    ],
)
def test_a_reader_that_fails_says_why_and_is_removed(status: Mapping[str, str], expected: str) -> None:
    """One that was evicted before it ran has no log to say it."""
    site = CollectorSite()

    def log(ref: Ref, path: str, query: Mapping[str, str]) -> bytes:
        if status:
            raise BackendFailed(ref, "log", 400, "container is waiting to start")
        return json.dumps({"problems": [{"message": "logs contains no collected logs"}]}).encode()

    site.cluster.backends.serve_read("Pod", "log", log)
    source = DirectSource(site.client, template_set().catalog.kinds)
    with pytest.raises(Problems, match=f"could not read the volume: {expected}"):
        stored_logs(cast(Cluster, FailingPods(site.client, status)), source, "harvester-system", [])
    assert not site.client.list(Selection(kind=POD)).items


def source_of(*found: Body) -> DirectSource:
    site = CollectorSite(*found)
    return DirectSource(site.client, template_set().catalog.kinds)


def test_a_collector_that_is_wanted_and_does_not_run_is_a_note() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "message": "pod has unbound PersistentVolumeClaims"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": NAME, "uid": "1", "controller": True}
    labelled, away = reader()["metadata"], {"conditions": [scheduled]}
    pod = {**reader(), "metadata": {**labelled, "name": "c", "ownerReferences": [owner]}, "status": away}
    site = CollectorSite()
    source = DirectSource(site.client, template_set().catalog.kinds)
    site.client.patch(DEPLOYMENT, COLLECTOR, {"spec": {"replicas": 0}})
    assert why_not_stored(source, "harvester-system") == ""
    site.client.patch(DEPLOYMENT, COLLECTOR, {"spec": {"replicas": 1}})
    assert why_not_stored(source, "harvester-system") == (
        f"logs are not stored: Deployment harvester-system/{NAME} is not ready: it has no pod; "
        "the upgrade does not wait for it"
    )
    site.cluster.seed([{**reader(), "metadata": {**labelled, "name": "a-reader"}}])
    assert "is not ready: it has no pod; " in why_not_stored(source, "harvester-system")
    site.cluster.seed([pod])
    assert "is not ready: pod has unbound PersistentVolumeClaims; " in why_not_stored(source, "harvester-system")
    site.client.patch(DEPLOYMENT, COLLECTOR, {"status": {"readyReplicas": 1}}, subresource="status")
    assert why_not_stored(source, "harvester-system") == ""


def test_the_logs_that_the_other_manager_has_collected_are_named() -> None:
    log = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradeLog",
        "metadata": {"name": "up"},
        "spec": {"upgradePlanName": "up"},
        "status": {"currentPhase": "Collecting", "trackedPods": {"a": {"component": "x", "state": "Streaming"}}},
    }
    scale = "kubectl -n harvester-system scale deployment up-log-collector --replicas="
    assert other_collector(source_of(), "up") == ""
    assert other_collector(source_of(log), "up") == (
        "UpgradeLog up (Collecting): the Harvester Upgrade Manager has collected the logs of 1 pods in "
        "PersistentVolumeClaim harvester-system/up-logs; read them: kubectl -n harvester-system logs "
        f"deployment/up-log-collector -c log-viewer; afterwards: {scale}0"
    )
    stopped = {**log, "status": {"currentPhase": "Stopped"}}
    assert f"read them: {scale}1; kubectl" in other_collector(source_of(stopped), "up")
