"""A plan whose own image cannot be imported: to retry it, the image comes first."""

from __future__ import annotations

import pytest
from support.small_cluster import Small, world

from reconcile.report.ways_out import ways_out
from reconcile.status.plan import FAILED
from renderer.model.ref import Body

pytestmark = pytest.mark.slow

MINE = "repair VirtualMachineImage harvester-system/iso-of-mine first, which the plan does not make"


IMAGE: Body = {
    "apiVersion": "harvesterhci.io/v1beta1",
    "kind": "VirtualMachineImage",
    "metadata": {"name": "iso-of-mine", "namespace": "harvester-system"},
    "spec": {"backend": "cdi", "displayName": "iso", "sourceType": "upload"},
    "status": {"conditions": [{"type": "Imported", "status": "Unknown"}]},
}


def effect_of_retry(found: Small) -> str:
    (way,) = [way for way in ways_out(found.round()) if way.way == "retry"]
    assert way.allowed
    return way.effect


def failed(found: Small) -> Small:
    """The image that the plan waits for has been given up."""
    found.rounds()
    assert found.phase == "ISODownloading"
    [image] = found.all("VirtualMachineImage")
    found.patch(image, {"status": {"conditions": [{"type": "Imported", "status": "False"}]}})
    found.rounds()
    assert found.phase == FAILED
    return found


def test_the_image_that_a_plan_was_given_is_to_be_repaired_before_a_retry() -> None:
    assert effect_of_retry(failed(world("n1", more=[IMAGE], image="iso-of-mine"))).startswith(MINE)


def test_an_image_of_the_plan_s_own_is_made_anew_by_the_retry() -> None:
    assert effect_of_retry(failed(world("n1"))).startswith("runs ISODownload/Image again, under a new name")
