"""The catalogue of reasons names every reason that the code and the templates give, and no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.given_reasons import Found, Given, in_code, in_templates
from support.reference.sources import document, phases, reasons, schema
from support.source_code import modules

pytestmark = pytest.mark.lane("our own code")

LISTED = {item["reason"] for item in reasons()}
SIMULATED = (
    "reconcile/simulator/",
    "reconcile/simulator/apiserver/",
    "reconcile/simulator/actors/",
    "reconcile/simulator/rehearsal/",
)
"""The simulation speaks for the API server and for others' controllers; their reasons are not ours."""

OF_THE_API = "reconcile/admission/answer.py"
"""An admission webhook answers with the causes that the API itself has (field.ErrorType of apimachinery)."""

COMPUTED: Mapping[str, Sequence[str]] = {
    "reconcile/decide/plan_end.py: phase, a parameter of _ended": ("Succeeded", "Failed"),
}
"""Where a reason cannot be followed, and what it can be there."""


@cache
def found() -> Found:
    return in_code({name: tree for name, tree in modules().items() if not name.startswith(SIMULATED)})


def given() -> list[Given]:
    computed = [Given(reason=word, place=place) for place, words in COMPUTED.items() for word in words]
    ours = (item for item in found().given if not item.place.startswith(OF_THE_API))
    return [*ours, *in_templates(dict(phases())), *computed]


def test_every_reason_is_listed() -> None:
    missing = sorted({f"{item.reason} ({item.place})" for item in given() if item.reason not in LISTED})
    assert missing == [], "add it to schemas/reference/reasons.yaml, then run `make reference`"


def test_every_listed_reason_is_given() -> None:
    assert sorted(LISTED - {item.reason for item in given()}) == []


def test_no_reason_is_computed_out_of_sight() -> None:
    assert sorted(set(found().unclear)) == sorted(COMPUTED)


def test_the_catalogue_has_the_form_of_its_schema() -> None:
    whole = document("schemas/reference/reasons.yaml")
    assert [error.message for error in Draft202012Validator(schema("reasons")).iter_errors(whole)] == []
    names = [item["reason"] for item in reasons()]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("item", reasons(), ids=lambda item: item["reason"])
def test_an_entry_says_which_condition_and_which_event(item: Mapping[str, object]) -> None:
    where = item["where"]
    assert isinstance(where, (list, tuple))
    assert ("condition" in where) == ("conditions" in item)
    assert ("event" in where) == ("event" in item)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("problem('Broken', 'a text')", {"Broken"}),
        ("problem(reason='Broken', message='')", {"Broken"}),
        ("def f(bad):\n    word = 'Broken' if bad else 'Late'\n    problem(word, '')", {"Broken", "Late"}),
        ("def g():\n    return 'Broken', 'text'\ndef f():\n    word, text = g()\n    problem(word, text)", {"Broken"}),
        ("TABLE = {'a': ('Broken', 1)}\ndef f(k):\n    word, n = TABLE[k]\n    problem(word, '')", {"Broken"}),
        ("problem({1: 'Broken', 2: 'Late'}[k], '')", {"Broken", "Late"}),
        ("problem('a sentence that a probe has as its reason', '')", set()),
    ],
)
def test_a_reason_is_followed_back_to_its_word(code: str, expected: set[str]) -> None:
    definition = "def problem(reason, message):\n    return reason\n"
    assert {item.reason for item in in_code({"file.py": ast.parse(definition + code)}).given} == expected


@pytest.mark.parametrize("word", ["f'No{kind}'", "kind", "kind + 'Missing'"])
def test_a_reason_that_is_computed_is_reported(word: str) -> None:
    code = f"def problem(reason, message):\n    return reason\ndef f(kind):\n    problem({word}, '')\n"
    assert in_code({"file.py": ast.parse(code)}).unclear != []


def test_an_exception_named_after_its_reason_is_found() -> None:
    root = "class Failure(Exception):\n    def __init__(self):\n        reason = type(self).__name__\n"
    code = f"{root}class Gone(Failure): ..."
    assert [item.reason for item in in_code({"file.py": ast.parse(code)}).given] == ["Gone"]


def test_events_of_phases_have_the_type_that_the_catalogue_says() -> None:
    listed = {item["reason"]: item["event"] for item in reasons() if "event" in item}
    declared = {event["reason"]: event["type"] for _, phase in phases() for event in _events(phase)}
    assert declared.items() <= listed.items()
    assert declared != {}


def _events(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every event that is declared anywhere below."""
    if isinstance(value, Mapping):
        if {"type", "reason", "message"} <= set(value):
            yield value
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _events(item)
