"""Log lines: their levels, and what they say of rounds, as JSON and as text."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from support.answer_schemas import SCHEMAS, validator
from support.recordings import recording
from support.source_code import modules, nodes

from reconcile.loop.logs import LogLevel, json_lines, redacted, text_lines
from reconcile.loop.round import Round
from reconcile.loop.round_log import MESSAGES, RoundLog
from renderer.redaction import packaged_redactor

pytestmark = pytest.mark.lane("recordings")

NOW = datetime(2026, 11, 29, 12, 0, 1, tzinfo=UTC)


def test_a_line_as_json_and_as_text() -> None:
    as_json, as_text = StringIO(), StringIO()
    for log in (json_lines(as_json, lambda: NOW), text_lines(as_text, lambda: NOW)):
        log("applied", {"plan": "a", "object": "Job x/y", "empty": ""})
    assert json.loads(as_json.getvalue()) == {
        "time": "2026-11-29T12:00:01.000+00:00",
        "level": "info",
        "msg": "applied",
        "plan": "a",
        "object": "Job x/y",
        "empty": "",
    }
    assert as_text.getvalue() == '12:00:01 INFO    applied plan=a object="Job x/y"\n'


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        (LogLevel.DEBUG, ["round", "leading", "away", "waiting", "bug"]),
        (LogLevel.INFO, ["leading", "away", "waiting", "bug"]),
        (LogLevel.WARNING, ["away", "waiting", "bug"]),
        (LogLevel.ERROR, ["bug"]),
    ],
)
def test_lines_below_the_level_are_left_out(least: LogLevel, expected: list[str]) -> None:
    stream = StringIO()
    log = redacted(json_lines(stream, lambda: NOW, least), packaged_redactor())
    for what in ("round", "leading", "away", "waiting", "bug"):
        log(what, {"level": LogLevel.WARNING} if what == "waiting" else {})
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == expected


def logged(example: str, least: LogLevel = LogLevel.INFO) -> list[Any]:
    stream = StringIO()
    round_log = RoundLog(json_lines(stream, lambda: NOW, least))
    for _, done in recording(example):
        round_log(done)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.slow
def test_a_whole_upgrade_says_of_each_write_where_it_belongs() -> None:
    lines = logged("three-node")
    phases = [line["phase"] for line in lines if line["msg"] == "phase"]
    assert phases[0] == "Initializing"
    assert phases[-1] == "Succeeded"
    (pre_drain, *_) = [line for line in lines if line["msg"] == "applied" and line.get("step") == "PreDrain"]
    assert pre_drain["phase"] == "NodeUpgrading"
    assert pre_drain["level"] == "info"
    assert pre_drain["object"].startswith("Job harvester-system/")
    assert pre_drain["node"] in pre_drain["object"]
    assert {"borrowed", "returned", "removed"} <= {line["msg"] for line in lines}
    assert {line["level"] for line in lines if line["msg"] == "waiting" and "volume" in line["why"]} == {"warning"}
    assert "round" not in {line["msg"] for line in lines}


@pytest.mark.slow
def test_the_same_wait_is_told_once() -> None:
    waits = [line for line in logged("three-node") if line["msg"] == "waiting"]
    asked = [line for line in waits if line["why"] == "waiting for Rancher to request the drain of this node"]
    assert [line.get("nodes", 1) for line in asked] == [3]


def test_each_round_is_seen_at_the_level_debug() -> None:
    rounds = [line for line in logged("three-node", LogLevel.DEBUG) if line["msg"] == "round"]
    assert len(rounds) == len([done for _, done in recording("three-node") if done.decision])


def test_what_could_not_be_rendered_is_an_error() -> None:
    stream = StringIO()
    RoundLog(json_lines(stream, lambda: NOW, LogLevel.ERROR))(Round(name="a", plan={}, problems=("no such name",)))
    (line,) = (json.loads(text) for text in stream.getvalue().splitlines())
    assert (line["msg"], line["plan"], line["problems"]) == ("not decided", "a", ["no such name"])


LINE = validator("log-line")


def test_each_line_of_a_whole_upgrade_fits_the_schema() -> None:
    lines = logged("single-node", LogLevel.DEBUG)
    assert {"round", "phase", "waiting", "applied"} <= {line["msg"] for line in lines}
    assert [error.message for line in lines for error in LINE.iter_errors(line)] == []


@pytest.mark.parametrize(
    ("what", "fields", "wrong"),
    [
        ("away", {"plan": "a", "why": "connection refused"}, ""),
        ("values from the environment", {"values": {"kubectlImage": "a/b:c"}}, ""),
        ("away", {"kubectlImage": "a/b:c"}, "('kubectlImage' was unexpected)"),
        ("gone away", {}, "'gone away' is not one of"),
        ("round", {"did": -1}, "-1 is less than the minimum of 0"),
    ],
)
def test_the_schema_knows_each_message_and_its_fields(what: str, fields: dict[str, Any], wrong: str) -> None:
    stream = StringIO()
    json_lines(stream, lambda: NOW, LogLevel.DEBUG)(what, fields)
    found = [error.message for error in LINE.iter_errors(json.loads(stream.getvalue()))]
    assert (wrong in found[0]) if wrong else found == []


LOGGING = ("reconcile/admission/", "reconcile/loop/", "reconcile/pod_logs/", "reconcile/cli/run.py")


def messages_in_code() -> set[str]:
    """The first argument of every call that logs a line."""
    calls = [
        node
        for file, tree in modules().items()
        if file.startswith(LOGGING)
        for node in nodes(tree)
        if isinstance(node, ast.Call) and node.args
    ]
    logging = [call.args[0] for call in calls if _name(call.func) in ("log", "_log", "say", "_say", "lines")]
    return {str(argument.value) for argument in logging if isinstance(argument, ast.Constant)}


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@pytest.mark.slow
def test_the_schema_lists_what_is_logged_and_nothing_else() -> None:
    """Two messages are chosen by who leads, and those of writes by the kind of the action."""
    chosen = {"leading", "standing by", *MESSAGES.values()}
    assert messages_in_code() | chosen == set(SCHEMAS["log-line"]["properties"]["msg"]["enum"])
