"""A bug of ours ends a round of one plan, and not the loop: it is logged with its traceback and put on the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from time import monotonic
from typing import Any

import pytest
from controlplane.waiting import PATIENCE, until
from support.rehearsals import template_set
from support.small_cluster import METADATA, Small, world

from reconcile.loop.setup import ManagerConfig, assemble_manager
from reconcile.observe.snapshot import NotReadError, Snapshot, judge
from reconcile.probes.look import KUBELET, Group, Look
from reconcile.schemas import packaged_schemas
from renderer.model.phase import Fetch
from renderer.model.ref import Ref

NODES = Group(api_version="v1", kind="Node")
FIRST = Ref(api_version="v1", kind="Node", name="n1")


class Repository:
    """Reads the release as something of ours does that is broken, until it is fixed."""

    def __init__(self) -> None:
        self.broken = True

    def __call__(self, fetch: Fetch) -> bytes:
        if self.broken:
            raise ZeroDivisionError("of our own making")
        return b"\n".join(f"{key}: {value}".encode() for key, value in METADATA.items())


@contextmanager
def running(found: Small, read: Repository, lines: list[tuple[str, Mapping[str, Any]]]) -> Iterator[Thread]:
    manager = assemble_manager(
        ManagerConfig(
            cluster=found.scene.client,
            template_set=template_set(),
            schemas=packaged_schemas(),
            now=found.scene.clock.now,
            clock=monotonic,
            random=lambda: 0.5,
            dial=lambda address, port: None,
            log=lambda what, fields: lines.append((what, fields)),
            identity="test",
            read=read,
        )
    )
    worker = Thread(target=manager.run, daemon=True)
    worker.start()
    try:
        yield worker
    finally:
        manager.stop()
        worker.join(timeout=PATIENCE)


@pytest.mark.slow
def test_the_loop_outlives_a_bug_and_says_so() -> None:
    found = world(version="v1.8.0")
    found.set_status(
        currentPhase="MetadataPopulating",
        previousVersion="v1.7.1",
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
    )
    read, lines = Repository(), list[tuple[str, Mapping[str, Any]]]()
    message = "internal error, please report it: ZeroDivisionError: of our own making"
    with running(found, read, lines) as worker:
        until("it is on the plan", lambda: (found.condition("Degraded") or {}).get("message") == message)
        assert found.condition("Degraded")["reason"] == "ReconcileError"
        assert worker.is_alive()
        read.broken = False
        until("the plan goes on", lambda: found.phase == "ImagePreloading")
    bug = next(fields for what, fields in lines if what == "bug")
    assert (bug["plan"], bug["why"]) == ("up", message)
    assert "Traceback" in bug["traceback"]
    assert "test_loop_bugs.py" in bug["traceback"]


# ----------------------------------------------------------------------------------------- what a decision looks at


def test_what_was_not_read_cannot_be_looked_at() -> None:
    seen = Snapshot()
    for look in (lambda: seen.get(FIRST), lambda: seen.list(NODES), lambda: seen.reading(KUBELET, "n1")):
        with pytest.raises(NotReadError):
            look()


def test_a_decision_is_made_again_until_all_that_it_looks_at_was_read() -> None:
    """The second look depends on what the first has shown."""
    found = world("n1", "n2")
    made: list[list[str]] = []

    def ask(look: Look) -> list[str]:
        nodes = look.list(NODES)
        names = [str(body["metadata"]["name"]) for body in nodes] if isinstance(nodes, tuple) else []
        secrets = [
            look.get(Ref(api_version="v1", kind="Secret", namespace="fleet-local", name=f"p-{n}")) for n in names
        ]
        made.append([str(body["metadata"]["name"]) for body in secrets if isinstance(body, Mapping)])
        return made[-1]

    deps = found.scene.deps
    judged = judge(ask, deps.source, deps.readings)
    assert (judged.answer, len(made)) == (["p-n1", "p-n2"], 3)
    assert len(judged.snapshot.objects) == 2
    made.clear()
    again = judge(ask, deps.source, deps.readings, judged.looked_at)
    assert (again.answer, len(made)) == (judged.answer, 1)
    assert again.looked_at == judged.looked_at
