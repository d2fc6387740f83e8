"""Every object of the phases before NodeUpgrade, field by field.

What is expected stands here as the spec has it, not as a rendering gave it. A body is compared whole, so a field too
many is found as well as one that is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.expected_objects import (
    NAMED_PLAN,
    OF_A_DRAIN,
    TOLERATIONS,
    TOOLKIT,
    job,
    labels,
    multi,
    node_plan,
    same,
    single,
)
from support.rendered_plans import node, plan, release, render_made, server_version, three_nodes, version

from renderer.errors import Problems
from renderer.model.manifest_spec import Owned
from renderer.model.phase import Position

# ------------------------------------------------------------------------------------------------------ 3.2 ISODownload


@pytest.mark.slow
def test_the_image() -> None:
    assert multi().body("ISODownload/Image") == {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "VirtualMachineImage",
        "metadata": {
            "name": "up-iso",
            "namespace": "harvester-system",
            "labels": labels("iso"),
            "annotations": {"harvesterhci.io/os-upgrade-image": "True"},
        },
        "spec": {
            "backend": "cdi",
            "displayName": "up-v1.8.0",
            "sourceType": "download",
            "url": "https://releases.example.com/harvester-v1.8.0-amd64.iso",
            "checksum": "5f0c" * 32,
            "retry": 3,
            "targetStorageClassName": "longhorn-static",
        },
    }


@pytest.mark.slow
def test_an_image_without_checksum_says_so_with_the_empty_text() -> None:
    documents = [document for document in three_nodes() if document.get("kind") != "Version"]
    for lacking in ({"isoChecksum": None}, {"isoChecksum": ""}):
        body = render_made(*documents, version(**lacking)).body("ISODownload/Image")
        assert body["spec"]["checksum"] == ""


@pytest.mark.slow
def test_an_image_of_a_plan_without_version_is_shown_under_the_plan_s_name() -> None:
    """A plan whose `image` is the empty text passes the API's rules; its Version is what the status has recorded."""
    recorded = {"version": {"isoURL": "https://example.com/x.iso"}, "previousVersion": "v1.7.1"}
    given = plan(image="", status=recorded)
    assert render_made(*three_nodes(given_plan=given)).body("ISODownload/Image")["spec"]["displayName"] == "up"


@pytest.mark.parametrize("spec", [{"image": "my-iso"}, {"image": "my-iso", "version": "v9.9.9"}])
def test_a_named_image_is_used_as_it_is(spec: Mapping[str, Any]) -> None:
    """No look-up of a Version, no image of ours, the named one is waited for and mounted."""
    documents = [document for document in three_nodes(**spec) if document.get("kind") != "Version"]
    rendered = render_made(*documents)
    assert rendered.step("Initialize/ReadVersion").skipped == "the ISO is the image that spec.image names"
    step = rendered.step("ISODownload/Image")
    assert step.manifests == ()
    assert [file for file, _ in step.left_out] == ["virtual-machine-image.yaml.j2"]
    assert str(step.step.gates[0].probe.target.ref) == "VirtualMachineImage harvester-system/my-iso"  # type: ignore[union-attr]
    (volume,) = rendered.body("RepoCreate/Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "my-iso"}


@pytest.mark.slow
def test_what_the_status_has_recorded_wins_over_the_objects() -> None:
    """The ISO's place, the image's name and the release do not change under a run."""
    status = {
        "version": {"isoURL": "https://recorded.example.com/a.iso", "isoChecksum": "beef"},
        "previousVersion": "v1.6.1",
        "isoImageID": "older-name",
        "releaseMetadata": {"harvester": "v1.8.1", "kubernetes": "v1.35.9+rke2r1", "os": "Harvester v1.8.1"},
    }
    rendered = render_made(*three_nodes(given_plan=plan(version="v1.8.0", status=status)))
    spec = rendered.body("ISODownload/Image")["spec"]
    assert (spec["url"], spec["checksum"]) == ("https://recorded.example.com/a.iso", "beef")
    pod = rendered.body("RepoCreate/Deployment")["spec"]["template"]["spec"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "older-name"
    assert rendered.body("ClusterUpgrade/Manifests")["spec"]["template"]["spec"]["containers"][0]["image"].endswith(
        ":v1.8.1"
    )
    assert rendered.body("NodeUpgrade/Provision")["spec"]["kubernetesVersion"] == "v1.35.9+rke2r1"


def test_an_image_that_the_status_names_in_the_older_form_is_the_one_of_that_name() -> None:
    """Earlier managers recorded `namespace/name`."""
    status = {"isoImageID": "harvester-system/older-name", "previousVersion": "v1.7.1"}
    rendered = render_made(*three_nodes(given_plan=plan(version="v1.8.0", status=status)))
    gate = rendered.step("ISODownload/Image").step.gates[0]
    assert str(gate.probe.target.ref) == "VirtualMachineImage harvester-system/older-name"  # type: ignore[union-attr]
    (volume,) = rendered.body("RepoCreate/Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "older-name"}


# ------------------------------------------------------------------------------------------------------- 3.3 RepoCreate


def deployment(replicas: int, tolerations: list[Any], image: str = f"{TOOLKIT}:v1.8.0") -> dict[str, Any]:
    managed = {"key": "harvesterhci.io/managed", "operator": "In", "values": ["true"]}
    witness = "node-role.harvesterhci.io/witness"
    terms = [
        {"matchExpressions": [managed, {"key": witness, "operator": "DoesNotExist"}]},
        {"matchExpressions": [managed, {"key": witness, "operator": "In", "values": ["false"]}]},
    ]
    affinity = {
        "podAffinityTerm": {"labelSelector": {"matchLabels": labels("repo")}, "topologyKey": "kubernetes.io/hostname"},
        "weight": 100,
    }
    script = (
        "set -e\n"
        "mkdir -p /srv/www/htdocs/harvester-iso\n"
        "mount -o loop,ro /iso/disk.img /srv/www/htdocs/harvester-iso\n"
        'exec nginx -g "daemon off;"\n'
    )
    container = {
        "name": "nginx-iso-server",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "securityContext": {"privileged": True, "runAsUser": 0},
        "volumeMounts": [{"name": "iso", "mountPath": "/iso"}],
        "livenessProbe": {
            "exec": {"command": ["sh", "-c", "test -f /srv/www/htdocs/harvester-iso/harvester-release.yaml"]}
        },
        "readinessProbe": {"httpGet": {"path": "/harvester-iso/harvester-release.yaml", "port": 80}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "up-repo", "namespace": "harvester-system", "labels": labels("repo")},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels("repo")},
            "template": {
                "metadata": {"labels": labels("repo")},
                "spec": {
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
                        },
                        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [affinity]},
                    },
                    "tolerations": tolerations,
                    "containers": [container],
                    "volumes": [{"name": "iso", "persistentVolumeClaim": {"claimName": "up-iso"}}],
                },
            },
        },
    }


@pytest.mark.slow
def test_the_repository_s_deployment() -> None:
    """It tolerates what its nodes are, but not a witness, where its volume cannot be attached; with a second node to go
    to, a drain may move it."""
    alone = [item for item in TOLERATIONS if item["key"] != "node-role.kubernetes.io/etcd"]
    at_rest = [item for item in alone if item["key"] not in OF_A_DRAIN]
    assert same(multi().body("RepoCreate/Deployment"), deployment(2, at_rest))
    assert same(single().body("RepoCreate/Deployment"), deployment(1, alone))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("witnesses", "replicas"),
    [
        ((None,), 1),
        ((None, None), 2),
        ((None, None, None, None), 2),
        ((None, "true"), 1),
        ((None, None, "true"), 2),
        ((None, ""), 1),  # the key alone makes a witness
        ((None, "false"), 2),
    ],
)
def test_one_replica_for_each_full_node_up_to_two(witnesses: tuple[str | None, ...], replicas: int) -> None:
    cluster = [node(f"n{number}", witness=value) for number, value in enumerate(witnesses)]
    rendered = render_made(plan(), release(), version(), server_version(), *cluster)
    assert rendered.body("RepoCreate/Deployment")["spec"]["replicas"] == replicas


@pytest.mark.slow
def test_a_cluster_of_witnesses_has_no_place_for_the_repository() -> None:
    cluster = [node("n1", witness="true"), node("n2", witness="true")]
    with pytest.raises(Problems, match="no non-witness managed nodes found in the cluster"):
        render_made(plan(), release(), version(), server_version(), *cluster)


def test_nodes_that_harvester_does_not_manage_are_not_counted() -> None:
    cluster = [node("n1"), node("n2", managed=None), node("n3", managed="false")]
    rendered = render_made(plan(), release(), version(), server_version(), *cluster)
    assert rendered.body("RepoCreate/Deployment")["spec"]["replicas"] == 1
    assert rendered.body("ImagePreload/Preload")["spec"]["concurrency"] == 1
    assert rendered.step("NodeUpgrade/SingleNode/n1").skipped is None


@pytest.mark.slow
def test_the_repository_s_service() -> None:
    assert multi().body("RepoCreate/Service") == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "up-repo", "namespace": "harvester-system", "labels": labels("repo")},
        "spec": {
            "type": "ClusterIP",
            "selector": labels("repo"),
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
        },
    }


@pytest.mark.slow
def test_the_repository_is_kept_alive_until_the_plan_ends() -> None:
    """Later phases read from it."""
    for step in ("RepoCreate/Deployment", "RepoCreate/Service"):
        (manifest,) = multi().manifests(step)
        assert isinstance(manifest.spec, Owned)
        assert manifest.spec.maintained


# ------------------------------------------------------------------------------------------- 3.4 MetadataPopulate, 3.8


@pytest.mark.slow
def test_where_the_release_and_the_image_lists_are_read() -> None:
    """By the Service's own name, also where it is shortened."""
    rendered = multi()
    (fetch,) = rendered.step("MetadataPopulate/ReleaseFile").step.fetches
    assert (fetch.namespace, fetch.service, fetch.port) == ("harvester-system", "up-repo", 80)
    assert fetch.path == "/harvester-iso/harvester-release.yaml"
    assert fetch.required == ("harvester", "kubernetes", "os")
    previous, current = rendered.step("ImageCleanup/ImageLists").step.fetches
    archive = "/harvester-iso/bundle/harvester/images-lists-archive"
    assert previous.path == f"{archive}/v1.7.1/image_list_all.txt"
    assert current.path == f"{archive}/current/image_list_all.txt"
    assert (previous.non_empty, current.non_empty) == (False, True)
    for each in (previous, current):
        assert each.absent
        assert each.absent.event
        assert (each.absent.event.type, each.absent.event.reason) == ("Warning", "ImageCleanupSkipped")
        message = "Image list not available in upgrade repository; skipping stale image cleanup"
        assert each.absent.event.message == message
    longest = "a" * 58
    service = render_made(*three_nodes(given_plan=plan(longest))).body("RepoCreate/Service")["metadata"]["name"]
    assert service == f"{longest}-repo"


# ----------------------------------------------------------------------------------------------------- 3.5 ImagePreload


def test_the_preload_plan() -> None:
    expected = node_plan("image-preload", 3, command=["upgrade_node.sh"], args=["prepare"], envs=NAMED_PLAN)
    assert same(multi().body("ImagePreload/Preload"), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "resolved"), [(None, 3), (0, 3), (1, 1), (2, 2), (3, 3), (5, 3), (100, 3)])
def test_how_many_nodes_preload_at_a_time(asked: int | None, resolved: int) -> None:
    option: dict[str, Any] = {} if asked is None else {"concurrency": asked}
    rendered = multi(version="v1.8.0", imagePreloadOption=option)
    assert rendered.body("ImagePreload/Preload")["spec"]["concurrency"] == resolved
    assert multi(version="v1.8.0").body("ImagePreload/Preload")["spec"]["concurrency"] == 3


@pytest.mark.parametrize("asked", [-1, -100])
def test_a_negative_number_preloads_nothing(asked: int) -> None:
    """The version guard still looks."""
    rendered = multi(version="v1.8.0", imagePreloadOption={"concurrency": asked})
    assert rendered.step("ImagePreload/Preload").skipped == "spec.imagePreloadOption.concurrency is negative"
    assert rendered.manifests("ImagePreload/Preload") == ()
    assert rendered.step("ImagePreload/VersionGuard").skipped is None


@pytest.mark.slow
def test_the_version_guard_is_strict_and_force_alone_skips_it() -> None:
    (gate,) = multi().step("ImagePreload/VersionGuard").step.gates
    (rule,) = gate.probe.all
    assert dict(rule.arguments) == {  # type: ignore[union-attr]
        "current": "v1.7.1",
        "target": "v1.8.0",
        "minimum": "v1.7.0",
        "strict": True,
    }
    assert multi().step("ImagePreload/VersionGuard").step.position is Position.ENTER
    forced = multi(version="v1.8.0", force=True)
    skipped = {step.id for step in forced.steps() if step.skipped} - {
        step.id for step in multi().steps() if step.skipped
    }
    assert skipped == {"ImagePreload/VersionGuard"}


# --------------------------------------------------------------------------------------------------- 3.6 ClusterUpgrade


def test_virtual_machines_do_not_move_because_kubevirt_is_new() -> None:
    rendered = multi()
    assert rendered.body("ClusterUpgrade/StopWorkloadUpdates") == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "harvester-system"},
        "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": []}},
    }
    assert rendered.body("ClusterUpgrade/KeepWorkloadUpdates") == {
        "apiVersion": "management.cattle.io/v3",
        "kind": "ManagedChart",
        "metadata": {"name": "harvester", "namespace": "fleet-local"},
        "spec": {
            "diff": {
                "comparePatches": [
                    {
                        "apiVersion": "kubevirt.io/v1",
                        "kind": "KubeVirt",
                        "name": "kubevirt",
                        "jsonPointers": ["/spec/workloadUpdateStrategy/workloadUpdateMethods"],
                    }
                ]
            }
        },
    }
    (option,) = rendered.manifests("ClusterUpgrade/KeepWorkloadUpdates")[0].spec.options  # type: ignore[union-attr]
    assert (option.name, option.path, option.argument.keys, option.argument.values) == (
        "union",
        ("spec", "diff", "comparePatches"),
        ("apiVersion", "kind", "name"),
        "jsonPointers",
    )


@pytest.mark.slow
def test_the_cluster_job() -> None:
    pod = {
        "restartPolicy": "Never",
        "serviceAccountName": "harvester",
        "tolerations": list(TOLERATIONS),
        "containers": [
            {
                "name": "apply",
                "image": f"{TOOLKIT}:v1.8.0",
                "command": ["upgrade_manifests.sh"],
                "env": NAMED_PLAN,
                "securityContext": {"runAsUser": 0},
            }
        ],
    }
    assert same(multi().body("ClusterUpgrade/Manifests"), job("up-cluster-upgrade", labels("cluster-upgrade"), pod, 6))
