"""The source that the loop of a rehearsal reads from: production's watches and caches, but every watch runs in the
caller's thread, when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reconcile.cluster.errors import Away
from reconcile.cluster.listwatch import FLOOR
from reconcile.observe.cached import CachedSource
from reconcile.observe.kind_watch import Pace, Watch
from reconcile.probes.look import Group, ReadFailure
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from reconcile.simulator.apiserver.store import Store
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Ref


@dataclass(slots=True)
class _Turns:
    """The time when a watch's next turn is due, and up to what it has taken them."""

    watch: Watch
    due: float = 0.0
    seen: object = None


class WatchedSource:
    """A `Source`: `CachedSource`, brought up to date before each read, as far as its watches get. `clock` gives the
    seconds of the simulation. `never_known` says of what checks alone look at whether the inputs, of which the cluster
    is made, tell anything about it: a kind that is not among the inputs may still have objects."""

    def __init__(
        self,
        client: EmbeddedClient,
        store: Store,
        kinds: Kinds,
        clock: Callable[[], float],
        never_known: Callable[[Group], ReadFailure | None] = lambda group: None,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._never_known = never_known
        self._turns: list[_Turns] = []
        self._seen: object = None
        self._is_new = False
        # a watch that fails is tried again as soon as production ever would
        pace = Pace(clock=clock, random=lambda: 0.0, window=0, begin=self._begin, shares=False)
        self._cached = CachedSource(client, kinds, self._changed, pace)

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        self._catch_up()
        return self._cached.get(ref)

    def held(self) -> Mapping[Ref, Body]:
        self._catch_up()
        return self._cached.held()

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        if group.seldom and (failure := self._never_known(group)) is not None:
            return failure
        self._catch_up()
        return self._cached.list(group)

    def watched(self, group: Group) -> tuple[Body, ...] | ReadFailure | None:
        self._catch_up()
        return self._cached.watched(group)

    def note(self, body: Body) -> None:
        self._cached.note(body)

    def has_news(self) -> bool:
        """True if a watch has delivered a change, or has failed, since the last call."""
        self._catch_up()
        found, self._is_new = self._is_new, False
        return found

    def _changed(self, ref: Ref) -> None:
        self._is_new = True

    def _begin(self, watch: Watch) -> None:
        self._turns.append(_Turns(watch))
        self._take(self._turns[-1])

    def _catch_up(self) -> None:
        now = (self._store.version, self._client.faults.cuts)
        if now == self._seen:
            return
        self._seen = now
        for turns in self._turns:
            if turns.seen != self._state(turns.watch) and turns.due <= self._clock():
                self._take(turns)
            elif not turns.watch.follows:
                self._seen = None

    def _take(self, turns: _Turns) -> None:
        """A healthy watch has nothing to do until something changes or it is cut; one that was told that nobody answers
        need not ask for as long as nobody does."""
        if isinstance(turns.watch.health.problem, Away) and self._client.faults.is_away():
            turns.due, self._seen = self._clock() + FLOOR, None
            return
        followed, state = turns.watch.follows, self._state(turns.watch)
        pause = turns.watch.turn()
        if turns.watch.follows:
            turns.due, turns.seen = 0.0, state
        else:
            turns.due, turns.seen = self._clock() + max(pause, FLOOR), None
            self._seen = None
            self._is_new = self._is_new or followed

    def _state(self, watch: Watch) -> object:
        return self._store.last_change(watch.kind), self._client.faults.cuts
