"""NodeUpgrade: every object, field by field, for several nodes and for one."""

from __future__ import annotations

from typing import Any

import pytest
from support.expected_objects import (
    NAMED_PLAN,
    POD_NAME,
    RUN_TIME,
    TOLERATIONS,
    TOOLKIT,
    job,
    labels,
    multi,
    node_plan,
    same,
    single,
)
from support.rendered_plans import (
    PREFIX,
    machine,
    machine_plan,
    node,
    nodes,
    plan,
    release,
    render_made,
    server_version,
    version,
)

from renderer.model.manifest_spec import BorrowOption, Occasion, Owned
from renderer.model.phase import Position

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------------------------------------------ 3.7 NodeUpgrade


def test_longhorn_waits_longer_and_is_never_told_to_wait_less() -> None:
    (manifest,) = multi().manifests("NodeUpgrade/ReplicaWait")
    assert manifest.body == {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Setting",
        "metadata": {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"},
        "value": "1800",
    }
    assert manifest.spec.options == (BorrowOption(name="raiseOnly"),)  # type: ignore[union-attr]


def test_the_descheduler_is_switched_off() -> None:
    assert multi().body("NodeUpgrade/StopDescheduler") == {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "Addon",
        "metadata": {"name": "descheduler", "namespace": "kube-system"},
        "spec": {"enabled": False},
    }


@pytest.mark.parametrize(
    ("step", "action"), [("NodeUpgrade/SkipManifests", "apply"), ("NodeUpgrade/UnskipManifests", "remove")]
)
def test_the_plans_that_skip_packaged_charts(step: str, action: str) -> None:
    body = multi().body(step)
    script = body["spec"]["upgrade"]["args"][0]
    envs = [{"name": "MANIFESTS", "value": "rke2-multus.yaml"}, {"name": "SKIP_ACTION", "value": action}]
    expected = node_plan(f"skip-manifest-{action}", 3, command=["sh", "-c"], args=[script], envs=envs)
    assert same(body, expected)


def test_charts_are_skipped_before_the_nodes_and_unskipped_only_if_they_were() -> None:
    rendered = multi()
    assert rendered.step("NodeUpgrade/SkipManifests").step.position is Position.ENTER
    undo = rendered.step("NodeUpgrade/SkipManifests").undo
    assert undo
    assert undo.id == "NodeUpgrade/UnskipManifests"
    alone = single().step("NodeUpgrade/SkipManifests")
    assert (alone.skipped, alone.undo) == ("a single node runs one version at a time", None)


def drain_options() -> dict[str, Any]:
    return {
        "enabled": True,
        "force": True,
        "ignoreDaemonSets": True,
        "deleteEmptyDirData": True,
        "preDrainHooks": [{"annotation": "management.harvesterhci.io/pre-hook"}],
        "postDrainHooks": [{"annotation": "management.harvesterhci.io/post-hook"}],
    }


def test_rancher_is_asked_for_the_release_s_own_kubernetes_version() -> None:
    """With its `+`; the generation is the Cluster's own plus one."""
    (manifest,) = multi().manifests("NodeUpgrade/Provision")
    assert manifest.body == {
        "apiVersion": "provisioning.cattle.io/v1",
        "kind": "Cluster",
        "metadata": {"name": "local", "namespace": "fleet-local"},
        "spec": {
            "kubernetesVersion": "v1.35.2+rke2r1",
            "rkeConfig": {
                "provisionGeneration": f"{RUN_TIME}provisionGeneration>",
                "upgradeStrategy": {
                    "controlPlaneConcurrency": "1",
                    "workerConcurrency": "1",
                    "controlPlaneDrainOptions": drain_options(),
                    "workerDrainOptions": drain_options(),
                },
            },
        },
    }
    (capture,) = multi().step("NodeUpgrade/Provision").step.captures
    assert str(capture.target.ref) == "Cluster fleet-local/local"  # type: ignore[union-attr]
    assert (capture.path, capture.default, capture.add, capture.record) == (
        ("spec", "rkeConfig", "provisionGeneration"),
        0,
        1,
        "provisionGeneration",
    )


def test_a_single_node_leaves_rancher_alone() -> None:
    rendered = single()
    for step in (
        "Provision",
        "PreDrain/n1",
        "AcknowledgePreDrain/n1",
        "PostDrain/n1",
        "AcknowledgePostDrain/n1",
        "RancherDone",
    ):
        assert rendered.step(f"NodeUpgrade/{step}").skipped, step
    assert {m.ref.kind for phase in rendered.plan.phases for m in phase.manifests()}.isdisjoint({"Cluster", "Secret"})


def node_job(job_type: str, *, pod_name: bool) -> dict[str, Any]:
    env = [*NAMED_PLAN, {"name": "HARVESTER_UPGRADE_NODE_NAME", "value": "n1"}, *([POD_NAME] if pod_name else [])]
    pod = {
        "nodeName": "n1",
        "restartPolicy": "Never",
        "hostPID": True,
        "serviceAccountName": "harvester",
        "tolerations": list(TOLERATIONS),
        "containers": [
            {
                "name": "apply",
                "image": f"{TOOLKIT}:v1.8.0",
                "command": ["upgrade_node.sh"],
                "args": [job_type],
                "env": env,
                "securityContext": {"privileged": True, "runAsUser": 0},
                "volumeMounts": [{"name": "host-root", "mountPath": "/host"}],
            }
        ],
        "volumes": [{"name": "host-root", "hostPath": {"path": "/"}}],
    }
    return job(f"up-node-upgrade-{job_type}-n1", labels("node-upgrade", job_type), pod, 6)


def test_the_jobs_on_a_node() -> None:
    rendered = multi()
    assert same(rendered.body("NodeUpgrade/PreDrain/n1"), node_job("pre-drain", pod_name=False))
    assert same(rendered.body("NodeUpgrade/PostDrain/n1"), node_job("post-drain", pod_name=True))
    body = single().body("NodeUpgrade/SingleNode/n1")
    assert same(body, node_job("single-node-upgrade", pod_name=True))
    for number in "123":
        assert rendered.body(f"NodeUpgrade/PreDrain/n{number}")["spec"]["template"]["spec"]["nodeName"] == f"n{number}"
        assert rendered.step(f"NodeUpgrade/SingleNode/n{number}").skipped


def test_virtual_machines_are_started_again_only_where_that_was_asked_for() -> None:
    pod = {
        "nodeName": "n1",
        "restartPolicy": "Never",
        "serviceAccountName": "harvester",
        "tolerations": list(TOLERATIONS),
        "containers": [
            {
                "name": "restore-vm",
                "image": f"{TOOLKIT}:v1.8.0",
                "command": ["upgrade-toolkit"],
                "args": ["restore-vm", "--node", "n1", "--upgrade", "up"],
            }
        ],
    }
    expected = job("up-node-upgrade-restore-vm-n1", labels("node-upgrade", "restore-vm"), pod, 3)
    for rendered in (multi(version="v1.8.0", restoreVM=True), single(version="v1.8.0", restoreVM=True)):
        (manifest,) = rendered.manifests("NodeUpgrade/RestoreVM/n1")
        assert same(manifest.body, expected)
        assert isinstance(manifest.spec, Owned)
        assert manifest.spec.cleanup == ()  # kept; they go with the plan (section 5)
        step = rendered.step("NodeUpgrade/RestoreVM/n1").step
        assert step.skip_unless
        assert str(step.skip_unless.probe.target.ref) == "ConfigMap harvester-system/up-restore-vm"  # type: ignore[union-attr]
        assert step.gates == ()
        assert step.started
        assert (step.started.type, step.started.reason) == ("Normal", "RestoreVMJobDispatched")
        assert step.started.message == "Dispatched restore-vm Job up-node-upgrade-restore-vm-n1 for node n1"
    for rendered in (multi(), multi(version="v1.8.0", restoreVM=False), single()):
        assert rendered.step("NodeUpgrade/RestoreVM/n1").skipped == "spec.restoreVM is not set"


def test_a_witness_is_upgraded_and_has_no_virtual_machines() -> None:
    cluster = [node("n1"), node("n2"), node("w1", witness="true")]
    rendered = render_made(plan(version="v1.8.0", restoreVM=True), release(), version(), server_version(), *cluster)
    assert rendered.step("NodeUpgrade/RestoreVM/w1").skipped == "a witness node runs no virtual machines"
    assert rendered.step("NodeUpgrade/RestoreVM/n2").skipped is None
    assert rendered.step("NodeUpgrade/PreDrain/w1").skipped is None
    assert rendered.body("ImagePreload/Preload")["spec"]["concurrency"] == 3


@pytest.mark.parametrize(
    ("step", "annotation", "captured"),
    [("AcknowledgePreDrain", "pre-hook", "preDrainRequest"), ("AcknowledgePostDrain", "post-hook", "postDrainRequest")],
)
def test_an_answer_to_rancher_is_the_value_that_it_wrote(step: str, annotation: str, captured: str) -> None:
    """On the Secret that Machine and Node lead to (4.3)."""
    rendered = multi()
    (manifest,) = rendered.manifests(f"NodeUpgrade/{step}/n2")
    assert manifest.body == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "p-n2",
            "namespace": "fleet-local",
            "annotations": {f"{PREFIX}{annotation}": f"{RUN_TIME}{captured} of n2>"},
        },
    }
    assert manifest.run_time == (("metadata", "annotations", f"{PREFIX}{annotation}"),)
    declared = rendered.step(f"NodeUpgrade/{step}/n2").step
    assert declared.repeat
    assert declared.trigger
    assert declared.trigger.capture == captured
    (field,) = declared.trigger.probe.all
    asked = f"rke.cattle.io/{annotation.removesuffix('hook')}drain"
    assert field.path == ("metadata", "annotations", asked)  # type: ignore[union-attr]
    assert field.operand.path == ("metadata", "annotations", f"{PREFIX}{annotation}")  # type: ignore[union-attr]


def test_a_secret_that_cannot_be_found_yet_is_marked_as_such() -> None:
    cluster = [node("n1"), node("n2"), machine("m1", "n1"), machine_plan("p1", "m1"), machine("m2", "n2")]
    rendered = render_made(plan(), release(), version(), server_version(), *cluster)
    assert rendered.body("NodeUpgrade/AcknowledgePreDrain/n1")["metadata"]["name"] == "p1"
    (manifest,) = rendered.manifests("NodeUpgrade/AcknowledgePreDrain/n2")
    assert manifest.body["metadata"]["name"] == f"{RUN_TIME}machine-plan Secret of n2>"
    assert ("metadata", "name") in manifest.run_time


def test_a_node_waits_for_the_release_s_operating_system_after_a_new_boot() -> None:
    """The same OS string is no proof."""
    rendered = multi()
    (manifest,) = rendered.manifests("NodeUpgrade/Reboot/n1")
    assert manifest.body == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "annotations": {f"{PREFIX}pendingOSImage": "Harvester v1.8.0"}},
    }
    step = rendered.step("NodeUpgrade/Reboot/n1").step
    os_image, boot_id, ready = step.gates[0].probe.all
    assert (os_image.path, os_image.operand.value) == (("status", "nodeInfo", "osImage"), "Harvester v1.8.0")  # type: ignore[union-attr]
    assert (boot_id.path, boot_id.operand.name) == (("status", "nodeInfo", "bootID"), "bootID")  # type: ignore[union-attr]
    assert (ready.type, ready.status) == ("Ready", "True")  # type: ignore[union-attr]
    assert {occasion for occasion, _ in manifest.spec.returns} == set(Occasion)  # type: ignore[union-attr]


def test_the_nodes_are_those_that_are_there() -> None:
    """One that joins takes part, and one that leaves is not waited for."""
    states = {name: {"state": "ImagePreloaded"} for name in ("n1", "n2", "gone")}
    given = plan(status={"previousVersion": "v1.7.1", "nodeUpgradeStatuses": states})
    rendered = render_made(given, release(), version(), *nodes("n1", "n2", "new"))
    drained = [step.step.node for step in rendered.steps() if step.step.name == "PreDrain"]
    assert drained == ["n1", "n2", "new"]
    unknown = render_made(plan(upgrade="dev", version="v1.8.0", status=given["status"]), release(), version())
    assert [s.step.node for s in unknown.steps() if s.step.name == "PreDrain"] == ["gone", "n1", "n2"], (
        "nobody was asked"
    )


def test_a_node_that_joins_a_single_node_s_upgrade_is_left_alone() -> None:
    """Both would be down at the same time; what the run has recorded stays true."""
    given = plan(status={"previousVersion": "v1.7.1", "singleNode": "n1"}, version="v1.8.0")
    rendered = render_made(given, release(), version(), *nodes("n1", "n2"))
    assert rendered.body("NodeUpgrade/SingleNode/n1")
    assert rendered.step("NodeUpgrade/Reboot/n1").skipped is None
    for step in ("SingleNode", "Reboot"):
        reason = "the node joined after the single-node upgrade had started"
        assert rendered.step(f"NodeUpgrade/{step}/n2").skipped == reason
    assert rendered.step("NodeUpgrade/PreDrain/n2").skipped == "there is no other node to drain to"


def test_a_cluster_that_shrinks_to_one_node_goes_on_with_rancher() -> None:
    given = plan(status={"previousVersion": "v1.7.1", "nodeUpgradeStatuses": {"n2": {"state": "PostDrained"}}})
    rendered = render_made(given, release(), version(), *nodes("n1"))
    assert rendered.step("NodeUpgrade/PreDrain/n1").skipped is None
    assert rendered.step("NodeUpgrade/SingleNode/n1").skipped


def test_only_what_has_not_started_is_held() -> None:
    """Nothing is suspended; the single node and the drain are held, nothing later."""
    paused = {"version": "v1.8.0", "nodeUpgradeOption": {"pauseNodes": ["n1", "elsewhere"]}}
    rendered = multi(**paused)
    assert [step.id for step in rendered.steps() if step.held] == ["NodeUpgrade/PreDrain/n1"]
    assert [step.id for step in single(**paused).steps() if step.held] == ["NodeUpgrade/SingleNode/n1"]
    for step in ("NodeUpgrade/PreDrain/n1", "NodeUpgrade/PreDrain/n2"):
        hold = rendered.step(step).step.hold
        assert hold
        assert (hold.state, hold.reason) == ("UpgradePaused", "AdministrativelyPaused")
        assert (hold.message, hold.waiting) == ("Node upgrade paused as requested by the user", "node upgrade paused")
    others: list[dict[str, list[str]]] = [{}, {"pauseNodes": []}, {"pauseNodes": ["elsewhere"]}]
    for pause in others:
        assert not [step for step in multi(version="v1.8.0", nodeUpgradeOption=pause).steps() if step.held]


def test_pausing_a_node_changes_nothing_that_was_approved() -> None:
    free, paused = multi(version="v1.8.0"), multi(version="v1.8.0", nodeUpgradeOption={"pauseNodes": ["n1"]})
    assert free.plan.digest == paused.plan.digest
    assert {k: v for k, v in free.files().items() if k != "index.yaml"} == {
        k: v for k, v in paused.files().items() if k != "index.yaml"
    }
