"""What the phases say beside their objects, and what no object may hold.

Where it differs from the existing manager, DESIGN.md says why.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import Any

import pytest
from support.expected_objects import RUN_TIME, everything, multi, single
from support.rendered_plans import PREFIX, Rendered

from renderer.model.check import CheckTime
from renderer.model.manifest_spec import Occasion, Owned, WhenAbsent
from renderer.model.path import walk
from renderer.model.phase import Deletion, Position

# --------------------------------------------------------------------------- phases as the API has them (1.6, 1.7, 2.5)


@pytest.mark.slow
def test_phases_and_status_values() -> None:
    found = [(p.phase.name, p.phase.active, p.phase.completed, str(p.phase.deletion)) for p in multi().plan.phases]
    assert found == [
        ("Initialize", "Initializing", "Initialized", "careful"),
        ("ISODownload", "ISODownloading", "ISODownloaded", "careful"),
        ("RepoCreate", "RepoCreating", "RepoCreated", "careful"),
        ("MetadataPopulate", "MetadataPopulating", "MetadataPopulated", "careful"),
        ("ImagePreload", "ImagePreloading", "ImagePreloaded", "careful"),
        ("ClusterUpgrade", "ClusterUpgrading", "ClusterUpgraded", "forbidden"),
        ("NodeUpgrade", "NodeUpgrading", "NodeUpgraded", "forbidden"),
        ("ImageCleanup", "CleaningUp", "CleanedUp", "careful"),
    ]
    assert {p.phase.name for p in multi().plan.phases if p.phase.deletion is Deletion.FORBIDDEN} == {
        "ClusterUpgrade",
        "NodeUpgrade",
    }
    assert [p.phase.name for p in multi().plan.phases if not p.phase.emit_events] == ["Initialize"]  # 2.8


@pytest.mark.slow
def test_what_is_said_of_a_phase_that_waits_or_fails() -> None:
    """2.5 and 1.5, word for word."""
    rendered, alone = multi(), single()
    failures = {
        "ISODownload/Image": "ISO image download failed",
        "ImagePreload/Preload": "image-preload plan job(s) failed",
        "ClusterUpgrade/Manifests": "cluster-upgrade job failed",
        "NodeUpgrade/SkipManifests": "skip-manifest apply plan job(s) failed",
        "NodeUpgrade/PreDrain/n1": "node n1 upgrade failed: <why>",
        "NodeUpgrade/PostDrain/n1": "node n1 upgrade failed: <why>",
        "ImageCleanup/Purge": "image-cleanup plan job(s) failed",
    }
    for step, message in failures.items():
        assert [gate.failure.message for gate in rendered.step(step).step.gates] == [message], step
    assert alone.step("NodeUpgrade/SingleNode/n1").step.gates[0].failure.message == "node n1 upgrade failed: <why>"
    waits = {
        "RepoCreate/Deployment": "upgrade-repo deployment not ready",
        "RepoCreate/Service": "upgrade-repo svc/ep not ready",
        "NodeUpgrade/SkipManifests": "waiting for skip-manifest apply plan to complete",
        "NodeUpgrade/RancherDone": "waiting for Rancher to complete node upgrades",
    }
    for step, message in waits.items():
        assert [gate.waiting for gate in rendered.step(step).step.gates] == [message], step
    assert rendered.step("NodeUpgrade/RancherDone").step.position is Position.LEAVE


@pytest.mark.slow
def test_node_states() -> None:
    """1.7 and 4.1: a Job that has rebooted its node leaves it in WaitingReboot until the reboot is proven."""

    def states(rendered: Rendered, step: str) -> tuple[str | None, str | None, str | None]:
        found = rendered.step(step).step
        its = found.node_states or (found.job_states.states if found.job_states else None)
        assert its
        return its.active, its.completed, its.failed

    rendered, alone = multi(), single()
    assert states(rendered, "ImagePreload/Preload") == ("ImagePreloading", "ImagePreloaded", "ImagePreloadFailed")
    assert states(rendered, "NodeUpgrade/PreDrain/n1") == ("PreDraining", "PreDrained", "PreDrainFailed")
    assert states(rendered, "NodeUpgrade/PostDrain/n1") == ("PostDraining", None, "PostDrainFailed")
    assert states(rendered, "NodeUpgrade/Reboot/n1") == ("WaitingReboot", "PostDrained", None)
    assert states(alone, "NodeUpgrade/SingleNode/n1") == ("SingleNodeUpgrading", None, "SingleNodeUpgradeFailed")
    assert states(alone, "NodeUpgrade/Reboot/n1") == ("WaitingReboot", "SingleNodeUpgraded", None)
    assert states(rendered, "ImageCleanup/Purge") == ("ImageCleaning", "ImageCleaned", "ImageCleanFailed")
    seed = rendered.step("NodeUpgrade/SeedNodeStates").step.initial_node_state
    assert seed
    assert seed.state == "ImagePreloaded"
    assert "ImagePreloadFailed" in seed.replaces


@pytest.mark.slow
def test_what_initialize_looks_at() -> None:
    """3.1: that checks are carried out after the completed value is recorded; what they are, test_preflight_cases."""
    plain = multi()
    preflight = plain.step("Initialize/Preflight").step
    assert preflight.position is Position.LEAVE
    assert preflight.checks
    assert preflight.checks.when is CheckTime.START
    assert dict(plain.step("Initialize/ReadCluster").step.records).keys() == {"previousVersion", "singleNode"}
    assert dict(plain.step("Initialize/ReadVersion").step.records).keys() == {"version.isoURL", "version.isoChecksum"}


# ------------------------------------------------------------------------------------------------- borrow and return


@pytest.mark.slow
def test_when_a_borrowed_field_goes_back() -> None:
    """On success and abort all of it; after a failure what protects a half-upgraded cluster stays."""
    ended = {Occasion.SUCCESS, Occasion.ABORT}
    strategy = ("spec", "rkeConfig", "upgradeStrategy")
    expected: dict[str, dict[Occasion, tuple[Any, ...]]] = {
        "ClusterUpgrade/KeepWorkloadUpdates": dict.fromkeys(ended, ()),
        "ClusterUpgrade/StopWorkloadUpdates": dict.fromkeys(ended, ()),
        "NodeUpgrade/ReplicaWait": dict.fromkeys({*ended, Occasion.FAILURE}, ()),
        "NodeUpgrade/StopDescheduler": dict.fromkeys(ended, ()),
        "NodeUpgrade/Provision": dict.fromkeys(ended, (strategy,)),
        "NodeUpgrade/AcknowledgePreDrain/n1": {},
        "NodeUpgrade/AcknowledgePostDrain/n1": {},
        "NodeUpgrade/Reboot/n1": dict.fromkeys(Occasion, ()),
        "NodeUpgrade/RestoreList/n1": {},
        "NodeUpgrade/CordonAgain/n1": {},
    }
    rendered = multi()
    borrowed = {step.id: m.spec for step in rendered.steps() for m in step.manifests if m.borrowed}
    assert {step for step in borrowed if not step.endswith(("n2", "n3"))} == set(expected)
    for step, returns in expected.items():
        assert dict(borrowed[step].returns) == returns, step  # type: ignore[union-attr]


@pytest.mark.slow
def test_what_is_not_there_cannot_be_borrowed() -> None:
    """The Cluster must be there."""
    rendered = multi()
    skipped = ("ClusterUpgrade/KeepWorkloadUpdates", "ClusterUpgrade/StopWorkloadUpdates", "NodeUpgrade/ReplicaWait")
    for step in (*skipped, "NodeUpgrade/StopDescheduler"):
        assert rendered.manifests(step)[0].spec.when_absent is WhenAbsent.SKIP, step  # type: ignore[union-attr]
    assert rendered.manifests("NodeUpgrade/Provision")[0].spec.when_absent is WhenAbsent.WAIT  # type: ignore[union-attr]


def test_fleet_is_told_to_look_away_before_the_field_changes() -> None:
    enter = [
        s.step.name
        for p in multi().plan.phases
        for s in p.steps
        if p.phase.name == "ClusterUpgrade" and s.step.position is Position.ENTER
    ]
    assert enter == ["Preflight", "KeepWorkloadUpdates", "StopWorkloadUpdates"]


@pytest.mark.slow
def test_what_we_make_is_removed_when_the_plan_has_ended_well_or_was_called_off() -> None:
    """After a failure everything that ran is kept."""
    for step in multi(version="v1.8.0", restoreVM=True).steps():
        for manifest in step.manifests:
            if isinstance(manifest.spec, Owned) and step.step.name != "RestoreVM":
                assert set(manifest.spec.cleanup) == {Occasion.SUCCESS, Occasion.ABORT}, step.id


@pytest.mark.slow
def test_the_labels_that_a_node_plan_leaves_on_nodes_are_known() -> None:
    for step in (
        "ImagePreload/Preload",
        "NodeUpgrade/SkipManifests",
        "NodeUpgrade/UnskipManifests",
        "ImageCleanup/Purge",
    ):
        (trace,) = multi().step(step).step.remove_fields
        name = multi().body(step)["metadata"]["name"]
        assert (trace.kind, trace.path) == ("Node", ("metadata", "labels", f"plan.upgrade.cattle.io/{name}"))


# ----------------------------------------------------------------- what no manifest holds (DESIGN, gitops 4.7 to 4.9)


SERVER_SIDE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"} | {
    "generateName",
    "ownerReferences",
    "finalizers",
}


def test_what_is_never_rendered() -> None:
    times = {"ttlSecondsAfterFinished", "suspend", "selector", "manualSelector", "activeDeadlineSeconds"}
    for rendered in everything():
        for manifest in rendered.plan.manifests():
            body = manifest.body
            assert "status" not in body
            assert not SERVER_SIDE & set(body["metadata"])
            assert not body["kind"].endswith("List")
            if body["kind"] == "Job":
                assert not times & set(body["spec"])
                assert {"completions", "parallelism", "backoffLimit"} <= set(body["spec"])
            marks = [
                key for key in body["metadata"].get("annotations", {}) if re.search("argoproj|fluxcd|helm|kubectl", key)
            ]
            assert marks == []


@pytest.mark.slow
def test_every_job_says_how_often_it_may_be_tried() -> None:
    """As upstream's Jobs are in effect: their scripts end at the first call that a restarting API server refuses."""
    rendered, alone = multi(version="v1.8.0", restoreVM=True), single()
    limits = {
        m.body["metadata"]["labels"].get(f"{PREFIX}job-type", "cluster"): m.body["spec"]["backoffLimit"]
        for r in (rendered, alone)
        for m in r.plan.manifests()
        if m.ref.kind == "Job"
    }
    assert limits == {"cluster": 6, "pre-drain": 6, "post-drain": 6, "single-node-upgrade": 6, "restore-vm": 3}


def test_an_object_is_in_one_phase_and_named_once() -> None:
    for rendered in everything():
        owned = [str(m.ref) for m in rendered.plan.manifests() if not m.borrowed]
        assert len(owned) == len(set(owned))


def test_what_only_the_loop_may_apply_lies_apart() -> None:
    """Borrowed fields, run-time values, whatever has its time, and all from the first phase on in which a plan must not
    be deleted: a pull agent must not touch them."""
    for rendered in everything():
        phases = [phase.phase for phase in rendered.plan.phases]
        late = list(dropwhile(lambda phase: phase.deletion is not Deletion.FORBIDDEN, phases))
        held = {phase.name for phase in late}
        for step in rendered.steps():
            is_undo = any(other.undo is step for other in rendered.steps())
            for manifest in step.manifests:
                bound = manifest.borrowed or manifest.run_time or step.step.trigger or step.step.node or is_undo
                assert manifest.file.startswith("review/") == bool(bound or step.phase in held), manifest.file


def test_no_value_that_is_known_at_run_time_only_goes_unmarked() -> None:
    for rendered in everything():
        for manifest in rendered.plan.manifests():
            found = {path for path, value in walk(manifest.body) if isinstance(value, str) and RUN_TIME in value}
            assert found == set(manifest.run_time), manifest.file
