"""Virtual machines: evacuated, stopped and written down, started again, and moved by KubeVirt unasked."""

from __future__ import annotations

from typing import Any

import pytest
from support.invariants import violations

from actors.playing import SYSTEM, Hand, Play, condition, fault
from reconcile.simulator.actors.actor_client import (
    CONFIG_MAP,
    KUBEVIRT,
    MANAGED_CHART,
    MIGRATION,
    NODE,
    SETTING,
    VM,
    VMI,
    VOLUME,
)
from reconcile.simulator.actors.simulation_log import SimulationEventType

pytestmark = pytest.mark.slow

ECHO_1, ECHO_2, ECHO_3 = "echo-1", "echo-2", "echo-3"
LIST = "hvst-upgrade-p3m9x-restore-vm"


def pre_drain(play: Play, node: str) -> Any:
    return play.finish(f"NodeUpgrade/PreDrain/{node}")


def host(play: Hand, name: str, namespace: str = "media") -> str | None:
    found = play.get(VMI, name, namespace)
    return None if found is None else str(found["status"]["nodeName"])


def listed(play: Play) -> dict[str, str]:
    found = play.get(CONFIG_MAP, LIST, SYSTEM)
    return dict(found["data"]) if found else {}


# ------------------------------------------------------------------------------------------- pre-drain


def test_what_can_move_is_migrated_and_takes_its_volume_along() -> None:
    play = Play("paused-node")
    pre_drain(play, ECHO_1)
    assert host(play, "player-1") == ECHO_2
    assert play.get(VMI, "player-1", "media")["metadata"]["labels"]["kubevirt.io/nodeName"] == ECHO_2
    (migration,) = play.all(MIGRATION)
    assert migration["metadata"]["name"].startswith("kubevirt-evacuation-")
    assert migration["status"]["phase"] == "Succeeded"
    (volume,) = [each for each in play.all(VOLUME) if each["spec"].get("nodeID") == ECHO_2 and "player" in str(each)]
    assert volume["status"]["currentNodeID"] == ECHO_2


def test_what_cannot_move_is_written_down_and_stopped() -> None:
    play = Play("paused-node")
    pre_drain(play, ECHO_3)
    assert play.told(SimulationEventType.VM_STOPPED) == ["media/archive-1 on echo-3", "media/ingest-1 on echo-3"]
    assert listed(play) == {ECHO_3: "media/ingest-1"}, "the paused one stays off"
    machine = play.get(VM, "ingest-1", "media")
    assert (machine["status"]["printableStatus"], machine["status"].get("ready")) == ("Stopped", None)
    assert "stateChangeRequests" not in machine["status"]
    (owner,) = play.get(CONFIG_MAP, LIST, SYSTEM)["metadata"]["ownerReferences"]
    assert owner["uid"] == play.plan["metadata"]["uid"]


def test_a_pod_that_repeats_the_work_finds_machines_off_and_forgets_them() -> None:
    """As upstream's detector does."""
    play = Play("paused-node", fault("repeat", "pre-drain"))
    (manifest,) = play.rendered.manifests(f"NodeUpgrade/PreDrain/{ECHO_3}")
    job = play.create({**manifest.body, "spec": {**manifest.body["spec"], "backoffLimit": 1}})
    assert play.run(until=lambda: condition(play.again(job), "Complete"))
    assert len(play.told(SimulationEventType.WORK_STARTED)) == 2
    assert listed(play) == {ECHO_3: ""}


def test_a_later_run_replaces_what_an_earlier_one_wrote_down() -> None:
    play = Play("paused-node")
    pre_drain(play, ECHO_3)
    play.patch(play.get(NODE, ECHO_3), {"spec": {"taints": None}})
    here = {"kubernetes.io/hostname": ECHO_3}
    spare = play.get(VM, "spare-1", "media")
    play.patch(spare, {"spec": {"runStrategy": "Always", "template": {"spec": {"nodeSelector": here}}}})
    assert play.run(until=lambda: host(play, "spare-1") == ECHO_3)
    (manifest,) = play.rendered.manifests(f"NodeUpgrade/PreDrain/{ECHO_3}")
    job = play.create({**manifest.body, "metadata": {**manifest.body["metadata"], "name": "again"}})
    assert play.run(until=lambda: condition(play.again(job), "Complete"))
    assert listed(play) == {ECHO_3: "media/spare-1"}


def test_what_is_tied_does_not_move_from_a_cordoned_node() -> None:
    play = Play("paused-node")
    play.patch(play.get(NODE, ECHO_2), {"spec": {"unschedulable": True}})
    play.run()
    assert (host(play, "transcoder-1"), play.all(MIGRATION)) == (ECHO_2, ())


def test_a_cordon_moves_nothing_and_an_eviction_does() -> None:
    play = Play("paused-node")
    play.patch(play.get(NODE, ECHO_1), {"spec": {"unschedulable": True}})
    play.run()
    assert (host(play, "player-1"), play.all(MIGRATION)) == (ECHO_1, ())
    play.patch(play.get(VMI, "player-1", "media"), {"status": {"evacuationNodeName": ECHO_1}})
    play.run()
    assert host(play, "player-1") == ECHO_2


def test_the_lists_of_several_nodes_stand_side_by_side() -> None:
    play = Play("paused-node")
    for node in (ECHO_2, ECHO_3):
        pre_drain(play, node)
        (taints,) = [play.get(NODE, node)["spec"]["taints"]]
        assert taints == [{"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}]
    assert set(listed(play)) == {ECHO_2, ECHO_3}


def test_a_migration_that_fails_is_tried_again() -> None:
    play = Play("paused-node", fault("fail", "vm-migration", "media/player-1", times=2))
    pre_drain(play, ECHO_1)
    assert sorted(each["status"]["phase"] for each in play.all(MIGRATION)) == ["Failed", "Failed", "Succeeded"]


def test_migrations_that_fail_are_tried_again_ever_later_and_five_are_kept() -> None:
    play = Play("paused-node", fault("fail", "vm-migration", "media/player-1", times=7))
    began = play.clock.now()
    pre_drain(play, ECHO_1)
    moved = next(each for each in play.world.log.of(SimulationEventType.VM_MOVED) if each.subject.endswith("player-1"))
    waited = [0, 20, 40, 80, 160, 320, 320, 320]
    assert (moved.time - began).total_seconds() >= sum(waited) + 8 * play.settings.migration.total_seconds()
    assert [each["status"]["phase"] for each in play.all(MIGRATION)].count("Failed") == 5


def test_one_that_never_succeeds_holds_the_job() -> None:
    play = Play("paused-node", fault("stall", "vm-migration", "media/player-1"))
    (job,) = play.apply(f"NodeUpgrade/PreDrain/{ECHO_1}")
    play.run()
    assert play.again(job)["status"]["active"] == 1
    assert host(play, "player-1") == ECHO_1


def test_a_virtual_gpu_that_the_detector_does_not_see_holds_the_job_until_somebody_stops_it() -> None:
    """As in harvester/harvester#10388."""
    play = Play("paused-node")
    devices = {"domain": {"devices": {"hostDevices": None, "gpus": [{"name": "gpu1"}]}}}
    play.patch(play.get(VMI, "transcoder-1", "media"), {"spec": devices})
    (manifest,) = play.rendered.manifests(f"NodeUpgrade/PreDrain/{ECHO_2}")
    job = play.create(manifest.body)
    assert not play.run(until=lambda: condition(play.again(job), "Complete"))
    assert (host(play, "transcoder-1"), listed(play)) == (ECHO_2, {})
    play.patch(play.get(VM, "transcoder-1", "media"), {"spec": {"runStrategy": "Halted"}})
    assert play.run(until=lambda: condition(play.again(job), "Complete"))


def test_a_cd_rom_keeps_no_machine_from_being_moved() -> None:
    play = Play("paused-node")
    disks = [{"name": "iso", "cdrom": {"bus": "sata"}}]
    play.patch(play.get(VMI, "player-1", "media"), {"spec": {"domain": {"devices": {"disks": disks}}}})
    pre_drain(play, ECHO_1)
    assert host(play, "player-1") == ECHO_2


def test_a_job_that_fails_has_done_nothing() -> None:
    play = Play("paused-node", fault("fail", "pre-drain"))
    play.apply(f"NodeUpgrade/PreDrain/{ECHO_3}")
    play.run()
    assert (play.told(SimulationEventType.VM_STOPPED), listed(play)) == ([], {})


# ----------------------------------------------------------------------------------------- start, stop


def test_the_restore_job_starts_what_is_listed_and_nothing_else() -> None:
    play = Play("paused-node")
    pre_drain(play, ECHO_3)
    play.patch(play.get(NODE, ECHO_3), {"spec": {"taints": None}})
    play.finish(f"NodeUpgrade/RestoreVM/{ECHO_3}")
    play.run()
    assert play.told(SimulationEventType.VM_STARTED) == ["media/ingest-1 on echo-3"]
    assert (host(play, "ingest-1"), host(play, "archive-1"), host(play, "spare-1")) == (ECHO_3, None, None)
    machine = play.get(VM, "ingest-1", "media")
    assert (machine["status"]["printableStatus"], machine["status"]["ready"]) == ("Running", True)
    assert condition(machine, "Ready") == "True"


def test_malformed_entries_are_skipped() -> None:
    play = Play("paused-node")
    pre_drain(play, ECHO_3)
    restore = play.get(CONFIG_MAP, LIST, SYSTEM)
    play.patch(restore, {"data": {ECHO_3: "nonsense, ,other/unknown, media/ingest-1"}})
    play.patch(play.get(NODE, ECHO_3), {"spec": {"taints": None}})
    play.finish(f"NodeUpgrade/RestoreVM/{ECHO_3}")
    play.run()
    assert play.told(SimulationEventType.VM_STARTED) == ["media/ingest-1 on echo-3"]


def test_a_machine_whose_node_takes_none_starts_when_it_does() -> None:
    play = Play("paused-node")
    pre_drain(play, ECHO_3)
    play.finish(f"NodeUpgrade/RestoreVM/{ECHO_3}")
    play.run()
    assert play.get(VM, "ingest-1", "media")["status"]["printableStatus"] == "ErrorUnschedulable"
    play.patch(play.get(NODE, ECHO_3), {"spec": {"taints": None}})
    play.run()
    assert host(play, "ingest-1") == ECHO_3


@pytest.mark.parametrize(
    ("strategy", "stopped", "started"), [("Always", "Halted", "Always"), ("Manual", "Manual", "Manual")]
)
def test_every_run_strategy_can_be_stopped_and_started(strategy: str, stopped: str, started: str) -> None:
    play = Play("paused-node")
    play.patch(play.get(VM, "ingest-1", "media"), {"spec": {"runStrategy": strategy}})
    pre_drain(play, ECHO_3)
    assert host(play, "ingest-1") is None
    assert play.get(VM, "ingest-1", "media")["spec"]["runStrategy"] == stopped
    play.patch(play.get(NODE, ECHO_3), {"spec": {"taints": None}})
    play.finish(f"NodeUpgrade/RestoreVM/{ECHO_3}")
    play.run()
    assert host(play, "ingest-1") == ECHO_3
    assert play.get(VM, "ingest-1", "media")["spec"]["runStrategy"] == started


def test_where_nobody_serves_the_subresource_the_same_is_written() -> None:
    """As on a control plane without KubeVirt's own API server."""
    play = Play("paused-node")
    play.embedded.backends._actors.clear()
    pre_drain(play, ECHO_3)
    assert play.told(SimulationEventType.VM_STOPPED) == ["media/archive-1 on echo-3", "media/ingest-1 on echo-3"]


def test_on_one_node_everything_is_stopped_and_stays_off_unless_asked() -> None:
    play = Play("single-node")
    (step,) = (step for step in play.steps if "/SingleNode/" in step)
    node = step.rpartition("/")[2]
    play.finish(step)
    play.run(until=lambda: play.told(SimulationEventType.CAME_BACK))
    assert play.told(SimulationEventType.VM_STOPPED) == [f"default/dns-1 on {node}"]
    play.run()
    assert play.told(SimulationEventType.VM_STARTED) == []


# -------------------------------------------------------------------------------------------- KubeVirt


def cluster_upgraded(play: Play, *borrowed: str) -> Any:
    for step in borrowed:
        play.apply(f"ClusterUpgrade/{step}")
    play.finish("ClusterUpgrade/Manifests")
    play.run()
    return play.get(KUBEVIRT, "kubevirt", SYSTEM)


def test_the_cluster_job_brings_kubevirt_harvester_and_its_charts() -> None:
    play = Play("paused-node")
    kubevirt = cluster_upgraded(play, "KeepWorkloadUpdates", "StopWorkloadUpdates")
    assert kubevirt["status"]["phase"] == "Deployed"
    assert kubevirt["status"]["observedKubeVirtVersion"] == play.release["kubevirt"]
    assert kubevirt["status"]["observedGeneration"] == kubevirt["metadata"]["generation"]
    assert kubevirt["status"]["outdatedVirtualMachineInstanceWorkloads"] == len(play.all(VMI))
    assert play.get(SETTING, "server-version")["value"] == "v1.8.1"
    chart = play.get(MANAGED_CHART, "harvester", "fleet-local")
    assert chart["spec"]["version"] == play.release["harvesterChart"]
    assert chart["status"]["observedGeneration"] == chart["metadata"]["generation"]
    assert violations(play.facts) == ()


def test_without_the_first_loan_fleet_takes_the_second_back_and_a_storm_follows() -> None:
    play = Play("paused-node")
    play.patch(play.get(MANAGED_CHART, "harvester", "fleet-local"), {"spec": {"diff": None}})
    cluster_upgraded(play, "StopWorkloadUpdates")
    assert violations(play.facts) == ("KubeVirt moved machines by itself: media/player-1",)


def test_giving_the_methods_back_before_the_machines_have_moved_is_a_storm_too() -> None:
    play = Play("paused-node")
    kubevirt = cluster_upgraded(play, "KeepWorkloadUpdates", "StopWorkloadUpdates")
    play.patch(kubevirt, {"spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}}})
    play.run()
    assert len(violations(play.facts)) == 1


def test_a_slow_kubevirt_holds_the_job() -> None:
    play = Play("paused-node", fault("slow", "kubevirt", hours=1))
    cluster_upgraded(play, "KeepWorkloadUpdates", "StopWorkloadUpdates")
    (done,) = play.world.log.of(SimulationEventType.WORK_SUCCEEDED)
    (deployed,) = play.world.log.of(SimulationEventType.KUBEVIRT_UPGRADED)
    assert done.time == deployed.time


def test_a_cluster_without_kubevirt_is_upgraded_all_the_same() -> None:
    play = Play("paused-node")
    play.delete(play.get(KUBEVIRT, "kubevirt", SYSTEM))
    play.finish("ClusterUpgrade/Manifests")
    assert play.told(SimulationEventType.HARVESTER_UPGRADED) == ["harvester"]
