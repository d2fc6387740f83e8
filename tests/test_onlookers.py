"""What somebody shows who looks at a plan that another loop runs, between that loop's reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from support.small_cluster import POST, POST_JOB, Small, drained, rebooting

from reconcile.act.apply import ObjectWriter
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.round import Round
from reconcile.observe.source import DirectSource
from reconcile.probes.look import Group, ReadFailure
from renderer.model.ref import Body, Ref

pytestmark = pytest.mark.slow

CHANGED = "was changed by somebody else"


class Delayed(DirectSource):
    """After each read of the plan, something else happens before the next object is read."""

    def __init__(self, found: Small, meanwhile: Callable[[], object]) -> None:
        super().__init__(found.scene.client, found.scene.deps.kinds)
        self._meanwhile = meanwhile
        self._is_due = False

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        self._pass_time()
        read = super().get(ref)
        self._is_due = ref.kind == "UpgradePlan"
        return read

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        self._pass_time()
        return super().list(group)

    def _pass_time(self) -> None:
        if self._is_due:
            self._is_due = False
            self._meanwhile()


def once(*steps: Callable[[], object]) -> Callable[[], object]:
    left = iter(steps)
    return lambda: next(left, lambda: None)()


def look(found: Small, meanwhile: Callable[[], object] = lambda: None) -> Round:
    return Reconciler(replace(found.scene.deps, source=Delayed(found, meanwhile))).look(found.name)


def waits(done: Round) -> list[tuple[str, bool]]:
    assert done.decision is not None
    return [(wait.text, wait.slow) for wait in done.decision.waits]


def annotate(found: Small, value: str) -> None:
    changed = {"metadata": {"annotations": {"management.harvesterhci.io/pendingOSImage": value}}}
    found.patch(found.get("v1", "Node", "n1"), changed)


def comes_back(found: Small) -> Callable[[], object]:
    def back() -> None:
        found.reboot("n1")
        found.rounds()

    return back


def test_a_plan_that_was_written_meanwhile_is_looked_at_again() -> None:
    """The leader returns the annotation of the node between the onlooker's two reads."""
    found = rebooting()
    shown = look(found, once(comes_back(found)))
    assert shown.plan == found.plan
    assert waits(shown) == waits(look(found))
    assert waits(shown) == [("waiting for Rancher to request the drain of this node", False)]


def test_of_a_plan_that_is_written_all_the_time_only_what_lasts_needs_an_operator() -> None:
    found = rebooting()

    def writes(*values: str) -> Callable[[], object]:
        """A look reads the plan first, and once more at its end; the first value is there for the first look, the
        third one for the second, and the fifth one for the last."""

        def write(value: str, number: int) -> None:
            found.patch(found.plan, {"metadata": {"labels": {"written": str(number)}}})
            annotate(found, value)

        return once(*[partial(write, value, number) for number, value in enumerate(values)])

    ours, other = "Harvester v1.8.0", "other"
    assert CHANGED not in str(waits(look(found, writes(ours, ours, ours, ours, other))))
    assert CHANGED in str(waits(look(found, writes(ours, ours, other, other, other))))


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_plans_own_write_is_not_somebody_elses(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """The intent is recorded before a write and the result after it. Who looks in between, as does a manager that was
    killed there, finds a record that the object does not bear out."""
    found, seen = drained(), list[str]()

    def watched(name: str) -> None:
        real = getattr(ObjectWriter, name)

        def write(self: ObjectWriter, *args: Any, **options: Any) -> Any:
            if when == "before":
                seen.append(f"{name} {waits(look(found))}")
            done = real(self, *args, **options)
            if when == "after":
                seen.append(f"{name} {waits(look(found))}")
            return done

        monkeypatch.setattr(ObjectWriter, name, write)

    watched("take")
    watched("write_return")
    found.ask("n1", POST, "second")
    found.rounds()
    found.end_job(POST_JOB)
    found.rounds()
    found.reboot("n1")
    found.rounds()
    assert {text.split()[0] for text in seen} == {"take", "write_return"}
    assert [text for text in seen if CHANGED in text] == []


def test_another_value_is_still_somebody_elses() -> None:
    found = rebooting()
    annotate(found, "other")
    assert any(CHANGED in text and slow for text, slow in waits(look(found)))
