"""An image is imported, tried again, given up or never finished; its claim lives as long as it does."""

from __future__ import annotations

from typing import Any

import pytest

from actors.playing import SYSTEM, Play, condition, fault
from reconcile.simulator.actors.actor_client import CLAIM, IMAGE
from reconcile.simulator.actors.simulation_log import SimulationEventType

STEP = "ISODownload/Image"
NAME = "hvst-upgrade-864fh-iso"


def image(play: Play) -> Any:
    return play.get(IMAGE, NAME, SYSTEM)


def test_it_makes_progress_and_then_holds_a_bound_claim_of_its_name() -> None:
    play = Play()
    play.apply(STEP)
    seen = []
    while not condition(image(play), "Imported").startswith("True"):
        play.wait(seconds=60)
        seen.append(image(play)["status"]["progress"])
    assert seen == [0, 25, 25, 50, 50, 75, 75, 100]
    claim = play.get(CLAIM, NAME, SYSTEM)
    assert claim["status"]["phase"] == "Bound"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert condition(image(play), "RetryLimitExceeded") == "False"


def test_it_is_given_up_after_more_failures_than_retries() -> None:
    """As Harvester does where it cannot look at the address; `Imported` is never told of then."""
    play = Play("three-node", fault("fail", "image-import"))
    play.apply(STEP)
    play.wait(seconds=25)
    assert image(play)["status"]["failed"] == 3
    assert condition(image(play), "RetryLimitExceeded") == "False"
    play.run()
    assert image(play)["status"]["failed"] == 4
    said = {each["type"]: (each["status"], each["message"]) for each in image(play)["status"]["conditions"]}
    error = "failed to fetch image virtual size: content length is less than 128 bytes"
    why = f"retry attempted 3/3 failed due to error: {error}"
    assert said == {"RetryLimitExceeded": ("True", why), "Initialized": ("False", why)}
    assert play.get(CLAIM, NAME, SYSTEM) is None
    assert play.told(SimulationEventType.IMAGE_FAILED) == [NAME]


@pytest.mark.slow
def test_failures_within_the_limit_only_take_time() -> None:
    play = Play("three-node", fault("fail", "image-import", times=2))
    play.finish(STEP)
    assert image(play)["status"]["failed"] == 2
    assert condition(image(play), "Imported") == "True Imported"


@pytest.mark.slow
def test_one_that_stalls_never_ends() -> None:
    play = Play("three-node", fault("stall", "image-import"))
    play.apply(STEP)
    play.run()
    assert condition(image(play), "Imported") == "Unknown Importing"
    assert play.world.next_due() is None


@pytest.mark.slow
def test_an_image_that_is_there_already_only_gets_its_claim() -> None:
    play = Play("air-gap")
    (given,) = play.all(IMAGE, SYSTEM)
    play.patch(given, {"status": {"conditions": [{"type": "Imported", "status": "True"}]}})
    play.settle()
    assert play.get(CLAIM, given["metadata"]["name"], SYSTEM)["status"]["phase"] == "Bound"
    assert play.told(SimulationEventType.IMAGE_IMPORTED) == []


@pytest.mark.slow
def test_the_claim_goes_with_the_image_once_no_pod_uses_it() -> None:
    play = Play()
    play.finish(STEP)
    (deployment,) = play.finish("RepoCreate/Deployment")
    play.delete(image(play))
    play.settle()
    assert play.get(CLAIM, NAME, SYSTEM)["metadata"]["deletionTimestamp"]
    play.delete(deployment)
    play.settle()
    assert play.get(CLAIM, NAME, SYSTEM) is None
