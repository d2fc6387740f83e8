"""The progress of a plan on a screen: what goes where there is no room, what stays, and what stands out."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Event
from time import monotonic
from typing import Any

import pytest
from support.rehearsals import template_set
from test_rehearsal_progress import Terminal

from reconcile.cli.screen import Screen, newest_lines
from reconcile.loop.round import Round
from reconcile.observe.readings import Readings
from reconcile.probes.look import CERTIFICATES, ReadFailure
from reconcile.report.progress import Model, progress_of
from reconcile.report.progress_view import Tone, progress_lines, progress_view
from reconcile.report.usual_durations import durations_of_plans, durations_of_report
from reconcile.simulator.apiserver.clock import SimulatedClock

AT = "2026-01-01T02:00:00Z"
PHASES = [item.phase for item in template_set().catalog.phases]
SCREEN = (80, 23)


def phase(number: int, state: str) -> Model:
    began = "" if state == "to do" else f"2026-01-01T00:{number:02}:00Z"
    ended = f"2026-01-01T01:{number:02}:00Z" if state == "done" else ""
    name = PHASES[number].name
    return {"name": name, "state": state, "began": began, "ended": ended, "usual": None, "skipped": ""}


def wait(text: str, minute: int, **parts: Any) -> Model:
    since = f"2026-01-01T01:{minute:02}:00Z"
    plain = {"step": "", "node": "", "summary": "", "limit": None, "slow": False, "unknown": False}
    return {**plain, "text": text, "since": since, **parts}


def crowded() -> Model:
    """Thirty nodes, two dozen waits, a dozen loans: ten times what a screen of 24 rows shows."""
    names = [f"node-{number:02}-of-a-site-with-a-long-name" for number in range(30)]
    return {
        "plan": "up",
        "version": "v1.8.0",
        "image": "",
        "phase": "NodeUpgrading",
        "message": "",
        "phases": [phase(n, "done" if n < 6 else "running" if n == 6 else "to do") for n in range(len(PHASES))],
        "nodes": [
            {"name": name, "state": "ImagePreloaded" if n else "WaitingReboot", "reason": "", "message": ""}
            for n, name in enumerate(names)
        ],
        "waits": [
            *(
                wait(f"something of {name} that takes its time, as it does each time", n)
                for n, name in enumerate(names)
            ),
            wait("the newest", 59),
            wait("one that is too long", 1, slow=True, limit=600),
        ],
        "waysOut": [],
        "verification": [],
        "borrowed": [
            {"object": "Node n", "path": f"/spec/a{n}", "goesBackTo": ["a" * 20] * n, "taken": AT} for n in range(12)
        ],
        "problems": ["something is refused"],
        "next": "upgradeplan explain up",
        "at": AT,
    }


@pytest.mark.parametrize("room", [(80, 23), (100, 29), (40, 10), (20, 5), (80, 1)])
def test_a_view_fits(room: tuple[int, int]) -> None:
    columns, rows = room
    lines = progress_view(crowded(), room)
    assert sum(max(1, -(-len(line.text) // columns)) for line in lines) <= max(rows, 2)


def test_what_matters_stays() -> None:
    texts = [line.text for line in progress_view(crowded(), SCREEN)]
    whole = "\n".join(texts)
    assert texts[0].startswith("up to v1.8.0: NodeUpgrading")
    assert "waits for the newest (for 60s)" in whole
    assert "waits for one that is too long (for 59m), longer than 10m" in whole
    assert "… NodeUpgrade" in whole
    assert "problem: something is refused" in whole
    assert texts[-1] == "  next: upgradeplan explain up"
    assert "29 nodes: ImagePreloaded" in whole
    assert "6 phases done" in whole
    assert "borrowed: 12 fields, which will be returned" in whole
    assert "waits for 30 other things" in whole


def test_with_room_everything_is_shown() -> None:
    model = crowded()
    assert [line.text for line in progress_view(model, (200, 200))] == list(progress_lines(model))


def test_failure_stands_out_and_is_not_told_by_colour_alone() -> None:
    failed = {**crowded(), "phase": "Failed", "phases": [{**phase(0, "done")}, {**phase(1, "done"), "state": "failed"}]}
    tones = {line.text.strip()[:12]: line.tone for line in progress_view(failed)}
    assert tones["up to v1.8.0"] is Tone.BAD
    assert tones["✗ ISODownloa"] is Tone.BAD
    assert tones["✓ Initialize"] is Tone.GOOD
    assert tones["problem: som"] is Tone.BAD


def test_what_was_found_after_the_upgrade_is_shown_and_stays_where_there_is_little_room() -> None:
    found = [
        {"check": "upgraded-kubernetes", "outcome": "blocked", "message": "Node n1 runs v1", "remedy": "look"},
        {"check": "vm-restart-required", "outcome": "advised", "message": "VM a/b", "remedy": "restart it"},
    ]
    model = {**crowded(), "phase": "Succeeded", "verification": found}
    texts = [line.text for line in progress_view(model)]
    assert [text.strip() for text in texts if "upgraded-k" in text or "VM a/b" in text or "remedy" in text] == [
        "not as expected: upgraded-kubernetes: Node n1 runs v1",
        "remedy: look",
        "to know: vm-restart-required: VM a/b",
        "remedy: restart it",
    ]
    assert "  not as expected: upgraded-kubernetes: Node n1 runs v1" in [
        line.text for line in progress_view(model, SCREEN)
    ]


def drawn(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **environment}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    with Screen(stream) as screen:
        screen.show(lambda room: progress_view(crowded(), room), ["news"])
    return stream.getvalue()


def test_a_terminal_of_24_rows_shows_it_whole_and_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = drawn(monkeypatch)
    assert "next: upgradeplan explain up" in text
    assert "\x1b[31m" in text


@pytest.mark.parametrize("waits", range(1, 8))
def test_a_terminal_breaks_lines_where_the_view_expects_it(waits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are not torn, so that a line may take a row more than its letters."""
    model = crowded()
    long = " ".join(["x" * 45] * 3)
    model = {**model, "waits": [wait(long, 1)] * waits, "nodes": model["nodes"][:3], "borrowed": model["borrowed"][:2]}
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    stream = Terminal()
    with Screen(stream) as screen:
        screen.show(lambda room: progress_view(model, room), ["news"])
        first = stream.getvalue()
    assert first.count("\n") < 24
    assert "next: upgradeplan explain up" in first, "it would be cut: a view that is too high loses its end"


def test_without_colours_or_a_terminal_it_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    text = drawn(monkeypatch, NO_COLOR="1")
    assert not re.search(r"\x1b\[3[0-7]m", text)
    stream = io.StringIO()
    with Screen(stream) as screen:
        screen.show(newest_lines(["view"]), ["news"])
    assert stream.getvalue() == "news\n"


def test_how_long_a_wait_has_lasted_is_no_news() -> None:
    """A log of an upgrade of hours has a line for what changes, and none each ten seconds."""
    stream = io.StringIO()
    with Screen(stream) as screen:
        for age, text in (("0s", "a"), ("10s", "a"), ("1h 5m", "a"), ("2h", "b")):
            screen.show(newest_lines([]), [f"waits for {text} (for {age}), needs an operator"])
    assert stream.getvalue().splitlines() == [
        "waits for a (for 0s), needs an operator",
        "waits for b (for 2h), needs an operator",
    ]


def test_of_lines_that_follow_each_other_the_last_stay() -> None:
    lines = newest_lines([str(number) for number in range(9)])((80, 3))
    assert [line.text for line in lines] == ["6", "7", "8"]


# ------------------------------------------------------------------------------------------------- usual durations


def plan(name: str, minutes: int, phase_now: str = "Succeeded") -> Mapping[str, Any]:
    times = [(PHASES[1].active, 0), (PHASES[1].completed, minutes)]
    history = [{"phase": p, "phaseTransitionTimestamp": f"2026-01-01T00:{m:02}:00Z"} for p, m in times]
    status = {"currentPhase": phase_now, "phaseTransitionTimestamps": history}
    return {"metadata": {"name": name}, "spec": {"version": "v1"}, "status": status}


def test_a_phase_usually_takes_what_it_took_in_plans_that_succeeded() -> None:
    earlier = [plan("a", 10), plan("b", 30), plan("c", 50), plan("d", 59, "Failed")]
    assert durations_of_plans(earlier, PHASES) == {PHASES[1].name: 1800}
    assert durations_of_plans([], PHASES) == {}


def test_a_rehearsal_says_what_a_phase_usually_takes() -> None:
    phases = [
        {"name": "A", "state": "done", "began": 5, "ended": 65},
        {"name": "B", "state": "running", "began": 65, "ended": None},
    ]
    assert durations_of_report({"phases": phases}) == {"A": 60}


@pytest.mark.parametrize(
    ("state", "expected"), [("running", "for 119m, usually 25m"), ("to do", "usually 25m"), ("done", "60m")]
)
def test_a_phase_says_how_long_it_takes_and_usually_took(state: str, expected: str) -> None:
    model = {**crowded(), "phases": [{**phase(1, state), "usual": 1500}]}
    assert progress_view(model)[1].text.split("ISODownload", 1)[1].strip() == expected


# ------------------------------------------------------------------------------------------------------------- next


def round_of(state: str, paused: list[str]) -> Round:
    spec = {"version": "v1", "nodeUpgradeOption": {"pauseNodes": paused}}
    status = {"currentPhase": "NodeUpgrading", "nodeUpgradeStatuses": {"n1": {"state": state}}}
    return Round(name="up", plan={"metadata": {"name": "up"}, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("paused", "expected"), [(["n1"], "upgradeplan resume n1 --plan up"), ([], "")], ids=["held", "resumed"]
)
def test_a_node_that_was_resumed_is_not_to_be_resumed_again(paused: list[str], expected: str) -> None:
    model = progress_of(round_of("UpgradePaused", paused), datetime(2026, 1, 1, tzinfo=UTC))
    assert model["next"] == expected


# ------------------------------------------------------------------------------------------------------------ dials


def test_an_address_that_nobody_answers_at_holds_nothing_up() -> None:
    """One API server answers, and twenty are away."""
    released, clock = Event(), SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC))

    def dial(address: str, port: int) -> datetime | None:
        if not address.startswith("10.0.0.1/"):
            released.wait()
        return datetime(2027, 1, 1, tzinfo=UTC)

    addresses = ["10.0.0.1/", *(f"192.0.2.{number}" for number in range(20))]
    slices = [{"endpoints": [{"addresses": [address]} for address in addresses], "ports": [{"port": 6443}]}]
    readings = Readings(None, None, clock.now, dial, within=0.2)  # type: ignore[arg-type]
    try:
        began = monotonic()
        answers = readings.read(CERTIFICATES, slices)
        assert monotonic() - began < 5
    finally:
        released.set()
    assert answers["10.0.0.1/"] == {"notAfter": "2027-01-01T00:00:00Z"}
    late = [answer for answer in answers.values() if isinstance(answer, ReadFailure)]
    assert len(late) == len(answers) - 1 == 21
    assert {answer.why for answer in late} == {"no answer within 0.2 s"}


def test_nodes_that_wait_for_the_same_are_one_line_where_there_is_no_room() -> None:
    """Twenty nodes whose turn has not come: what the one under way waits for stays in sight."""
    same = [
        wait("waiting for Rancher", 50 - n, step=f"NodeUpgrade/PreDrain/n{n}", node=f"n{n}", slow=True, limit=7200)
        for n in range(2, 21)
    ]
    now = wait("Job j: not complete", 55, step="NodeUpgrade/PreDrain/n1", node="n1")
    model = {**crowded(), "waits": [now, *same], "borrowed": []}
    shown = [line.text for line in progress_view(model, SCREEN) if "waits for" in line.text]
    assert shown == [
        "  waits for NodeUpgrade/PreDrain/n1: Job j: not complete (for 5m)",
        "  waits for NodeUpgrade/PreDrain: 19 nodes: waiting for Rancher (for 30m), longer than 2h",
    ]
    assert len([line for line in progress_lines(model) if "waits for" in line]) == 20
