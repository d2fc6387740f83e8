"""Nodes that join while others are upgraded, and machines that take the place of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.rendered_plans import machine, machine_plan
from support.small_cluster import (
    NEW_OS,
    POST,
    POST_HOOK,
    POST_JOB,
    PRE,
    PRE_HOOK,
    PRE_JOB,
    Small,
    being_prepared,
    drained,
    node,
    rebooting,
    waiting_for_rancher,
)

from reconcile.simulator.apiserver.clock import SimulatedClock
from renderer.model.ref import Ref

pytestmark = pytest.mark.slow

NEW_KUBELET = "v1.35.2+rke2r1"


def join(found: Small, name: str, *, generation: str = "", upgraded: bool = True) -> None:
    """A machine that joins as `name`, running the new release or the old one."""
    clock = found.scene.clock
    assert isinstance(clock, SimulatedClock)
    clock.advance(60)
    body = node(name, NEW_OS, "its own boot") if upgraded else node(name)
    if upgraded:
        body["status"]["nodeInfo"]["kubeletVersion"] = NEW_KUBELET
    found.create(body)
    found.patch(found.get("v1", "Node", name), {"status": body["status"]}, "status")
    fresh = machine(f"m{generation}-{name}", name)
    found.create(fresh)
    found.patch(fresh, {"status": fresh["status"]}, "status")
    found.create(machine_plan(f"p{generation}-{name}", f"m{generation}-{name}"))
    found.rounds()


def lose(found: Small, name: str) -> None:
    for api_version, kind, thing, namespace in (
        ("v1", "Node", name, ""),
        ("v1", "Secret", f"p-{name}", "fleet-local"),
        ("cluster.x-k8s.io/v1beta1", "Machine", f"m-{name}", "fleet-local"),
    ):
        served = found.scene.deps.kinds.row(api_version, kind).kind
        ref = Ref(api_version=api_version, kind=kind, name=thing, namespace=namespace)
        found.scene.cluster.client().delete(served, ref)
    found.rounds()


def carry(found: Small, name: str, secret: str = "") -> None:
    """Rancher and the node do all that is asked of them."""

    def ask(key: str, value: str | None) -> None:
        body = found.get("v1", "Secret", secret or f"p-{name}", "fleet-local")
        found.patch(body, {"metadata": {"annotations": {key: value}}})
        found.rounds()

    ask(PRE, f"drain {name}")
    found.end_job(f"up-node-upgrade-pre-drain-{name}")
    found.rounds()
    ask(PRE, None)
    ask(POST, f"back with {name}")
    found.end_job(f"up-node-upgrade-post-drain-{name}")
    found.rounds()
    found.reboot(name)
    found.rounds()
    ask(POST, None)


def hook(found: Small, secret: str, key: str) -> Any:
    body = found.get("v1", "Secret", secret, "fleet-local")
    return (body["metadata"].get("annotations") or {}).get(key)


def test_a_node_that_joins_with_the_new_release_is_not_waited_for() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    join(found, "n3")
    carry(found, "n1")
    assert found.phase == "NodeUpgrading"
    carry(found, "n2")
    assert found.phase != "NodeUpgrading"
    entry = found.status["nodeUpgradeStatuses"]["n3"]
    assert (entry["reason"], entry["message"]) == ("JoinedUpgraded", "the node joined with the new release")


def test_a_node_that_joins_with_the_old_release_is_waited_for() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    join(found, "n3", upgraded=False)
    carry(found, "n1")
    carry(found, "n2")
    assert found.phase == "NodeUpgrading"
    carry(found, "n3")
    assert found.phase != "NodeUpgrading"


def test_a_node_that_joins_and_is_asked_for_is_upgraded() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    join(found, "n3")
    carry(found, "n3")
    assert found.state("n3") == "PostDrained"


def test_a_node_of_the_same_release_that_was_there_before_is_waited_for() -> None:
    """Else an upgrade within one release would be over before Rancher asks for anything."""
    found = waiting_for_rancher(version="v1.8.0", more=[node("n1", NEW_OS)])
    found.patch(found.get("v1", "Node", "n1"), {"status": {"nodeInfo": {"kubeletVersion": NEW_KUBELET}}}, "status")
    carry(found, "n2")
    assert found.phase == "NodeUpgrading"


@pytest.mark.parametrize(
    ("begun", "state"), [(being_prepared, "PreDraining"), (drained, "PreDrained"), (rebooting, "WaitingReboot")]
)
def test_a_machine_that_is_put_in_under_the_name_of_a_lost_one_holds_nobody_up(
    begun: Callable[[], Small], state: str
) -> None:
    found = begun()
    assert found.state("n1") == state
    lose(found, "n1")
    join(found, "n1", generation="2")
    assert found.state("n1") == "ImagePreloaded"
    assert "NodeReplaced" in [reason for reason, _ in found.events()]
    carry(found, "n2")
    assert found.phase != "NodeUpgrading"


def test_the_job_of_a_lost_machine_does_not_speak_for_the_next_one() -> None:
    found = drained()
    [old] = found.all("Job")
    lose(found, "n1")
    join(found, "n1", generation="2", upgraded=False)
    found.patch(found.get("v1", "Secret", "p2-n1", "fleet-local"), {"metadata": {"annotations": {PRE: "anew"}}})
    found.rounds()
    [new] = found.all("Job")
    assert old["metadata"]["uid"] != new["metadata"]["uid"]
    assert hook(found, "p2-n1", PRE_HOOK) is None
    found.end_job(PRE_JOB)
    found.rounds()
    assert hook(found, "p2-n1", PRE_HOOK) == "anew"


def test_a_node_object_that_is_recreated_for_the_same_machine_goes_on() -> None:
    found = drained()
    body = found.get("v1", "Node", "n1")
    served = found.scene.deps.kinds.row("v1", "Node").kind
    found.scene.cluster.client().delete(served, Ref(api_version="v1", kind="Node", name="n1"))
    found.rounds()
    found.scene.clock.advance(60)
    fresh = {key: value for key, value in body["metadata"].items() if key in ("name", "labels")}
    found.create({**body, "metadata": fresh})
    found.patch(found.get("v1", "Node", "n1"), {"status": body["status"]}, "status")
    found.rounds()
    assert found.state("n1") == "PreDrained"
    found.ask("n1", POST, "second")
    found.rounds()
    found.end_job(POST_JOB)
    found.rounds()
    found.reboot("n1")
    found.rounds()
    assert found.annotation("n1", POST_HOOK) == "second"
