"""Known causes as files: what overlays may say, and what is refused since it would do nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from support.preflight_cases import template_set
from support.rendered_plans import ROOT, overlaid

from reconcile.diagnosis.cause_context import names_of
from reconcile.diagnosis.diagnosing import known_causes
from reconcile.diagnosis.situation import Situation
from reconcile.preflight.given_objects import GivenObjects
from renderer.assemble import open_template_set
from renderer.catalog.cause_rules import FUNCTIONS
from renderer.catalog.causes import DeclaredCause
from renderer.errors import Problems
from renderer.yaml_io import dump

PATTERN = {"every": {"apiVersion": "v1", "kind": "Node", "atLeast": 0}}
CAUSE: dict[str, Any] = {
    "id": "site-node-hot",
    "title": "a node is too hot",
    "pattern": {**PATTERN, "all": [{"condition": {"type": "Hot", "status": "True"}}]},
    "what": "is hot",
    "remedy": "cool it",
    "source": "site",
}


def loaded(*causes: dict[str, Any]) -> tuple[DeclaredCause, ...]:
    text = dump({"apiVersion": "templates.upgradeplan/v1", "kind": "Causes", "causes": list(causes)})
    return known_causes(open_template_set(overlaid({"diagnosis/site.yaml": text})).catalog)


def refused(*causes: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(Problems) as error:
        loaded(*causes)
    assert all(problem.file and problem.line and problem.remedy for problem in error.value.problems)
    return [(problem.reason, problem.message) for problem in error.value.problems]


@pytest.mark.slow
def test_an_overlay_adds_a_cause_after_those_that_are_there() -> None:
    assert loaded(CAUSE)[-1].cause.id == "site-node-hot"


@pytest.mark.slow
def test_an_overlay_replaces_a_cause_in_its_place() -> None:
    before = [item.id for item in loaded(CAUSE)]
    found = loaded({**CAUSE, "id": "disk-pressure"}, CAUSE)
    assert [item.id for item in found] == before
    assert next(item.cause.title for item in found if item.id == "disk-pressure") == "a node is too hot"


def test_an_overlay_switches_a_cause_off() -> None:
    found = loaded({"id": "disk-pressure", "disabled": True, "reason": "we watch disks"})
    assert [item.cause.off for item in found if item.id == "disk-pressure"] == ["we watch disks"]


LINK = {
    "as": "pod",
    "every": {"apiVersion": "v1", "kind": "Pod", "atLeast": 0},
    "by": {"spec.nodeName": "metadata.name"},
}


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ({"pattern": PATTERN}, "NoPattern", "matches every object"),
        ({"pattern": {"every": {"apiVersion": "v1", "kind": "Noed"}}, "if": "1"}, "UnknownKind", "did you mean 'Node'"),
        ({"phases": ["NodeUpgrad"]}, "UnknownPhase", "did you mean 'NodeUpgrade'"),
        ({"what": None}, "NoWords", "has no what"),
        ({"remedy": None}, "NoRemedy", "has no remedy"),
        ({"unless": ["disk-presure"]}, "UnknownCause", "did you mean 'disk-pressure'"),
        ({"unless": ["site-node-hot"]}, "UnknownCause", "names itself"),
        ({"blame": "pod"}, "InvalidChain", "nothing is called 'pod'"),
        ({"follow": [{**LINK, "from": "host"}]}, "InvalidChain", "nothing is called 'host'"),
        ({"follow": [LINK, LINK]}, "InvalidChain", "two things are called 'pod'"),
        ({"follow": [{**LINK, "as": "upgrade"}]}, "InvalidChain", "two things are called 'upgrade'"),
        ({"pattern": None, "search": {"name": "podz"}}, "InvalidSearch", "did you mean 'pods'"),
        (
            {"pattern": None, "search": {"name": "pods", "says": "("}},
            "InvalidDeclaration",
            "is not a regular expression",
        ),
        ({"pattern": None, "check": "node-redy"}, "UnknownCheck", "did you mean 'node-ready'"),
        ({"follow": [{"as": "line", "log": "(a+)+$"}]}, "InvalidDeclaration", "repeats"),
    ],
)
def test_what_would_do_nothing_is_refused(change: dict[str, Any], reason: str, words: str) -> None:
    cause = {key: value for key, value in {**CAUSE, **change}.items() if value is not None}
    found = refused(cause)
    assert [item for item in found if item[0] == reason and words in item[1]], found


@pytest.mark.slow
def test_one_id_stands_for_one_cause() -> None:
    assert [reason for reason, _ in refused(CAUSE, CAUSE)] == ["CauseConflict"]
    [(reason, message)] = refused({"id": "disk-presure", "disabled": True, "reason": "no"})
    assert (reason, "did you mean 'disk-pressure'" in message) == ("UnknownCause", True)


def test_the_cause_that_the_documentation_shows_can_be_loaded() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    [shown] = [block for block in text.split("```yaml\n")[1:] if "kind: Causes" in block]
    files = {"diagnosis/site.yaml": shown.partition("```")[0]}
    found = known_causes(open_template_set(overlaid(files)).catalog)
    assert found[-1].id == "site-registry-away"


def test_texts_may_call_the_functions_that_there_are_and_no_other() -> None:
    catalog = template_set().catalog
    asked = Situation(
        plan="hvst-upgrade",
        waits=(),
        states={},
        node_states=catalog.node_states,
        now=datetime(2026, 11, 2, 8, tzinfo=UTC),
        look=GivenObjects((), catalog.kinds),
    )
    assert {name for name, value in names_of(asked).items() if callable(value)} == set(FUNCTIONS)
