"""The loop after an outage of a real API server: how long until its first round."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from support.installed import ACCOUNT, text_of
from support.real_upgrade import PLAN, client, now
from support.rehearsals import template_set
from support.rendered_plans import plan

from bench.table import Budget, Line
from reconcile.loop.manager import Manager
from reconcile.loop.round import Round
from reconcile.loop.setup import ManagerConfig, assemble_manager
from reconcile.schemas import packaged_schemas

_OUTAGE, _LIMIT = 40.0, 5.0
"""Seconds: longer than any pause between two attempts may grow, and what may pass until the first round."""


def bench_outage(plane: ControlPlane) -> Iterator[Line]:
    """The server is killed and comes back at the same address; from its first `/readyz` to the end of a round."""
    client(plane.kubeconfig).create(PLAN, {**plan("outage", version="v1.8.0")})
    plane.kubectl("apply", "-f", "-", stdin=text_of("rbac"))
    rounds: list[float] = []
    manager = _manager(plane.service_account_kubeconfig(*ACCOUNT), rounds)
    thread = Thread(target=manager.run, daemon=True)
    thread.start()
    until("the first rounds", lambda: len(rounds) > 2)
    ready: list[float] = []
    with plane.outage():
        time.sleep(_OUTAGE)
        began = time.monotonic()
        watcher = Thread(target=_note_readiness, args=(plane, ready), daemon=True)
        watcher.start()
    watcher.join()
    until("a round after the outage", lambda: any(moment > began for moment in rounds))
    manager.stop()
    thread.join()
    taken = max(0.0, min(moment for moment in rounds if moment > began) - ready[0])
    budget = Budget(text=f"≤ {_LIMIT:.0f} s", held=taken <= _LIMIT)
    yield Line(what=f"first round after an outage of {_OUTAGE:.0f} s", seconds=taken, budgets=(budget,))


def _note_readiness(plane: ControlPlane, ready: list[float]) -> None:
    api = plane.api
    while not ready:
        try:
            api.get("/readyz")
        except (OSError, ApiError):
            time.sleep(0.05)
        else:
            ready.append(time.monotonic())


def _manager(account: Path, rounds: list[float]) -> Manager:
    """With the rights of an installed one: a server that is back knows for a moment none but the administrator's."""

    def log(what: str, fields: Any) -> None:
        """Nobody listens."""

    def on_round(done: Round) -> None:
        if not done.problems:
            rounds.append(time.monotonic())

    return assemble_manager(
        ManagerConfig(
            cluster=client(account),
            template_set=template_set(),
            schemas=packaged_schemas(),
            now=now,
            clock=time.monotonic,
            random=random.random,
            dial=lambda address, port: None,
            log=log,
            identity="bench",
            lease_namespace=ACCOUNT[0],
            on_round=on_round,
        )
    )
