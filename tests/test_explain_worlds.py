"""What `explain` says of small clusters in which something stands still: who, what, since when, what next."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from support.answer_schemas import validate
from support.rendered_plans import Json, machine_plan, plan
from support.small_cluster import (
    NEW_OS,
    OLD_OS,
    POST,
    PRE,
    PREFIX,
    Small,
    drained,
    node,
    rebooting,
    upgrading,
    waiting_for_rancher,
    world,
)

from reconcile.report.explain import explanation_lines, explanation_of
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.model.document_type import EXPLAIN_REPORT
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Ref

BEGAN = "2026-01-01T00:00:00Z"
LOST = (
    "; if it is lost for good, delete it and the upgrade continues without it: "
    "kubectl delete machines.cluster.x-k8s.io -n fleet-local m-{0}"
)
CONSOLE = "look at its console and reboot it"
BACK = CONSOLE + LOST
OLD_IMAGE = "it has booted the old image, or cannot read /oem/90_custom.yaml; repair it and reboot it"
RANCHER = "check what Rancher reports: kubectl get clusters.provisioning.cattle.io -n fleet-local local -o yaml"


def explained(found: Small) -> dict[str, Any]:
    scene = found.scene
    model = explanation_of(scene.reconciler.look(found.name), scene.deps, scene.clock.now())
    validate(EXPLAIN_REPORT, model)
    assert list(explanation_lines(model))
    return model


def told(model: Mapping[str, Any]) -> list[str]:
    """`object what; remedy`, cause by cause."""
    return [f"{cause['object']} {cause['what']} -> {cause['remedy']}" for cause in model["causes"]]


def later(found: Small, hours: float) -> None:
    found.scene.clock.advance(timedelta(hours=hours).total_seconds())
    found.rounds()


def ready(found: Small, name: str, status: str, **more: str) -> None:
    condition = {"type": "Ready", "status": status, **more}
    found.patch(found.get("v1", "Node", name), {"status": {"conditions": [condition]}}, "status")


def lost(found: Small, name: str) -> None:
    """As the node controller marks a node whose kubelet says nothing any more."""
    said = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    ready(found, name, "Unknown", lastTransitionTime=BEGAN, **said)


def remove(found: Small, api_version: str, kind: str, name: str, namespace: str = "") -> None:
    ref = Ref(api_version=api_version, kind=kind, namespace=namespace, name=name)
    found.scene.cluster.client().delete(found.scene.deps.kinds.row(api_version, kind).kind, ref)


def carried(found: Small, *names: str) -> None:
    """Nodes that Rancher and we take through their upgrade."""
    for name in names:
        for key, job in ((PRE, "pre-drain"), (POST, "post-drain")):
            found.ask(name, key, "asked")
            found.rounds()
            found.end_job(f"up-node-upgrade-{job}-{name}")
            found.rounds()
            if key == POST:
                found.reboot(name)
                found.rounds()
            found.ask(name, key, None)
            found.rounds()


UNKNOWN = "is not ready: Ready is Unknown (NodeStatusUnknown: Kubelet stopped posting node status.)"
TURN = "Machine fleet-local/m-n2 Rancher is busy with n1 -> wait for its turn"


@pytest.mark.slow
def test_a_node_that_dies_while_it_reboots_is_the_cause() -> None:
    found = rebooting()
    lost(found, "n1")
    later(found, 5)
    model = explained(found)
    runs = f"; it runs {OLD_OS}, expected {NEW_OS}, a new boot and Ready"
    assert told(model) == [f"Node n1 {UNKNOWN}{runs} -> {BACK.format('n1')}", TURN]
    assert (model["causes"][0]["node"], model["causes"][0]["since"]) == ("n1", BEGAN)
    assert model["next"] == BACK.format("n1")


@pytest.mark.slow
def test_the_upgrade_goes_on_without_a_node_that_is_removed() -> None:
    found = rebooting()
    lost(found, "n1")
    for api_version, kind, name, namespace in (
        ("cluster.x-k8s.io/v1beta1", "Machine", "m-n1", "fleet-local"),
        ("v1", "Secret", "p-n1", "fleet-local"),
        ("v1", "Node", "n1", ""),
    ):
        remove(found, api_version, kind, name, namespace)
    carried(found, "n2")
    assert found.phase == "CleaningUp"
    assert told(explained(found)) == []


def test_the_only_node_is_not_to_be_removed() -> None:
    found = upgrading("n1", states={})
    found.set_status(currentPhase="ClusterUpgraded", singleNode="n1")
    found.rounds()
    ready(found, "n1", "False")
    assert told(explained(found))[0] == f"Node n1 is not ready: Ready is False -> {CONSOLE}"


@pytest.mark.slow
def test_a_node_that_reboots_in_time_is_waited_for() -> None:
    found = rebooting()
    lost(found, "n1")
    later(found, 0.1)
    model = explained(found)
    runs = f"; it runs {OLD_OS}, expected {NEW_OS}, a new boot and Ready"
    assert told(model)[0] == f"Node n1 {UNKNOWN}{runs} -> wait: it may be rebooting"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("os", "boot", "what", "remedy"),
    [
        (OLD_OS, "boot-1", "has not rebooted", CONSOLE),
        (NEW_OS, "boot-1", "has not rebooted", "reboot the node"),
        (OLD_OS, "boot-2", "has rebooted", f"look at its console: {OLD_IMAGE}"),
    ],
    ids=["not at all", "the old boot", "the old OS"],
)
def test_a_reboot_that_is_overdue_says_what_is_missing(os: str, boot: str, what: str, remedy: str) -> None:
    found = rebooting()
    found.reboot("n1", os, boot)
    found.rounds()
    assert not [line for line in told(explained(found)) if line.startswith("Node ")]  # not before its time
    later(found, 5)
    model = explained(found)
    assert told(model) == [f"Node n1 {what}; it runs {os}, expected {NEW_OS}, a new boot and Ready -> {remedy}", TURN]


def test_another_node_in_trouble_is_the_cause() -> None:
    found = waiting_for_rancher()
    lost(found, "n2")
    found.ask("n1", PRE, "asked")
    later(found, 0.1)
    assert told(explained(found))[0] == f"Node n2 {UNKNOWN}, and holds up n1 -> wait: it may be rebooting"
    later(found, 0.2)
    model = explained(found)
    assert model["next"] == BACK.format("n2")
    assert told(model) == [
        f"Node n2 {UNKNOWN}, and holds up n1 -> {BACK.format('n2')}",
        TURN,
    ]


@pytest.mark.slow
def test_a_node_without_a_machine_says_so() -> None:
    found = waiting_for_rancher()
    found.create(node("n3"))
    found.patch(found.get("v1", "Node", "n3"), {"status": node("n3")["status"]}, "status")
    carried(found, "n1", "n2")
    later(found, 10)
    model = explained(found)
    text = "no Machine in fleet-local refers to node n3, or it has no machine-plan Secret"
    assert [wait["text"] for wait in model["waits"]] == [text]
    assert text in found.condition("Degraded")["message"]
    assert told(model) == [
        "Node n3 has no Machine of fleet-local that refers to it, so Rancher does not know it -> "
        "join it to the cluster again, or delete it and the upgrade continues without it: kubectl delete node n3"
    ]


@pytest.mark.slow
def test_a_machine_without_a_plan_secret_says_so() -> None:
    found = waiting_for_rancher()
    remove(found, "v1", "Secret", "p-n2", "fleet-local")
    found.ask("n1", PRE, "asked")
    found.rounds()
    assert told(explained(found)) == [
        f"Machine fleet-local/m-n2 has no machine-plan Secret, by which Rancher asks to drain node n2 -> {RANCHER}"
    ]


GHOST = "Secret fleet-local/p-ghost still asks to post-drain, and belongs to "
GONE = "Machine m-ghost, which does not exist -> delete it: kubectl delete secret -n fleet-local p-ghost"
EMPTY = (
    "Machine m-ghost, whose node does not exist -> "
    "delete the Machine: kubectl delete machines.cluster.x-k8s.io -n fleet-local m-ghost"
)


@pytest.mark.slow
@pytest.mark.parametrize(("machines", "end"), [((), GONE), (("node-of-old",), EMPTY)], ids=["no machine", "no node"])
def test_a_secret_of_no_node_that_keeps_the_end_from_coming(machines: tuple[str, ...], end: str) -> None:
    secret = machine_plan("p-ghost", "m-ghost")
    secret["metadata"]["annotations"] = {POST: "old"}
    ghosts: list[Json] = [secret]
    for name in machines:
        body = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine"}
        metadata = {"name": "m-ghost", "namespace": "fleet-local"}
        ghosts.append({**body, "metadata": metadata, "status": {"nodeRef": {"name": name}}})
    found = waiting_for_rancher(more=ghosts)
    carried(found, "n1", "n2")
    assert found.phase == "NodeUpgraded"
    model = explained(found)
    assert told(model) == [GHOST + end]


@pytest.mark.slow
@pytest.mark.parametrize(("annotation", "value"), [(None, 1), ("4", 5), ("²", 1)])
def test_a_job_that_somebody_deleted_is_the_cause(annotation: str | None, value: int) -> None:
    found = waiting_for_rancher()
    if annotation:
        found.patch(found.plan, {"metadata": {"annotations": {f"{PREFIX}retry": annotation}}})
    found.ask("n1", PRE, "asked")
    found.rounds()
    [job] = found.jobs()
    found.scene.clock.advance(60)
    remove(found, "batch/v1", "Job", job, "harvester-system")
    later(found, 10)
    model = explained(found)
    command = f"kubectl annotate upgradeplan up {PREFIX}retry={value} --overwrite"
    remedy = f"retry its step, which creates the object under a new name: {command}"
    what = f"was created at {BEGAN} and is gone; run-once objects are never recreated automatically"
    assert told(model)[0] == f"Job harvester-system/{job} {what} -> {remedy}"
    assert model["next"] == remedy


@pytest.mark.slow
def test_rancher_that_does_not_go_on_with_a_node_is_asked() -> None:
    found = drained()
    found.ask("n1", PRE, None)
    found.ask("n2", PRE, "asked")
    later(found, 10)
    model = explained(found)
    assert told(model) == [f"Machine fleet-local/m-n1 Rancher has not continued with it -> {RANCHER}"]
    assert model["next"] == RANCHER


@pytest.mark.slow
def test_rancher_that_does_not_take_a_node_back_is_asked() -> None:
    found = rebooting()
    found.ask("n1", PRE, None)
    found.reboot("n1")
    found.rounds()
    found.ask("n2", PRE, "asked")
    found.rounds()
    said = f"Machine fleet-local/m-n1 is upgraded, and Rancher has not taken its node back -> {RANCHER}"
    assert told(explained(found)) == [said]


@pytest.mark.slow
def test_rancher_that_does_not_take_the_last_node_back_is_asked() -> None:
    found = waiting_for_rancher()
    carried(found, "n2")
    rebooting(found)
    found.ask("n1", PRE, None)
    found.reboot("n1")
    later(found, 1)
    model = explained(found)
    said = f"Machine fleet-local/m-n1 is upgraded, and Rancher has not taken its node back -> {RANCHER}"
    assert (found.phase, told(model), model["next"]) == ("NodeUpgraded", [said], RANCHER)


@pytest.mark.slow
def test_what_takes_long_comes_before_a_turn_that_comes() -> None:
    found = waiting_for_rancher()
    found.ask("n2", PRE, "asked")
    found.rounds()
    turn = "Machine fleet-local/m-n1 Rancher is busy with n2 -> wait for its turn"
    model = explained(found)
    assert (told(model), model["next"]) == ([turn], "wait for its turn")
    later(found, 5)
    model = explained(found)
    assert told(model) == [turn]
    assert model["next"] == "kubectl describe job.batch -n harvester-system up-node-upgrade-pre-drain-n2"


@pytest.mark.slow
def test_what_could_not_be_looked_at_comes_before_a_turn_that_comes() -> None:
    found = waiting_for_rancher()
    found.ask("n2", PRE, "asked")
    found.rounds()
    found.read_directly()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, kind="Job", count=10_000))
    model = explained(found)
    assert model["next"] == "kubectl describe job.batch -n harvester-system up-node-upgrade-pre-drain-n2"
    assert [text.partition(":")[0] for text in model["unread"]] == ["Job objects"]


@pytest.mark.slow
def test_case_25_both_are_asked_and_one_waits() -> None:
    found = waiting_for_rancher()
    for name in ("n1", "n2"):
        found.ask(name, PRE, "asked")
    found.rounds()
    model = explained(found)
    what = "Rancher has asked to drain n1 and n2, expected one at a time; n2 waits"
    assert told(model) == [f"{what} -> wait for its turn"]


@pytest.mark.slow
def test_an_import_that_failed_gives_its_own_message() -> None:
    found = world()
    found.rounds()
    [image] = found.all("VirtualMachineImage")
    mismatch = {"type": "Imported", "status": "False", "reason": "ImportFailed", "message": "checksum mismatch"}
    limit = {"type": "RetryLimitExceeded", "status": "True", "message": "retry limit exceeded: 3"}
    found.patch(image, {"status": {"failed": 4, "conditions": [mismatch, limit]}})
    found.rounds()
    assert told(explained(found)) == [
        "VirtualMachineImage harvester-system/up-iso is imported to 0%, failed 4 times: checksum mismatch -> "
        "check that its URL can be reached and that its checksum matches the file: "
        "kubectl get virtualmachineimage -n harvester-system up-iso -o yaml"
    ]


def test_a_plan_that_cannot_be_rendered_says_what_helps() -> None:
    found = world()
    found.delete_plan()
    found.create(plan(image="No Name"))
    found.round()
    model = explained(found)
    remedy = "spec.image cannot be changed: delete the plan, and create one that has the image's name alone"
    why = "spec.image: 'No Name' is not a name that a VirtualMachineImage of harvester-system can have"
    assert told(model) == [f"UpgradePlan up cannot be rendered: {why} -> {remedy}"]
    assert (model["next"], model["problems"]) == (remedy, [])


def test_a_plan_that_has_just_gone_is_no_riddle() -> None:
    found = world()
    found.delete_plan()
    model = explained(found)
    assert (model["causes"], model["waits"], model["phase"]) == ([], [], "")


# --------------------------------------------------------------------------------------------- a plan that is deleted


def deleted(found: Small) -> dict[str, Any]:
    found.delete_plan()
    for _ in range(5):
        found.round()
    found.scene.clock.advance(600)
    found.round()
    assert found.get(PLAN_API_VERSION, "UpgradePlan", "up") is not None
    return explained(found)


@pytest.mark.slow
def test_a_deletion_names_whose_finalizer_it_waits_for() -> None:
    found = world()
    found.rounds()
    [image] = found.all("VirtualMachineImage")
    found.patch(image, {"metadata": {"finalizers": ["example.com/keep"]}})
    assert told(deleted(found)) == [
        "VirtualMachineImage harvester-system/up-iso is being deleted, waiting for finalizer example.com/keep -> "
        "find out which controller has to remove it, and why it does not: "
        "kubectl describe virtualmachineimage.harvesterhci.io -n harvester-system up-iso"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (
            InjectedApiFault(trouble=ApiFault.FAILED, kind="VirtualMachineImage", count=10_000),
            "VirtualMachineImage harvester-system/up-iso cannot be read: ",
        ),
        (
            InjectedApiFault(trouble=ApiFault.INVALID, verb="delete", kind="VirtualMachineImage", count=10_000),
            "UpgradePlan up cannot be aborted: VirtualMachineImage harvester-system/up-iso is invalid",
        ),
    ],
    ids=["cannot be read", "may not be deleted"],
)
def test_a_deletion_says_what_it_cannot_do(fault: InjectedApiFault, line: str) -> None:
    found = world()
    found.rounds()
    found.read_directly()
    found.scene.client.faults.add(fault)
    model = deleted(found)
    [said] = told(model)
    assert said.startswith(line)
    assert "URL" not in said


def test_a_deletion_that_cannot_see_the_cluster_says_so_once() -> None:
    found = world()
    found.rounds()
    found.read_directly()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, kind="Node", count=10_000))
    [said] = told(deleted(found))
    assert said.startswith("UpgradePlan up cannot be rendered: Node objects cannot be read: ")


def test_a_deletion_that_cannot_give_back_says_so() -> None:
    found = upgrading("n1", "n2", states={})
    found.set_status(currentPhase="ClusterUpgraded")
    found.rounds()
    found.scene.client.faults.add(
        InjectedApiFault(trouble=ApiFault.INVALID, verb="patch", kind="Setting", count=10_000)
    )
    model = deleted(found)
    [said] = told(model)
    assert said.startswith("UpgradePlan up cannot be aborted: Setting longhorn-system/replica-replenishment-wait-")


# -------------------------------------------------------------------------------------------------- refused writes

REPO = "Deployment harvester-system/up-repo"


def in_the_way(found: Small, **metadata: Any) -> None:
    """A Deployment of the repository's name that somebody else has made, with another number of replicas."""
    labels = {f"{PREFIX}upgrade-plan": "up", f"{PREFIX}upgrade-component": "repo"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "nginx-iso-server", "image": "mine"}]}}
    body: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "up-repo", "namespace": "harvester-system", "labels": labels, **metadata},
        "spec": {"replicas": 7, "selector": {"matchLabels": labels}, "template": pod},
    }
    kind = found.scene.deps.kinds.row("apps/v1", "Deployment").kind
    found.scene.cluster.client().create(kind, body, field_manager="helm")


@pytest.mark.parametrize(
    ("metadata", "whose"),
    [
        ({}, "exists and has the label of plan 'up', but no owner reference to it"),
        ({"labels": {"app": "mine"}}, "exists and does not belong to an upgrade plan"),
        ({"labels": {f"{PREFIX}upgrade-plan": "earlier"}}, "exists and belongs to plan 'earlier'"),
    ],
)
def test_an_object_that_is_in_the_way_is_explained(metadata: Json, whose: str) -> None:
    found = world()
    in_the_way(found, **metadata)
    found.set_status(currentPhase="RepoCreating", previousVersion="v1.7.1", isoImageID="up-iso")
    for _ in range(3):
        found.round()
    [cause] = explained(found)["causes"]
    assert (cause["object"], cause["what"]) == (REPO, f"{whose}; it was created by 'helm'")
    remedy = "kubectl delete deployment.apps -n harvester-system up-repo"
    assert cause["remedy"] == f"if nobody else needs it, delete it, and the plan creates its own: {remedy}"
    assert cause["since"] == BEGAN


def test_any_other_refusal_is_told_in_the_server_s_words() -> None:
    found = world()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.INVALID, verb="apply", count=100))
    found.set_status(currentPhase="RepoCreating", previousVersion="v1.7.1", isoImageID="up-iso")
    for _ in range(3):
        found.round()
    [cause] = explained(found)["causes"]
    assert cause["object"] == "UpgradePlan up"
    assert cause["what"].startswith(f"cannot go on: {REPO}")
