"""The last thing that a plan does is to look at what an upgrade has to have reached. What is found is told and
recorded, and the plan has Succeeded whatever it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from support.answer_schemas import validate
from support.rendered_plans import Json
from support.small_cluster import METADATA, Small, longhorn, world

from reconcile.report.progress import progress_of
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.model.document_type import STATUS_REPORT
from renderer.model.ref import Body

NEW_KUBERNETES = METADATA["kubernetes"]


def machine_that_waits_for_a_restart() -> Json:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}},
        "status": {"conditions": [{"type": "RestartRequired", "status": "True"}], "printableStatus": "Running"},
    }


def at_its_end(*more: Json) -> Small:
    """A plan whose last phase is done, on a cluster that is as it was before."""
    found = world(more=more)
    found.set_status(currentPhase="CleanedUp", releaseMetadata=METADATA, previousVersion="v1.7.1")
    return found


def ends(found: Small) -> Small:
    """Plays the controller that carries out the last Plan of the nodes."""
    found.rounds()
    found.end_plan("up-skip-manifest-remove")
    found.rounds()
    return found


def upgraded(found: Small) -> Small:
    for name in ("n1", "n2", "n3"):
        info = {"osImage": METADATA["os"], "kubeletVersion": NEW_KUBERNETES}
        found.patch(found.get("v1", "Node", name), {"status": {"nodeInfo": info}}, "status")
    found.patch(found.get("harvesterhci.io/v1beta1", "Setting", "server-version"), {"value": METADATA["harvester"]})
    return found


def by_check(found: Small) -> dict[str, Body]:
    return {item["check"]: item for item in found.status.get("verification", ())}


def warned(found: Small) -> list[str]:
    return [message for reason, message in found.events() if reason == "VerificationWarned"]


@pytest.mark.slow
def test_a_plan_succeeds_and_says_what_is_not_as_expected() -> None:
    found = ends(at_its_end())
    assert found.phase == "Succeeded"
    (event,) = warned(found)
    for part in ("upgraded-kubernetes: ", "Node n1 runs v1.34.3+rke2r3, expected ", "upgraded-server-version: "):
        assert part in event
    one = by_check(found)["upgraded-kubernetes"]
    assert one["outcome"] == "blocked"
    assert "Node n2 runs v1.34.3+rke2r3" in one["message"]
    assert "journalctl -u rancher-system-agent" in one["remedy"]
    shown = progress_of(found.rounds(), datetime(2030, 1, 1, tzinfo=UTC))
    validate(STATUS_REPORT, shown)
    assert (shown["verification"], shown["next"]) == (list(found.status["verification"]), "upgradeplan verify up")


@pytest.mark.slow
def test_a_cluster_that_is_as_expected_is_told_nothing_of() -> None:
    found = ends(upgraded(at_its_end()))
    assert (found.phase, warned(found)) == ("Succeeded", [])
    assert {"upgraded-kubernetes", "upgraded-server-version", "upgraded-operating-system"}.isdisjoint(by_check(found))


def test_machines_that_need_a_restart_are_recorded_without_a_warning() -> None:
    found = ends(upgraded(at_its_end(machine_that_waits_for_a_restart())))
    assert warned(found) == []
    assert by_check(found)["vm-restart-required"]["outcome"] == "advised"
    assert "VM default/db" in by_check(found)["vm-restart-required"]["message"]


@pytest.mark.parametrize("fault", [ApiFault.FAILED, ApiFault.INVALID])
def test_what_cannot_be_looked_at_holds_nothing(fault: Any) -> None:
    found = upgraded(at_its_end())
    found.scene.client.faults.add(InjectedApiFault(trouble=fault, verb="list", kind="VirtualMachine"))
    assert ends(found).phase == "Succeeded"


def test_what_was_borrowed_counts_as_it_is_recorded_now() -> None:
    """The plan returns a field and ends right after that: it is not told of as still on loan."""
    found = upgraded(at_its_end(longhorn("1800")))
    loan = {"phase": "NodeUpgrade", "step": "ReplicaWait", "absent": False, "value": "600", "path": "/value"}
    lender = {"apiVersion": "longhorn.io/v1beta2", "kind": "Setting", "namespace": "longhorn-system"}
    name = "replica-replenishment-wait-interval"
    found.set_status(borrowed=[{**loan, **lender, "name": name, "taken": "2026-01-01T00:00:00Z"}])
    ends(found)
    assert (found.phase, found.get("longhorn.io/v1beta2", "Setting", name, "longhorn-system")["value"]) == (
        "Succeeded",
        "600",
    )
    assert "borrowed-fields-returned" not in by_check(found)


def test_what_is_still_settling_is_left_to_the_command() -> None:
    addon = {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "Addon",
        "metadata": {"name": "descheduler", "namespace": "kube-system"},
        "spec": {"enabled": True},
        "status": {"status": "AddonEnabling"},
    }
    found = ends(upgraded(at_its_end(addon)))
    assert (found.phase, warned(found)) == ("Succeeded", [])
    assert "addon-settled" not in by_check(found)
