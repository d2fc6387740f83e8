"""Known causes: each is found where it is, live and in a support bundle, and not where something is otherwise."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.answer_schemas import validate
from support.diagnosis import everything_in, knowledge
from support.diagnosis_cases import CASES, DiagnosisCase, Objects, changed, paths, read, world
from support.preflight_cases import template_set
from support.unreachable import KUBECONFIG

from reconcile.decide.decision import Wait
from reconcile.diagnosis.diagnosing import Diagnosis, built_in_of, diagnose, known_causes
from reconcile.diagnosis.of_status import situation_of_status, upgrades_in
from reconcile.diagnosis.situation import Cause, Situation
from reconcile.observe.readings import Readings
from reconcile.observe.snapshot import judge
from reconcile.observe.source import DirectSource
from reconcile.probes.look import Look
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.cli.program import run
from renderer.files.bundle_logs import BundleLogs
from renderer.model.document_type import DIAGNOSIS_REPORT
from renderer.model.known_cause import Pattern
from renderer.model.node_state import NodeStates
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import ref_of
from renderer.yaml_io import dump, parse

NOW = datetime(2025, 5, 2, 13, tzinfo=UTC)
KNOWN = {item.id: item.cause for item in known_causes(template_set().catalog)}


def found_by(case: DiagnosisCase, look: Look) -> Diagnosis:
    catalog = template_set().catalog
    subject = upgrades_in(look, catalog, built_in_of(catalog)).named(None)
    return diagnose(knowledge(NOW), situation_of_status(subject, catalog, look, NOW), case.logs)


def nobody(host: str, port: int) -> datetime | None:
    pytest.fail(f"{host}:{port} is dialled")


def live(case: DiagnosisCase, objects: Objects) -> list[Mapping[str, Any]]:
    """On a cluster that answers as an API server does."""
    cluster, kinds = EmbeddedCluster(SimulatedClock(NOW)), template_set().catalog.kinds
    cluster.seed(objects.values())
    client = cluster.client()
    readings = Readings(client, kinds, lambda: NOW, nobody)
    found = judge(lambda look: found_by(case, look), DirectSource(client, kinds), readings).answer
    return [{"id": c.id, "object": c.object, "node": c.node, "what": c.what, "remedy": c.remedy} for c in found.causes]


def bundled(
    case: DiagnosisCase, objects: Objects, folder: Path, capsys: pytest.CaptureFixture[str]
) -> list[Mapping[str, Any]]:
    """In a support bundle, by the command."""
    write_bundle(folder, objects, case.head.get("logs", {}))
    status = run(["upgradeplan", "diagnose", str(folder), "-o", "json"])
    model = json.loads(capsys.readouterr().out)
    assert model["kind"] == DIAGNOSIS_REPORT.kind, model["problems"]
    validate(DIAGNOSIS_REPORT, model)
    assert status == (1 if model["causes"] else 0)
    causes: list[Mapping[str, Any]] = model["causes"]
    return causes


def write_bundle(folder: Path, objects: Objects, logs: Mapping[str, Mapping[str, str]]) -> None:
    kinds = template_set().catalog.kinds
    files: dict[Path, list[Any]] = {}
    for body in objects.values():
        ref = ref_of(body)
        scope = f"namespaced/{ref.namespace}" if ref.namespace else "cluster"
        group = ref.api_version.replace("/", "_")
        plural = kinds.row(ref.api_version, ref.kind).kind.plural
        files.setdefault(folder / "yamls" / scope / group / f"{plural}.yaml", []).append(body)
    for path, bodies in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dump({"apiVersion": "v1", "kind": "List", "items": bodies}), encoding="utf-8")
    for pod, containers in logs.items():
        for container, text in containers.items():
            path = folder / "logs" / pod / f"{container}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def is_like(found: Mapping[str, Any], expected: Mapping[str, str]) -> bool:
    pairs = ((str(found[key]), text) for key, text in expected.items())
    return all(said.startswith(text[:-1]) if text.endswith("…") else said == text for said, text in pairs)


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_a_cause_is_found_live_and_in_a_bundle(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = read(path)
    for causes in (live(case, case.objects), bundled(case, case.objects, tmp_path, capsys)):
        its = [cause for cause in causes if cause["id"] == case.cause]
        assert [cause for cause in its if is_like(cause, case.expected)], its or causes


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_a_near_miss_is_not_found(path: Path) -> None:
    case = read(path)
    assert case.head["source"]
    assert case.near_misses
    for why, objects in case.near_misses.items():
        causes = found_by(case, everything_in(objects.values())).causes
        assert [cause for cause in causes if cause.id == case.cause] == [], why


def test_every_cause_that_is_a_pattern_has_a_case() -> None:
    patterns = {name for name, cause in KNOWN.items() if isinstance(cause.sign, Pattern)}
    assert patterns - {path.stem for path in paths()} == set()


def documented() -> list[Mapping[str, Any]]:
    text = (CASES / "_documented.yaml").read_text(encoding="utf-8")
    troubles: list[Mapping[str, Any]] = parse(text, "_documented.yaml")[0].value["troubles"]
    return troubles


def test_all_documented_trouble_is_known() -> None:
    assert len(documented()) == 19
    cases = {path.stem for path in paths()}
    assert [item["trouble"] for item in documented() if not set(item["causes"]) & cases] == []
    assert [name for item in documented() for name in item["causes"] if name not in KNOWN] == []


def test_a_healthy_cluster_has_no_cause() -> None:
    case = DiagnosisCase(cause="", head={}, objects=world())
    calm = dict(world())
    calm.pop("Upgrade harvester-system/hvst-upgrade-zjft7")
    assert found_by(case, everything_in(calm.values())).causes == ()


ANSWERS = {
    'admission webhook "validator.example.svc" does not support dry run': "webhook-without-dry-run",
    "conversion webhook for cluster.x-k8s.io/v1beta2, Kind=Machine failed: EOF": "conversion-webhook-away",
    "conversion webhook for example.io/v1alpha1, Kind=Thing returned invalid metadata": "conversion-webhook-away",
    'admission webhook "validator.harvesterhci.io" denied the request: no': "admission-refused",
    'failed calling webhook "validator.harvesterhci.io": connection refused': "admission-webhook-away",
    "Service up-repo is invalid: spec.ports: Required value": "refused-by-the-server",
}


@pytest.mark.parametrize(("text", "cause"), ANSWERS.items(), ids=lambda value: str(value)[:30])
def test_a_refusal_is_named_as_what_it_is(text: str, cause: str) -> None:
    assert [item.id for item in refused(text)] == [cause]


def refused(text: str) -> tuple[Cause, ...]:
    situation = Situation(
        plan="up",
        waits=(Wait(text="a write"),),
        states={},
        node_states=NodeStates(),
        now=NOW,
        look=everything_in(()),
        refused=text,
    )
    return diagnose(knowledge(NOW), situation).causes


NO_DRY_RUN = ("webhook-without-dry-run", "ValidatingWebhookConfiguration or MutatingWebhookConfiguration with webhook ")
NO_CONVERSION = ("conversion-webhook-away", "conversion webhook of ")
REPORTED = {
    'admission webhook "validator.example.svc" does not support dry run': (*NO_DRY_RUN, "validator.example.svc"),
    "failed to prune fields: failed add back owned items: failed to convert pruned object at version example.io/v1: "
    'conversion webhook for example.io/v1beta1, Kind=Thing failed: Post "https://conv.example.svc:8443/conversion'
    '?timeout=30s": EOF': (*NO_CONVERSION, "Thing (example.io/v1beta1)"),
    "conversion webhook for cluster.x-k8s.io/v1beta2, Kind=Machine failed: Post "
    '"https://capi-webhook-service.cattle-provisioning-capi-system.svc:443/convert?timeout=30s": no endpoints '
    'available for service "capi-webhook-service"': (*NO_CONVERSION, "Machine (cluster.x-k8s.io/v1beta2)"),
    "failed to prune fields: failed add back owned items: failed to convert pruned object at version "
    "example.io/v1beta1: conversion webhook for example.io/v1alpha1, Kind=Thing returned invalid metadata: invalid "
    "metadata of type <nil> in input object": (*NO_CONVERSION, "Thing (example.io/v1alpha1)"),
    "conversion webhook for cluster.x-k8s.io/v1beta2, Kind=Machine failed: the server could not find the requested "
    "resource": (*NO_CONVERSION, "Machine (cluster.x-k8s.io/v1beta2)"),
}
"""What API servers have answered, by public reports: fluxcd/flux2#4073, aws/karpenter-provider-aws#6867,
fluxcd/flux2#3179, external-secrets/external-secrets#1136, kubernetes-sigs/structured-merge-diff#227."""


@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize(("said", "expected"), REPORTED.items(), ids=range(len(REPORTED)))
def test_what_the_status_says_of_refused_writes_is_named_in_a_bundle(
    said: str, expected: tuple[str, ...], *, zipped: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    degraded = {
        "type": "Degraded",
        "status": "True",
        "reason": "ReconcileError",
        "message": f"Cluster fleet-local/local: {said}",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }
    plan = {
        "apiVersion": PLAN_API_VERSION,
        "kind": "UpgradePlan",
        "metadata": {"name": "up"},
        "spec": {"version": "v1.8.0"},
        "status": {"currentPhase": "ClusterUpgrading", "conditions": [degraded]},
    }
    place = tmp_path / "bundle"
    write_bundle(place, {"plan": plan}, {})
    if zipped:
        files = [file for file in place.rglob("*") if file.is_file()]
        with zipfile.ZipFile(tmp_path / "bundle.zip", "w") as archive:
            for file in files:
                archive.write(file, file.relative_to(tmp_path))
        place = tmp_path / "bundle.zip"
    assert run(["upgradeplan", "diagnose", str(place), "-o", "json"]) == 1
    causes = json.loads(capsys.readouterr().out)["causes"]
    cause, called, name = expected
    assert [(item["id"], item["object"]) for item in causes] == [(cause, called + name)]
    assert said in causes[0]["what"]


# ------------------------------------------------------------------------------------------------ the built-in upgrade

STATES = {
    "CreatingUpgradeImage": ("ISODownload", "1: provision the upgrade repository", "allowed"),
    "PreparingRepo": ("RepoCreate", "1: provision the upgrade repository", "allowed"),
    "PreparingNodes": ("ImagePreload", "2: preload container images", "allowed"),
    "UpgradingSystemServices": ("ClusterUpgrade", "3: upgrade system services", "afterSupportBundle"),
    "UpgradingNodes": ("NodeUpgrade", "4: upgrade nodes", "notAllowed"),
    "Failed": ("", "the upgrade has failed", "afterSupportBundle"),
}
UPGRADE = "Upgrade harvester-system/hvst-upgrade-zjft7"
STATE = 'metadata.labels["harvesterhci.io/upgradeState"]'


def diagnosed(
    folder: Path, objects: Objects, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int | None, str]:
    write_bundle(folder, objects, {})
    status = run(["upgradeplan", "diagnose", str(folder), *options])
    return status, capsys.readouterr().out


@pytest.mark.parametrize("state", STATES)
def test_a_state_of_the_built_in_upgrade_is_a_phase_of_the_documentation(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = diagnosed(tmp_path, changed(world(), {UPGRADE: {STATE: state}}), capsys, "-o", "json")
    upgrade = json.loads(out)["upgrade"]
    assert (upgrade["phase"], upgrade["step"], upgrade["restart"]) == STATES[state]
    assert (upgrade["object"], upgrade["version"], upgrade["state"]) == (UPGRADE, "v1.5.0", state)
    assert {node["name"]: node["state"] for node in upgrade["nodes"]}["n1"] == "Pre-drained"
    assert upgrade["how"]


def test_what_works_is_named_and_what_is_done_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def job(name: str, **status: Any) -> dict[str, Any]:
        labels = {"harvesterhci.io/upgrade": "hvst-upgrade-zjft7", "harvesterhci.io/node": "n1"}
        metadata = {"name": name, "namespace": "harvester-system", "labels": labels}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": status}

    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    objects = {**world(), "a": job("pre", **done), "b": job("post", active=1)}
    _, out = diagnosed(tmp_path, objects, capsys, "-o", "json")
    assert json.loads(out)["upgrade"]["works"] == ["Job harvester-system/post"]


def test_rancher_s_words_are_passed_on_for_the_node_that_nobody_works_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "uncordoning etcd node(s) custom-1: waiting for uncordon to finish"
    waiting = {"type": "Updated", "status": "Unknown", "reason": "Waiting", "message": words}
    objects = changed(world(), {"Rancher Cluster fleet-local/local": {"status.conditions[1]": waiting}})
    status, out = diagnosed(tmp_path, objects, capsys)
    assert status == 1
    assert f"because Machine fleet-local/custom-1 [n1] Rancher reports: {words}" in out
    assert "remedy: kubectl uncordon n1" in out
    assert "restart: it must not be started again; " in out


@pytest.mark.slow
def test_a_cluster_without_an_upgrade_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calm = {name: body for name, body in world().items() if name != UPGRADE}
    status, out = diagnosed(tmp_path / "calm", calm, capsys)
    assert (status, "no known cause was found" in out) == (0, True)
    full = changed(calm, {"Node n2": {"status.conditions[1]": {"type": "DiskPressure", "status": "True"}}})
    status, out = diagnosed(tmp_path / "full", full, capsys)
    assert (status, "because Node n2 [n2] has disk pressure" in out) == (1, True)


def test_markdown_is_for_an_issue_and_nothing_in_it_is_markup_or_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "<script>alert(1)</script> | https://admin:hunter2@registry.example/x"
    pressure = {"type": "DiskPressure", "status": "True", "message": words}
    objects = changed(world(), {"Node n2": {"status.conditions[1]": pressure}})
    status, out = diagnosed(tmp_path, objects, capsys, "-o", "markdown")
    assert status == 1
    assert out.startswith("## Diagnosis\n\n- Upgrade harvester-system/hvst-upgrade-zjft7 to v1.5.0: **UpgradingNodes**")
    assert "| n1 | Pre-drained |  |" in out
    assert "<script>" not in out
    assert "hunter2" not in out
    assert "```\nremove images that nothing uses, on n2: crictl rmi --prune" in out


def test_a_name_that_no_upgrade_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bundle(tmp_path, world(), {})
    assert run(["upgradeplan", "diagnose", str(tmp_path), "--plan", "other"]) == 2
    assert "no UpgradePlan or Upgrade is named other" in capsys.readouterr().err


def test_files_and_a_cluster_are_not_asked_for_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["upgradeplan", "diagnose", "bundle.zip", "--context", "site"]) == 2
    assert "diagnose reads either files or a cluster" in capsys.readouterr().err


def test_a_cluster_that_is_away_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG, encoding="utf-8")
    assert run(["upgradeplan", "diagnose", "--kubeconfig", str(path)]) == 3
    assert capsys.readouterr().err


@pytest.mark.parametrize("linked", ["logs", "logs/default", "logs/default/p", "logs/default/p/c.log"])
def test_no_link_leads_out_of_a_bundle_to_logs(linked: str, tmp_path: Path) -> None:
    outside, bundle = tmp_path / "outside", tmp_path / "bundle"
    for folder in (outside, bundle):
        (folder / "yamls" / "cluster").mkdir(parents=True)
        (folder / "logs" / "default" / "p").mkdir(parents=True)
        (folder / "logs" / "default" / "p" / "c.log").write_text(folder.name)
    logs = BundleLogs([str(bundle)])
    assert logs.of("default", "p") == {"c": "bundle"}
    (bundle / linked).rename(tmp_path / "away")
    (bundle / linked).symlink_to(outside / linked)
    assert BundleLogs([str(bundle)]).of("default", "p") == {}


@pytest.mark.parametrize("damaged", ["../../etc", "a/b", "..", ""])
def test_a_pod_s_log_is_looked_for_in_the_bundle_alone(damaged: str, tmp_path: Path) -> None:
    write_bundle(tmp_path, world(), {"default/p": {"c": "text"}})
    logs = BundleLogs([str(tmp_path)])
    assert logs.of("default", "p") == {"c": "text"}
    assert logs.of("default", damaged) == {}


def test_the_end_of_a_log_is_read_from_a_zipped_bundle(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("supportbundle_1/logs/default/p/c.log", "first\n" + "x" * 100_000 + "\nlast\n")
    found = BundleLogs([str(path)]).of("default", "p")["c"]
    assert found.endswith("\nlast\n")
    assert "first" not in found
