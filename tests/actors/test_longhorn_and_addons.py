"""Volumes that miss a node, settings that are taken up, add-ons that are switched."""

from __future__ import annotations

from typing import Any

import pytest

from actors.playing import Play, fault
from reconcile.simulator.actors.actor_client import ADDON, LONGHORN_SETTING, REPLICA, VOLUME
from reconcile.simulator.actors.simulation_log import SimulationEventType

NODE_1 = "charlie-1-tink-system"
SETTING = "replica-replenishment-wait-interval"


def robustness(play: Play) -> list[str]:
    return [volume["status"]["robustness"] for volume in play.all(VOLUME)]


def test_volumes_are_degraded_while_a_node_is_away_and_for_as_long_as_a_rebuild_takes() -> None:
    play = Play()
    play.world.reboot(NODE_1, "Harvester v9")
    play.wait(seconds=10)
    assert robustness(play) == ["degraded"] * 3
    play.wait(seconds=300 + 119)
    assert robustness(play) == ["degraded"] * 3
    play.wait(seconds=1)
    assert robustness(play) == ["healthy"] * 3
    assert (
        len(play.told(SimulationEventType.VOLUME_DEGRADED)) == len(play.told(SimulationEventType.VOLUME_REBUILT)) == 3
    )


def test_only_volumes_with_a_replica_there_are_touched_where_replicas_are_known() -> None:
    play = Play()
    for given in play.all(REPLICA):
        play.delete(given)
    volumes = [volume["metadata"]["name"] for volume in play.all(VOLUME)]
    for name, node in zip(volumes, (NODE_1, "charlie-2-tink-system", "charlie-3-tink-system"), strict=True):
        play.create(replica(name, node))
    play.world.reboot(NODE_1, "Harvester v9")
    play.wait(seconds=60)
    assert robustness(play) == ["degraded", "healthy", "healthy"]


def replica(volume: str, node: str) -> Any:
    metadata = {"name": f"{volume}-r", "namespace": "longhorn-system"}
    spec = {"volumeName": volume, "nodeID": node}
    return {"apiVersion": "longhorn.io/v1beta2", "kind": "Replica", "metadata": metadata, "spec": spec}


def test_a_rebuild_can_stall() -> None:
    play = Play("three-node", fault("stall", "volume-rebuild"))
    play.world.reboot(NODE_1, "Harvester v9")
    play.run()
    assert robustness(play) == ["degraded"] * 3


def test_a_changed_setting_is_applied() -> None:
    play = Play()
    setting = play.get(LONGHORN_SETTING, SETTING, "longhorn-system")
    play.patch(setting, {"status": {"applied": False}}, "status")
    play.settle()
    assert play.again(setting)["status"]["applied"] is True


@pytest.mark.slow
def test_an_addon_follows_its_switch_after_a_while() -> None:
    play = Play("paused-node")
    (addon,) = [each for each in play.all(ADDON) if each["metadata"]["name"] == "descheduler"]
    off, on = (False, "AddonDisabling", "AddonDisabled"), (True, "AddonEnabling", "AddonDeploySuccessful")
    for enabled, on_the_way, there in (off, on, off):
        play.patch(addon, {"spec": {"enabled": enabled}})
        play.settle()
        assert play.again(addon)["status"]["status"] == on_the_way
        play.run()
        assert play.again(addon)["status"]["status"] == there


@pytest.mark.slow
def test_nothing_is_done_to_a_cluster_at_rest() -> None:
    for example in ("three-node", "paused-node", "two-node-witness"):
        play = Play(example)
        play.settle()
        before = play.embedded.store.version
        play.run()
        assert play.embedded.store.version == before
