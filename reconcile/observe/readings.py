"""The readings: facts about a cluster that are no objects, one row each.

To add one, write a module that says how to ask, add its row here, and describe what it answers in schemas/facts.json:
an answer has the form that a facts document gives it, everywhere. A rule of `reconcile.probes.rules` uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from reconcile.cluster.protocol import Cluster
from reconcile.observe.hosts import hosts_of
from reconcile.observe.kubelet import kubelets_of
from reconcile.observe.patience import SECONDS, Patience
from reconcile.observe.server_certificates import Dial, certificates_of
from reconcile.probes.look import CERTIFICATES, HOSTS, KUBELET, Answer, ReadFailure, Reading
from renderer.catalog.kinds import Kinds
from renderer.model.path import ABSENT, look_up
from renderer.model.ref import Body

_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The means by which readings ask."""

    cluster: Cluster
    kinds: Kinds
    dial: Dial


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSource:
    """`what` names one answer in messages, before its name. `asks` says how to ask, by the name of each answer, which
    is kept for as long as it is `fresh`: a disk does not fill within a round. `dialled`: addresses of servers are
    asked and not the API server, whose client has limits of its own. `stored`: objects of the API server have the
    answers, so that nobody else is waited for."""

    what: str
    asks: Callable[[Access, Iterable[Body]], Mapping[str, Callable[[], Answer]]]
    fresh: timedelta = timedelta(seconds=60)
    dialled: bool = False
    stored: bool = False


READERS: Mapping[Reading, ReadingSource] = {
    KUBELET: ReadingSource(
        what="kubelet of",
        asks=lambda access, nodes: kubelets_of(access.cluster, access.kinds, nodes),
    ),
    CERTIFICATES: ReadingSource(
        what="certificate at",
        asks=lambda access, slices: certificates_of(access.dial, slices),
        dialled=True,
    ),
    HOSTS: ReadingSource(
        what="host of",
        asks=lambda access, nodes: hosts_of(access.cluster, access.kinds, nodes),
        fresh=timedelta(seconds=9),  # somebody may have looked again
        stored=True,
    ),
}


class Readings:
    """Asks, several at once, and keeps answers for a while. `known` has what was given as facts instead, by reading and
    name; `within` is the time for all that is dialled, in seconds."""

    def __init__(
        self,
        cluster: Cluster,
        kinds: Kinds,
        now: Callable[[], datetime],
        dial: Dial,
        known: Mapping[str, Any] | None = None,
        within: float = SECONDS,
    ) -> None:
        self._access = Access(cluster=cluster, kinds=kinds, dial=dial)
        self._now = now
        self._known = known or {}
        self._within = within
        self._patience: Patience | None = None
        self._kept: dict[tuple[str, str], tuple[datetime, Answer]] = {}

    def hurried(self, patience: Patience) -> Readings:
        """The same, for somebody who waits for nobody any longer than that, kubelets behind the API server included."""
        found = copy(self)
        found._patience = patience
        return found

    def read(self, reading: Reading, bodies: Iterable[Body]) -> dict[str, Answer]:
        """One answer for each that the objects of the reading's group name."""
        reader = next(reader for row, reader in READERS.items() if row.includes(reading))
        asks = reader.asks(self._access, bodies)
        if reader.dialled or (self._patience is not None and not reader.stored):
            return self._in_time(reading, reader, asks)
        if len(asks) == 1:
            return {name: self._answer(reading.name, name, ask, reader.fresh) for name, ask in asks.items()}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = pool.map(lambda name: self._answer(reading.name, name, asks[name], reader.fresh), asks)
            return dict(zip(asks, answers, strict=True))

    def _in_time(
        self, reading: Reading, reader: ReadingSource, asks: Mapping[str, Callable[[], Answer]]
    ) -> dict[str, Answer]:
        """All at once. Nobody waits for one that gets no answer."""
        patience = self._patience or Patience(self._within, lambda: 0.0)
        answers = patience.answers(
            {name: partial(self._answer, reading.name, name, ask, reader.fresh) for name, ask in asks.items()}
        )
        late = ReadFailure(why=str(patience.spent))
        return {name: answers[name].result() if name in answers else late for name in asks}

    def _answer(self, reading: str, name: str, ask: Callable[[], Answer], fresh: timedelta) -> Answer:
        given: Answer = look_up(self._known, (reading, name))
        if given is not ABSENT:
            return given
        asked, answer = self._kept.get((reading, name), (None, None))
        if answer is None or asked is None or self._now() - asked > fresh or _may_succeed(answer):
            answer = ask()
            self._kept[reading, name] = (self._now(), answer)
        return answer


def _may_succeed(answer: Answer) -> bool:
    """True for a failure that may be over at the next try."""
    return isinstance(answer, ReadFailure) and not answer.out_of_reach
