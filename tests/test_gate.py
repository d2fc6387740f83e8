"""`upgradeplan gate`: waits as its document says, on an embedded cluster; an outage is a wait, and only proof fails."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.rendered_plans import templates

from reconcile.cli.gate import LONGEST_MESSAGE, report
from reconcile.cluster.errors import Away
from reconcile.gate.gate_wait import GateAnswer, GateWait
from reconcile.gate.resolved_gates import read_gate
from reconcile.gate.start_checks import check_verdicts, with_files
from reconcile.observe.readings import Readings
from reconcile.probes.look import Group, ReadFailure
from reconcile.probes.verdict import ProbeResult
from reconcile.schemas import packaged_schemas
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.assemble import open_template_set
from renderer.cli.program import run
from renderer.errors import Problems
from renderer.model.document_type import GATE
from renderer.model.ref import Body, Ref

Json = dict[str, Any]
JOB = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "harvester-system", "name": "x"}
JOB_KIND = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "plural": "jobs",
    "namespaced": True,
    "ready": {
        "all": [{"condition": {"type": "Complete", "status": "True"}}],
        "fails": [{"condition": {"type": "Failed", "status": "True"}}],
    },
}
WAITS = "ImagePreload/Preload: Job harvester-system/x: condition Complete is absent, expected True"


def document(*gates: Json, **more: Any) -> str:
    body = {
        "plan": "up",
        "name": "ImagePreload",
        "digest": f"sha256:{'0' * 64}",
        "gates": list(gates),
        "kinds": [JOB_KIND],
        **more,
    }
    return json.dumps(GATE.document(body))


def job_gate(**more: Any) -> Json:
    return {"step": "ImagePreload/Preload", "probe": {"object": JOB, "all": [{"builtin": True}]}, **more}


def _nobody_answers(address: str, port: int) -> datetime | None:
    return None


class GatedCluster:
    """A cluster with a Job whose status a test writes; it can be away."""

    def __init__(self, text: str) -> None:
        self.clock = SimulatedClock(datetime(2026, 11, 2, 8, tzinfo=UTC))
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "namespace": "harvester-system"}}
        self.away = False
        self.body: Json | None = {**job, "spec": {}}
        self.document = read_gate(text, "gate.yaml")
        client = EmbeddedCluster(self.clock).client()
        self.readings = Readings(client, self.document.kinds, self.clock.now, _nobody_answers)
        self.wait = GateWait(self.document, self, self.readings, packaged_schemas())

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        if self.away:
            raise Away("connection refused")
        return self.body

    def held(self) -> Mapping[Ref, Body]:
        return {}

    def list(self, group: Group) -> tuple[Body, ...]:
        return ()

    def note(self, body: Body) -> None: ...

    def condition(self, type_: str) -> None:
        assert self.body is not None
        self.body = {**self.body, "status": {"conditions": [{"type": type_, "status": "True", "reason": "R"}]}}

    def look(self, seconds: int = 5) -> GateAnswer:
        self.clock.advance(seconds)
        return self.wait.look(self.clock.now())


def test_it_waits_and_passes() -> None:
    site = GatedCluster(document(job_gate()))
    assert site.look() == GateAnswer(outcome=ProbeResult.WAITING, lines=(WAITS,))
    site.condition("Complete")
    assert site.look().outcome is ProbeResult.PASSED


@pytest.mark.parametrize(
    ("severity", "outcome", "line"),
    [
        (
            "terminal",
            ProbeResult.FAILED,
            "ImagePreload/Preload: images: Job harvester-system/x: condition Failed is True (R)",
        ),
        (
            "warning",
            ProbeResult.PASSED,
            "ImagePreload/Preload: warning: images: Job harvester-system/x: condition Failed is True (R)",
        ),
    ],
)
def test_a_failed_job(severity: str, outcome: ProbeResult, line: str) -> None:
    site = GatedCluster(document(job_gate(failure={"message": "images: <why>", "severity": severity})))
    site.condition("Failed")
    assert site.look() == GateAnswer(outcome=outcome, lines=(line,))


def test_a_job_that_has_gone_is_waited_for() -> None:
    site = GatedCluster(document(job_gate()))
    site.body = None
    assert site.look().lines == ("ImagePreload/Preload: Job harvester-system/x does not exist",)


@pytest.mark.slow
def test_an_outage_is_a_wait_and_its_time_does_not_count() -> None:
    site = GatedCluster(document(job_gate(timeout="1m")))
    assert site.look().outcome is ProbeResult.WAITING
    site.away = True
    answer = site.look(3600)
    assert answer.outcome is ProbeResult.UNKNOWN
    assert answer.lines == ("the API server is unavailable: connection refused",)
    site.away = False
    assert site.look(3600).outcome is ProbeResult.WAITING
    assert site.look(59).outcome is ProbeResult.WAITING
    failed = site.look(1)
    assert failed == GateAnswer(outcome=ProbeResult.FAILED, lines=(f"{WAITS}; it has not passed within 60 s",))


def test_passes_in_a_row_begin_anew_after_an_outage() -> None:
    site = GatedCluster(document(job_gate(consecutive=2)))
    site.condition("Complete")
    assert site.look().outcome is ProbeResult.WAITING
    site.away = True
    site.look()
    site.away = False
    assert site.look().outcome is ProbeResult.WAITING
    assert site.look().outcome is ProbeResult.PASSED


def test_a_long_wait_says_so() -> None:
    site = GatedCluster(document(job_gate(slowAfter="10s")))
    site.look()
    assert not site.look(9).lines[0].endswith("longer than expected")
    assert site.look(1).lines[0].endswith("; this takes longer than expected")


def test_all_gates_must_pass() -> None:
    other = job_gate(step="ImagePreload/Other", probe={"object": {**JOB, "name": "y"}, "all": [{"absent": True}]})
    site = GatedCluster(document(job_gate(), other))
    site.condition("Complete")
    assert site.look().lines == ("ImagePreload/Other: Job harvester-system/y: still exists",)


CHECK = """
apiVersion: templates.upgradeplan/v1
kind: Checks
checks:
- id: settled
  title: the Job is there
  severity: block
  when: [start]
  probe: {object: {apiVersion: batch/v1, kind: Job, namespace: harvester-system, name: x}, all: [{builtin: true}]}
  remedy: wait
  source: this test
"""


UNSEEN = """
apiVersion: templates.upgradeplan/v1
kind: Checks
checks:
- id: host-unseen
  title: its host says so
  severity: block
  when: [start]
  probe:
    every: {apiVersion: v1, kind: Node}
    all: [{rule: {name: hostReports, path: oem.customFile, equals: complete}}]
  remedy: none
  source: this test
"""


class OneNode(GatedCluster):
    """A cluster with one node."""

    def list(self, group: Group) -> tuple[Body, ...]:
        return ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},) if group.kind == "Node" else ()


def test_a_check_that_nobody_can_answer_holds_no_gate() -> None:
    """Without a manager no Job looks at the hosts."""
    plan = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": {"name": "up"}}
    run_of = {
        "when": "start",
        "upgradePlan": {**plan, "spec": {"version": "v1.8.0"}},
        "files": {"preflight/x.yaml": UNSEEN},
    }
    text = document(checks=run_of)
    checks = read_gate(text, "gate.yaml").checks
    assert checks is not None
    site, template_set = OneNode(text), open_template_set(with_files(templates(), checks))
    client = EmbeddedCluster(site.clock).client()
    site.readings = Readings(client, template_set.catalog.kinds, site.clock.now, _nobody_answers)
    before = check_verdicts(checks, template_set, site, site.readings, packaged_schemas())
    site.wait = GateWait(site.document, site, site.readings, packaged_schemas(), before)
    assert site.look().outcome is ProbeResult.PASSED


class Refused(GatedCluster):
    """A cluster that does not let its nodes be listed."""

    def list(self, group: Group) -> Any:
        return ReadFailure(why="forbidden") if group.kind == "Node" else ()


def test_what_may_not_be_read_is_waited_for() -> None:
    plan = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": {"name": "up"}}
    run_of = {"when": "start", "upgradePlan": {**plan, "spec": {}}, "files": {"preflight/x.yaml": CHECK}}
    checks = read_gate(document(checks=run_of), "gate.yaml").checks
    assert checks is not None
    site, template_set = Refused(document(checks=run_of)), open_template_set(with_files(templates(), checks))
    before = check_verdicts(checks, template_set, site, site.readings, packaged_schemas())
    site.wait = GateWait(site.document, site, site.readings, packaged_schemas(), before)
    assert site.look() == GateAnswer(outcome=ProbeResult.UNKNOWN, lines=("Node objects cannot be read: forbidden",))


def test_checks_come_first_and_are_those_of_the_document() -> None:
    plan = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": {"name": "up"}}
    run_of = {
        "when": "start",
        "upgradePlan": {**plan, "spec": {"version": "v1.8.0"}},
        "files": {"preflight/x.yaml": CHECK},
    }
    text = document(checks=run_of)
    checks = read_gate(text, "gate.yaml").checks
    assert checks is not None
    tree = with_files(templates(), checks)
    assert [path for path in tree if path.startswith("preflight/")] == ["preflight/x.yaml"]
    template_set = open_template_set(tree)
    site = GatedCluster(text)
    before = check_verdicts(checks, template_set, site, site.readings, packaged_schemas())
    site.wait = GateWait(site.document, site, site.readings, packaged_schemas(), before)
    assert site.look().lines == ("check settled: Job harvester-system/x: condition Complete is absent, expected True",)
    site.condition("Complete")
    assert site.look() == GateAnswer(outcome=ProbeResult.PASSED, lines=())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: b", "NotAGate"),
        ("", "NotAGate"),
        (document() + "\n---\n" + document(), "NotAGate"),
        (document(surplus=1), "UnknownField"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Problems) as refused:
        read_gate(text, "gate.yaml")
    assert {item.reason for item in refused.value.problems} == {reason}


@pytest.mark.parametrize(
    ("phase", "options", "says"),
    [
        ("Other", (), "is the gate ImagePreload, not Other"),
        ("ImagePreload", ("--timeout", "soon"), "'soon' is not a duration"),
        ("ImagePreload", ("--timeout", "8761h"), "'8761h' is not a duration"),
        ("ImagePreload", ("--timeout", "1h30m", "--from", "nowhere.yaml"), "nowhere.yaml: No such file"),
        ("ImagePreload", ("--from", "nowhere.yaml"), "nowhere.yaml: No such file or directory"),
    ],
)
def test_bad_usage(
    phase: str, options: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(document(job_gate()), encoding="utf-8")
    assert run(["upgradeplan", "gate", phase, "--from", str(file), *options]) == 2
    assert says in capsys.readouterr().err


def test_the_termination_message_has_the_reason_and_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "termination-log"
    answer = GateAnswer(outcome=ProbeResult.WAITING, lines=("first", "ä" * LONGEST_MESSAGE))
    report(datetime(2026, 11, 2, 8, tzinfo=UTC), answer, log)
    assert not log.exists()  # outside a pod there is nobody to leave it for

    log.touch()
    report(datetime(2026, 11, 2, 8, tzinfo=UTC), answer, log)
    assert log.read_text("utf-8").startswith("waiting: first\nwaiting: ää")
    assert LONGEST_MESSAGE - 1 <= log.stat().st_size <= LONGEST_MESSAGE
    assert "2026-11-02T08:00:00Z waiting: first\n" in capsys.readouterr().out


def test_a_pipe_is_no_document_and_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert run(["upgradeplan", "gate", "ImagePreload", "--from", str(tmp_path / "pipe")]) == 2
    assert "is a device, a pipe or a socket" in capsys.readouterr().err
