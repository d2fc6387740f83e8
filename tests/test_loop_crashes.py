"""The loop is killed at every write of an upgrade and starts again: the end is the same, and nothing ran twice."""

from __future__ import annotations

import pytest
from support.final_state import FinalState, assert_same, final_state_of
from support.recordings import undisturbed_end
from support.rehearsals import Killed, play_through_kills, rehearsal_of

from reconcile.simulator.apiserver.requests import LoggedRequest, Moment

pytestmark = [pytest.mark.slow, pytest.mark.lane("recordings")]

EXAMPLE = "three-node"


class Killer:
    """Kills the loop at every write it makes, each at the given moment and once: the restarted loop gets through."""

    def __init__(self, moment: Moment, *, only: int | None = None) -> None:
        self._moment = moment
        self._only = only
        self._spared = False
        self.writes = 0

    def __call__(self, request: LoggedRequest, moment: Moment) -> None:
        if moment is not self._moment or request.kind == "Event":
            return
        if self._spared:
            self._spared = False
            return
        self.writes += 1
        if self._only in (None, self.writes):
            self._spared = self._moment is Moment.BEFORE
            raise Killed


class Between:
    """Kills the loop once between every two writes: the answer was read, and nothing was done about it yet."""

    def __init__(self) -> None:
        self.wrote = False
        self.kills = 0

    def __call__(self, request: LoggedRequest, moment: Moment) -> None:
        if moment is Moment.AFTER:
            self.wrote = True
        elif self.wrote:
            self.wrote = False
            self.kills += 1
            raise Killed


@pytest.fixture(scope="module")
def undisturbed() -> FinalState:
    return undisturbed_end(EXAMPLE)


BETWEEN = pytest.mark.full(
    "three nodes, killed between every two writes; the same of one node, and three nodes killed before and after "
    "every write, stand for it"
)


@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
def test_killed_at_every_write(moment: Moment, undisturbed: FinalState) -> None:
    killer = Killer(moment)
    scene = rehearsal_of(EXAMPLE, on_write=killer)
    kills = play_through_kills(scene)
    assert kills == killer.writes > 100
    assert_same(final_state_of(scene, EXAMPLE), undisturbed)


@pytest.mark.parametrize(("example", "least"), [("single-node", 40), pytest.param(EXAMPLE, 100, marks=BETWEEN)])
def test_killed_between_every_two_writes(example: str, least: int) -> None:
    killer = Between()
    scene = rehearsal_of(example, on_write=killer)
    assert play_through_kills(scene) == killer.kills > least
    assert_same(final_state_of(scene, example), undisturbed_end(example))


@pytest.mark.full("killed once, and never again; the kills at every write stand for it")
@pytest.mark.parametrize("write", [1, 9, 47, 104])
def test_killed_once(write: int, undisturbed: FinalState) -> None:
    scene = rehearsal_of(EXAMPLE, on_write=Killer(Moment.AFTER, only=write))
    assert play_through_kills(scene) == 1
    assert_same(final_state_of(scene, EXAMPLE), undisturbed)
