"""The image watch: which news of an image moves a plan, and which is none.

Ours differs: the existing manager maps an image to plans and filters its events before they reach the queue. Here each
kind and namespace that a plan looks at is watched, any change there brings a round, and a round that finds nothing new
leaves no trace. The cases are asserted as what they come to: what is written, said and reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from controlplane.waiting import PATIENCE, until
from support.rehearsals import template_set
from support.rendered_plans import Json
from support.small_cluster import Small, world
from test_cases_loop import image

from reconcile.loop.round import Round
from reconcile.loop.setup import ManagerConfig, assemble_manager
from reconcile.schemas import packaged_schemas
from renderer.model.ref import ref_of

pytestmark = pytest.mark.slow

IMAGE, OURS = "VirtualMachineImage", "up-iso"


def downloading(**spec: Any) -> Small:
    """A plan that waits for its image, and reads from watches."""
    found = world(**spec)
    found.restart()
    found.rounds()
    assert found.phase == "ISODownloading"
    return found


def live(found: Small, name: str = OURS) -> Any:
    body = found.get("harvesterhci.io/v1beta1", IMAGE, name, "harvester-system")
    assert body is not None
    return body


def traces(found: Small) -> tuple[int, Any, list[tuple[str, str]]]:
    """What a round that finds nothing new must leave as it is."""
    return len(found.scene.client.log.writes), found.plan, found.events()


def ours_goes_on(found: Small) -> None:
    owners = [owner["kind"] for owner in live(found)["metadata"]["ownerReferences"]]
    assert owners == ["UpgradePlan"]
    found.patch(live(found), {"status": {"progress": 40}})


def its_namesake_elsewhere_is_imported(found: Small) -> None:
    body = image(OURS, "True")
    found.create({**body, "metadata": {**body["metadata"], "namespace": "default"}})


def another_comes(found: Small) -> None:
    found.create(image("another", "True"))


def another_goes(found: Small) -> None:
    body = live(found, "theirs")
    kind = found.scene.deps.kinds.row(body["apiVersion"], body["kind"]).kind
    found.scene.cluster.client().delete(kind, ref_of(body))


def it_is_labelled_and_its_import_is_as_before(found: Small) -> None:
    found.patch(live(found), {"metadata": {"labels": {"a": "b"}}, "status": {"progress": 40}})


@pytest.mark.parametrize(
    ("happens", "spec"),
    [
        pytest.param(ours_goes_on, {}, id="ac-19"),
        pytest.param(its_namesake_elsewhere_is_imported, {}, id="ac-20"),
        pytest.param(another_comes, {}, id="ac-22-created"),
        pytest.param(another_goes, {}, id="ac-22-deleted"),
        pytest.param(it_is_labelled_and_its_import_is_as_before, {"image": OURS}, id="ac-25"),
    ],
)
def test_what_is_no_news_leaves_no_trace(happens: Callable[[Small], None], spec: Json) -> None:
    more = [image("theirs", "True"), *([image(OURS, "Unknown")] if spec else [])]
    found = downloading(more=more, **spec)
    before = traces(found)
    happens(found)
    found.rounds()
    assert traces(found) == before


@contextmanager
def loop_in_a_process(found: Small) -> Iterator[list[Round]]:
    """The manager with its threads, over the small cluster, and the rounds that it has had. No time passes for its
    queue: what does not wake a plan leaves it asleep."""
    rounds: list[Round] = []
    manager = assemble_manager(
        ManagerConfig(
            cluster=found.scene.client,
            template_set=template_set(),
            schemas=packaged_schemas(),
            now=found.scene.clock.now,
            clock=lambda: 0.0,
            random=lambda: 0.5,
            dial=lambda address, port: None,
            log=lambda what, fields: None,
            identity="test",
            on_round=rounds.append,
        )
    )
    worker = Thread(target=manager.run, daemon=True)
    worker.start()
    try:
        yield rounds
    finally:
        manager.stop()
        worker.join(timeout=PATIENCE)


def asleep(rounds: list[Round]) -> bool:
    return bool(rounds) and not rounds[-1].again


def test_an_import_that_ends_moves_the_plan_on_and_other_news_only_wakes_it() -> None:
    """Images of other namespaces do not even wake it: they are not watched."""
    found = downloading()
    with loop_in_a_process(found) as rounds:
        until("it has looked", lambda: asleep(rounds))
        before, looked = traces(found), len(rounds)
        another_comes(found)
        until("it has looked again", lambda: len(rounds) > looked and asleep(rounds))
        assert traces(found) == before
        found.patch(live(found), {"status": {"conditions": [{"type": "Imported", "status": "True"}]}})
        until("the plan goes on", lambda: found.phase == "RepoCreating")
    asked = [request for request in found.scene.client.log.requests if request.kind == IMAGE and not request.writes]
    assert {request.namespace for request in asked} == {"harvester-system"}
