"""What users say shall go wrong, as they say it, and what is understood. The table is cues.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcile.simulator.actors.fault_options import FaultOptions, KnownTargets, fault_plan_of
from reconcile.simulator.actors.faults import (
    SIMULATED_OPERATIONS,
    FaultInjector,
    FaultMode,
    FaultPlan,
    InjectedFault,
    OperationTarget,
)
from reconcile.simulator.actors.settings import Settings
from reconcile.status.times import duration_of
from renderer.errors import Problems

CASES = yaml.safe_load((Path(__file__).parent / "fault_options.yaml").read_text())
TARGETS = KnownTargets(
    nodes=("charlie-1-tink-system", "charlie-2-tink-system", "charlie-10"),
    machines=("default/web-1", "other/web-10", "default/ledger-1"),
    jobs=("pre-check",),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["say"]))
def test_an_option_is_understood_or_refused(case: Any) -> None:
    options = FaultOptions(**case["say"])
    if "understood" in case:
        assert list(words(fault_plan_of(options, TARGETS))) == case["understood"]
        return
    with pytest.raises(Problems) as caught:
        fault_plan_of(options, TARGETS)
    assert [f"{problem.field}: {problem.message}" for problem in caught.value.problems] == case["refused"]
    assert all(problem.remedy for problem in caught.value.problems)


def words(faults: FaultPlan) -> Iterator[str]:
    for fault in faults.faults:
        yield (
            f"{fault.mode} {fault.operation}{_on(fault.target)}"
            + (f" x{fault.times}" if fault.times else "")
            + (f"={fault.lasts}" if fault.lasts else "")
        )
    for outage in faults.outages:
        yield f"away {outage.lasts} at {outage.operation}{_on(outage.target)}"


def _on(target: str) -> str:
    return f" on {target}" if target else ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("5m", 300), ("2h", 7200), ("1h1m1s", 3661), ("", None), ("5", None), ("m5", None)],
)
def test_durations(text: str, seconds: int | None) -> None:
    assert duration_of(text) == (None if seconds is None else timedelta(seconds=seconds))


def test_every_job_that_takes_a_time_of_its_own_can_be_told_to_go_wrong() -> None:
    assert set(Settings().work) == {operation.name for operation in SIMULATED_OPERATIONS.values() if operation.is_job}


def test_every_operation_is_asked_for_somewhere() -> None:
    sources = Path(__file__).resolve().parents[2] / "reconcile" / "simulator" / "actors"
    text = "".join(path.read_text() for path in sources.glob("*.py") if path.name != "faults.py")
    assert [name for name in SIMULATED_OPERATIONS if f'"{name}"' not in text] == []


def test_faults_add_up() -> None:
    plan = FaultPlan(
        faults=(
            InjectedFault(mode=FaultMode.SLOW, operation="reboot", lasts=timedelta(hours=1)),
            InjectedFault(mode=FaultMode.SLOW, operation="reboot", target="a", lasts=timedelta(hours=2)),
            InjectedFault(mode=FaultMode.STALL, operation="reboot", target="b"),
            InjectedFault(mode=FaultMode.FAIL, operation="reboot", target="a", times=2),
        )
    )
    faults, usual = FaultInjector(plan), timedelta(minutes=5)
    assert [faults.lasts("reboot", usual, node) for node in "abc"] == [timedelta(hours=2), None, timedelta(hours=1)]
    assert faults.lasts("drain", usual, "a") == usual
    assert [faults.fails("reboot", "a", tried) for tried in range(4)] == [True, True, False, False]
    assert not faults.fails("reboot", "c")


def test_only_migrations_take_place_on_virtual_machines() -> None:
    assert {
        operation.name for operation in SIMULATED_OPERATIONS.values() if operation.on is OperationTarget.VIRTUAL_MACHINE
    } == {"vm-migration"}
