"""The loop is killed at every write of an upgrade and begins anew: the end is the same, and nothing ran twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from theatre import Killed, final_objects, jobs_started, play_through_kills, steady, theatre

from reconcile.rehearsal.client import Moment
from reconcile.rehearsal.requests import Request


class Killer:
    """Kills the loop at every write it makes, each at the given moment and once: the restarted loop gets through."""

    def __init__(self, moment: Moment, *, only: int | None = None) -> None:
        self._moment = moment
        self._only = only
        self._spared = False
        self.writes = 0

    def __call__(self, request: Request, moment: Moment) -> None:
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
    """Kills the loop at the first request after each write: the answer was read, and nothing was done about it yet."""

    def __init__(self) -> None:
        self.wrote = False
        self.kills = 0

    def __call__(self, request: Request, moment: Moment) -> None:
        if moment is Moment.AFTER:
            self.wrote = True
        elif self.wrote:
            self.wrote = False
            self.kills += 1
            raise Killed


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    scene = theatre("three-node")
    play_through_kills(scene)
    return {"objects": final_objects(scene), "jobs": sorted(jobs_started(scene))}


@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
def test_killed_at_every_write(moment: Moment, undisturbed: dict[str, Any]) -> None:
    killer = Killer(moment)
    scene = theatre("three-node", on_write=killer)
    kills = play_through_kills(scene)
    assert kills == killer.writes > 100
    _same(scene, undisturbed)


def test_killed_between_every_two_writes(undisturbed: dict[str, Any]) -> None:
    killer = Between()
    scene = theatre("three-node", on_write=killer)
    assert play_through_kills(scene) == killer.kills > 50
    _same(scene, undisturbed)


@pytest.mark.parametrize("write", [1, 9, 47, 104])
def test_killed_once(write: int, undisturbed: dict[str, Any]) -> None:
    scene = theatre("three-node", on_write=Killer(Moment.AFTER, only=write))
    assert play_through_kills(scene) == 1
    _same(scene, undisturbed)


def _same(scene: Any, undisturbed: dict[str, Any]) -> None:
    assert [job for job, count in Counter(jobs_started(scene)).items() if count > 1] == []
    assert sorted(jobs_started(scene)) == undisturbed["jobs"]
    objects = final_objects(scene)
    assert sorted(objects) == sorted(undisturbed["objects"])
    for name, body in undisturbed["objects"].items():
        assert steady(objects[name]) == body, name
