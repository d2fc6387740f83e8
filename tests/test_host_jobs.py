"""A Job on each node looks at its host when a plan begins, and the checks of hosts are answered by what it reports."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from support.rehearsals import START, inputs_of, permissions, template_set
from support.rendered_plans import MANAGER_IMAGE, looking_at_hosts
from support.small_cluster import PREFIX, Small

from reconcile.loop.overrides import overrides_of
from reconcile.simulator.actors.fault_options import FaultOptions, KnownTargets, fault_plan_of
from reconcile.simulator.rehearsal.rehearsal import prepare
from renderer.assemble import TemplateSet, open_template_set

pytestmark = pytest.mark.slow

NODE = "alfa-1-tink-system"
JOB = "hvst-upgrade-9s9cd-host-check-alfa-1-tink-system-1"
TRUNCATED = {"oem": {"customFile": "truncated"}}
CHECK = "host-oem-custom-file"
AGAIN = f"{PREFIX}look-at-hosts-again"


@cache
def in_the_cluster() -> TemplateSet:
    return open_template_set(looking_at_hosts())


def begun(differs: dict[str, Any] | None = None, **faults: list[str]) -> Small:
    """The single-node example in the cluster, under the loop's own permissions; and how its host differs from a good
    one."""
    wishes = fault_plan_of(FaultOptions(**faults), KnownTargets(nodes=(NODE,)))
    scene = prepare(inputs_of("single-node"), in_the_cluster(), start=START, faults=wishes, access=permissions())
    found = Small(scene=scene)
    report_of(found, differs or {})
    return found


def report_of(found: Small, differs: dict[str, Any]) -> None:
    hosts = found.scene.simulation.hosts
    hosts.reports.clear()
    hosts.reports[NODE] = {**hosts.report(NODE, START), **differs}


def play(found: Small, minutes: float) -> None:
    """Everybody acts for so long."""
    found.scene.drive(found.scene.reconciler, lambda done: None).run(found.name, timedelta(minutes=minutes))


def record(found: Small, step: str) -> Any:
    return found.status["steps"]["Initialize"]["records"][step]


def degraded(found: Small) -> str:
    condition = found.condition("Degraded")
    return f"{condition['reason']}: {condition['message']}" if condition["status"] == "True" else ""


def test_the_plan_goes_on_once_the_host_has_reported_that_all_is_well() -> None:
    found = begun()
    play(found, 1)
    [job] = [job for job in found.all("Job") if job["metadata"]["name"] == JOB]
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == MANAGER_IMAGE
    assert found.phase not in ("Initializing", "Initialized")
    assert "acceptedRisks" not in found.status


def test_of_hosts_that_are_well_the_status_keeps_nothing_once_the_upgrade_goes_on() -> None:
    found = begun()
    found.rounds()
    assert record(found, f"HostCheck/{NODE}")["state"] == "Applied"
    play(found, 1)
    assert found.phase not in ("Initializing", "Initialized")
    steps = found.status["steps"]["Initialize"]
    assert "done" not in steps
    assert not any(key.startswith("HostCheck/") for key in steps["records"])


def test_a_bad_host_holds_the_plan_and_is_named_with_what_to_do() -> None:
    found = begun(TRUNCATED)
    play(found, 2)
    assert found.phase == "Initialized"
    assert degraded(found).startswith("PreflightBlocked: ")
    assert f"Node {NODE}: its host reports oem.customFile is 'truncated', expected 'complete'" in degraded(found)
    assert "restore it from a backup" in degraded(found)


def test_what_a_host_does_not_report_is_not_passed() -> None:
    found = begun({"oem": {}, "couldNotLook": {"oem.customFile": "/oem not found"}})
    play(found, 8)
    assert found.phase == "Initialized"
    assert f"check {CHECK} could not be evaluated" in degraded(found)
    assert "does not report oem.customFile: /oem not found" in degraded(found)


def test_a_host_that_does_not_answer_is_neither_passed_nor_failed_and_is_accepted_by_id() -> None:
    found = begun(stall=["host-check"])
    play(found, 4)
    assert found.phase == "Initializing"
    play(found, 8)
    assert found.phase == "Initialized"
    assert f"check {CHECK} could not be evaluated" in degraded(found)
    assert f"Job {JOB} on node {NODE} has not ended yet" in degraded(found)
    blocking = f"{CHECK},host-cos-state-size,host-certificates-valid"
    found.patch(found.plan, {"metadata": {"annotations": {f"{PREFIX}accept-risk": blocking}}})
    play(found, 1)
    assert found.phase not in ("Initializing", "Initialized", "Failed")
    assert {risk["check"] for risk in found.status["acceptedRisks"]} >= set(blocking.split(","))


def test_a_job_that_fails_ends_no_plan() -> None:
    found = begun(fail=["host-check"])
    play(found, 8)
    assert found.phase == "Initialized"
    assert "BackoffLimitExceeded" in degraded(found)


# -------------------------------------------------------------------------------------------------------------- rounds


def held() -> Small:
    """The host of the node is bad, and the plan waits."""
    found = begun(TRUNCATED)
    play(found, 2)
    assert found.phase == "Initialized"
    return found


def looked(found: Small) -> list[str]:
    """The numbers of the Jobs that are there."""
    return [name.rpartition("-")[2] for name in found.jobs() if "host-check" in name]


def ask_again(found: Small, text: str) -> None:
    found.patch(found.plan, {"metadata": {"annotations": {AGAIN: text}}})


def test_a_repaired_host_is_looked_at_again_after_ten_minutes_and_the_plan_goes_on() -> None:
    found = held()
    report_of(found, {})
    play(found, 7)
    assert (found.phase, looked(found)) == ("Initialized", ["1"])
    play(found, 4)
    assert found.phase not in ("Initializing", "Initialized")
    assert looked(found) == ["1", "2"]
    assert record(found, f"HostCheck/{NODE}")["captured"]["round"] == 2
    play(found, 30)
    assert looked(found) == ["1", "2"]


def test_while_a_host_stays_bad_a_round_begins_every_ten_minutes_and_the_last_two_stay() -> None:
    found = held()
    since = found.status["waitingSince"]
    play(found, 45)
    assert looked(found) == ["4", "5"]
    assert found.status["waitingSince"] == since
    assert degraded(found).startswith("PreflightBlocked: ")
    assert [reason for reason, _ in found.events() if reason == "PreflightBlocked"] == ["PreflightBlocked"]


def test_only_the_hosts_that_are_named_are_looked_at_again() -> None:
    """Two are bad, and one of them cannot be looked at for another check."""
    scene = prepare(inputs_of("three-node"), in_the_cluster(), start=START, access=permissions())
    first, second, third = sorted(body["metadata"]["name"] for body in Small(scene=scene).all("Node"))
    hosts, found = scene.simulation.hosts, Small(scene=scene)
    hosts.reports[first] = {**hosts.report(first, START), **TRUNCATED}
    hosts.reports[third] = {**hosts.report(third, START), "oem": {}}
    play(found, 2)
    ask_again(found, "now")
    play(found, 2)
    numbers = {name.split("host-check-")[1] for name in found.jobs() if "host-check" in name}
    assert numbers == {f"{first}-1", f"{first}-2", f"{second}-1", f"{third}-1", f"{third}-2"}


def test_an_annotation_begins_a_round_at_once_and_only_once() -> None:
    found = held()
    ask_again(found, "now")
    play(found, 1)
    assert looked(found) == ["1", "2"]
    play(found, 7)
    assert looked(found) == ["1", "2"]
    report_of(found, {})
    ask_again(found, "and now")
    play(found, 2)
    assert found.phase not in ("Initializing", "Initialized")


def test_a_host_that_answers_late_lets_the_plan_go_on() -> None:
    found = begun(stall=["host-check"])
    play(found, 8)
    assert found.phase == "Initialized"
    [pod] = [pod for pod in found.all("Pod") if pod["metadata"]["name"].startswith(JOB)]
    report = json.dumps(found.scene.simulation.hosts.report(NODE, START))
    ended = {"name": "host-check", "state": {"terminated": {"exitCode": 0, "message": report}}}
    found.patch(pod, {"status": {"phase": "Succeeded", "containerStatuses": [ended]}}, "status")
    play(found, 2)
    assert found.phase not in ("Initializing", "Initialized")


def test_a_round_under_way_does_not_keep_a_plan_whose_risk_is_accepted() -> None:
    found = held()
    ask_again(found, "now")
    found.until(lambda done: looked(found) == ["1", "2"])
    found.patch(found.plan, {"metadata": {"annotations": {f"{PREFIX}accept-risk": CHECK}}})
    found.rounds()
    assert found.phase not in ("Initializing", "Initialized")
    assert record(found, f"HostCheck/{NODE}")["state"] == "Completed"


@pytest.mark.parametrize("at", ["status", "job"])
def test_a_loop_that_is_killed_between_the_record_of_a_round_and_its_job_begins_no_round_twice(at: str) -> None:
    found = held()
    ask_again(found, "now")
    reached = {
        "status": lambda done: record(found, f"HostCheck/{NODE}").get("captured", {}).get("round") == 2,
        "job": lambda done: looked(found) == ["1", "2"],
    }
    found.until(reached[at])
    found.restart()
    play(found, 5)
    assert looked(found) == ["1", "2"]
    assert record(found, f"HostCheck/{NODE}")["captured"]["round"] == 2


def test_the_jobs_and_their_script_go_with_the_plan() -> None:
    found = begun(TRUNCATED)
    play(found, 2)
    assert JOB in found.jobs()
    found.patch(found.plan, {"metadata": {"annotations": {f"{PREFIX}allow-deletion": "true"}}})
    found.delete_plan()
    play(found, 5)
    assert found.jobs() == []
    assert not [body for body in found.all("ConfigMap") if "host-check" in body["metadata"]["name"]]


# ---------------------------------------------------------------------------------------------- the manager's own image


@pytest.mark.parametrize(("environ", "looks"), [({}, False), ({"UPGRADEPLAN_IMAGE": MANAGER_IMAGE}, True)])
def test_what_was_approved_without_knowing_the_image_runs_in_the_cluster(environ: dict[str, str], looks: bool) -> None:
    found = Small(scene=prepare(inputs_of("single-node"), template_set(), start=START))
    found.approve()
    deps = found.scene.deps
    found.scene.deps = replace(deps, rendering=deps.rendering.overridden(overrides_of(environ)))
    found.restart()
    play(found, 2)
    assert (JOB in found.jobs()) is looks
    assert found.phase not in ("", "Initializing", "Initialized")


def test_an_image_of_the_values_is_approved_as_all_else() -> None:
    found = Small(scene=prepare(inputs_of("single-node"), template_set(), start=START))
    other = Small(scene=prepare(inputs_of("single-node"), in_the_cluster(), start=START))
    found.approve()
    other.patch(other.plan, {"metadata": {"annotations": found.plan["metadata"]["annotations"]}})
    play(other, 1)
    assert "differs from what was approved in ConfigMap harvester-system/" in degraded(other)
