"""Upgrades in the field that waited for others: what `explain` says of each. A case is a file in tests/cases/waits.

The comment on top: `world` is where the upgrade stands, `hours` how long it has stood there, `says` and `never` are
texts that the explanation has and has not. The plan is Degraded in all of them, and none has failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.answer_schemas import validate
from support.rehearsals import ROOT
from support.rendered_plans import Json, plan
from support.small_cluster import PRE, Small, being_prepared, drained, rebooting, upgrading, waiting_for_rancher, world

from reconcile.report.explain import explanation_lines, explanation_of
from renderer.model.document_type import EXPLAIN_REPORT
from renderer.yaml_io import parse

pytestmark = pytest.mark.slow

CASES = sorted((ROOT / "tests" / "cases" / "waits").glob("*.yaml"))


def importing(more: list[Json]) -> Small:
    found = world(more=more)
    found.rounds()
    return found


def loading(more: list[Json]) -> Small:
    found = upgrading("n1", "n2", states={}, more=[body for body in more if body["kind"] != "Plan"])
    found.set_status(currentPhase="MetadataPopulated")
    found.rounds()
    assert found.phase == "ImagePreloading"
    for item in (body for body in more if body["kind"] == "Plan"):
        found.patch(item, {"status": item["status"]}, "status")
    found.rounds()
    return found


def taken_off(more: list[Json]) -> Small:
    """Rancher has drained n1, whatever its volumes, and has taken its request back."""
    accepted = plan(annotations={"management.harvesterhci.io/accept-risk": "volume-blocks-drain"})
    found = drained(waiting_for_rancher(more=more, given=accepted))
    found.ask("n1", PRE, None)
    cordon(found, "n1")
    found.rounds()
    return found


def cordoned(more: list[Json]) -> Small:
    found = rebooting(waiting_for_rancher(more=more))
    found.ask("n1", PRE, None)
    found.reboot("n1")
    cordon(found, "n1")
    found.rounds()
    return found


def cordon(found: Small, name: str) -> None:
    found.patch(found.get("v1", "Node", name), {"spec": {"unschedulable": True}})


WORLDS: Mapping[str, Callable[[list[Json]], Small]] = {
    "the ISO is being imported": importing,
    "n1 and n2 load images": loading,
    "waits for Rancher": lambda more: waiting_for_rancher(more=more),
    "n1 is being drained": lambda more: being_prepared(waiting_for_rancher(more=more)),
    "n1 is drained": taken_off,
    "n1 is upgraded and stays cordoned": cordoned,
}


def told(path: Path, key: str) -> list[str]:
    return re.findall(rf"^# {key}: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


def explained(found: Small) -> Any:
    model = explanation_of(found.scene.reconciler.look(found.name), found.scene.deps, found.scene.clock.now())
    validate(EXPLAIN_REPORT, model)
    return model


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_explanation_passes_on_what_others_say(case: Path) -> None:
    [name], [hours] = told(case, "world"), told(case, "hours")
    found = WORLDS[name]([document.value for document in parse(case.read_text(encoding="utf-8"), case.name)])
    found.scene.clock.advance(float(hours) * 3600)
    found.rounds()
    model = explained(found)
    text = "\n".join(explanation_lines(model))
    assert told(case, "source")
    assert [part for part in told(case, "says") if part not in text] == [], text
    assert [part for part in told(case, "never") if part in text] == [], text
    assert (found.condition("Degraded")["status"], model["failed"]) == ("True", False)


def test_reports_are_the_usual_progress_until_it_takes_too_long() -> None:
    [case] = [path for path in CASES if path.stem.startswith("13-")]
    found = taken_off([document.value for document in parse(case.read_text(encoding="utf-8"), case.name)])
    [first, *_] = [cause for cause in explained(found)["causes"] if "Rancher reports" in cause["what"]]
    assert first["remedy"] == "wait; Rancher is working on it"
