"""What the loop does where another upgrade runs, and where the image lists of a release are missing or empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.manual_actors import REPO
from support.small_cluster import Small, upgrading, world

from reconcile.cluster.errors import BackendFailed
from reconcile.status.plan import SUCCEEDED
from renderer.model.ref import Ref

# ----------------------------------------------------------------------------------------------- the built-in upgrade

UPGRADE = {
    "apiVersion": "harvesterhci.io/v1beta1",
    "kind": "Upgrade",
    "metadata": {
        "name": "built-in",
        "namespace": "harvester-system",
        "labels": {"harvesterhci.io/upgradeState": "UpgradingNodes"},
    },
    "spec": {"version": "v1.8.0"},
}


def test_a_plan_waits_for_the_built_in_upgrade() -> None:
    """The loop's half: it is named, and the plan begins once it has ended. Admission is to refuse such a plan."""
    found = world()
    found.create(UPGRADE)
    found.rounds()
    available = found.condition("Available")
    assert (available["status"], available["reason"]) == ("False", "ConcurrentUpgradeBlocked")
    assert available["message"] == 'another upgrade "built-in" is in progress'
    assert (found.phase, found.plan["metadata"].get("finalizers")) == ("", None)
    found.patch(UPGRADE, {"metadata": {"labels": {"harvesterhci.io/upgradeState": "Succeeded"}}})
    found.rounds()
    assert (found.phase, found.condition("Available")["status"]) == ("ISODownloading", "True")


# -------------------------------------------------------------------------------------------------- the image cleanup

PREVIOUS, CURRENT = (
    f"harvester-iso/bundle/harvester/images-lists-archive/{version}/image_list_all.txt"
    for version in ("v1.7.1", "current")
)
RELEASE = "harvester-iso/harvester-release.yaml"
FILES = {RELEASE: b"harvester: v1.8.0\n", PREVIOUS: b"rancher/old:v1\nrancher/same:v1\n", CURRENT: b"rancher/same:v1\n"}


def cleaning_up(files: Mapping[str, bytes]) -> Small:
    """All nodes are upgraded, and the repository has these files and no others."""

    def read(service: Ref, path: str, query: Mapping[str, str]) -> bytes:
        if path not in files:
            raise BackendFailed(service, path, 404, "404 Not Found")
        return files[path]

    found = upgrading(states={"n1": "PostDrained", "n2": "PostDrained"})
    found.create(REPO)
    found.scene.cluster.backends.serve_read("Service", "proxy", read)
    found.set_status(currentPhase="CleaningUp")
    found.rounds()
    return found


def purged(found: Small) -> list[Any]:
    """What the images are that nodes are told to remove."""
    plans = [body for body in found.all("Plan") if body["metadata"]["name"] == "up-image-cleanup"]
    return [env["value"] for body in plans for env in body["spec"]["upgrade"]["envs"]]


def test_the_image_cleanup_of_these_cases_has_something_to_remove() -> None:
    assert purged(cleaning_up(FILES)) == ["rancher/old:v1"]


@pytest.mark.slow
@pytest.mark.parametrize("lacking", [PREVIOUS, CURRENT], ids=["previous", "current"])
def test_without_an_image_list_the_cleanup_is_skipped(lacking: str) -> None:
    found = cleaning_up({path: content for path, content in FILES.items() if path != lacking})
    assert found.phase == "CleanedUp"
    assert purged(found) == []
    message = "Image list not available in upgrade repository; skipping stale image cleanup"
    assert [told for told in found.events() if told[0] == "ImageCleanupSkipped"] == [("ImageCleanupSkipped", message)]
    found.to_its_end()
    assert found.phase == SUCCEEDED


def test_a_repository_that_has_nothing_at_all_does_not_prove_it() -> None:
    """Ours differs: a 404 counts where the release file is there; a server that has lost its ISO is asked again."""
    found = cleaning_up({})
    assert (found.phase, purged(found)) == ("CleaningUp", [])
    assert "HTTP 404" in found.condition("Progressing")["message"]
    assert "ImageCleanupSkipped" not in dict(found.events())


def test_an_empty_current_list_is_an_error_and_removes_nothing() -> None:
    files = {**FILES, CURRENT: b"\n"}
    found = cleaning_up(files)
    said = "the list is empty, so every image would be removed"
    assert (found.phase, purged(found)) == ("CleaningUp", [])
    assert said in found.condition("Progressing")["message"]
    found.scene.clock.advance(3600)
    found.rounds()
    assert found.condition("Degraded")["status"] == "True"
    assert said in found.condition("Degraded")["message"]
    files[CURRENT] = FILES[CURRENT]
    found.rounds()
    assert purged(found) == ["rancher/old:v1"]
