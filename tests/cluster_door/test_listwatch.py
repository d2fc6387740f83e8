"""The list-watch against servers that end, cut, refuse, throttle, forget and die: cases are files in `watches/`.

A case's `script` is what the server does, request by request: `list: VERSION [OBJECTS]`, `more: TOKEN [OBJECTS]` (a
page that another follows), `stream: [EVENTS]` with `end` and `lasts` (seconds on the clock), `status` with `body` and
`retryAfter`, `drop`. An object is `name@version` or `name#uid@version`. `waits` is what was slept after each cycle,
with random at 0.5, and how the watch stood then.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from cluster_door.cases import case_files, read_case
from cluster_door.kinds import CONFIG_MAP
from cluster_door.loopback import client_to
from cluster_door.server import BadServer, Drop, Reply, Seen, Step, Stream, serving
from reconcile.cluster import errors
from reconcile.cluster.listwatch import CEILING_AWAY, FLOOR, Health, ListWatch
from reconcile.cluster.protocol import Selection, WatchEvent


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("file", case_files("watches"), ids=lambda file: file.stem)
def test_watch(file: Path) -> None:
    case = read_case(file)
    clock = Clock()
    script = [_step(step, clock) for step in case["script"]]
    with serving(*script) as server:
        run = _WatchRun(server, clock, cycles=case.get("cycles", len(script)))
        run.to_the_end()
    assert [_request(seen) for seen in server.seen] == case["requests"]
    assert run.events == case["events"]
    assert run.waits == case["waits"]
    assert sorted(_name(body) for body in run.watch.objects()) == case["objects"]


class _WatchRun:
    def __init__(self, server: BadServer, clock: Clock, cycles: int) -> None:
        self.events: list[str] = []
        self.waits: list[str] = []
        self._clock = clock
        self._cycles = cycles
        self.watch = ListWatch(
            client_to(server.url),
            Selection(kind=CONFIG_MAP),
            self._deliver,
            clock=clock,
            random=lambda: 0.5,
        )

    def to_the_end(self) -> None:
        self.watch.run(self._sleep)

    def _deliver(self, event: WatchEvent) -> None:
        self.events.append(f"{event.type} {_name(event.body)}")

    def _sleep(self, seconds: float) -> None:
        self.waits.append(f"{seconds:g} {_health(self.watch.health)}")
        self._clock.move(seconds)
        self._cycles -= 1
        if not self._cycles:
            self.watch.stop()


def _step(step: dict[str, Any], clock: Clock) -> Step:
    if "list" in step:
        return _page(step["list"])
    if "more" in step:
        return _page(step["more"], more=True)
    if "stream" in step:
        lasts = step.get("lasts", 0)
        lines = [_line(text) for text in step["stream"]]
        return Stream(lines=lines, end=step.get("end", "clean"), before_end=lambda: clock.move(lasts))
    if "status" in step:
        headers = [("Retry-After", str(step["retryAfter"]))] if "retryAfter" in step else []
        return Reply(status=step["status"], body=step.get("body", ""), headers=headers)
    return Drop()


def _page(text: str, *, more: bool = False) -> Reply:
    version, *objects = text.split()
    metadata = {"continue": version} if more else {"resourceVersion": version}
    return Reply(body={"metadata": metadata, "items": [_object(each) for each in objects]})


def _line(text: str) -> str:
    kind, what = text.split()
    body = {"kind": "Status", "code": int(what)} if kind == "ERROR" else _object(what)
    return json.dumps({"type": kind, "object": body})


def _object(text: str) -> dict[str, Any]:
    identity, _, version = text.partition("@")
    name, _, uid = identity.partition("#")
    metadata = {"name": name, "namespace": "default", "uid": uid or name, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _name(body: Any) -> str:
    metadata = body["metadata"]
    uid = "" if metadata["uid"] == metadata["name"] else f"#{metadata['uid']}"
    return f"{metadata['name']}{uid}@{metadata['resourceVersion']}"


def _request(seen: Seen) -> str:
    if "watch" in seen.query:
        return f"watch {seen.query['resourceVersion']}"
    return " ".join(["list", *(seen.query[key] for key in ("continue",) if key in seen.query)])


def _health(health: Health) -> str:
    words = ["synced" if health.synced else "not synced"]
    if not health.served:
        words.append("not served")
    if health.problem is not None:
        words.append(f"{type(health.problem).__name__} since {health.since:g}")
    if health.away_since is not None:
        words.append("away")
    return ", ".join(words)


def test_dead_server_is_asked_more_rarely_and_still_every_few_seconds() -> None:
    """What waits for it goes on soon after its return."""
    with serving() as server:
        pass
    clock = Clock()
    run = _WatchRun(server, clock, cycles=40)
    run.to_the_end()
    waits = [float(wait.split()[0]) for wait in run.waits]
    assert waits[:5] == [0.5, 1, 1.5, 1.5, 1.5]
    assert max(waits) == CEILING_AWAY / 2
    assert sum(1 for n in range(len(waits)) if sum(waits[:n]) <= 3) == 4  # attempts in the first three seconds
    assert run.waits[-1].endswith("not synced, Away since 0, away")


@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_pause_is_never_shorter_than_the_floor_nor_longer_than_the_ceiling(chance: float) -> None:
    with serving() as server:
        pass
    client = client_to(server.url)
    watch = ListWatch(client, Selection(kind=CONFIG_MAP), lambda event: None, clock=Clock(), random=lambda: chance)
    waits = [watch.cycle() for _ in range(12)]
    assert min(waits) >= FLOOR
    assert max(waits) <= CEILING_AWAY


def test_stop_ends_a_silent_window_and_run_returns() -> None:
    told = threading.Event()
    with serving(_page("5 a@3"), Stream(lines=[_line("ADDED b@6")], end="hang")) as server:
        client = client_to(server.url)
        woken = threading.Event()
        watch = ListWatch(
            client,
            Selection(kind=CONFIG_MAP),
            lambda event: told.set() if event.body["metadata"]["name"] == "b" else None,
            clock=Clock(),
            random=lambda: 0.5,
        )
        thread = threading.Thread(target=watch.run, args=(woken.wait,), daemon=True)
        thread.start()
        assert told.wait(10)
        woken.set()
        watch.stop()
        thread.join(10)
        assert not thread.is_alive()
    assert [seen.query.get("timeoutSeconds") for seen in server.seen] == [None, "290"]


def test_stop_before_the_window_is_open_still_ends_it() -> None:
    with serving(_page("5"), Stream(end="hang")) as server:
        client = client_to(server.url)
        clock = Clock()
        watch = ListWatch(client, Selection(kind=CONFIG_MAP), lambda event: None, clock=clock, random=lambda: 0.5)
        watch.cycle()
        watch.stop()
        assert watch.cycle() == 0.5


def test_trim_decides_what_is_kept_and_told() -> None:
    """Of a list page by page: untrimmed, a small page of it is the most that is in memory."""
    told: list[WatchEvent] = []
    with serving(_page("5 a@3"), Stream(lines=[_line("MODIFIED a@6")])) as server:
        watch = ListWatch(
            client_to(server.url),
            Selection(kind=CONFIG_MAP),
            lambda event: told.append(event),
            clock=Clock(),
            random=lambda: 0.5,
            trim=lambda body: {key: value for key, value in body.items() if key != "kind"} | {"kind": "Trimmed"},
        )
        watch.cycle()
        watch.cycle()
    assert [event.body["kind"] for event in told] == ["Trimmed", "Trimmed"]
    assert [body["kind"] for body in watch.objects()] == ["Trimmed"]
    assert dict(server.seen[0].query)["limit"] == "100"


def test_error_of_the_receiver_is_not_taken_for_the_servers() -> None:
    def refuse(event: WatchEvent) -> None:
        raise RuntimeError("a bug of ours")

    with serving(_page("5 a@3")) as server:
        client = client_to(server.url)
        watch = ListWatch(client, Selection(kind=CONFIG_MAP), refuse, clock=Clock(), random=lambda: 0.5)
        with pytest.raises(RuntimeError, match="a bug of ours"):
            watch.cycle()


def test_away_since_is_only_for_a_server_that_does_not_answer() -> None:
    assert Health(problem=errors.Away("x"), since=3.0).away_since == 3.0
    assert Health(problem=errors.Unauthorized("x"), since=3.0).away_since is None
