"""One node at a time, and never a second one in trouble."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.small_cluster import (
    POST,
    POST_HOOK,
    POST_JOB,
    PRE,
    PRE_HOOK,
    PRE_JOB,
    Small,
    being_prepared,
    drained,
    rebooting,
)

from renderer.model.ref import ref_of

pytestmark = pytest.mark.slow

SECOND_JOB = "up-node-upgrade-pre-drain-n2"


def be_ready(found: Small, name: str, status: str) -> None:
    condition = {"type": "Ready", "status": status}
    found.patch(found.get("v1", "Node", name), {"status": {"conditions": [condition]}}, "status")


def test_rancher_may_not_drain_while_another_node_is_in_trouble() -> None:
    found = being_prepared()
    be_ready(found, "n2", "Unknown")
    found.end_job(PRE_JOB)
    done = found.rounds()
    assert found.annotation("n1", PRE_HOOK) is None
    assert found.state("n1") == "PreDrained"
    assert done.decision is not None
    [wait] = [wait for wait in done.decision.waits if wait.node == "n1"]
    assert wait.text.startswith("another node is not ready: Node n2: ")
    found.scene.clock.advance(timedelta(hours=3).total_seconds())
    found.rounds()
    assert "another node is not ready: Node n2" in found.condition("Degraded")["message"]
    be_ready(found, "n2", "True")
    found.rounds()
    assert found.annotation("n1", PRE_HOOK) == "first"


def test_no_node_is_rebooted_while_another_one_is_in_trouble() -> None:
    found = drained()
    be_ready(found, "n2", "False")
    found.ask("n1", POST, "second")
    found.rounds()
    assert POST_JOB not in found.jobs()
    be_ready(found, "n2", "True")
    found.rounds()
    assert POST_JOB in found.jobs()


def test_a_node_that_has_been_rebooted_is_given_back_whatever_the_others_do() -> None:
    found = rebooting()
    be_ready(found, "n2", "False")
    found.rounds()
    assert found.state("n1") == "WaitingReboot"
    found.reboot("n1")
    found.rounds()
    assert found.annotation("n1", POST_HOOK) == "second"


def test_the_next_node_waits_until_rancher_has_taken_this_one_back() -> None:
    found = rebooting()
    found.ask("n2", PRE, "asked too early")
    found.reboot("n1")
    done = found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("PostDrained", "second")
    assert SECOND_JOB not in found.jobs()
    assert done.decision is not None
    assert "another node is being drained or upgraded: n1" in [wait.text for wait in done.decision.waits]
    found.ask("n1", POST, None)
    found.rounds()
    assert SECOND_JOB in found.jobs()


def test_a_machine_that_is_gone_keeps_no_place() -> None:
    found = rebooting()
    found.reboot("n1")
    found.rounds()
    kind = found.scene.deps.kinds.row("v1", "Secret").kind
    found.scene.cluster.client().delete(kind, ref_of(found.secret("n1")))
    found.ask("n2", PRE, "asked")
    found.rounds()
    assert SECOND_JOB in found.jobs()
