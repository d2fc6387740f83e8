"""Every virtual machine that a drain has stopped is started again, whatever repeated Jobs have left in their list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.rehearsals import rehearsal_of
from support.small_cluster import POST, POST_JOB, PRE_JOB, Small, being_prepared, waiting_for_rancher

from reconcile.loop.round import Round
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.simulator.rehearsal.rehearsal import Rehearsal

pytestmark = pytest.mark.slow

LIST = ("v1", "ConfigMap", "up-restore-vm", "harvester-system")


def machine(name: str, node: str = "n1", *, tied: bool = True, **more: Any) -> list[dict[str, Any]]:
    """A VirtualMachine that runs on the node, by default with a device of it."""
    devices = {"hostDevices": [{"name": "gpu", "deviceName": "vendor/gpu"}]} if tied else {}
    metadata = {"name": name, "namespace": "default"}
    instance = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {**metadata, "labels": {"kubevirt.io/nodeName": node}},
        "spec": {"domain": {"devices": devices}, "evictionStrategy": "LiveMigrate"},
        "status": {"nodeName": node, "phase": "Running", **more},
    }
    running = {"runStrategy": "RerunOnFailure", "template": {"spec": {"domain": {"devices": devices}}}}
    return [instance, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": running}]


def prepared(*machines: list[dict[str, Any]]) -> Small:
    """Node n1 is being prepared for its drain; these run."""
    found = waiting_for_rancher(more=[body for each in machines for body in each], restoreVM=True, version="v1.8.0")
    return being_prepared(found)


def recorded(found: Small, step: str = "PreDrain") -> str:
    return str(found.status["steps"]["NodeUpgrade"]["records"][f"{step}/n1"]["captured"]["stoppedVMs"])


def detector_writes(found: Small, names: str) -> None:
    """As upstream's vm-live-migrate-detector: the entry is what cannot be moved now, whatever it was."""
    if found.get(*LIST) is None:
        found.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": LIST[2], "namespace": LIST[3]},
                "data": {"n1": names},
            }
        )
    else:
        found.patch(found.get(*LIST), {"data": {"n1": names}})


def upgraded(found: Small) -> None:
    found.end_job(PRE_JOB)
    found.rounds()
    found.ask("n1", POST, "second")
    found.rounds()
    found.end_job(POST_JOB)
    found.reboot("n1")
    found.rounds()


def test_what_would_be_stopped_is_recorded_before_the_job_is_made() -> None:
    found = waiting_for_rancher(
        more=[*machine("a"), *machine("b"), *machine("free", tied=False), *machine("elsewhere", "n2")],
        restoreVM=True,
        version="v1.8.0",
    )
    found.ask("n1", "rke.cattle.io/pre-drain", "first")
    found.until(lambda _: "PreDrain/n1" in found.status["steps"]["NodeUpgrade"]["records"])
    assert (recorded(found), found.jobs()) == ("default/a,default/b", [])


def test_a_loop_that_was_away_during_both_rounds_starts_every_machine() -> None:
    """The second pod of the Job finds the machines off and empties the list, and nobody has seen the first one's."""
    found = prepared(machine("a"), machine("b"))
    detector_writes(found, "default/a,default/b")
    detector_writes(found, "")
    found.restart()
    upgraded(found)
    assert found.get(*LIST)["data"]["n1"] == "default/a,default/b"
    assert "up-node-upgrade-restore-vm-n1" in found.jobs()


def test_names_that_the_loop_has_seen_are_kept() -> None:
    """A machine that came to the node after the drain had begun is known by the list alone."""
    found = prepared(machine("a"))
    detector_writes(found, "default/a,default/late")
    found.rounds()
    detector_writes(found, "")
    found.rounds()
    assert recorded(found) == "default/a,default/late"
    upgraded(found)
    assert found.get(*LIST)["data"]["n1"] == "default/a,default/late"


def test_what_is_paused_or_nobody_can_start_is_not_listed() -> None:
    paused = machine("paused", conditions=[{"type": "Paused", "status": "True"}])
    bare = machine("bare")[:1]
    assert recorded(prepared(paused, bare, machine("a"))) == "default/a"


def test_where_nothing_was_stopped_no_list_is_made() -> None:
    found = prepared(machine("free", tied=False))
    upgraded(found)
    assert found.get(*LIST) is None
    assert "up-node-upgrade-restore-vm-n1" not in found.jobs()


def test_a_list_that_is_complete_is_left_alone() -> None:
    found = prepared(machine("a"))
    detector_writes(found, "default/a,default/unseen")
    upgraded(found)
    assert found.get(*LIST)["data"] == {"n1": "default/a,default/unseen"}


def test_a_list_is_completed_although_nobody_asks_to_start_machines_yet() -> None:
    """`spec.restoreVM` may be set later, when the records are short."""
    found = waiting_for_rancher(more=machine("a"), version="v1.8.0")
    being_prepared(found)
    detector_writes(found, "")
    upgraded(found)
    assert found.get(*LIST)["data"]["n1"] == "default/a"
    found.patch(found.plan, {"spec": {"restoreVM": True}})
    found.rounds()
    assert "up-node-upgrade-restore-vm-n1" in found.jobs()


# ------------------------------------------------------------------------------------------------- whole upgrades


def started(scene: Rehearsal, on_round: Callable[[Round], None] = lambda done: None) -> list[str]:
    """The machines that were started again by the end of the upgrade, which has succeeded."""
    scene.play(on_round)
    assert plan_phase(scene) == "Succeeded"
    return sorted(event.subject for event in scene.log.of(SimulationEventType.VM_STARTED))


def plan_phase(scene: Rehearsal) -> str:
    return Small(scene=scene).phase


def failed_pods(scene: Rehearsal) -> list[str]:
    return [event.subject for event in scene.log.of(SimulationEventType.WORK_FAILED)]


@pytest.mark.slow
def test_a_machine_is_neither_lost_nor_started_twice_where_jobs_are_repeated() -> None:
    """The first pod does its work and fails at its last call; the second pre-drain writes an empty list."""
    scene = rehearsal_of("paused-node", repeat=["pre-drain on echo-3", "post-drain on echo-3"])
    assert started(scene) == ["media/ingest-1", "media/transcoder-1"]
    assert failed_pods(scene) == ["pre-drain", "post-drain"]


@pytest.mark.slow
def test_a_post_drain_whose_node_reboots_under_it_is_repeated() -> None:
    """The API server that it talks to is away meanwhile; the node comes back with the old OS, and a second pod goes
    on."""
    scene = rehearsal_of("paused-node", away=["5m at post-drain on echo-3"])
    pulled: list[str] = []

    def pull_the_plug(done: Round) -> None:
        begun = scene.log.of(SimulationEventType.WORK_STARTED)
        if not pulled and any((event.subject, event.node) == ("post-drain", "echo-3") for event in begun):
            pulled.append("echo-3")
            scene.simulation.reboot("echo-3", "")

    assert started(scene, pull_the_plug) == ["media/ingest-1", "media/transcoder-1"]
    assert failed_pods(scene) == ["post-drain"]
    assert [event.node for event in scene.log.of(SimulationEventType.CAME_BACK)].count("echo-3") == 2
