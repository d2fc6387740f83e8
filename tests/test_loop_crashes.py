"""The loop is killed at every write of an upgrade and starts again: the end is the same, and nothing ran twice."""

from __future__ import annotations

import pytest
from support.final_state import assert_same, final_state_of
from support.recordings import undisturbed_end
from support.rehearsals import Killed, play_through_kills, rehearsal_of

from reconcile.simulator.apiserver.requests import LoggedRequest, Moment

pytestmark = [pytest.mark.slow, pytest.mark.lane("recordings")]

EXAMPLE = "three-node"


class Killer:
    """Kills the loop at every write it makes, each once and at one of the given moments, in turn: the restarted loop
    gets through."""

    def __init__(self, *moments: Moment, only: int | None = None) -> None:
        self._moments = moments
        self._only = only
        self._spared = False
        self.writes = 0

    def __call__(self, request: LoggedRequest, moment: Moment) -> None:
        if request.kind == "Event":
            return
        if self._spared:
            self._spared = moment is Moment.BEFORE
            return
        if moment is not self._moments[self.writes % len(self._moments)]:
            return
        self.writes += 1
        if self._only in (None, self.writes):
            self._spared = moment is Moment.BEFORE
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


EACH = pytest.mark.full(
    "killed before every write, and after every write; three nodes that are killed before and after in turn, and one "
    "that is killed between every two writes, stand for it"
)
BETWEEN = pytest.mark.full(
    "three nodes, killed between every two writes; the same of one node, and three nodes killed before and after "
    "every write, stand for it"
)


@pytest.mark.parametrize(
    ("example", "moments", "least"),
    [
        (EXAMPLE, (Moment.BEFORE, Moment.AFTER), 100),
        pytest.param("single-node", (Moment.BEFORE,), 40, marks=EACH),
        pytest.param("single-node", (Moment.AFTER,), 40, marks=EACH),
        pytest.param(EXAMPLE, (Moment.AFTER, Moment.BEFORE), 100, marks=EACH),
        pytest.param(EXAMPLE, (Moment.BEFORE,), 100, marks=EACH),
        pytest.param(EXAMPLE, (Moment.AFTER,), 100, marks=EACH),
    ],
)
def test_killed_at_every_write(example: str, moments: tuple[Moment, ...], least: int) -> None:
    killer = Killer(*moments)
    scene = rehearsal_of(example, on_write=killer)
    kills = play_through_kills(scene)
    assert kills == killer.writes > least
    assert_same(final_state_of(scene, example), undisturbed_end(example))


@pytest.mark.parametrize(("example", "least"), [("single-node", 40), pytest.param(EXAMPLE, 100, marks=BETWEEN)])
def test_killed_between_every_two_writes(example: str, least: int) -> None:
    killer = Between()
    scene = rehearsal_of(example, on_write=killer)
    assert play_through_kills(scene) == killer.kills > least
    assert_same(final_state_of(scene, example), undisturbed_end(example))


@pytest.mark.full("killed once, and never again; the kills at every write stand for it")
@pytest.mark.parametrize("write", [1, 9, 47, 104])
def test_killed_once(write: int) -> None:
    scene = rehearsal_of(EXAMPLE, on_write=Killer(Moment.AFTER, only=write))
    assert play_through_kills(scene) == 1
    assert_same(final_state_of(scene, EXAMPLE), undisturbed_end(EXAMPLE))
