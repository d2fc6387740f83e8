"""Why a plan waits: each cause by a case file, and whole explanations of rehearsals that stand still."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.cluster import ControlPlane
from support.answer_schemas import validate
from support.diagnosis import everything_in, knowledge
from support.rehearsals import ROOT, inputs_of, rehearsal_of, template_set
from support.rendered_plans import NODE_STATES
from support.seeding import seed
from support.unreachable import KUBECONFIG

from reconcile.cluster.client import connect
from reconcile.cluster.errors import Away
from reconcile.cluster.kubeconfig import find_access
from reconcile.decide.decision import Wait
from reconcile.diagnosis.diagnosing import diagnose
from reconcile.diagnosis.situation import ExpectedReboot, Situation
from reconcile.probes.look import Group, ReadFailure
from reconcile.report.causes_found import cause_model
from reconcile.report.explain import absence_of, explanation_lines, explanation_of
from reconcile.simulator.rehearsal.rehearsal import Rehearsal
from reconcile.status.times import time_of
from renderer.cli.program import run
from renderer.documents import plan_of
from renderer.model.document_type import DIAGNOSIS_REPORT, EXPLAIN_REPORT
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref

CASES = sorted((Path(__file__).parent / "explain_cases").glob("*.yaml"))
NOW = datetime(2026, 1, 1, 1, 0, tzinfo=UTC)
API = {"Job": "batch/v1", "Plan": "upgrade.cattle.io/v1", "VirtualMachineImage": "harvesterhci.io/v1beta1"}


def ref_from(text: str) -> Ref:
    kind, _, where = text.partition(" ")
    namespace, _, name = where.rpartition("/")
    return Ref(api_version=API[kind], kind=kind, namespace=namespace, name=name)


def wait_from(raw: dict[str, Any]) -> Wait:
    return Wait(
        text=raw["text"],
        step=raw["step"],
        node=raw.get("node"),
        since=time_of(raw["since"]) if "since" in raw else None,
        refs=tuple(ref_from(text) for text in raw.get("refs", ())),
    )


def situation_from(case: dict[str, Any]) -> Situation:
    return Situation(
        plan="up",
        waits=tuple(wait_from(raw) for raw in case["waits"]),
        states=case.get("states", {}),
        node_states=NODE_STATES,
        now=NOW,
        look=everything_in(case["objects"]),
        nodes=tuple(case.get("nodes", ())),
        paused=tuple(sorted(n for n, state in case.get("states", {}).items() if state == "UpgradePaused")),
        held_up=tuple(case.get("heldUp", ())),
        reboots={node: ExpectedReboot(**raw) for node, raw in case.get("reboots", {}).items()},
    )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_cause_is_found_and_said(path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    causes = diagnose(knowledge(NOW), situation_from(case)).causes
    model = {**absence_of("up", "", NOW), "causes": [cause_model(cause) for cause in causes]}
    lines = [line.removeprefix("  ") for line in explanation_lines(model)]
    assert [line for line in lines if line.startswith(("because", "  remedy"))] == case["causes"]


def played(scene: Rehearsal, hours: float) -> None:
    """The rehearsal, up to a moment."""
    scene.drive(scene.reconciler, lambda done: None).run(scene.name, timedelta(hours=hours))


def explained(scene: Rehearsal) -> dict[str, Any]:
    return explanation_of(scene.reconciler.look(scene.name), scene.deps, scene.clock.now())


@pytest.mark.slow
def test_an_image_that_does_not_arrive_is_the_cause() -> None:
    scene = rehearsal_of("single-node", stall=["image-import"])
    played(scene, 2)
    model = explained(scene)
    validate(EXPLAIN_REPORT, model)
    assert [cause["object"].partition(" ")[0] for cause in model["causes"]] == ["VirtualMachineImage"]
    assert model["next"] == model["causes"][0]["remedy"]


@pytest.mark.slow
def test_a_machine_that_waits_while_a_drain_stalls() -> None:
    scene = rehearsal_of("three-node", stall=["pre-drain on charlie-1-tink-system"])
    played(scene, 6)
    model = explained(scene)
    validate(EXPLAIN_REPORT, model)
    assert {cause["what"] for cause in model["causes"] if cause["object"].startswith("Machine ")} == {
        "Rancher is busy with charlie-1-tink-system"
    }


@pytest.mark.slow
def test_the_troubleshooting_page_shows_what_is_said_of_a_node_that_does_not_come_back() -> None:
    scene = rehearsal_of("three-node", stall=["reboot on charlie-1-tink-system"])
    played(scene, 5)
    lines = [*explanation_lines(explained(scene))]
    first = next(i for i, line in enumerate(lines) if line.startswith("  because "))
    assert "\n".join(lines[first : first + 2]) in (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_failed_plan_says_so() -> None:
    scene = rehearsal_of("three-node", fail=["pre-drain on charlie-1-tink-system"])
    played(scene, 24)
    model = explained(scene)
    validate(EXPLAIN_REPORT, model)
    assert model["failed"]
    assert model["phase"] == "Failed"
    [cause] = [cause for cause in model["causes"] if cause["object"].startswith("Job ")]
    assert cause["what"].startswith("failed: ")
    assert cause["node"] == "charlie-1-tink-system"
    assert model["next"].startswith("read its log: kubectl logs -n harvester-system job/")


@pytest.mark.slow
def test_what_may_not_be_read_is_said_and_the_rest_is_explained() -> None:
    scene = rehearsal_of("single-node", stall=["image-import"])
    played(scene, 2)

    class PodsUnreadable:
        def get(self, ref: Ref) -> Body | ReadFailure | None:
            return scene.deps.source.get(ref)

        def held(self) -> Mapping[Ref, Body]:
            return {}

        def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
            return ReadFailure(why="forbidden") if group.kind == "Pod" else scene.deps.source.list(group)

        def note(self, body: Body) -> None:
            raise AssertionError("explain writes nothing")

    model = explanation_of(
        scene.reconciler.look(scene.name), replace(scene.deps, source=PodsUnreadable()), scene.clock.now()
    )
    assert model["unread"] == ["Pod objects: forbidden"]
    assert model["causes"]


@pytest.mark.slow
def test_explaining_writes_nothing_and_an_absent_server_has_its_own_words() -> None:
    scene = rehearsal_of("single-node", stall=["image-import"])
    played(scene, 2)
    before = [body["metadata"]["resourceVersion"] for body in scene.cluster.store.everything()]
    explained(scene)
    assert [body["metadata"]["resourceVersion"] for body in scene.cluster.store.everything()] == before
    model = absence_of("up", Away("connection refused").problem.message, NOW)
    validate(EXPLAIN_REPORT, model)
    assert "connection refused" in "\n".join(explanation_lines(model))
    unnamed = absence_of("", "connection refused", NOW)
    heads = [next(explanation_lines(item)) for item in (model, unnamed)]
    assert heads == [f"{who}: the API server is unavailable" for who in ("up", "UpgradePlan")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "marks"),
    [
        ({"stall": ["image-import"]}, [" (for 4h), longer than 1h"]),
        ({"stall": ["image-import"], "phase": "Dreaming"}, [" (for 4h), needs an operator"]),
    ],
)
def test_a_wait_says_how_long_it_may_take_or_that_somebody_has_to_act(asked: dict[str, Any], marks: list[str]) -> None:
    phase = asked.pop("phase", "")
    scene = rehearsal_of("three-node", **asked)
    played(scene, 4)
    if phase:
        set_phase(scene, phase)
        scene.reconciler.round(scene.name)
    model = explained(scene)
    validate(EXPLAIN_REPORT, model)
    waits = [line for line in explanation_lines(model) if line.startswith("  waits for ")]
    assert [f" ({line.rpartition(' (')[2]}" for line in waits] == marks


def set_phase(scene: Rehearsal, phase: str) -> None:
    kind = template_set().catalog.kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
    ref = Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=scene.name)
    scene.cluster.client().patch(kind, ref, {"status": {"currentPhase": phase}}, subresource="status")


@pytest.mark.slow
def test_a_plan_that_has_succeeded_has_nothing_to_do_next() -> None:
    scene = rehearsal_of("single-node")
    played(scene, 24)
    model = explained(scene)
    validate(EXPLAIN_REPORT, model)
    assert (model["phase"], model["next"]) == ("Succeeded", "")
    assert [*explanation_lines(model)] == [f"{scene.name}: Succeeded: UpgradePlan has completed"]


def test_the_command_explains_that_the_cluster_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG, encoding="utf-8")
    assert run(["upgradeplan", "explain", "up", "--kubeconfig", str(path), "-o", "json"]) == 3
    model = json.loads(capsys.readouterr().out)
    validate(EXPLAIN_REPORT, model)
    assert [cause["object"] for cause in model["causes"]] == ["API server"]
    assert model["next"] == "upgradeplan explain up"


@pytest.mark.full("what is said of a real API server; its form there (test_answers.py), and rehearsals, stand for it")
@pytest.mark.controlplane
def test_the_commands_on_a_real_control_plane(
    wiped_control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = ["--kubeconfig", str(wiped_control_plane.kubeconfig)]
    admin = connect(find_access({}, kubeconfig=target[1]), environ={}, now=lambda: datetime.now(UTC))
    inputs = inputs_of("three-node")
    kinds = template_set().catalog.kinds
    bodies = [source.body for source in inputs.objects]
    seed(admin, [body for body in bodies if body["kind"] != "EndpointSlice"], kinds)  # nobody is dialled there
    plan = {key: value for key, value in plan_of(inputs).body.items() if key != "status"}
    admin.create(kinds.row(PLAN_API_VERSION, "UpgradePlan").kind, plan, field_manager="kubectl")
    for name, status in (("explain", 0), ("status", 1)):
        assert run(["upgradeplan", name, *target, "-o", "json"]) == status
        model = json.loads(capsys.readouterr().out)
        assert model["plan"] == plan["metadata"]["name"]
        assert model["phase"] == ""
        assert model["problems"] == [
            "no manager has ever held Lease harvester-system/3509939c.harvesterhci.io, "
            "so the upgrade does not continue; start `upgradeplan run` or `upgradeplan apply`"
        ]
    status = run(["upgradeplan", "diagnose", *target, "-o", "json"])
    diagnosis = json.loads(capsys.readouterr().out)
    validate(DIAGNOSIS_REPORT, diagnosis)
    assert (status, diagnosis["live"]) == (1 if diagnosis["causes"] else 0, True)
    assert diagnosis["upgrade"]["object"] == f"UpgradePlan {plan['metadata']['name']}"
    assert run(["upgradeplan", "approve", *target]) == 0
    assert "phases, digest sha256:" in capsys.readouterr().out
    folder = tmp_path / "facts"
    assert run(["upgradeplan", "facts", *target, "--output-dir", str(folder)]) == 0
    said = capsys.readouterr()
    assert "warning: kubelet of charlie-1-tink-system: " in said.err
    assert sorted(path.name for path in folder.iterdir()) == [
        "checked.yaml",
        "components.yaml",
        "facts.yaml",
        "nodes.yaml",
        "rancher.yaml",
        "settings.yaml",
        "upgradeplan.yaml",
        "versions.yaml",
        "vms.yaml",
    ]
    assert run(["upgradeplan", "validate", str(folder)]) == 0
