"""What users say shall go wrong, as they say it, and what is understood. The table is cues.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcile.actors.acts import ACTS, On
from reconcile.actors.cues import Cast, Wishes, duration_of, script_of
from reconcile.actors.script import Cue, Script, Trouble
from reconcile.actors.settings import Settings
from renderer.errors import Problems

CASES = yaml.safe_load((Path(__file__).parent / "cues.yaml").read_text())
CAST = Cast(
    nodes=("charlie-1-tink-system", "charlie-2-tink-system", "charlie-10"),
    machines=("web-1", "ledger-1"),
    jobs=("pre-check",),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["say"]))
def test_a_wish_is_understood_or_refused(case: Any) -> None:
    wishes = Wishes(**case["say"])
    if "understood" in case:
        assert list(words(script_of(wishes, CAST))) == case["understood"]
        return
    with pytest.raises(Problems) as caught:
        script_of(wishes, CAST)
    assert [f"{problem.field}: {problem.message}" for problem in caught.value.problems] == case["refused"]
    assert all(problem.remedy for problem in caught.value.problems)


def words(script: Script) -> Iterator[str]:
    for cue in script.cues:
        yield (
            f"{cue.trouble} {cue.act}{_on(cue.target)}"
            + (f" x{cue.times}" if cue.times else "")
            + (f"={cue.lasts}" if cue.lasts else "")
        )
    for absence in script.absences:
        yield f"away {absence.lasts} at {absence.act}{_on(absence.target)}"


def _on(target: str) -> str:
    return f" on {target}" if target else ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("2h", 7200), ("1h1m1s", 3661), ("", None), ("5", None), ("m5", None)],
)
def test_durations(text: str, seconds: int | None) -> None:
    assert duration_of(text) == (None if seconds is None else timedelta(seconds=seconds))


def test_every_job_that_takes_a_time_of_its_own_can_be_told_to_go_wrong() -> None:
    assert set(Settings().work) == {act.name for act in ACTS.values() if act.is_job}


def test_every_act_is_asked_for_somewhere() -> None:
    sources = Path(__file__).resolve().parents[2] / "reconcile" / "actors"
    text = "".join(path.read_text() for path in sources.glob("*.py") if path.name != "acts.py")
    assert [name for name in ACTS if f'"{name}"' not in text] == []


def test_cues_add_up() -> None:
    script = Script(
        cues=(
            Cue(trouble=Trouble.SLOW, act="reboot", lasts=timedelta(hours=1)),
            Cue(trouble=Trouble.SLOW, act="reboot", target="a", lasts=timedelta(hours=2)),
            Cue(trouble=Trouble.STALL, act="reboot", target="b"),
            Cue(trouble=Trouble.FAIL, act="reboot", target="a", times=2),
        )
    )
    usual = timedelta(minutes=5)
    assert [script.lasts("reboot", usual, node) for node in "abc"] == [timedelta(hours=2), None, timedelta(hours=1)]
    assert script.lasts("drain", usual, "a") == usual
    assert [script.fails("reboot", "a", tried) for tried in range(4)] == [True, True, False, False]
    assert not script.fails("reboot", "c")


def test_nodes_and_machines_are_what_acts_take_place_on() -> None:
    assert {act.name for act in ACTS.values() if act.on is On.MACHINE} == {"vm-migration"}
