"""The digest that a review has in Git is approved for the cluster that it was rendered for, phase by phase: what the
cluster learns later is compared then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.rehearsals import inputs_of, prepared, template_set
from support.rendered_plans import Json, image_lists, plan, release
from support.rendered_plans import inputs_of as inputs_given
from support.small_cluster import Small, world

from reconcile.loop.approval import Approval, approval_now, approval_of_review
from reconcile.loop.sealing import seal
from renderer.assemble import assembly_of
from renderer.documents import Inputs
from renderer.errors import ExitCode, Problems
from renderer.model.plan_api import plan_ref
from renderer.render.seal import APPROVED, APPROVED_STEPS

pytestmark = pytest.mark.slow

ALL = [
    "Initialize",
    "ISODownload",
    "RepoCreate",
    "MetadataPopulate",
    "ImagePreload",
    "ClusterUpgrade",
    "NodeUpgrade",
    "ImageCleanup",
]


def approval(found: Small, inputs: Inputs) -> Approval:
    return approval_of_review(found.scene.deps, template_set(), found.plan, inputs)


def of_world(found: Small, *more: Json, without: Sequence[str] = (), **spec: Any) -> Inputs:
    """What `facts` collects of the cluster, with the plan and the release."""
    bodies = [body for body in found.scene.cluster.store.everything() if body["kind"] not in ("Event", *without)]
    given = [body for body in bodies if body["kind"] not in ("UpgradePlan", "Namespace")]
    documents = [plan(**{"version": "v1.8.0", **spec}), *given, *more]
    return inputs_given([*documents, *([] if any("harvester" in item for item in more) else [release()])])


def approve(found: Small, inputs: Inputs) -> None:
    annotations = seal(approval(found, inputs).rendered, found.scene.deps.rendering.templates)
    found.patch(found.plan, {"metadata": {"annotations": annotations}})


def refusal(found: Small) -> list[str]:
    decision = found.rounds().decision
    assert decision is not None
    return [wait.text for wait in decision.waits if "approved" in wait.text]


@pytest.mark.parametrize("example", ["three-node", "single-node", "two-node-witness", "paused-node"])
def test_the_digest_of_a_review_is_that_of_the_cluster_that_it_was_rendered_for(example: str) -> None:
    inputs = inputs_of(example)
    scene = prepared(inputs)
    live = scene.deps.source.get(plan_ref(scene.name))
    assert isinstance(live, dict)
    found = approval_of_review(scene.deps, template_set(), live, inputs)
    assert found.rendered.digest == assembly_of(inputs, template_set()).render().digest
    assert sorted((*found.sealed, *found.later)) == sorted(ALL)
    assert found.pending == {}
    assert "imageLists" in found.later["ImageCleanup"]
    assert "releaseMetadata" in found.later["NodeUpgrade"]
    assert approval_now(scene.deps, live).pending == found.later


@pytest.mark.slow
def test_what_was_reviewed_runs_to_its_end() -> None:
    scene = prepared(inputs := inputs_of("single-node"))
    found = Small(scene=scene)
    approve(found, inputs)
    assert scene.play(lambda done: None).succeeded


def test_what_the_cluster_renders_otherwise_is_refused_by_phase_object_and_path() -> None:
    found = world(version="v1.8.0")
    inputs = of_world(found, upgrade="v1.8.1")
    with pytest.raises(Problems) as refused:
        approval(found, inputs)
    assert refused.value.exit_code is ExitCode.NO
    problems = {item.message.partition(":")[0]: item for item in refused.value.problems}
    assert {item.reason for item in problems.values()} == {"ReviewDiffers"}
    assert (
        "Deployment harvester-system/up-repo spec.template.spec.containers[0].image"
        in problems["phase RepoCreate"].message
    )


def test_a_node_that_the_review_did_not_know_is_named() -> None:
    found = world("n1", "n2", "n3", version="v1.8.0")
    inputs = of_world(world("n1", "n2", version="v1.8.0"))
    with pytest.raises(Problems) as refused:
        approval(found, inputs)
    (text,) = [item.message for item in refused.value.problems if "phase NodeUpgrade" in item.message]
    assert "step NodeUpgrade/PreDrain/n3 (added)" in text


def test_what_a_review_did_not_know_is_not_approved() -> None:
    found = world(version="v1.8.0")
    lists = inputs_given([plan(version="v1.8.0"), *(item.body for item in of_world(found).objects)])
    got = approval(found, lists)
    assert "releaseMetadata" in got.pending["NodeUpgrade"]
    assert "NodeUpgrade" not in (*got.sealed, *got.later)


def in_phase(found: Small, phase: str, **status: Any) -> None:
    found.set_status(currentPhase=phase, previousVersion="v1.7.1", releaseMetadata=dict(release()), **status)


def test_another_release_than_the_review_had_is_refused_when_it_is_read() -> None:
    found = world(version="v1.8.0")
    approve(found, of_world(found, release(os="Harvester v1.8.0-other")))
    in_phase(found, "ClusterUpgraded")
    (text,) = refusal(found)
    assert text.startswith("phase NodeUpgrade differs from what was approved in Node n1 metadata.annotations[")
    assert found.phase == "ClusterUpgraded"


def lists(*previous: str) -> Json:
    """What the review knows of the image lists."""
    return image_lists(previous, ["docker.io/rancher/same:v1"])


def cleaning(found: Small) -> Small:
    """At the last phase, which reads the image lists itself."""
    in_phase(found, "NodeUpgraded")
    return found


def reads_lists(found: Small, *previous: str) -> None:
    texts = {"previous": "\n".join(previous), "current": "docker.io/rancher/same:v1"}
    found.scene.deps = replace(found.scene.deps, read=lambda fetch: texts[fetch.name].encode())
    found.restart()


def test_a_phase_that_reads_its_inputs_itself_begins_and_is_compared_once_they_are_known() -> None:
    found = cleaning(world(version="v1.8.0"))
    approve(found, of_world(found, lists("docker.io/rancher/old:v1")))
    reads_lists(found, "docker.io/rancher/old:v1")
    assert refusal(found) == []
    assert (found.phase, [item["metadata"]["name"] for item in found.all("Plan")]) == (
        "CleaningUp",
        ["up-image-cleanup"],
    )


def test_what_such_a_phase_reads_otherwise_than_the_review_had_it_does_not_run() -> None:
    found = cleaning(world(version="v1.8.0"))
    approve(found, of_world(found, lists("docker.io/rancher/old:v1")))
    reads_lists(found, "docker.io/rancher/precious:v1")
    (text,) = refusal(found)
    assert text.startswith(
        "phase ImageCleanup differs from what was approved in Plan cattle-system/up-image-cleanup spec"
    )
    assert (found.phase, found.all("Plan")) == ("CleaningUp", [])


def test_a_step_that_is_known_before_and_differs_is_named_and_the_phase_not_entered() -> None:
    found = cleaning(world(version="v1.8.0"))
    approve(found, of_world(found, lists("docker.io/rancher/old:v1")))
    steps = json.loads(found.plan["metadata"]["annotations"][APPROVED_STEPS])
    steps["ImageCleanup"]["ImageLists"] = "another"
    found.patch(found.plan, {"metadata": {"annotations": {APPROVED_STEPS: json.dumps(steps)}}})
    digest = json.loads(found.plan["metadata"]["annotations"][APPROVED])["ImageCleanup"]
    named = "phase ImageCleanup differs from what was approved in step ImageCleanup/ImageLists"
    assert refusal(found) == [f"{named} (approved {digest})"]
    assert found.phase == "NodeUpgraded"


@pytest.mark.parametrize("steps", [None, "{", "[]", '{"ImageCleanup": 1}'])
def test_without_the_digests_of_its_steps_such_a_phase_is_refused(steps: str | None) -> None:
    found = cleaning(world(version="v1.8.0"))
    approve(found, of_world(found, lists("docker.io/rancher/old:v1")))
    found.patch(found.plan, {"metadata": {"annotations": {APPROVED_STEPS: steps}}})
    (text,) = refusal(found)
    assert text.startswith("phase ImageCleanup differs from what was approved in what is pending now (approved sha256:")
