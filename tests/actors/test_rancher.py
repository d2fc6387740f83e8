"""Rancher's side of the hand-shake: it asks, waits for its own value, drains, upgrades, asks again and lets go."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from support.invariants import violations

from actors.by_hand import upgrade_node
from actors.playing import AFTER, BEFORE, FLEET, SYSTEM, Play, condition, fault
from reconcile.simulator.actors.actor_client import CAPI_CLUSTER, DEPLOYMENT, MACHINE, NODE, POD, PROVISIONING_CLUSTER
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.simulator.actors.turns import is_evicted

FIRST, SECOND, THIRD = "charlie-1-tink-system", "charlie-2-tink-system", "charlie-3-tink-system"
NEW, OLD = "v1.35.2+rke2r1", "v1.34.3+rke2r1"


def begun(*injected: Any, **pace: Any) -> Play:
    play = Play("three-node", *injected, **pace)
    play.settle()
    play.provision()
    return play


def kubelet(play: Play, node: str) -> str:
    return str(play.get(NODE, node)["status"]["nodeInfo"]["kubeletVersion"])


def is_cordoned(play: Play, node: str) -> bool:
    return bool(play.get(NODE, node)["spec"].get("unschedulable"))


def is_asked(play: Play, keys: tuple[str, str], node: str) -> bool:
    return node in play.asking(keys)


def has_booted(play: Play, node: str, before: str) -> bool:
    return play.boot_id(node) != before


def without_hooks(play: Play) -> None:
    cluster = play.get(PROVISIONING_CLUSTER, "local", FLEET)
    play.patch(cluster, {"spec": {"rkeConfig": {"upgradeStrategy": None}}})


def to_post_drain(play: Play, node: str) -> None:
    assert play.run(until=lambda: node in play.asking(BEFORE))
    play.finish(f"NodeUpgrade/PreDrain/{node}")
    play.answer(BEFORE, node)
    assert play.run(until=lambda: node in play.asking(AFTER))


@pytest.mark.slow
def test_nothing_happens_until_the_cluster_changes() -> None:
    play = Play()
    play.run()
    assert play.facts == ()


@pytest.mark.slow
def test_one_node_after_the_other_is_drained_upgraded_and_given_back() -> None:
    play = begun()
    cluster = play.get(PROVISIONING_CLUSTER, "local", FLEET)
    for node in (FIRST, THIRD, SECOND):
        assert play.run(until=lambda: play.asking(BEFORE))
        assert play.asking(BEFORE) == [node]
        assert condition(play.again(cluster), "Updated") == "Unknown Waiting"
        upgrade_node(play, node)
        assert not is_cordoned(play, node)
    play.run()
    assert {kubelet(play, node) for node in (FIRST, SECOND, THIRD)} == {NEW}
    assert condition(play.again(cluster), "Updated") == "True"
    for node in (FIRST, SECOND, THIRD):
        said = play.secret_of(node)["metadata"]["annotations"]
        assert [key for key in (*BEFORE, *AFTER) if key in said] == [], "it takes the answers away as well"
    assert violations(play.facts) == ()


@pytest.mark.slow
@pytest.mark.parametrize("change", ["", " ", "x"])
def test_only_the_very_value_counts_as_an_answer(change: str) -> None:
    play = begun()
    assert play.run(until=lambda: play.asking(BEFORE))
    secret = play.secret_of(FIRST)
    value = secret["metadata"]["annotations"][BEFORE[0]]
    play.patch(secret, {"metadata": {"annotations": {BEFORE[1]: value + change if change else value[:-1]}}})
    play.run()
    assert (is_cordoned(play, FIRST), play.told(SimulationEventType.PRE_DRAIN_ANSWERED)) == (True, [])
    play.answer(BEFORE, FIRST)
    play.settle()
    assert len(play.told(SimulationEventType.PRE_DRAIN_ANSWERED)) == 1


@pytest.mark.slow
def test_all_are_asked_with_the_same_value_and_with_another_one_where_the_options_change() -> None:
    play = begun(fault("repeat", "pre-drain-request", FIRST, times=2), fault("repeat", "post-drain-request"))
    for node in (FIRST, THIRD, SECOND):
        assert play.run(until=partial(is_asked, play, BEFORE, node))
        play.finish(f"NodeUpgrade/PreDrain/{node}")
        answer_until_satisfied(play, BEFORE, node)
        assert play.run(until=partial(is_asked, play, AFTER, node))
        boot = play.boot_id(node)
        play.finish(f"NodeUpgrade/PostDrain/{node}")
        assert play.run(until=partial(has_booted, play, node, boot))
        answer_until_satisfied(play, AFTER, node)
    asked = play.world.log.of(SimulationEventType.PRE_DRAIN_ASKED, SimulationEventType.POST_DRAIN_ASKED)
    assert len(asked) == 3 + 2 + 3 * 2
    values = {
        detail: {fact.node for fact in asked if fact.detail == detail} for fact in asked if (detail := fact.detail)
    }
    assert [sorted(nodes) for nodes in values.values()] == [[FIRST, SECOND, THIRD], [FIRST, SECOND, THIRD], [FIRST]]
    options = play.get(PROVISIONING_CLUSTER, "local", FLEET)["spec"]["rkeConfig"]["upgradeStrategy"]
    told = [json.loads(value) for value in values]
    assert told[0].items() >= options["controlPlaneDrainOptions"].items()
    assert [each["timeout"] for each in told] == [0, 1, 2]
    assert violations(play.facts) == ()


def answer_until_satisfied(play: Play, keys: tuple[str, str], node: str) -> None:
    while node in play.asking(keys):
        play.answer(keys, node)
        play.settle()


@pytest.mark.slow
def test_a_node_is_not_drained_while_a_machine_runs_there() -> None:
    play = begun()
    play.run(until=lambda: play.asking(BEFORE))
    play.answer(BEFORE, FIRST)
    play.wait(hours=1)
    assert play.told(SimulationEventType.VM_MOVED) == ["default/web-1 on charlie-1-tink-system"]
    assert violations(play.facts)[0].startswith("Rancher was answered too early")
    assert play.told(SimulationEventType.DRAINED) == [f"{FIRST} on {FIRST}"]


@pytest.mark.slow
def test_a_machine_that_cannot_move_holds_the_drain() -> None:
    play = begun()
    for node in (FIRST, THIRD):
        assert play.run(until=partial(is_asked, play, BEFORE, node))
        upgrade_node(play, node)
    assert play.run(until=lambda: play.asking(BEFORE) == [SECOND])
    play.answer(BEFORE, SECOND)
    play.run()
    assert (is_cordoned(play, SECOND), kubelet(play, SECOND)) == (True, OLD)


@pytest.mark.slow
def test_the_drain_evicts_what_a_replica_set_can_start_elsewhere() -> None:
    play = Play("three-node")
    play.finish("ISODownload/Image")
    play.finish("RepoCreate/Deployment")
    play.settle()
    play.provision()
    to_post_drain(play, FIRST)
    assert sorted(pod["spec"]["nodeName"] for pod in play.all(POD, SYSTEM) if "repo" in pod["metadata"]["name"]) == [
        SECOND,
        THIRD,
    ]


@pytest.mark.slow
def test_a_pod_that_tolerates_the_cordon_and_comes_back_is_not_evicted_again() -> None:
    play = begun()
    play.finish("ISODownload/Image")
    play.finish("RepoCreate/Deployment")
    [deployment] = [each for each in play.all(DEPLOYMENT, SYSTEM) if "repo" in each["metadata"]["name"]]
    there = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [FIRST]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [there]}}}
    pod = {"tolerations": [{"operator": "Exists"}], "affinity": affinity}
    play.patch(deployment, {"spec": {"template": {"spec": pod}}})
    to_post_drain(play, FIRST)
    pods = [each for each in play.all(POD, SYSTEM) if "repo" in each["metadata"]["name"]]
    assert {each["spec"]["nodeName"] for each in pods} == {FIRST}


@pytest.mark.slow
def test_a_budget_that_allows_no_disruption_holds_the_drain() -> None:
    play = Play("three-node")
    play.finish("ISODownload/Image")
    play.finish("RepoCreate/Deployment")
    play.settle()
    play.provision()
    budget = play.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "repo", "namespace": SYSTEM},
            "spec": {
                "minAvailable": 2,
                "selector": {"matchLabels": {"management.harvesterhci.io/upgrade-component": "repo"}},
            },
        }
    )
    none = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}
    play.patch(budget, {"status": none}, "status")
    play.run(until=lambda: play.asking(BEFORE))
    play.finish(f"NodeUpgrade/PreDrain/{FIRST}")
    play.answer(BEFORE, FIRST)
    play.run()
    assert play.told(SimulationEventType.DRAINED) == []
    play.delete(budget)
    play.run()
    assert play.told(SimulationEventType.DRAINED) == [f"{FIRST} on {FIRST}"]


@pytest.mark.slow
def test_without_hooks_it_goes_on_without_asking_and_that_shows() -> None:
    play = begun()
    to_post_drain(play, FIRST)
    without_hooks(play)
    play.run()
    assert {kubelet(play, node) for node in (FIRST, SECOND, THIRD)} == {NEW}
    assert violations(play.facts) == (
        f"{THIRD} was upgraded without having been drained",
        f"{SECOND} was upgraded without having been drained",
    )


def test_hooks_that_go_while_it_waits_are_missed_as_well() -> None:
    play = begun()
    assert play.run(until=lambda: play.asking(BEFORE))
    without_hooks(play)
    play.wait(seconds=250)
    assert kubelet(play, FIRST) == NEW
    assert violations(play.facts) == (f"{FIRST} was upgraded without having been drained",)


@pytest.mark.slow
def test_a_machine_that_has_the_version_is_not_touched_without_hooks() -> None:
    play = Play()
    play.settle()
    for node in play.all(NODE):
        play.patch(node, {"status": {"nodeInfo": {"kubeletVersion": NEW}}}, "status")
    play.patch(play.get(PROVISIONING_CLUSTER, "local", FLEET), {"spec": {"kubernetesVersion": NEW}})
    play.run()
    assert play.facts == ()


def test_the_same_version_again_is_still_drained_where_the_generation_rises() -> None:
    play = Play()
    play.settle()
    for node in play.all(NODE):
        play.patch(node, {"status": {"nodeInfo": {"kubeletVersion": NEW}}}, "status")
    play.provision()
    assert play.run(until=lambda: play.asking(BEFORE) == [FIRST])


def test_the_machines_of_a_paused_cluster_are_left_alone() -> None:
    play = Play("three-node")
    paused = play.get(CAPI_CLUSTER, "local", FLEET)
    play.patch(paused, {"spec": {"paused": True}})
    play.settle()
    play.provision()
    play.run()
    assert play.asking(BEFORE) == []
    play.patch(paused, {"spec": {"paused": None}})
    assert play.run(until=lambda: play.asking(BEFORE) == [FIRST])


@pytest.mark.slow
def test_of_a_cluster_that_is_paused_half_way_no_node_goes_on() -> None:
    """The drain goes on, but Rancher gives no machine another plan and takes none back."""
    play = begun()
    paused = play.get(CAPI_CLUSTER, "local", FLEET)
    assert play.run(until=lambda: play.asking(BEFORE))
    play.patch(paused, {"spec": {"paused": True}})
    upgrading = f"NodeUpgrade/PreDrain/{FIRST}"
    play.finish(upgrading)
    play.answer(BEFORE, FIRST)
    play.run()
    assert (kubelet(play, FIRST), play.told(SimulationEventType.DRAINED)) == (OLD, [])
    said = play.get(PROVISIONING_CLUSTER, "local", FLEET)["status"]["conditions"]
    assert [each["message"] for each in said if each["type"] == "Updated"] == [
        "CAPI cluster or RKEControlPlane is paused"
    ]
    play.patch(paused, {"spec": {"paused": None}})
    assert play.run(until=lambda: play.asking(AFTER) == [FIRST])


@pytest.mark.slow
def test_the_cluster_says_what_is_done_with_which_machine() -> None:
    play = begun()

    def said() -> str:
        found = play.get(PROVISIONING_CLUSTER, "local", FLEET)["status"]["conditions"]
        return next(str(each.get("message")) for each in found if each["type"] == "Updated")

    play.settle()

    (name,) = {
        each["metadata"]["name"] for each in play.all(MACHINE, FLEET) if each["status"]["nodeRef"]["name"] == FIRST
    }
    assert said().startswith("configuring bootstrap node(s) ")
    assert play.run(until=lambda: play.asking(BEFORE))
    assert said() == f"draining bootstrap node(s) {name}: draining node"
    to_post_drain(play, FIRST)
    assert said() == f"uncordoning bootstrap node(s) {name}: waiting for uncordon to finish"


@pytest.mark.parametrize(
    ("kind", "phase", "annotations", "evicted"),
    [
        ("ReplicaSet", "Running", {}, True),
        ("StatefulSet", "Pending", {}, True),
        ("Job", "Running", {}, True),
        ("", "Running", {}, True),
        ("Job", "Succeeded", {}, False),
        ("DaemonSet", "Running", {}, False),
        ("VirtualMachineInstance", "Running", {}, False),
        ("Node", "Running", {"kubernetes.io/config.mirror": "x"}, False),
    ],
)
def test_the_drain_evicts_all_but(kind: str, phase: str, annotations: dict[str, str], *, evicted: bool) -> None:
    owners = [{"kind": kind, "name": "x"}] if kind else []
    metadata = {"name": "p", "annotations": annotations, "ownerReferences": owners}
    pod = {"metadata": metadata, "spec": {"nodeName": FIRST}, "status": {"phase": phase}}
    assert is_evicted(pod, FIRST) is evicted
    assert not is_evicted(pod, SECOND)


@pytest.mark.slow
def test_two_are_asked_at_once_where_it_does_not_keep_its_order() -> None:
    play = begun(fault("fail", "one-at-a-time"))
    play.run()
    assert play.asking(BEFORE) == [THIRD, FIRST]
    for node in (FIRST, THIRD):
        play.finish(f"NodeUpgrade/PreDrain/{node}")
        play.answer(BEFORE, node)
    play.settle()
    assert violations(play.facts) == (f"{THIRD} went out while {FIRST} was",)


@pytest.mark.parametrize(
    ("operation", "seen"),
    [
        ("rancher", []),
        ("pre-drain-request", []),
        (
            "drain",
            [SimulationEventType.CORDONED, SimulationEventType.PRE_DRAIN_ASKED, SimulationEventType.PRE_DRAIN_ANSWERED],
        ),
        (
            "kubernetes",
            [
                SimulationEventType.CORDONED,
                SimulationEventType.PRE_DRAIN_ASKED,
                SimulationEventType.PRE_DRAIN_ANSWERED,
                SimulationEventType.DRAINED,
            ],
        ),
        (
            "post-drain-request",
            [
                SimulationEventType.CORDONED,
                SimulationEventType.PRE_DRAIN_ASKED,
                SimulationEventType.PRE_DRAIN_ANSWERED,
                SimulationEventType.DRAINED,
                SimulationEventType.KUBERNETES_UPGRADED,
            ],
        ),
    ],
)
def test_it_can_stand_still_anywhere(operation: str, seen: list[SimulationEventType]) -> None:
    play = begun(fault("stall", operation, FIRST))
    if play.run(until=lambda: play.asking(BEFORE)):
        play.finish(f"NodeUpgrade/PreDrain/{FIRST}")
        play.answer(BEFORE, FIRST)
        play.run()
    assert [fact.what for fact in play.facts if fact.node == FIRST and not fact.what.startswith(("Work", "VM"))] == seen


def test_it_can_be_slow_to_ask() -> None:
    play = begun(fault("slow", "pre-drain-request", FIRST, hours=2))
    start = play.clock.now()
    assert play.run(until=lambda: play.asking(BEFORE))
    assert play.clock.now() - start == timedelta(hours=2, seconds=10)
