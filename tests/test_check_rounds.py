"""Of checks that are carried out again as more is read, each is until it has seen all that it looks at."""

from __future__ import annotations

from datetime import UTC, datetime

from support.preflight_cases import template_set
from support.rehearsals import inputs_of

from reconcile.preflight.check_context import check_context, checks_of
from reconcile.preflight.checking import run_checks
from reconcile.preflight.given_objects import GivenObjects
from reconcile.preflight.rounds import CheckRounds
from reconcile.probes.look import NOT_READ, Answer, Group, ReadFailure, Reading
from reconcile.schemas import packaged_schemas
from renderer.model.check import CheckTime
from renderer.model.ref import Body, Ref

WHEN = (CheckTime.CREATE,)


class Growing:
    """A look that has read what it was asked for in the round before."""

    def __init__(self) -> None:
        self.whole = GivenObjects(
            [source.body for source in inputs_of("single-node").objects], template_set().catalog.kinds
        )
        self.read: set[object] = set()
        self.asked: set[object] = set()

    def next(self) -> None:
        self.read, self.asked = self.read | self.asked, set()

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        self.asked.add(ref)
        return self.whole.get(ref) if ref in self.read else NOT_READ

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        self.asked.add(group)
        return self.whole.list(group) if group in self.read else NOT_READ

    def reading(self, reading: Reading, name: str) -> Answer:
        self.asked.add((reading, name))
        return self.whole.reading(reading, name) if (reading, name) in self.read else NOT_READ


def test_a_check_that_has_seen_all_is_not_carried_out_again() -> None:
    checks = checks_of(template_set().catalog)
    bodies = [source.body for source in inputs_of("single-node").objects]
    context = check_context(template_set(), packaged_schemas(), datetime(2026, 1, 1, tzinfo=UTC), objects=bodies)
    look, answers = Growing(), CheckRounds(checks, context, WHEN)
    while True:
        look.next()
        answer = answers.report(look)
        if look.asked <= look.read:
            break
    assert answer == run_checks(checks, look.whole, context, WHEN)
    assert look.asked == look.read, "what is looked at can be noted in the last round too"
    again = answers.report(look)
    assert [id(result) for result in again.results] == [id(result) for result in answer.results]
