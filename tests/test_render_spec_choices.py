"""What a plan can choose: tag, image, name, a retry; and what is known of it already."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest
from support.expected_objects import TOOLKIT, labels, multi
from support.rendered_plans import (
    PREFIX,
    nodes,
    one_node,
    overlaid,
    plan,
    release,
    render_made,
    server_version,
    templates,
    three_nodes,
    version,
)

from renderer.errors import Problems
from renderer.layout.index import index_of

# ------------------------------------------------------------------------------ names, labels, tags, images (1.4, 2.10)


@pytest.mark.slow
def test_every_object_of_ours_carries_the_plan_and_its_component() -> None:
    components = {
        "ISODownload/Image": "iso",
        "RepoCreate/Deployment": "repo",
        "RepoCreate/Service": "repo",
        "ImagePreload/Preload": "image-preload",
        "ClusterUpgrade/Manifests": "cluster-upgrade",
        "NodeUpgrade/SkipManifests": "skip-manifest-apply",
        "NodeUpgrade/UnskipManifests": "skip-manifest-remove",
        "NodeUpgrade/PreDrain/n1": "node-upgrade",
        "NodeUpgrade/PostDrain/n1": "node-upgrade",
        "NodeUpgrade/RestoreVM/n1": "node-upgrade",
        "ImageCleanup/Purge": "image-cleanup",
    }
    rendered = multi(version="v1.8.0", restoreVM=True)
    owned = {step.id for step in rendered.steps() for manifest in step.manifests if not manifest.borrowed}
    assert {step for step in owned if not step.endswith(("n2", "n3"))} == set(components)
    for step, component in components.items():
        found = rendered.body(step)["metadata"]["labels"]
        assert found[f"{PREFIX}upgrade-plan"] == "up"
        assert found[f"{PREFIX}upgrade-component"] == component


@pytest.mark.slow
def test_the_system_upgrade_controller_copies_our_labels_onto_its_jobs() -> None:
    """It copies labels without `cattle.io/` (6.1); by these the Jobs are found, and the node by one of its own."""
    for step, component in (("ImagePreload/Preload", "image-preload"), ("ImageCleanup/Purge", "image-cleanup")):
        jobs = multi().step(step).step.job_states
        assert jobs
        assert dict(jobs.labels) == labels(component)
        assert not [key for key in dict(jobs.labels) if "cattle.io/" in key]
        assert (jobs.namespace, jobs.node_label) == ("cattle-system", "upgrade.cattle.io/node")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "target", "repo", "jobs"),
    [
        ({}, "v1.8.1", "v1.8.0", "v1.8.1"),
        ({"upgrade": "main-head"}, "v1.8.0", "main-head", "main-head"),
        ({"upgrade": ""}, "v1.8.1", "v1.8.0", "v1.8.1"),
        ({"upgrade": "5319e7"}, "v1.8.0", "5319e7", "5319e7"),
        ({"upgrade": "v1.8.0+site.2"}, "v1.8.0", "v1.8.0-site.2", "v1.8.0-site.2"),
        ({}, "v1.8.0+build.7", "v1.8.0", "v1.8.0-build.7"),
    ],
)
def test_the_tag_of_the_toolkit(spec: Mapping[str, Any], target: str, repo: str, jobs: str) -> None:
    """A `+` becomes `-` in tags alone: the Kubernetes version and the OS keep theirs."""
    documents = [d for d in three_nodes(version="v1.8.0", **spec) if "harvester" not in d]
    rendered = render_made(*documents, release(target))
    assert (
        rendered.body("RepoCreate/Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
        == f"{TOOLKIT}:{repo}"
    )
    for step in ("ClusterUpgrade/Manifests", "NodeUpgrade/PreDrain/n1", "NodeUpgrade/PostDrain/n1"):
        assert rendered.body(step)["spec"]["template"]["spec"]["containers"][0]["image"] == f"{TOOLKIT}:{jobs}"
    for step in ("ImagePreload/Preload", "NodeUpgrade/SkipManifests", "ImageCleanup/Purge"):
        assert rendered.body(step)["spec"]["version"] == jobs
        assert rendered.body(step)["spec"]["upgrade"]["image"] == TOOLKIT
    assert rendered.plan.images == tuple(sorted({f"{TOOLKIT}:{repo}", f"{TOOLKIT}:{jobs}"}))
    assert rendered.body("NodeUpgrade/Provision")["spec"]["kubernetesVersion"] == "v1.35.2+rke2r1"
    assert (
        rendered.body("NodeUpgrade/Reboot/n1")["metadata"]["annotations"][f"{PREFIX}pendingOSImage"]
        == f"Harvester {target}"
    )


@pytest.mark.parametrize(("asked", "repo"), [(None, "v1.8.0"), ("dev", "dev")])
def test_the_tag_of_the_toolkit_before_the_release_is_known(asked: str | None, repo: str) -> None:
    """Ours differs: not the tag of the manager's own build, which may be a laptop's, but that of values.yaml. What
    comes later waits for the release's."""
    spec: dict[str, Any] = {"version": "v1.8.0"} | ({"upgrade": asked} if asked else {})
    rendered = render_made(*[document for document in three_nodes(**spec) if "harvester" not in document])
    assert rendered.plan.images == (f"{TOOLKIT}:{repo}",)
    waiting = {step.id for step in rendered.steps() for item in step.pending if item.input == "toolkitTag"}
    assert ("ClusterUpgrade/Manifests" in waiting) == (asked is None)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [{}, {"upgrade": "main-head"}])
def test_what_is_reviewed_with_the_release_at_hand_is_what_the_loop_makes(spec: Mapping[str, Any]) -> None:
    """The loop learns of the release after it has made the repository."""
    tree = overlaid(
        {"values.yaml": templates()["values.yaml"].text.replace("toolkitTag: v1.8.0", "toolkitTag: v1.9.0")}
    )
    documents = three_nodes(version="v1.8.0", **spec)
    reviewed = render_made(*documents, tree=tree)
    early = [document for document in documents if "harvester" not in document]
    status = {"releaseMetadata": {**release()}, "previousVersion": "v1.7.1"}
    late = [{**document, "status": status} if document.get("kind") == "UpgradePlan" else document for document in early]
    before, after = render_made(*early, tree=tree), render_made(*late, tree=tree)
    assert before.body("RepoCreate/Deployment") == reviewed.body("RepoCreate/Deployment")
    assert {step.id: step.manifests for step in after.steps()} == {step.id: step.manifests for step in reviewed.steps()}


@pytest.mark.slow
@pytest.mark.parametrize(("tag", "repo"), [("v1.9.0", "v1.9.0"), ("null", None)])
def test_the_tag_of_values_is_for_the_repository_of_a_plan_without_one(tag: str, repo: str | None) -> None:
    """Without either nobody guesses: the installed release need not have a toolkit, the new one is not known yet."""
    text = templates()["values.yaml"].text.replace("toolkitTag: v1.8.0", f"toolkitTag: {tag}")
    rendered = render_made(*three_nodes(version="v1.8.0"), tree=overlaid({"values.yaml": text}))
    images = {image.partition(":")[2] for image in rendered.plan.images}
    assert images == {"v1.8.0"} | ({repo} if repo else set())
    pending = {item.input: item.remedy for phase in rendered.plan.phases for item in phase.pending}
    assert pending == ({} if repo else {"repoTag": "set spec.upgrade, or toolkitTag in values.yaml of the templates"})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("custom/upgrade-toolkit", "custom/upgrade-toolkit"),
        ("registry.example.com:5000/a/b", "registry.example.com:5000/a/b"),
        ("", TOOLKIT),
    ],
)
def test_the_image_of_the_toolkit(annotation: str, expected: str) -> None:
    """Another image, the same security context."""
    given = plan(annotations={f"{PREFIX}upgrade-toolkit-image": annotation})
    rendered = render_made(*three_nodes(given_plan=given))
    assert {image.rpartition(":")[0] for image in rendered.plan.images} == {expected}
    assert rendered.body("ImagePreload/Preload")["spec"]["upgrade"]["image"] == expected
    container = rendered.body("ClusterUpgrade/Manifests")["spec"]["template"]["spec"]["containers"][0]
    assert container["securityContext"] == {"runAsUser": 0}


@pytest.mark.slow
def test_registry_and_secrets_are_those_of_every_image() -> None:
    """A plan's own image names its registry; its pods take the same Secrets."""
    text = templates()["values.yaml"].text.replace('imageRegistry: ""', "imageRegistry: registry.example.com/a")
    tree = overlaid({"values.yaml": text.replace('imagePullSecrets: ""', 'imagePullSecrets: "one,two"')})
    own = plan(annotations={f"{PREFIX}upgrade-toolkit-image": "other.example.com/toolkit"})
    for documents, image in (
        (three_nodes(), f"registry.example.com/a/{TOOLKIT}"),
        (one_node(), f"registry.example.com/a/{TOOLKIT}"),
        (three_nodes(given_plan=own), "other.example.com/toolkit"),
    ):
        rendered = render_made(*documents, tree=tree)
        assert {name.rpartition(":")[0] for name in rendered.plan.images} == {image}
        running = [manifest.body for manifest in rendered.plan.manifests() if manifest.images and not manifest.borrowed]
        kinds = {body["kind"] for body in running}
        assert kinds == {"Deployment", "Job", "Plan"}
        pods = [body["spec"] if body["kind"] == "Plan" else body["spec"]["template"]["spec"] for body in running]
        assert [pod for pod in pods if pod.get("imagePullSecrets") != [{"name": "one"}, {"name": "two"}]] == []


@pytest.mark.parametrize("annotation", ["custom/toolkit:v1", "custom/UPPER", "a b", "-x", "x@sha256:12"])
def test_an_image_of_the_toolkit_that_is_none_is_refused(annotation: str) -> None:
    given = plan(annotations={f"{PREFIX}upgrade-toolkit-image": annotation})
    with pytest.raises(Problems, match="cannot be the repository of the toolkit image"):
        render_made(*one_node(given_plan=given))
    values = templates()["values.yaml"].text.replace(TOOLKIT, annotation).replace("Tag: v1.8.0", "Tag: v1.7.1")
    with pytest.raises(Problems, match="is not a valid image reference; 3 more objects use it") as caught:
        render_made(*one_node(), tree=overlaid({"values.yaml": values}))
    assert len(caught.value.problems) == 2, "one for the repository's tag and one for the others'"


@pytest.mark.slow
def test_long_names_are_shortened_once_and_bind_to_the_whole_node_name() -> None:
    name = "rack12-chassis03-blade07-compute-prod-a1.dc.example.com"
    given = (plan("hvst-upgrade-names"), release(), version(), server_version(), *nodes(name, "n2"))
    body = render_made(*given).body(f"NodeUpgrade/PreDrain/{name}")
    joined = f"hvst-upgrade-names-node-upgrade-pre-drain-{name}"
    assert body["metadata"]["name"] == f"{joined[:57]}-{hashlib.sha256(joined.encode()).hexdigest()[:5]}"
    assert body["spec"]["template"]["spec"]["nodeName"] == name
    assert body["metadata"]["labels"] == labels("node-upgrade", "pre-drain", name, "hvst-upgrade-names")
    long = f"{name}.of.a.rack"
    given = (plan("up"), release(), version(), server_version(), *nodes(long, "n2"))
    body = render_made(*given).body(f"NodeUpgrade/PreDrain/{long}")
    assert body["spec"]["template"]["spec"]["nodeName"] == long
    assert len(body["metadata"]["labels"][f"{PREFIX}node"]) == 63


@pytest.mark.slow
def test_a_retry_is_a_new_object_that_says_so() -> None:
    """What runs once gets another name; what is kept alive does not (gitops 4.7)."""
    first, again = multi(), render_made(*three_nodes(), retry=2)
    for step, kind in (
        ("ImagePreload/Preload", "Plan"),
        ("ClusterUpgrade/Manifests", "Job"),
        ("NodeUpgrade/PreDrain/n1", "Job"),
    ):
        body = again.body(step)
        assert body["kind"] == kind
        assert body["metadata"]["name"] == f"{first.body(step)['metadata']['name']}-retry-2"
        assert body["metadata"]["annotations"] == {f"{PREFIX}retry": "2"}
    for step in ("ISODownload/Image", "RepoCreate/Deployment", "RepoCreate/Service"):
        assert again.body(step) == first.body(step)
    assert first.plan.digest != again.plan.digest


# ------------------------------------------------------------------------------------------------------ late inputs

RECORDED = ("harvester", "harvesterChart", "kubernetes", "minUpgradableVersion", "monitoringChart", "os", "rancher")


def test_without_a_release_the_rest_is_pending_and_says_what_to_give() -> None:
    documents = [document for document in three_nodes() if "harvester" not in document]
    rendered = render_made(*documents)
    pending = {step.id: [item.input for item in step.pending] for step in rendered.steps() if step.pending}
    assert pending["ImagePreload/VersionGuard"] == ["releaseMetadata"]
    assert pending["ImagePreload/Preload"] == ["toolkitTag"]
    assert pending["ClusterUpgrade/Manifests"] == ["toolkitTag"]
    assert pending["NodeUpgrade/Provision"] == ["releaseMetadata"]
    assert rendered.body("RepoCreate/Deployment")
    assert rendered.body("ClusterUpgrade/StopWorkloadUpdates")
    index = index_of(rendered.plan, rendered.kinds, (), "plain")
    remedies = {
        p["remedy"] for phase in index["phases"] for step in phase.get("steps", ()) for p in step.get("pending", ())
    }
    assert all("--release" in remedy for remedy in remedies)


@pytest.mark.slow
def test_the_loop_and_git_render_the_same_bytes() -> None:
    """Given as a file, or recorded in the status: no difference."""
    recorded = {key: text for key, text in release().items() if key in RECORDED}
    status = {
        "previousVersion": "v1.7.1",
        "version": {key: version()["spec"][key] for key in ("isoURL", "isoChecksum")},
        "isoImageID": "up-iso",
        "releaseMetadata": recorded,
        "nodeUpgradeStatuses": {name: {"state": "ImagePreloaded"} for name in ("n1", "n2", "n3")},
    }
    documents = [d for d in three_nodes(given_plan=plan(status=status)) if d.get("kind") not in ("Version", "Setting")]
    running = render_made(*[d for d in documents if "harvester" not in d])
    assert running.files() == multi().files()
