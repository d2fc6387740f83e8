"""The loop carries out pre-flight checks when a step's turn comes: it waits while one blocks, says all of them with
everybody that they found, continues automatically, and records what the plan accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.answer_schemas import validate
from support.rehearsals import template_set
from support.rendered_plans import Json, plan, server_version
from support.small_cluster import PRE, PRE_JOB, PREFIX, Small, facts, upgrading, world

from reconcile.loop.journal import Journal
from reconcile.loop.reconciler import Reconciler
from reconcile.observe.seldom import SeldomLists
from reconcile.probes.look import Group
from reconcile.report.progress import progress_of
from reconcile.report.progress_view import progress_lines
from reconcile.report.replay import replay
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.model.document_type import STATUS_REPORT

pytestmark = pytest.mark.slow

ACCEPT = f"{PREFIX}accept-risk"
DEGRADED, HEALTHY = "degraded", "healthy"


def volume(name: str, robustness: str = HEALTHY, replicas: int = 3) -> Json:
    """Has the shape of Longhorn's definition."""
    return {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Volume",
        "metadata": {"name": name, "namespace": "longhorn-system"},
        "spec": {"numberOfReplicas": replicas},
        "status": {
            "state": "attached",
            "robustness": robustness,
            "kubernetesStatus": {"namespace": "default", "pvcName": f"disk-{name}"},
        },
    }


def cordoned(found: Small, name: str, *, is_cordoned: bool) -> None:
    found.patch(found.get("v1", "Node", name), {"spec": {"unschedulable": is_cordoned or None}})


def set_robustness(found: Small, name: str, robustness: str) -> None:
    body = found.get("longhorn.io/v1beta2", "Volume", name, "longhorn-system")
    found.patch(body, {"status": {"robustness": robustness}}, "status")


def later(found: Small, seconds: float = 61) -> None:
    """Looks again after what was listed has become old."""
    found.scene.clock.advance(seconds)
    found.rounds()


def degraded(found: Small) -> Any:
    condition = found.condition("Degraded")
    return (condition["status"], condition["reason"]), condition["message"]


def told(found: Small, reason: str) -> list[str]:
    return [message for known, message in found.events() if known == reason]


def waiting_for_rancher(**more: Any) -> Small:
    """Three nodes, of which none has been asked for yet: with two, a degraded volume is no finding."""
    found = upgrading("n1", "n2", "n3", states={}, **more)
    found.set_status(currentPhase="ClusterUpgraded")
    found.rounds()
    found.end_plan("up-skip-manifest-apply")
    found.rounds()
    assert found.phase == "NodeUpgrading"
    return found


# --------------------------------------------------------------------------------------------------------- at the start


def blocked_twice() -> Small:
    found = world(more=[volume("a", DEGRADED), volume("b", DEGRADED), volume("c")])
    cordoned(found, "n2", is_cordoned=True)
    found.rounds()
    return found


def test_a_plan_says_all_that_blocks_it_and_goes_on_by_itself() -> None:
    found = blocked_twice()
    assert found.phase == "Initialized"
    state, message = degraded(found)
    assert state == ("True", "PreflightBlocked")
    for part in ("node-schedulable", "Node n2 is cordoned", "kubectl uncordon n2", "disk-a", "disk-b", ACCEPT):
        assert part in message
    assert "disk-c" not in message
    cordoned(found, "n2", is_cordoned=False)
    later(found)
    assert "n2" not in degraded(found)[1]
    set_robustness(found, "a", HEALTHY)
    set_robustness(found, "b", HEALTHY)
    later(found)
    assert (found.phase, degraded(found)[0][0]) == ("ISODownloading", "False")
    assert len(told(found, "PreflightBlocked")) == 1
    assert len(told(found, "PreflightPassed")) == 1


def test_status_shows_each_check_with_all_that_it_found_and_what_accepts_it() -> None:
    found = blocked_twice()
    done = found.scene.reconciler.look(found.name)
    model = progress_of(done, found.scene.clock.now())
    assert_valid(model)
    lines = list(progress_lines(model))
    at = next(
        number for number, line in enumerate(lines) if "blocked by volume-degraded: no volume is degraded" in line
    )
    assert [line.split(" (volume")[0] for line in lines[at + 1 : at + 3]] == [
        "    PVC default/disk-a",
        "    PVC default/disk-b",
    ]
    assert lines[at + 3].startswith("    remedy: wait until its replicas are rebuilt")
    accept = next(line for line in lines[at:] if "to accept the risk" in line)
    assert (
        accept
        == f'    to accept the risk: upgradeplan accept volume-degraded up, or annotation {ACCEPT}: "volume-degraded"'
    )


def assert_valid(model: Json) -> None:
    """As the schema of `status` has it."""
    validate(STATUS_REPORT, model)


def test_nothing_is_asked_and_nothing_written_while_it_stays_blocked() -> None:
    found = blocked_twice()
    before = len(found.scene.client.log.requests)
    for _ in range(5):
        found.scene.clock.advance(1)
        found.rounds()
    assert list(found.scene.client.log.requests[before:]) == []


def test_another_process_goes_on_with_a_blocked_plan() -> None:
    found = blocked_twice()
    since = found.status["waitingSince"]
    found.scene.clock.advance(600)
    found.restart()
    found.rounds()
    assert (found.phase, found.status["waitingSince"]) == ("Initialized", since)
    assert len(told(found, "PreflightBlocked")) == 1


def test_an_accepted_risk_is_recorded_and_told_once() -> None:
    accepted = plan(annotations={ACCEPT: "volume-degraded, node-schedulable"})
    found = world(given=accepted, more=[volume("a", DEGRADED)])
    found.rounds()
    later(found)
    assert found.phase == "ISODownloading"
    [risk] = found.status["acceptedRisks"]
    assert risk == {
        "check": "volume-degraded",
        "by": f"annotation {ACCEPT}",
        "value": "volume-degraded",
        "when": "start",
        "time": "2026-01-01T00:00:00Z",
    }
    [message] = told(found, "RiskAccepted")
    assert "disk-a" in message


def test_a_risk_that_is_accepted_late_lets_the_plan_go_on() -> None:
    found = world(more=[volume("a", DEGRADED)])
    found.rounds()
    found.patch(found.plan, {"metadata": {"annotations": {ACCEPT: "volume-degraded"}}})
    found.rounds()
    assert found.phase == "ISODownloading"


def test_skip_webhook_accepts_at_the_start_and_not_before_a_node() -> None:
    given = plan(annotations={f"{PREFIX}skip-webhook": "true"})
    start = world(given=given, more=[volume("a", DEGRADED)])
    start.rounds()
    node = waiting_for_rancher(given=given, more=[volume("a", DEGRADED)])
    assert start.phase == "ISODownloading"
    node.ask("n1", PRE, "first")
    node.rounds()
    assert node.jobs() == []


def test_what_cannot_be_looked_at_holds_the_plan_and_is_reported_after_a_while() -> None:
    found = world("n1")
    refused = InjectedApiFault(trouble=ApiFault.FAILED, verb="read", kind="Node", count=1000)
    found.scene.client.faults.add(refused)
    found.rounds()
    assert (found.phase, degraded(found)[0][0]) == ("Initialized", "False")
    later(found, 400)
    state, message = degraded(found)
    assert state == ("True", "PreflightBlocked")
    assert "check disk-headroom could not be evaluated" in message
    assert f"{PREFIX}skip-garbage-collection-threshold-check" in message
    found.patch(found.plan, {"metadata": {"annotations": {ACCEPT: "disk-headroom"}}})
    found.rounds()
    assert found.phase == "ISODownloading"


def test_what_nobody_gave_to_a_rehearsal_does_not_hold_it() -> None:
    """There is no Volume among the inputs, and no Bundle: nobody knows whether there are any."""
    found = world()
    found.rounds()
    assert found.phase == "ISODownloading"


def test_a_full_disk_ends_the_plan() -> None:
    found = world("n1", more=[facts({"n1": 146})])
    found.rounds()
    message = found.condition("Progressing")["message"]
    assert found.phase == "Failed"
    assert message.startswith('node "n1" will reach 108.16% storage space after loading new images')
    assert "remedy" not in message  # the API's words
    assert degraded(found)[1].startswith(f"{message}; remedy: ")
    escape = f'or accept the risk: annotation {PREFIX}skip-garbage-collection-threshold-check: "true"'
    assert f"; {escape}; then upgradeplan retry up" in degraded(found)[1]
    found.patch(found.plan, {"metadata": {"annotations": {ACCEPT: "disk-headroom", f"{PREFIX}retry": "1"}}})
    found.rounds()
    assert found.phase == "ISODownloading"


def test_a_certificate_that_ends_too_soon_ends_the_plan() -> None:
    """Which skip-webhook does not accept."""
    given = plan(annotations={f"{PREFIX}skip-webhook": "true"})
    soon = world("n1", given=given, more=[facts({"n1": 20}, expires="2026-01-03T00:00:00Z")])
    soon.rounds()
    assert soon.phase == "Failed"
    assert f'or accept the risk: annotation {ACCEPT}: "api-server-certificates"' in degraded(soon)[1]


def test_force_accepts_the_version_alone_and_an_event_says_so() -> None:
    found = world(given=plan(version="v1.8.0", force=True), more=[server_version("v1.9.0"), volume("a", DEGRADED)])
    found.rounds()
    assert (found.phase, degraded(found)[0]) == ("Initialized", ("True", "PreflightBlocked"))
    [risk] = found.status["acceptedRisks"]
    assert (risk["check"], risk["by"], risk["value"]) == ("version-eligible", "field spec.force", "true")
    [message] = told(found, "RiskAccepted")
    assert "downgrading is prohibited (current v1.9.0, target v1.8.0" in message


def test_skip_webhook_does_not_reach_the_clusters_services() -> None:
    found = upgrading("n1", "n2", "n3", states={}, given=plan(annotations={f"{PREFIX}skip-webhook": "true"}))
    found.set_status(currentPhase="ImagePreloaded")
    cordoned(found, "n2", is_cordoned=True)
    found.rounds()
    assert (found.phase, degraded(found)[0][0]) == ("ImagePreloaded", "False")
    later(found, 400)
    assert "check node-schedulable blocks: Node n2 is cordoned" in degraded(found)[1]
    found.patch(found.plan, {"metadata": {"annotations": {ACCEPT: "node-schedulable"}}})
    found.rounds()
    [risk] = found.status["acceptedRisks"]
    assert (found.phase, risk["when"]) == ("ClusterUpgrading", "beforeClusterUpgrade")


@pytest.mark.parametrize("check", ["etcd-voter", "disk-not-full"])
def test_a_node_waits_for_etcd_and_for_its_disk_until_that_is_accepted(check: str) -> None:
    full = [facts({"n1": 146, "n2": 20, "n3": 20})] if check == "disk-not-full" else []
    found = waiting_for_rancher(given=plan(annotations={f"{PREFIX}skip-webhook": "true"}), more=full)
    if check == "etcd-voter":
        found.patch(found.get("v1", "Node", "n2"), {"metadata": {"labels": {"node-role.kubernetes.io/etcd": "true"}}})
        conditions = [{"type": "Ready", "status": "True"}, {"type": "EtcdIsVoter", "status": "False"}]
        found.patch(found.get("v1", "Node", "n2"), {"status": {"conditions": conditions}}, "status")
    later(found)
    found.ask("n1", PRE, "first")
    found.rounds()
    assert found.jobs() == []
    later(found, 1900)
    assert f"check {check} blocks: " in degraded(found)[1]
    found.patch(found.plan, {"metadata": {"annotations": {ACCEPT: check}}})
    found.rounds()
    assert found.jobs() == [PRE_JOB]


# ------------------------------------------------------------------------------------------------------- before a node


def test_a_node_waits_while_a_volume_is_being_rebuilt() -> None:
    """It is degraded once the upgrade is under way; nobody is alarmed before half an hour has passed."""
    found = waiting_for_rancher(more=[volume("a"), volume("b", replicas=2)])
    set_robustness(found, "a", DEGRADED)
    later(found)
    found.ask("n1", PRE, "first")
    found.rounds()
    assert found.jobs() == []
    assert degraded(found)[0][0] == "False"
    later(found, 1900)
    assert "disk-a" in degraded(found)[1]
    set_robustness(found, "a", HEALTHY)
    later(found)
    assert found.jobs() == [PRE_JOB]


def test_another_process_holds_the_node_as_before_and_lets_it_go_once() -> None:
    found = waiting_for_rancher(more=[volume("a"), volume("b", replicas=2)])
    set_robustness(found, "a", DEGRADED)
    later(found)
    found.ask("n1", PRE, "first")
    found.rounds()
    since = found.status["waitingSince"]
    found.scene.clock.advance(600)
    found.restart()
    found.rounds()
    assert (found.jobs(), found.status["waitingSince"]) == ([], since)
    set_robustness(found, "a", HEALTHY)
    found.restart()
    later(found)
    assert found.jobs() == [PRE_JOB]
    set_robustness(found, "a", DEGRADED)
    found.restart()
    later(found)
    assert found.state("n1") == "PreDraining", "what has begun is not held"


# -------------------------------------------------------------------------------------------------------- taking over


def taken_over(phase: str, **states: str) -> Small:
    """A plan that the Harvester Upgrade Manager has brought that far, on a cluster with a degraded volume."""
    found = upgrading("n1", "n2", "n3", states=states, more=[volume("a", DEGRADED)])
    found.set_status(currentPhase=phase)
    found.rounds()
    return found


def test_a_plan_that_is_taken_over_before_its_start_is_held_as_any_other() -> None:
    found = taken_over("Initialized")
    assert (found.phase, degraded(found)[0]) == ("Initialized", ("True", "PreflightBlocked"))
    set_robustness(found, "a", HEALTHY)
    later(found)
    assert found.phase == "ISODownloading"


def test_a_plan_that_is_taken_over_beyond_its_start_is_not_asked_again() -> None:
    assert taken_over("ISODownloaded").phase == "RepoCreating"


def test_a_node_that_was_begun_before_the_take_over_is_not_held() -> None:
    found = taken_over("NodeUpgrading", n1="PreDraining", n2="ImagePreloaded", n3="ImagePreloaded")
    found.ask("n1", PRE, "first")
    found.rounds()
    assert found.jobs() == [PRE_JOB]


# ------------------------------------------------------------------------------------------------------------ replaying


def test_the_journal_of_a_plan_that_was_held_is_replayed_alike(tmp_path: Path) -> None:
    found = blocked_twice()
    found.scene.reconciler = Reconciler(found.scene.deps, Journal(tmp_path / "journal", told_nobody))
    later(found)
    cordoned(found, "n2", is_cordoned=False)
    set_robustness(found, "a", HEALTHY)
    set_robustness(found, "b", HEALTHY)
    later(found)
    replayed = list(replay(tmp_path / "journal", template_set()))
    assert found.phase == "ISODownloading"
    assert len(replayed) > 1
    assert [(line.problem, line.differs) for line in replayed if line.problem or line.differs] == []


def told_nobody(text: str) -> None:
    raise AssertionError(text)


# -------------------------------------------------------------------------------------------------------------- reading


def test_a_list_is_kept_for_a_minute_and_let_go() -> None:
    found = world(more=[volume("a")])
    seconds = [0.0]
    lists = SeldomLists(found.scene.client, found.scene.deps.kinds, lambda: seconds[0], lambda group: None)
    volumes = Group(api_version="longhorn.io/v1beta2", kind="Volume", namespace="longhorn-system", seldom=True)
    first = lists.list(volumes)
    set_robustness(found, "a", DEGRADED)
    seconds[0] = 59
    assert lists.list(volumes) is first
    seconds[0] = 61
    second = lists.list(volumes)
    assert second != first
    seconds[0] = 122
    assert lists.list(volumes) is second  # nothing has changed: the very same objects
