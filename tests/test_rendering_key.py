"""The loop renders again whenever templates could see something else, and not for a heartbeat."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from support.rehearsals import inputs_of, template_set

from reconcile.loop.rendering import Rendering
from reconcile.status.plan_body import status_of
from renderer.documents import Inputs, plan_of
from renderer.model.rendered import RenderedStep
from renderer.render.step_cache import StepCache

pytestmark = pytest.mark.slow

SEEN_KINDS = ("Node", "Machine", "Secret", "Version", "Setting")
NAMES = [("plan", "metadata", "name"), ("plan", "apiVersion"), ("plan", "kind")]
"""Another one would be another plan."""
WITH_THE_TOOLKIT = ("Job", "Plan", "Deployment")
STATUS = {
    "currentPhase": "NodeUpgrading",
    "previousVersion": "v1.7.1",
    "isoImageID": "harvester-system/an-iso",
    "nodeUpgradeStatuses": {"charlie-3-tink-system": {"state": "ImagePreloaded"}},
}


def world(example: str) -> dict[str, Any]:
    """The plan with what the loop has recorded, the objects that rendering starts from, and what was fetched."""
    inputs: Inputs = inputs_of(example)
    assert inputs.release is not None
    by_kind = {source.body["kind"]: source.body for source in inputs.objects if source.body["kind"] in SEEN_KINDS}
    status = {**STATUS, "releaseMetadata": dict(inputs.release.body), "version": {"isoURL": "http://192.0.2.9/a.iso"}}
    plan = {**plan_of(inputs).body, "status": status}
    fetched = {"previous": ["rancher/a:v1", "rancher/b:v1"], "current": ["rancher/b:v1"]}
    return copy.deepcopy({"plan": plan, "objects": [*by_kind.values()], "fetched": fetched})


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for key, item in enumerate(value[: None if path == ("objects",) else 1]):
            yield from leaves(item, (*path, key))
    else:
        yield path


def changed(value: Any, paths: Iterable[tuple[Any, ...]]) -> Any:
    """A copy that differs in these leaves."""
    made = copy.deepcopy(value)
    for path in paths:
        inner = made
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = another(inner[path[-1]])
    return made


def another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case dict():
            return {"x": "x"}
        case list():
            return ["x"]
    return f"{value or ''}x"


def rendering(steps: StepCache | None = None) -> Rendering:
    shop = template_set()
    made = Rendering(shop.catalog, shop.templates, shop.spec_fields)
    made.new_cache = lambda: steps
    return made


def digest(by: Rendering, given: dict[str, Any]) -> str:
    return by.of(given["plan"], status_of(given["plan"]), given["objects"], given["fetched"]).digest


def test_nothing_that_templates_read_can_change_without_a_new_rendering() -> None:
    """Each leaf of the inputs in turn is another one: a loop that has rendered before, one that finds the steps of all
    others, and a new one agree. Leaves that make no difference together make none alone."""
    given, loop, shared = world("three-node"), rendering(), StepCache(limit=300)
    first, stale, different = digest(loop, given), [], list[tuple[Any, ...]]()
    assert digest(rendering(shared), given) == first
    parts = [[path for path in leaves(given) if path not in NAMES]]
    while parts:
        part = parts.pop()
        other = changed(given, part)
        found = digest(rendering(), other)
        if found != first and len(part) > 1:
            middle = len(part) // 2
            parts += [part[middle:], part[:middle]]
            continue
        different += part if found != first else []
        stale += part if {digest(loop, other), digest(rendering(shared), other)} != {found} else []
        digest(loop, given)
    assert stale == []
    assert len(different) >= 8
    assert {path[0] for path in different} == set(given), "a part of the inputs that nothing here reads proves nothing"


def test_a_step_is_rendered_again_only_where_it_has_looked_at_what_has_changed() -> None:
    given, loop = world("three-node"), rendering()
    given["plan"]["metadata"]["annotations"] = {"harvesterhci.io/theirs": "a"}
    first = steps(loop, given)
    given["fetched"] = {"read by nobody": ["a", "c"], **given["fetched"]}
    given["plan"]["metadata"]["annotations"] = {"harvesterhci.io/theirs": "b"}
    assert [item.id for item, then in zip(steps(loop, given), first, strict=True) if item is not then] == []
    given["plan"]["metadata"]["annotations"] = {"management.harvesterhci.io/upgrade-toolkit-image": "mirror/toolkit"}
    again = [item.id for item, then in zip(steps(loop, given), first, strict=True) if item is not then]
    assert 3 <= len(again) < len(first) / 2
    assert all(any(m.ref.kind in WITH_THE_TOOLKIT for m in item.manifests) for item in first if item.id in again)


def test_a_loop_finds_the_steps_that_another_one_has_made_of_what_they_look_at() -> None:
    given, shared = world("three-node"), StepCache(limit=2)
    first = steps(rendering(shared), given)
    given["fetched"] = {"read by nobody": ["a", "c"], **given["fetched"]}
    given["plan"]["metadata"]["annotations"] = {"harvesterhci.io/theirs": "a"}
    found = steps(rendering(shared), given)
    assert [item.id for item, then in zip(found, first, strict=True) if item is not then] == []
    given["plan"]["metadata"]["annotations"] = {"management.harvesterhci.io/upgrade-toolkit-image": "mirror/toolkit"}
    again = steps(rendering(shared), given)
    assert 3 <= sum(item is not then for item, then in zip(again, first, strict=True)) < len(first) / 2
    assert [item.digest for item in again] == [item.digest for item in steps(rendering(), given)]


def steps(by: Rendering, given: dict[str, Any]) -> list[RenderedStep]:
    rendered = by.of(given["plan"], status_of(given["plan"]), given["objects"], given["fetched"])
    return [item for phase in rendered.phases for item in phase.steps]


def test_a_heartbeat_brings_no_new_rendering() -> None:
    given, loop = world("three-node"), rendering()
    first = loop.of(given["plan"], status_of(given["plan"]), given["objects"], given["fetched"])
    node = next(place for place, body in enumerate(given["objects"]) if body["kind"] == "Node")
    other = copy.deepcopy(given)
    other["objects"][node]["status"]["conditions"] = []
    assert loop.of(other["plan"], status_of(other["plan"]), other["objects"], other["fetched"]) is first
