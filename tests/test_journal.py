"""The journal: a whole rehearsal's decisions are made again from it, alike; it is bounded, and holds no secret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.answer_schemas import validator
from support.recordings import Recording, recording
from support.rehearsals import ROOT, START, rehearsal_of, rendering, template_set
from support.rendered_plans import machine_plan
from support.small_cluster import drained, waiting_for_rancher

from reconcile.decide.observation import FetchFailure, OtherUpgrades
from reconcile.loop.journal import Journal, JournalEntry, line_of
from reconcile.loop.reconciler import Reconciler
from reconcile.probes.look import CERTIFICATES, KUBELET, Group, ReadFailure
from reconcile.report.replay import Replayed, replay, world_from
from reconcile.schemas import packaged_schemas
from reconcile.simulator.rehearsal.rehearsal import Rehearsal
from renderer.cli.program import run
from renderer.errors import Problems
from renderer.model.document_type import JOURNAL_ENTRY
from renderer.model.ref import Ref, ref_of
from renderer.redaction import Redactor, numbered, packaged_rules

pytestmark = [pytest.mark.slow, pytest.mark.lane("recordings")]

LATE = pytest.mark.full(
    "replays of three more upgrades; those of three nodes to success, and of one node to failure and with an outage, "
    "stand for them"
)
REDACTOR = Redactor(packaged_rules(), numbered)


def quiet(text: str) -> None:
    raise AssertionError(text)


def play(scene: Rehearsal, keep: Callable[[JournalEntry], None], hours: float = 48) -> None:
    scene.drive(Reconciler(scene.deps, keep), lambda done: None).run(scene.name, timedelta(hours=hours))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def replayed(path: Path) -> list[Replayed]:
    return list(replay(path, template_set()))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a three-node upgrade to its end."""
    return written(tmp_path_factory.mktemp("journal") / "journal.jsonl", recording("three-node"))


@pytest.fixture(scope="module")
def beginning(whole: Path) -> Path:
    """Its first lines, for those who replay them more than once."""
    path = whole.with_name("beginning.jsonl")
    path.write_text("".join(whole.read_text(encoding="utf-8").splitlines(keepends=True)[:12]), encoding="utf-8")
    return path


def written(path: Path, recorded: Recording, **options: int) -> Path:
    journal = Journal(path, quiet, packaged_rules(), **options)
    for entry in recorded.entries:
        journal(entry)
    return path


def test_every_decision_of_a_whole_upgrade_is_made_again_alike(whole: Path) -> None:
    found = replayed(whole)
    assert len(found) > 50
    assert [(line.line, line.problem, line.differs) for line in found if line.problem or line.differs] == []
    lines = lines_of(whole)
    assert lines[-1]["decision"]["status"]["currentPhase"] == "Succeeded"
    assert any(line["results"] for line in lines)


@pytest.mark.parametrize(
    ("example", "wishes"),
    [
        pytest.param("single-node", {}, marks=LATE),
        pytest.param("paused-node", {}, marks=LATE),
        pytest.param("three-node", {"fail": ("pre-drain on charlie-2",)}, marks=LATE),
        ("single-node", {"fail": ("cluster-upgrade",)}),
        ("single-node", {"away": ("5m at image-preload",)}),
    ],
)
def test_other_upgrades_are_made_again_alike(example: str, wishes: dict[str, Any], tmp_path: Path) -> None:
    found = replayed(written(tmp_path / "j", recording(example, **wishes)))
    assert len(found) > 10
    assert [(line.line, line.problem, line.differs) for line in found if line.problem or line.differs] == []


def test_all_that_a_decision_sees_is_read_back() -> None:
    entries: list[JournalEntry] = []
    play(rehearsal_of("three-node"), entries.append, hours=0.2)
    last = entries[-1]
    group = Group(api_version="v1", kind="Node", labels=(("a", "b"),))
    last.seen.snapshot.groups[group] = ReadFailure(why="forbidden")
    last.seen.snapshot.put({Ref(api_version="v1", kind="Node", name="gone"): None})
    last.seen.snapshot.readings["kubelet"] = {"a": {"imageGCHighThresholdPercent": 85}, "z": ReadFailure(why="refused")}
    last.seen.snapshot.readings["certificates"] = {"b": {"notAfter": "2026-12-01T00:00:00Z"}}
    last.seen.attended.asked[START] = 7.5
    world = replace(
        last.seen.observation,
        passes={("A/B", 1): 2},
        fetch_failures={"list": FetchFailure(why="404", absent=True)},
        errors=("refused",),
        others=OtherUpgrades(blocker="another", beside="built-in", lookup_error="forbidden"),
        sealed={"A": "sha256:1"},
        unapproved={"A": ("Job a/b spec",)},
    )
    line, bodies = line_of(replace(last, seen=replace(last.seen, observation=world)), REDACTOR)
    back = world_from(json.loads(json.dumps(line)), json.loads(json.dumps(bodies)), rendering(), packaged_schemas())
    for name in (
        "now",
        "passes",
        "fetch_failures",
        "errors",
        "others",
        "sealed",
        "unapproved",
        "fetched",
        "approved",
        "rendered",
    ):
        assert getattr(back, name) == getattr(world, name), name
    assert back.look.list(group) == ReadFailure(why="forbidden")
    assert back.look.get(Ref(api_version="v1", kind="Node", name="gone")) is None
    assert back.look.reading(KUBELET, "a") == {"imageGCHighThresholdPercent": 85}
    assert back.look.reading(KUBELET, "z") == ReadFailure(why="refused")
    assert back.look.reading(CERTIFICATES, "b") == {"notAfter": "2026-12-01T00:00:00Z"}
    assert back.attended(START) == 7.5


def test_a_line_has_the_form_of_its_schema(beginning: Path) -> None:
    for line in lines_of(beginning):
        validator(JOURNAL_ENTRY.schema).validate(line)
        assert JOURNAL_ENTRY.is_type_of(line)


def test_a_body_is_written_once(whole: Path) -> None:
    written = [digest for line in lines_of(whole) for digest in line["bodies"]]
    assert len(written) == len(set(written))


def changed(path: Path, edit: Callable[[dict[str, Any]], None], number: int = -1) -> Path:
    lines = lines_of(path)
    edit(lines[number])
    copy = path.with_name("changed")
    copy.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return copy


def test_a_decision_that_comes_out_otherwise_is_shown(beginning: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed(beginning, lambda line: line["decision"]["status"].update(currentPhase="Elsewhere"))
    differing = [line for line in replayed(path) if line.differs]
    assert [line.line for line in differing] == [len(lines_of(beginning))]
    assert run(["upgradeplan", "explain", "--replay", str(path)]) == 1
    out = capsys.readouterr().out
    assert 'status.currentPhase: was "Elsewhere"' in out
    assert "1 differ" in out


def test_the_command_says_yes_and_has_the_form_of_its_schema(
    beginning: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, status in ((beginning, 0), (changed(beginning, lambda line: line.update(format=9)), 1)):
        assert run(["upgradeplan", "explain", "--replay", str(path), "-o", "json"]) == status
        model = json.loads(capsys.readouterr().out)
        validator("replay").validate(model)
        assert model["same"] is (status == 0)


@pytest.mark.parametrize("content", [b"", b"no journal\n", bytes(range(256))])
def test_a_file_that_is_no_journal_is_bad_input(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert run(["upgradeplan", "explain", "--replay", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"{path}: contains no decision of this plan\n")


def test_a_rehearsal_writes_one_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "rehearsal.jsonl")
    failing = ("--fail", "image-import", str(ROOT / "examples" / "single-node"))
    assert run(["upgradeplan", "rehearse", "--quiet", "--journal", path, *failing]) == 1
    capsys.readouterr()
    assert run(["upgradeplan", "explain", "--replay", path]) == 0
    assert "decisions replayed, 0 differ" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--journal", "--report"])
@pytest.mark.parametrize("name", [".", "no-folder/j", "file/j", "pipe"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    name: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / name)
    assert run(["upgradeplan", "rehearse", option, path, str(ROOT / "examples" / "single-node")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{option}: {path} cannot be written: ")


def test_a_pipe_is_no_journal_and_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "j")
    assert run(["upgradeplan", "explain", "--replay", str(tmp_path / "j")]) == 2
    assert "is a device, a pipe or a socket" in capsys.readouterr().err


def test_lines_that_were_cut_off_are_named_and_the_rest_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    play(rehearsal_of("single-node"), Journal(path, quiet), hours=0.2)
    whole = len(replayed(path))
    path.write_text(path.read_text(encoding="utf-8") + '{"format":1,"bod', encoding="utf-8")
    scene = rehearsal_of("single-node")
    play(scene, Journal(path, quiet), hours=0.2)
    found = replayed(path)
    assert [line.line for line in found if line.problem] == [whole + 1]
    assert len(found) == 2 * whole + 1
    assert not any(line.differs for line in found)


def test_the_journal_is_bounded_and_each_file_stands_for_itself(tmp_path: Path) -> None:
    path = written(tmp_path / "j", recording("single-node"), limit=250_000)
    old = tmp_path / "j.1"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["j", "j.1"]
    for file in (path, old):
        assert file.stat().st_size < 500_000
        assert [line.problem or line.differs for line in replayed(file) if line.problem or line.differs] == []


def test_no_secret_is_written(tmp_path: Path) -> None:
    scene = rehearsal_of("three-node")
    secret = next(b for b in scene.cluster.store.everything() if b["kind"] == "Secret")
    kind = scene.deps.kinds.row("v1", "Secret").kind
    scene.cluster.client().patch(kind, ref_of(secret), {"data": {"plan": "aHVudGVyMg=="}})
    path = tmp_path / "j"
    play(scene, Journal(path, quiet), hours=1)
    text = path.read_text(encoding="utf-8")
    assert str(secret["metadata"]["name"]) in text
    assert "aHVudGVyMg==" not in text
    assert "stringData" not in text


def test_a_journal_that_cannot_be_written_is_told_once_and_holds_nothing_up(tmp_path: Path) -> None:
    told: list[str] = []
    scene = rehearsal_of("single-node")
    play(scene, Journal(tmp_path / "no" / "such" / "folder", told.append), hours=0.5)
    assert len(told) == 1
    assert "No such file" in told[0]
    assert scene.reconciler.look(scene.name).plan["status"]["currentPhase"]  # type: ignore[index]


def test_rounds_that_decide_nothing_new_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "j"
    scene = rehearsal_of("single-node", stall=["image-import"])
    keep = Journal(path, quiet)
    play(scene, keep, hours=1)
    before = len(lines_of(path))
    play(scene, keep, hours=1)
    assert len(lines_of(path)) <= before + 2


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problems, match="cannot be read"):
        replayed(tmp_path / "nothing")


def test_a_decision_about_our_own_fields_is_made_again_alike(tmp_path: Path) -> None:
    """Which fields of others' objects are ours is in their managed fields alone."""
    found, path = waiting_for_rancher(), tmp_path / "j"
    secret = found.secret("n1")
    kind = found.scene.deps.kinds.row("v1", "Secret").kind
    found.scene.cluster.client().delete(kind, ref_of(secret))
    found.create(machine_plan("p-n1", "m-n1"))  # as Rancher does: the API server knows then whose each field is
    drained(found)
    found.scene.reconciler = Reconciler(found.scene.deps, Journal(path, quiet))
    found.delete_plan()
    for _ in range(3):
        found.rounds()
        for item in found.all("Plan"):
            found.end_plan(item["metadata"]["name"])
    lines = replayed(path)
    assert any("Return Secret" in text for line in lines_of(path) for text in map(str, line["results"]))
    assert [line.problem or line.differs for line in lines if line.problem or line.differs] == []


def test_a_replay_says_why_the_plan_waited_in_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "j", recording("single-node", stall=("image-import",)))
    assert run(["upgradeplan", "explain", "--replay", str(path), "-o", "json"]) == 0
    model = json.loads(capsys.readouterr().out)
    validator("replay").validate(model)
    [last] = model["last"]
    assert [cause["id"] for cause in last["causes"]][:1] == ["image-import"]
    assert run(["upgradeplan", "explain", "--replay", str(path)]) == 0
    assert f"{last['plan']} waited at {last['at']}:\n  because VirtualMachineImage " in capsys.readouterr().out
