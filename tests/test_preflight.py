"""`preflight` as people and machines meet it: offline, its outcomes and exit statuses, its formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.answer_schemas import validate
from support.preflight_cases import NOW, checks
from support.rendered_plans import ROOT

from reconcile.preflight.check_result import FOUND, CheckFinding, CheckReport, CheckResult
from reconcile.probes.look import ReadFailure
from reconcile.report.preflight_report import could_not_look, preflight_model
from renderer.cli.program import run
from renderer.model.document_type import PREFLIGHT_REPORT

NODES = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: node-1, labels: {harvesterhci.io/managed: "true"}}, spec: {}}
- apiVersion: v1
  kind: Node
  metadata: {name: node-2, labels: {harvesterhci.io/managed: "true"}}
  spec: {unschedulable: true}
"""
PLAN = """\
apiVersion: management.harvesterhci.io/v1beta1
kind: UpgradePlan
metadata: {name: up, annotations: {ANNOTATION: "VALUE"}}
spec: {version: v1.8.0}
"""
VOLUME = """\
apiVersion: longhorn.io/v1beta2
kind: Volume
metadata: {name: pvc-NAME, namespace: longhorn-system}
spec: {numberOfReplicas: 1}
status: {state: attached}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(**texts: str) -> None:
    for name, text in texts.items():
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = run(["upgradeplan", "preflight", *words])
    shown = capsys.readouterr()
    return status, shown.out + shown.err


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> Mapping[str, Any]:
    run(["upgradeplan", "preflight", *words, "-o", "json"])
    found: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_blocks_is_shown_with_offender_remedy_and_what_would_accept_it(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES)
    status, text = asked(capsys, "nodes.yaml", "--check", "node-schedulable")
    assert status == 1
    assert text == (
        "OUTCOME  CHECK             FINDING\n"
        "blocked  node-schedulable  Node node-2 is cordoned\n"
        "                             remedy: kubectl uncordon node-2. Where the risk is accepted, the node is "
        "cordoned again once it is upgraded and Rancher has uncordoned it\n"
        "                             accept the risk: annotation management.harvesterhci.io/accept-risk: "
        '"node-schedulable"\n'
        "1 check: 1 blocked\n"
    )


@pytest.mark.slow
def test_a_hundred_offenders_are_a_hundred_lines(capsys: pytest.CaptureFixture[str]) -> None:
    volumes = "---\n".join(VOLUME.replace("NAME", f"{n:03}") for n in range(100))
    files(nodes=NODES, volumes=volumes)
    _, text = asked(capsys, "nodes.yaml", "volumes.yaml", "--check", "volume-single-replica-attached")
    assert all(f"pvc-{n:03} " in text for n in range(100))


@pytest.mark.parametrize(
    ("severity", "out_of_reach", "expected"),
    [("warn", False, True), ("warn", True, False), ("advise", False, True), ("block", False, False)],
)
def test_a_finding_does_not_hide_what_could_not_be_seen_beside_it(
    severity: str, out_of_reach: bool, expected: bool
) -> None:
    """Exit status 3; 1 where the finding blocks."""
    found = CheckFinding(ref=None, offender="", says="", text="Node node-2 is full", remedy="free space")
    failure = ReadFailure(why="node-1 does not answer", out_of_reach=out_of_reach)
    check = next(item.check for item in checks().values() if item.check.severity == severity)
    outcome = FOUND[check.severity]
    result = CheckResult(check=check, outcome=outcome, reason="", findings=(found,), read_failures=(failure,))
    model = preflight_model(CheckReport(results=(result,)), None, plan="", at=NOW, live=True)
    assert could_not_look(model) is expected


def test_what_nobody_has_given_is_unknown_and_says_how_to_give_it(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES)
    status, text = asked(capsys, "nodes.yaml", "--check", "volume-single-replica-attached")
    assert status == 3
    assert "no Volume objects among the inputs" in text
    assert "give it: kubectl get volumes.longhorn.io -A -o yaml" in text
    assert text.endswith("1 check: 1 unknown\n")


@pytest.mark.slow
def test_checks_that_lack_the_same_are_told_together(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES)
    words = ("--check", "volume-single-replica-attached", "--check", "volume-single-replica-detached")
    _, text = asked(capsys, "nodes.yaml", *words, "--check", "node-schedulable")
    assert text.count("no Volume objects among the inputs") == 1
    assert "needed as well by: volume-single-replica-detached" in text
    assert text.index("blocked") < text.index("unknown"), "what is gravest comes first"


def test_an_empty_list_says_that_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES, volumes="apiVersion: longhorn.io/v1beta2\nkind: VolumeList\nitems: []\n")
    status, text = asked(capsys, "nodes.yaml", "volumes.yaml", "--check", "volume-single-replica-attached")
    assert (status, text) == (0, "1 check: 1 passed\n")


def test_facts_say_what_they_hold_completely(capsys: pytest.CaptureFixture[str]) -> None:
    collected = "[{apiVersion: longhorn.io/v1beta2, kind: Volume, namespace: NS}]"
    facts = f"apiVersion: upgradeplan/v1\nkind: Facts\ncollected: {collected}\nfacts: {{}}\n"
    for namespace, expected in (("longhorn-system", 0), ("default", 3)):
        files(nodes=NODES, facts=facts.replace("NS", namespace))
        assert asked(capsys, "nodes.yaml", "facts.yaml", "--check", "volume-single-replica-attached")[0] == expected


def test_the_plan_accepts_a_risk_by_the_id_of_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    plan = PLAN.replace("ANNOTATION", "management.harvesterhci.io/accept-risk").replace("VALUE", "node-schedulable")
    files(nodes=NODES, plan=plan)
    status, text = asked(capsys, "nodes.yaml", "plan.yaml", "--check", "node-schedulable")
    assert status == 0
    assert "accepted  node-schedulable  Node node-2 is cordoned" in text
    assert "accepted by annotation management.harvesterhci.io/accept-risk: node-schedulable" in text


@pytest.mark.slow
def test_a_misspelt_check_and_a_node_that_is_not_there_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES)
    status, text = asked(capsys, "nodes.yaml", "--check", "node-schedulabel")
    assert (status, "did you mean 'node-schedulable'?" in text) == (2, True)
    status, text = asked(capsys, "nodes.yaml", "--node", "node-3")
    assert (status, "Node node-3 is not among those that are upgraded" in text) == (2, True)
    status, text = asked(capsys, "nodes.yaml", "--at", "tomorrow")
    assert (status, "'tomorrow' is not a time" in text) == (2, True)


def test_a_named_check_that_is_not_carried_out_at_that_time_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES)
    status, text = asked(capsys, "nodes.yaml", "--check", "node-schedulable", "--check", "upgraded-kubernetes")
    assert status == 2
    assert "check upgraded-kubernetes is carried out at after, not at create, start, " in text
    assert "`upgradeplan preflight --check upgraded-kubernetes --when after` carries it out" in text
    assert asked(capsys, "nodes.yaml", "--check", "node-schedulable", "--when", "beforeNode")[0] == 2
    assert "not at after" in verified(capsys, "--check", "vm-devices")


@pytest.mark.slow
def test_checks_of_another_time_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES)
    found = answered(capsys, "nodes.yaml", "--when", "beforeNode")
    assert all("beforeNode" in check["when"] for check in found["checks"])
    assert found["checks"]
    assert len(found["checks"]) < len(answered(capsys, "nodes.yaml")["checks"])


def test_all_shows_what_has_passed_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES.replace("unschedulable: true", ""))
    assert (
        "passed   node-schedulable  2 of 2 nodes pass"
        in asked(capsys, "nodes.yaml", "--check", "node-schedulable", "--all")[1]
    )


def test_junit_is_xml_that_a_pipeline_reads(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES, volume=VOLUME.replace("pvc-NAME", "a"))
    words = ("--check", "node-schedulable", "--check", "version-exists", "--check", "volume-single-replica-attached")
    status, text = asked(capsys, "nodes.yaml", "volume.yaml", *words, "-o", "junit")
    suite = ElementTree.fromstring(text)[0]
    assert status == 1
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "2",
        "errors": "1",
    }
    outcomes = {case.get("name"): [child.tag for child in case] for case in suite}
    assert outcomes == {
        "node-schedulable": ["failure"],
        "version-exists": ["error"],
        "volume-single-replica-attached": ["failure"],
    }


def test_markdown_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES)
    status, text = asked(capsys, "nodes.yaml", "--check", "node-schedulable", "-o", "markdown")
    assert status == 1
    assert text.splitlines()[:6] == [
        "### Pre-flight: blocked",
        "",
        "**1 check: 1 blocked**",
        "",
        "| outcome | check | finding |",
        "| --- | --- | --- |",
    ]
    assert text.splitlines()[6].startswith(
        "| blocked | `node-schedulable`: no node is cordoned | Node node-2 is cordoned<br>"
    )


LEDGER = "it has a node selector: kubernetes.io/hostname=charlie-2-tink-system"


@pytest.mark.slow
def test_every_virtual_machine_is_shown_below_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = asked(capsys, str(ROOT / "examples" / "three-node"))
    assert text.splitlines()[-6:-1] == [
        "",
        "NODE                   VM                WHEN IT IS DRAINED            WHY",
        f"charlie-2-tink-system  default/ledger-1  is stopped and started again  {LEDGER}",
        "3 virtual machines: 2 move, 1 is stopped and started again",
        "",
    ]
    _, text = asked(capsys, str(ROOT / "examples" / "three-node"), "--all")
    assert "charlie-1-tink-system  default/web-1     moves" in text
    _, text = asked(capsys, str(ROOT / "examples" / "three-node"), "-o", "markdown")
    assert text.splitlines()[-3:] == [
        f"| charlie-2-tink-system | default/ledger-1 | is stopped and started again | {LEDGER} |",
        "| charlie-1-tink-system | default/web-1 | moves |  |",
        "| charlie-3-tink-system | default/build-1 | moves |  |",
    ]
    _, text = asked(capsys, str(ROOT / "examples" / "three-node"), "--check", "node-ready")
    assert "virtual machines" not in text


@pytest.mark.slow
def test_programs_get_the_virtual_machines_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = answered(capsys, str(ROOT / "examples" / "paused-node"))
    validate(PREFLIGHT_REPORT, found)
    machines = {row["name"]: row for row in found["machines"]["rows"]}
    assert {name: row["outcome"] for name, row in machines.items()} == {
        "player-1": "moves",
        "transcoder-1": "startedAgain",
        "archive-1": "stopped",
        "ingest-1": "startedAgain",
        "spare-1": "off",
    }
    assert machines["transcoder-1"]["kubevirt"] == "VMI uses a PCI host devices"
    files(nodes=NODES)
    assert answered(capsys, "nodes.yaml")["machines"]["readFailures"][0] == (
        "no VirtualMachineInstance objects among the inputs"
    )
    assert "machines" not in answered(capsys, "nodes.yaml", "--check", "node-ready")


@pytest.mark.slow
def test_an_overlay_switches_a_check_off_and_adds_one(capsys: pytest.CaptureFixture[str]) -> None:
    overlay = """\
apiVersion: templates.upgradeplan/v1
kind: Checks
checks:
- {id: node-schedulable, disabled: true, reason: we cordon one for spare parts}
- id: node-blue
  title: every node is blue
  severity: warn
  when: [create]
  probe: {every: {apiVersion: v1, kind: Node}, all: [{field: {path: "metadata.labels.colour", equals: blue}}]}
  remedy: "kubectl label node {{ object.metadata.name }} colour=blue"
  source: our own
"""
    Path("own/preflight").mkdir(parents=True)
    Path("own/preflight/own.yaml").write_text(overlay, encoding="utf-8")
    files(nodes=NODES)
    words = ("--check", "node-schedulable", "--check", "node-blue", "--templates", "own")
    found = {check["id"]: check for check in answered(capsys, "nodes.yaml", *words)["checks"]}
    assert found["node-schedulable"]["outcome"] == "notApplicable"
    assert found["node-schedulable"]["reason"] == "switched off: we cordon one for spare parts"
    assert [item["remedy"] for item in found["node-blue"]["findings"]] == [
        "kubectl label node node-1 colour=blue",
        "kubectl label node node-2 colour=blue",
    ]


WRONG: Mapping[str, tuple[str, str]] = {
    "remedy: x": ("remedy: ''", "remedy"),
    "kind: Node": ("kind: Nodee", "v1 Nodee is not in the kinds table"),
    "equals: 1}}": ("equals: {captured: x}}}", "compares with a captured value"),
    "source: x": ("source: x\n  override: {annotation: skip-webhok, equals: 'true'}", "did you mean 'skip-webhook'?"),
    "severity: warn": (
        "severity: warn\n  override: {field: spec.restoreVms, equals: true}",
        "has no field spec.restoreVms",
    ),
    "x\n  severity: warn": (
        "x\n  severity: warn\n  override: {field: spec.restoreVM, equals: 'yes'}",
        "spec.restoreVM of an UpgradePlan is never 'yes'",
    ),
    "title: x": ("title: x\n  applies: {expr: node.witness, reason: x}", "uses `node`"),
    "- id: own": ("- {id: version-exits, disabled: true, reason: x}\n- id: own", "did you mean 'version-exists'?"),
}
OWN = """\
apiVersion: templates.upgradeplan/v1
kind: Checks
checks:
- id: own
  title: x
  severity: warn
  when: [create]
  probe: {every: {apiVersion: v1, kind: Node}, all: [{field: {path: spec.x, equals: 1}}]}
  remedy: x
  source: x
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", WRONG)
def test_a_check_that_cannot_be_carried_out_is_refused_with_its_line(
    part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whatever command reads the templates."""
    wrong, said = WRONG[part]
    assert part in OWN
    Path("own/preflight").mkdir(parents=True)
    Path("own/preflight/own.yaml").write_text(OWN.replace(part, wrong), encoding="utf-8")
    for words in (["preflight"], ["render"]):
        assert run(["upgradeplan", *words, str(ROOT / "examples" / "single-node"), "--templates", "own"]) == 2
        error = capsys.readouterr().err
        assert "own/preflight/own.yaml:" in error
        assert said in error


SETTING = """\
apiVersion: harvesterhci.io/v1beta1
kind: Setting
metadata: {name: server-version}
value: VERSION
"""
FROM_1_7, PLAIN = SETTING.replace("VERSION", "v1.7.1"), PLAN.replace("ANNOTATION", "a").replace("VALUE", "b")


@pytest.mark.slow
def test_what_is_known_of_the_two_releases_stands_below(capsys: pytest.CaptureFixture[str]) -> None:
    """Components, and each note with what looks for it, as long as that is not content."""
    files(nodes=NODES, setting=FROM_1_7, plan=PLAIN)
    _, text = asked(capsys, ".")
    assert "\nupgrade from v1.7.1 to v1.8.0: KubeVirt 1.6 -> 1.7, Longhorn 1.10 -> 1.11," in text
    assert "\nprobe: legacy-bios, looked for by host-firmware: Nodes that boot by legacy BIOS are" in text
    assert "\nadvise: plan-controller: The system-upgrade-controller may miss" in text
    assert "\n  remedy: kubectl -n cattle-system rollout restart deployment system-upgrade-controller\n" in text
    facts = "{node-1: {firmware: uefi}, node-2: {firmware: uefi}}"
    files(facts=f"apiVersion: upgradeplan/v1\nkind: Facts\nfacts: {{hosts: {facts}}}\n")
    assert "legacy-bios" not in asked(capsys, ".")[1]
    assert "legacy-bios" in asked(capsys, ".", "--all")[1]
    assert "| probe | The partition COS&#95;STATE must have 15 GB" in asked(capsys, ".", "-o", "markdown")[1]


@pytest.mark.slow
def test_machines_get_every_note(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES, setting=FROM_1_7, plan=PLAIN)
    upgrade = answered(capsys, ".")["upgrade"]
    assert {"name": "OS", "from": "SL Micro 6.1", "to": "SL Micro 6.2"} in upgrade["components"]
    assert [note["checks"] for note in upgrade["notes"] if note["id"] == "cos-state-size"] == [["host-cos-state-size"]]
    assert "upgrade" not in answered(capsys, ".", "--check", "node-ready")
    one = json.loads(verified(capsys, "--check", "upgraded-server-version"))
    assert [check["id"] for check in one["checks"]] == ["upgraded-server-version"]
    assert ("upgrade" in json.loads(verified(capsys)), "upgrade" in one) == (True, False)


def verified(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    run(["upgradeplan", "verify", ".", *words, "-o", "json"])
    return capsys.readouterr().out


@pytest.mark.slow
def test_without_two_versions_there_is_nothing_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    files(nodes=NODES, plan=PLAIN)
    assert "upgrade from" not in asked(capsys, ".")[1]
    assert "upgrade" not in answered(capsys, ".")
