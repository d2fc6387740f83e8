"""The repository answers when it is up, with what the release has, late or not at all."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import pytest
import yaml
from support.repo_server import serving

from actors.playing import SYSTEM, Play, fault
from reconcile.cluster.errors import BackendFailed
from reconcile.simulator.actors.actor_client import SERVICE
from renderer.model.ref import Ref
from renderer.yaml_io import parse

pytestmark = pytest.mark.slow

NAME = "hvst-upgrade-864fh-repo"
RELEASE = "harvester-iso/harvester-release.yaml"
LISTS = "harvester-iso/bundle/harvester/images-lists-archive"


def served(*injected: Any, example: str = "three-node") -> Play:
    play = Play(example, *injected)
    play.finish("ISODownload/Image")
    play.finish("RepoCreate/Deployment")
    play.finish("RepoCreate/Service")
    play.settle()
    return play


def read(play: Play, path: str, service: str = NAME) -> str:
    ref = Ref(api_version="v1", kind="Service", namespace=SYSTEM, name=f"{service}:80")
    return play.cluster.read(play.kinds.row(*SERVICE).kind, ref, f"proxy/{path}").decode()


def status(play: Play, path: str) -> int:
    with pytest.raises(BackendFailed) as caught:
        read(play, path)
    return caught.value.status


def test_the_release_file_reads_as_text_throughout() -> None:
    play = served()
    content = read(play, RELEASE)
    assert yaml.safe_load(content) == play.release
    (document,) = parse(content, "release")
    assert document.text == play.release


def test_image_lists_are_there_for_the_version_that_ran_at_the_beginning() -> None:
    play = served()
    lists = play.inputs.facts["imageLists"]
    assert read(play, f"{LISTS}/v1.7.1/image_list_all.txt").splitlines() == lists["previous"]
    assert read(play, f"{LISTS}/current/image_list_all.txt").splitlines() == lists["current"]
    for step in ("ClusterUpgrade/KeepWorkloadUpdates", "ClusterUpgrade/StopWorkloadUpdates"):
        play.apply(step)
    play.finish("ClusterUpgrade/Manifests")
    assert read(play, f"{LISTS}/v1.7.1/image_list_all.txt").splitlines() == lists["previous"]


def test_what_the_iso_does_not_have_is_not_found() -> None:
    assert status(served(), f"{LISTS}/v1.6.0/image_list_all.txt") == 404
    play = served(example="three-node-v1.6.1")
    name = play.all(SERVICE, SYSTEM)[0]["metadata"]["name"]
    with pytest.raises(BackendFailed) as caught:
        read(play, f"{LISTS}/current/image_list_all.txt", name)
    assert caught.value.status == 404


def test_nobody_answers_before_a_pod_is_ready() -> None:
    play = Play("three-node", fault("slow", "repo", minutes=10))
    play.finish("ISODownload/Image")
    play.apply("RepoCreate/Deployment")
    play.apply("RepoCreate/Service")
    play.wait(minutes=9)
    assert status(play, RELEASE) == 503
    play.wait(minutes=1)
    assert read(play, RELEASE)


def test_another_service_is_not_answered_for() -> None:
    play = served()
    metadata = {"name": "other", "namespace": SYSTEM}
    play.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    with pytest.raises(BackendFailed):
        read(play, RELEASE, "other")


def test_it_can_fail_for_a_while() -> None:
    play = served(fault("fail", "release-file", times=2))
    assert [status(play, RELEASE) for _ in range(2)] == [500, 500]
    assert read(play, RELEASE)


def test_an_image_list_that_fails_is_not_there() -> None:
    play = served(fault("fail", "image-list"))
    assert status(play, f"{LISTS}/current/image_list_all.txt") == 404
    assert read(play, RELEASE)


def test_a_slow_file_is_answered_at_last() -> None:
    play = served(fault("slow", "release-file", seconds=90))
    assert status(play, RELEASE) == 504
    play.wait(seconds=89)
    assert status(play, RELEASE) == 504
    play.wait(seconds=1)
    assert read(play, RELEASE)


def test_the_same_is_served_over_http() -> None:
    play = served()
    with serving(play.world.repo.read) as url:
        with urllib.request.urlopen(f"{url}/{SYSTEM}/{NAME}/{RELEASE}") as answer:
            assert answer.read().decode() == read(play, RELEASE)
        for path, code in ((f"{SYSTEM}/{NAME}/nothing", 404), (f"{SYSTEM}/absent/{RELEASE}", 503), ("", 503)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(f"{url}/{path}")
            caught.value.close()
            assert caught.value.code == code
