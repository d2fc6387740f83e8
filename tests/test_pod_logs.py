"""The logs of a plan's pods: read through the API server and kept in a folder of bounded size, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.answer_schemas import validator
from support.installed import installation
from support.rehearsals import rehearsal_of, template_set

from reconcile.cli.logs import Asked, LogFollower
from reconcile.cluster.errors import BackendFailed, Throttled
from reconcile.loop.round import Round
from reconcile.observe.container_log import POD, LogLine, after
from reconcile.observe.source import DirectSource
from reconcile.pod_logs.excerpts import excerpts_of
from reconcile.pod_logs.folder import INDEX, LogEntry, LogFolder
from reconcile.pod_logs.log_collector import LogCollector
from reconcile.pod_logs.log_record import records_of
from reconcile.pod_logs.plan_pods import COLLECT_LOGS, pods_of_plan
from reconcile.probes.look import ReadFailure
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.seeding import namespace
from renderer.cli.program import run
from renderer.model.ref import Ref
from renderer.redaction import packaged_redactor

RECORD = validator("log-record")
PLAN_LABEL = "management.harvesterhci.io/upgrade-plan"
COMPONENT = "management.harvesterhci.io/upgrade-component"
JOB = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "harvester-system", "name": "j", "digest": "1"}
SUC = {
    "apiVersion": "upgrade.cattle.io/v1",
    "kind": "Plan",
    "namespace": "cattle-system",
    "name": "up-preload",
    "digest": "1",
}


def plan(state: str = "Failed") -> dict[str, Any]:
    record = {"state": state, "started": "2026-01-01T00:00:00Z", "objects": [JOB, SUC]}
    steps = {"NodeUpgrade": {"records": {"PreDrain/n1": record}}}
    return {"metadata": {"name": "up"}, "spec": {}, "status": {"currentPhase": "NodeUpgrading", "steps": steps}}


@dataclass
class LoggedSite:
    """A cluster whose kubelets answer what `printed` has, by pod and container, and `before` of containers that were
    started again."""

    cluster: EmbeddedCluster = field(
        default_factory=lambda: EmbeddedCluster(SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC)))
    )
    printed: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    before: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    asked: list[Mapping[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster.seed(namespace(name) for name in ("harvester-system", "cattle-system"))
        self.cluster.backends.serve_read("Pod", "log", self._read)
        self.client = self.cluster.client()
        self.source = DirectSource(self.client, template_set().catalog.kinds)

    def _read(self, ref: Ref, path: str, query: Mapping[str, str]) -> bytes:
        self.asked.append(query)
        printed = self.before if query.get("previous") else self.printed
        lines = printed.get((ref.name, query["container"]))
        if lines is None:
            raise BackendFailed(ref, "log", 400, "container is waiting to start")
        since = query.get("sinceTime", "")[:19]
        kept = [line for line in lines if line[:19] >= since]
        text = "".join(f"{line}\n" for line in kept[-int(query.get("tailLines", len(kept) or 1)) :])
        return text.encode()[: int(query["limitBytes"])]

    def pod(self, name: str, phase: str = "Running", where: str = "harvester-system", **labels: str) -> None:
        containers = [{"name": "main", "image": "busybox"}]
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": where,
                "labels": {key.replace("__", "/"): v for key, v in labels.items()},
            },
            "spec": {"containers": containers, "nodeName": "n1", "terminationGracePeriodSeconds": 0},
        }
        self.cluster.seed(
            [{**body, "status": {"phase": phase, "containerStatuses": [_begun(self.restarts.get(name, 0))]}}]
        )

    def ours(self, name: str, phase: str = "Running") -> None:
        self.pod(name, phase, **{PLAN_LABEL: "up", COMPONENT: "node-upgrade", "job-name": "j"})

    def remove(self, name: str) -> None:
        ref = Ref(api_version="v1", kind="Pod", namespace="harvester-system", name=name)
        self.client.delete(POD, ref)

    @contextmanager
    def away(self, namespace: str) -> Iterator[None]:
        """Meanwhile nothing in the namespace can be listed."""
        before = self.source.list
        failure = ReadFailure(why="forbidden")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(self.source, "list", lambda g: failure if g.namespace == namespace else before(g))
            yield

    def collector(self, folder: LogFolder) -> LogCollector:
        found = LogCollector(self.client, self.source, folder, packaged_redactor(), lambda what, fields: None)
        folder.open()
        found.on_round(Round(name="up", plan=plan()))
        return found


def _begun(restarts: int) -> Mapping[str, Any]:
    status = {"name": "main", "state": {"running": {}}, "ready": True, "image": "a", "imageID": "b"}
    return {**status, "restartCount": restarts}


@pytest.fixture
def site() -> LoggedSite:
    return LoggedSite()


def line(second: int, text: str) -> str:
    return f"2026-01-01T00:00:{second:02}.5Z {text}"


def kept(folder: LogFolder) -> dict[str, list[str]]:
    return {entry.pod: [text.partition(" ")[2] for text in folder.lines(entry)] for entry in folder.entries.values()}


# ---------------------------------------------------------------------------------------------------------- reading


def test_pods_of_a_plan_are_those_with_its_label_and_those_of_its_node_plans(site: LoggedSite) -> None:
    site.ours("a")
    site.pod("b", where="cattle-system", **{"upgrade.cattle.io/plan": "up-preload"})
    site.pod("c", **{PLAN_LABEL: "another"})
    found = pods_of_plan(site.source, plan())
    assert found.unread == {}
    assert [(pod.ref.name, pod.component, pod.node, pod.containers, pod.ended) for pod in found.pods] == [
        ("b", "up-preload", "n1", ("main",), False),
        ("a", "node-upgrade", "n1", ("main",), False),
    ]


def test_lines_of_the_same_second_are_read_once() -> None:
    lines = [LogLine(time=f"2026-01-01T00:00:01{part}Z", text=part) for part in ("", ".1", ".12", ".123456789")]
    assert [item.text for item in after(lines, "2026-01-01T00:00:01.1Z")] == [".12", ".123456789"]
    assert [item.text for item in after(lines, "")] == ["", ".1", ".12", ".123456789"]


def test_a_failed_step_has_the_last_lines_of_its_jobs_pods(site: LoggedSite) -> None:
    site.ours("a", "Failed")
    site.pod("other", **{PLAN_LABEL: "up", "job-name": "another"})
    site.printed["a", "main"] = [line(n, f"line {n}") for n in range(50)]
    job = Ref(api_version="batch/v1", kind="Job", namespace="harvester-system", name="j")
    (excerpt,) = excerpts_of(site.client, site.source, plan(), [job])
    assert (excerpt.object, excerpt.container) == ("Pod harvester-system/a", "main")
    assert (excerpt.lines[0], excerpt.lines[-1], len(excerpt.lines)) == ("line 10", "line 49", 40)


# ------------------------------------------------------------------------------------------------------- collecting


def test_each_line_is_kept_once_and_secrets_are_hidden(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one"), line(2, "password=hunter2secret")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    collector.collect()
    site.printed["a", "main"] += [line(2, "the same second"), line(3, "three")]
    site.printed["a", "main"][2] = "2026-01-01T00:00:02.75Z later in it"
    collector.collect()
    texts = kept(folder)["a"]
    assert [text for text in texts if "password" not in text] == ["one", "later in it", "three"]
    assert "hunter2secret" not in "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir())
    assert site.asked[-1]["sinceTime"] == "2026-01-01T00:00:02Z"


def test_a_line_of_several_parts_has_one_time(site: LoggedSite, tmp_path: Path) -> None:
    """As a progress bar prints it; the kubelet writes a time at its beginning alone."""
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    collector.collect()
    site.printed["a", "main"] += [line(2, "10 %\r20 %"), line(3, ""), line(4, "done\r")]
    collector.collect()
    collector.collect()
    assert kept(folder) == {"a": ["one", "10 %", "20 %", "", "done"]}


def test_a_collector_that_starts_again_goes_on_where_the_other_was(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    site.collector(LogFolder(path=tmp_path, limit=2**20)).collect()
    site.printed["a", "main"].append(line(2, "two"))
    folder = LogFolder(path=tmp_path, limit=2**20)
    site.collector(folder).collect()
    assert kept(folder) == {"a": ["one", "two"]}


def test_the_log_of_a_pod_that_vanishes_stays_and_says_what_may_be_missing(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    collector.collect()
    site.remove("a")
    collector.collect()
    assert kept(folder) == {"a": ["one"]}
    (entry,) = folder.entries.values()
    assert entry.ended
    assert entry.lost == ("what was printed after 2026-01-01T00:00:01.5Z: the pod is gone",)


def test_a_pod_that_has_ended_is_read_no_more(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a", "Succeeded")
    site.printed["a", "main"] = [line(1, "one")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    collector.collect()
    asked = len(site.asked)
    collector.collect()
    assert len(site.asked) == asked
    site.remove("a")
    collector.collect()
    assert [entry.lost for entry in folder.entries.values()] == [()]


def test_a_log_that_cannot_be_read_is_noted_once_and_read_later(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    collector.collect()
    collector.collect()
    (entry,) = folder.entries.values()
    assert len(entry.lost) == 1
    site.printed["a", "main"] = [line(1, "one")]
    collector.collect()
    assert kept(folder) == {"a": ["one"]}


@pytest.mark.parametrize(
    ("end", "index", "expected"),
    [
        pytest.param("", True, ["one", "two", "three"], id="killed before the index was written"),
        pytest.param("", False, ["one", "two", "three"], id="killed before there was an index"),
        pytest.param("2026-01-01T00:00:03.5Z thr", True, ["one", "two", "three"], id="killed in the middle of a line"),
    ],
)
def test_a_collector_that_was_killed_loses_and_repeats_nothing(
    end: str, index: bool, expected: list[str], site: LoggedSite, tmp_path: Path
) -> None:
    """The index is as old as a pass may take; the file has what was written since."""
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    site.collector(LogFolder(path=tmp_path, limit=2**20)).collect()
    with (tmp_path / "harvester-system_a_main.log").open("a") as stream:
        stream.write(f"{line(2, 'two')}\n{end}")
    if not index:
        (tmp_path / INDEX).unlink()
    site.printed["a", "main"] += [line(2, "two"), line(3, "three")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    site.collector(folder).collect()
    assert kept(folder) == {"a": expected}


def test_lines_that_a_crash_of_the_node_has_taken_are_read_again(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one"), line(2, "two")]
    site.collector(LogFolder(path=tmp_path, limit=2**20)).collect()
    (tmp_path / "harvester-system_a_main.log").write_text(f"{line(1, 'one')}\n")
    folder = LogFolder(path=tmp_path, limit=2**20)
    site.collector(folder).collect()
    assert kept(folder) == {"a": ["one", "two"]}


def test_what_a_container_printed_before_it_was_started_again(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    collector.collect()
    site.remove("a")
    site.restarts["a"] = 1
    site.ours("a")
    site.before["a", "main"] = [line(1, "one"), line(2, "out of memory")]
    site.printed["a", "main"] = [line(3, "again")]
    collector.collect()
    collector.collect()
    assert kept(folder) == {"a": ["one", "out of memory", "again"]}
    assert [entry.lost for entry in folder.entries.values()] == [()]
    site.remove("a")
    site.restarts["a"] = 4
    site.ours("a")
    site.before.clear()
    collector.collect()
    (entry,) = folder.entries.values()
    assert entry.lost[0] == "what was printed before 2 of its 4 restarts"
    assert entry.lost[1].startswith("what was printed before restart 4: ")


def test_a_second_with_more_than_one_answer_holds_does_not_stop_the_collection(
    site: LoggedSite, tmp_path: Path
) -> None:
    site.ours("a")
    many = [f"2026-01-01T00:00:01.{number:09}Z {'x' * 1000}" for number in range(3000)]
    site.printed["a", "main"] = [*many, line(2, "the end")]
    folder = LogFolder(path=tmp_path, limit=2**30)
    collector = site.collector(folder)
    for _ in range(4):
        collector.collect()
    assert (len(kept(folder)["a"]), kept(folder)["a"][-1]) == (3001, "the end")


def test_pods_of_a_namespace_that_cannot_be_listed_are_not_taken_for_gone(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    collector.collect()
    with site.away("harvester-system"):
        collector.collect()
    assert [(entry.ended, entry.lost) for entry in folder.entries.values()] == [(False, ())]


@pytest.mark.parametrize(("asked", "every", "expected"), [("false", True, 0), ("true", False, 1), ("", False, 0)])
def test_the_annotation_says_whether_a_plan_is_collected(
    asked: str, every: bool, expected: int, site: LoggedSite, tmp_path: Path
) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    folder.open()
    redactor = packaged_redactor()
    collector = LogCollector(site.client, site.source, folder, redactor, lambda what, fields: None, every_plan=every)
    annotated = {**plan(), "metadata": {"name": "up", "annotations": {COLLECT_LOGS: asked} if asked else {}}}
    collector.follow("up", annotated, over=False)
    collector.collect()
    assert len(folder.entries) == expected


def test_a_plan_that_has_ended_is_collected_once_more(site: LoggedSite, tmp_path: Path) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one")]
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = site.collector(folder)
    ended = {**plan(), "status": {"currentPhase": "Succeeded"}}
    collector.on_round(Round(name="up", plan=ended, decision=None))
    collector.on_round(Round(name="up"))
    collector.collect()
    asked = len(site.asked)
    collector.collect()
    assert (kept(folder), len(site.asked)) == ({"a": ["one"]}, asked)


def test_a_collector_outlives_a_refusal_to_list_plans(site: LoggedSite, tmp_path: Path) -> None:
    said: list[object] = []
    folder = LogFolder(path=tmp_path, limit=2**20)
    collector = LogCollector(
        site.client, site.source, folder, packaged_redactor(), lambda what, fields: said.append(fields)
    )

    def look() -> None:
        raise Throttled("too many requests")

    collector.stop()
    assert collector.run(look)
    assert said == [{"why": str(Throttled("too many requests"))}]


def test_a_folder_that_cannot_be_used_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: c}}]\n"
        "users: [{name: c, user: {}}]\ncurrent-context: c\n"
    )
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the handlers of this process stay
    assert run(["upgradeplan", "collect-logs", str(tmp_path / "file" / "logs"), "--kubeconfig", str(config)]) == 2
    assert "logs are not collected" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------------- the folder


def entry(pod: str) -> LogEntry:
    return LogEntry(plan="up", namespace="ns", pod=pod, container="main")


def test_a_long_log_keeps_its_end(tmp_path: Path) -> None:
    folder = LogFolder(path=tmp_path, limit=2**20, largest_file=100)
    folder.open()
    found = entry("a")
    for number in range(20):
        found = folder.append(found, [LogLine(time="2026-01-01T00:00:00Z", text=f"line {number}")])
    folder.keep(found)
    texts = [text.rpartition(" ")[2] for text in folder.lines(found)]
    assert texts[-1] == "19"
    assert len(texts) < 10
    assert found.lost
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 200


def test_a_full_folder_loses_its_oldest_files_and_says_so(tmp_path: Path) -> None:
    folder = LogFolder(path=tmp_path, limit=100)
    folder.open()
    for pod in ("a", "b", "c"):
        folder.keep(folder.append(entry(pod), [LogLine(time="", text="x" * 40)]))
    folder.close()
    assert sorted(path.name for path in tmp_path.glob("*.log")) == ["ns_b_main.log", "ns_c_main.log"]
    lost = {item["pod"]: item["lost"] for item in json.loads((tmp_path / INDEX).read_text())["logs"].values()}
    assert lost == {"a": ["ns_a_main.log: the folder is full"], "b": [], "c": []}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"logs": {"a": {"no": 1}}}'])
def test_an_index_that_cannot_be_read_is_begun_anew(text: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(text, encoding="utf-8")
    folder = LogFolder(path=tmp_path, limit=100)
    folder.open()
    assert folder.entries == {}


# ------------------------------------------------------------------------------------------------------- the command


def test_the_command_prints_what_is_new_of_the_pods_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    rehearsal = rehearsal_of("single-node")
    labels = {PLAN_LABEL: rehearsal.name, COMPONENT: "image-preload"}
    site = LoggedSite(cluster=rehearsal.cluster)
    site.pod("a", **labels)
    site.pod("b", **{**labels, COMPONENT: "node-upgrade"})
    site.printed |= {("a", "main"): [line(1, "one"), line(2, "token=abcdef0123456789abcdef")], ("b", "main"): []}
    deps = replace(rehearsal.deps, source=site.source, cluster=site.client)
    follower = LogFollower(deps, Asked(component="image-preload"))
    assert follower.look(rehearsal.name)
    site.printed["a", "main"].append(line(3, "three\x1b[2J"))
    assert follower.look(rehearsal.name)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "[harvester-system/a/main] one"
    assert "abcdef0123456789" not in second
    assert third == "[harvester-system/a/main] three\\x1b[2J"
    assert LogFollower(deps, Asked(node="n2")).look(rehearsal.name)
    assert capsys.readouterr().out == ""
    assert not follower.look("no-such-plan")


@pytest.mark.slow
def test_what_was_collected_is_printed_with_what_was_lost(
    site: LoggedSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one"), line(2, "two")]
    collector = site.collector(LogFolder(path=tmp_path, limit=2**20))
    collector.collect()
    site.remove("a")
    collector.collect()
    words = ["upgradeplan", "logs", "--from", str(tmp_path)]
    assert run([*words, "up", "--phase", "NodeUpgrade", "--node", "n1"]) == 0
    shown = capsys.readouterr()
    where = "[harvester-system/a/main]"
    assert shown.out == f"{where} {line(1, 'one')}\n{where} {line(2, 'two')}\n"
    assert shown.err.startswith(f"{where} lost: what was printed after")
    assert run([*words, "--phase", "ImagePreload"]) == 0
    assert capsys.readouterr().out == ""
    assert run([*words[:3], str(tmp_path / "nothing")]) == 2
    assert "contains no collected logs" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_collected_as_records_for_machines(
    site: LoggedSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.ours("a")
    site.printed["a", "main"] = [line(1, "one"), line(2, "two"), line(3, "token=abcdef0123456789abcdef")]
    collector = site.collector(LogFolder(path=tmp_path, limit=2**20))
    collector.collect()
    site.remove("a")
    collector.collect()
    assert run(["upgradeplan", "logs", "--from", str(tmp_path), "--tail", "2", "-o", "json"]) == 0
    out = capsys.readouterr().out
    two, three, lost, end = map(json.loads, out.splitlines())
    of_log = {"plan": "up", "namespace": "harvester-system", "pod": "a", "container": "main"}
    of_log |= {"component": "node-upgrade", "node": "n1"}
    assert two == {**of_log, "time": "2026-01-01T00:00:02.5Z", "text": "two"}
    assert three["text"] == "token=REDACTED"
    assert lost == {**of_log, "lost": "what was printed after 2026-01-01T00:00:03.5Z: the pod is gone"}
    assert end == {"lines": 2}
    assert [error.message for model in (two, three, lost, end) for error in RECORD.iter_errors(model)] == []
    found = records_of(out.encode())
    assert (len(found.records), found.missing) == (3, "")
    cut = records_of(out.encode()[30:])
    assert cut.missing == "1 of 2 lines arrived"
    assert records_of(b'warning: x\n{"plan": 1}\n').missing == "0 of an unknown number of lines arrived"


def test_a_report_has_what_was_collected_of_a_pod_that_is_gone(
    site: LoggedSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("j-abcde", "j-2-abcde"):
        site.ours(name, "Failed")
        site.printed[name, "main"] = [line(1, f"{name} begins"), line(2, "no space left on device")]
    folder, file = tmp_path / "logs", tmp_path / "plan.json"
    site.collector(LogFolder(path=folder, limit=2**20)).collect()
    failed = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", **plan()}
    file.write_text(json.dumps(failed), encoding="utf-8")
    words = ["upgradeplan", "report", str(file), "--logs", str(folder), "-o", "json"]
    assert run(words) == 0
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    lines = ["j-abcde begins", "no space left on device"]
    assert failure["logs"] == [{"object": "Pod harvester-system/j-abcde", "container": "main", "lines": lines}]
    assert run([*words[:4], str(tmp_path / "nothing")]) == 2
    assert "contains no collected logs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--since", "soon"), "--since: 'soon' is not a duration"),
        (("--since", "0s"), "--since: '0s' is not a duration"),
        (("--from", ".", "--phase", "NodeUpgrad"), "--phase: there is no phase NodeUpgrad; did you mean"),
        (("--from", ".", "--follow"), "--from is for a folder, and cannot be combined"),
        (("--from", ".", "--stored"), "--from is for a folder, and cannot be combined"),
        (("--namespace", "upgrades"), "--namespace is where the volume of collected logs is, and needs --stored"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["upgradeplan", "logs", *words]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "--logs-plans", "annotated"), "--logs-plans says whose logs are collected, and needs --logs or"),
        (("report", "--namespace", "upgrades"), "--namespace is where the volume of collected logs is, and needs"),
    ],
)
def test_nothing_about_logs_is_accepted_that_does_nothing(
    words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upgradeplan", *words]) == 2
    assert expected in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- the installation


def installed(**values: Any) -> list[Mapping[str, Any]]:
    return [body for file in installation(values).files for body in file.objects]


def test_the_manager_may_read_logs_only_where_it_collects_them() -> None:
    def rules(**values: Any) -> list[tuple[str, Mapping[str, Any]]]:
        roles = [body for body in installed(**values) if body["kind"] in ("Role", "ClusterRole")]
        found = [(role["metadata"].get("namespace", ""), rule) for role in roles for rule in role["rules"]]
        return [(where, rule) for where, rule in found if "pods/log" in rule.get("resources", ())]

    expected = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}
    assert rules() == []
    assert rules(logs={"enable": True}) == [("harvester-system", expected), ("cattle-system", expected)]


def test_the_folder_has_a_limit_that_the_manager_knows() -> None:
    bodies = installed(logs={"enable": True, "sizeLimit": "64Mi"})
    (deployment,) = [body for body in bodies if body["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    args = pod["containers"][0]["args"]
    assert {"--logs=/var/log/upgradeplan", "--logs-limit=64Mi"} <= set(args)
    assert {"name": "logs", "emptyDir": {"sizeLimit": "64Mi"}} in pod["volumes"]
    assert {"name": "logs", "mountPath": "/var/log/upgradeplan"} in pod["containers"][0]["volumeMounts"]
