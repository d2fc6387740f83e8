"""`diagnose` of an UpgradePlan in files: what the plan is at is known from its status and from what it has made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from renderer.cli.program import run
from renderer.yaml_io import dump

SINCE = "2026-01-01T00:00:00Z"
IMAGE = {"name": "iso-of-mine", "namespace": "harvester-system"}
SPEC = {"displayName": "iso", "sourceType": "upload", "backend": "cdi"}
REFUSED = "scratch PVC API create errored: admission webhook denied the request"


def plan(phase: str = "", **status: Any) -> Mapping[str, Any]:
    """As somebody shows it who has removed what a server gives an object, the uid among it."""
    entered = {"phaseTransitionTimestamps": [{"phase": phase, "phaseTransitionTimestamp": SINCE}]}
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "up"},
        "spec": {"version": "v1.8.0"},
        **({"status": {"currentPhase": phase, **entered, **status}} if phase else {}),
    }


def node_plan(**status: Any) -> Mapping[str, Any]:
    labels = {"management.harvesterhci.io/upgrade-plan": "up"}
    metadata = {"name": "up-image-preload", "namespace": "cattle-system", "labels": labels}
    return {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "metadata": metadata, "status": status}


def diagnosed(folder: Path, capsys: pytest.CaptureFixture[str], *bodies: Mapping[str, Any]) -> Mapping[str, Any]:
    """The model of the command for these objects."""
    for number, body in enumerate(bodies):
        (folder / f"{number}.yaml").write_text(dump(body), encoding="utf-8")
    run(["upgradeplan", "diagnose", str(folder), "-o", "json"])
    model: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    return model


def test_a_plan_without_uid_is_the_plan_that_the_cluster_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnosed(tmp_path, capsys, plan())["upgrade"]["object"] == "UpgradePlan up"
    assert diagnosed(tmp_path, capsys, plan("ISODownloading"))["upgrade"]["state"] == "ISODownloading"


def test_a_plan_waits_for_its_node_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    applying = node_plan(applying=["n1", "n1", "n2"])
    (cause,) = diagnosed(tmp_path, capsys, plan("ImagePreloading"), applying)["causes"]
    assert (cause["id"], cause["since"]) == ("controller-lost-node", SINCE)
    assert cause["what"] == "applies to n1, n2, but none of its Jobs is active there"
    complete = node_plan(applying=["n1"], conditions=[{"type": "Complete", "status": "True"}])
    assert not diagnosed(tmp_path, capsys, plan("ImagePreloading"), complete)["causes"]


def test_a_plan_waits_for_the_image_that_it_was_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such an image has no label of the plan."""
    image = {"apiVersion": "harvesterhci.io/v1beta1", "kind": "VirtualMachineImage", "metadata": IMAGE, "spec": SPEC}
    volume = {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": IMAGE,
        "spec": {},
        "status": {"conditions": [{"type": "Running", "status": "False", "reason": "ErrorClaim", "message": REFUSED}]},
    }
    found = diagnosed(tmp_path, capsys, plan("ISODownloading", isoImageID="iso-of-mine"), image, volume)["causes"]
    assert [REFUSED in cause["what"] for cause in found] == [True]
    assert not diagnosed(tmp_path, capsys, plan("ISODownloading", isoImageID="another"), image, volume)["causes"]
