"""The report of a run: what it says, and that its page is for everybody and asks nobody for anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.answer_schemas import validate
from support.html_page import Element, contrast, palettes, read_page
from support.recordings import recording
from support.rehearsals import ROOT, template_set

from reconcile.cli.report import format_of, report_text
from reconcile.loop.journal import FORMAT
from reconcile.probes.look import Group, ReadFailure
from reconcile.report_page.model import Model, run_report
from reconcile.report_page.page import NODES, PAGE, WAITS, page_view
from reconcile.report_page.plan_run import run_of_plan, with_cluster
from reconcile.report_page.recorded_run import (
    LogExcerpt,
    MachineFact,
    NodeVersions,
    RecordedRun,
    RunMoment,
    RunSource,
    Sighting,
    moment_of,
)
from renderer.cli.program import run
from renderer.model.document_type import RUN_REPORT
from renderer.model.ref import Body, Ref, ref_of
from renderer.redaction import packaged_redactor
from renderer.yaml_io import parse

START = datetime(2026, 1, 1, tzinfo=UTC)
START_TEXT = "2026-01-01T00:00:00Z"
PHASES = [item.phase for item in template_set().catalog.phases]
HOSTILE = "<script>alert(1)</script>"
ENTRY = {"decision": {}, "apiVersion": "upgradeplan/v1", "kind": "JournalEntry", "format": FORMAT}
SINGLE_NODE = str(ROOT / "examples" / "single-node")


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def wait(text: str, since: int, **parts: Any) -> Mapping[str, Any]:
    return {
        "step": "ISODownload/Image",
        "node": None,
        "since": at(since).isoformat(),
        "text": text,
        "summary": "",
        "slow": False,
        "unknown": False,
        "check": None,
        **parts,
    }


def status(phase: str, **parts: Any) -> Mapping[str, Any]:
    history = [{"phase": "Initializing", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
    return {"currentPhase": phase, "phaseTransitionTimestamps": history, **parts}


def run_of(*moments: RunMoment, **parts: Any) -> RecordedRun:
    plan = {"metadata": {"name": "up"}, "spec": {"version": "v1.8.0"}}
    given: dict[str, Any] = {"name": "up", "source": RunSource.JOURNAL, "origin": "j.jsonl", "plan": plan, **parts}
    return RecordedRun(moments=moments, **given)


def model_of(*moments: RunMoment, **parts: Any) -> Model:
    model = run_report(run_of(*moments, **parts), PHASES, packaged_redactor())
    validate(RUN_REPORT, model)
    return model


def page_text(model: Model) -> str:
    return template_set().templates.page(PAGE, page_view(model))


def page(model: Model) -> Element:
    return read_page(page_text(model))


def recorded(example: str = "single-node") -> Model:
    played = recording(example)
    assert played.result.plan
    run = RecordedRun(
        name=played.rehearsal.name,
        source=RunSource.REHEARSAL,
        origin="",
        plan=played.result.plan,
        moments=tuple(map(moment_of, played.entries)),
    )
    model = run_report(run, PHASES, packaged_redactor())
    validate(RUN_REPORT, model)
    return model


# ------------------------------------------------------------------------------------------------------- the model


@pytest.mark.slow
def test_a_rehearsal_has_all_its_phases_nodes_waits_and_versions() -> None:
    model = recorded()
    assert (model["result"], model["began"]) == ("succeeded", "")
    assert [phase["name"] for phase in model["phases"]] == [phase.name for phase in PHASES]
    assert {phase["state"] for phase in model["phases"]} == {"done"}
    assert all(node["state"] for node in model["nodes"])
    assert all(wait["ended"] is not None and wait["ended"] > wait["began"] for wait in model["waits"])
    assert model["versions"][0] == {"what": "Harvester", "before": "v1.7.1", "after": "v1.8.0-rc5"}
    assert [row for row in model["versions"] if not (row["before"] and row["after"])] == []
    assert all(loan["returned"] is not None for loan in model["borrowed"])
    assert max(phase["ended"] for phase in model["phases"]) <= model["took"]


def test_a_wait_lasts_from_its_beginning_to_the_first_moment_without_it() -> None:
    """Its words change while it lasts; the last ones are kept."""
    running = status("ISODownloading")
    model = model_of(
        RunMoment(time=at(1), status=running, waits=(wait("10%", 0),)),
        RunMoment(time=at(3), status=running, waits=(wait("90%", 0), wait("space", 3, step="X/Y"))),
        RunMoment(time=at(5), status=running),
    )
    assert [(w["text"], w["began"], w["ended"]) for w in model["waits"]] == [("90%", 0, 300), ("space", 180, 300)]


def test_a_wait_of_a_plan_that_has_not_ended_is_open() -> None:
    model = model_of(RunMoment(time=at(2), status=status("ISODownloading"), waits=(wait("10%", 0),)))
    assert [w["ended"] for w in model["waits"]] == [None]


def test_a_check_that_held_the_upgrade_is_listed_with_what_it_found() -> None:
    check = {"id": "a-check", "title": "all is well", "found": ["PVC a"], "remedies": ["wait"], "accept": ""}
    model = model_of(
        RunMoment(time=at(1), status=status("Initializing"), waits=(wait("held", 0, check=check),)),
        RunMoment(time=at(2), status=status("Initializing"), waits=(wait("held", 0, check=check),)),
    )
    assert [(c["check"], c["at"], c["found"]) for c in model["checks"]] == [("a-check", 60, ["PVC a"])]
    assert model["waits"][0]["text"] == "a-check: all is well; PVC a"


def loan(path: str, **parts: Any) -> Mapping[str, Any]:
    return {
        **{"phase": "NodeUpgrade", "step": "A", "apiVersion": "v1", "kind": "Node", "name": "n1", "path": path},
        **{"absent": False, "value": "old", "taken": "2026-01-01T00:01:00Z", **parts},
    }


def test_a_loan_whose_record_is_dropped_was_returned() -> None:
    model = model_of(
        RunMoment(time=at(1), status=status("NodeUpgrading", borrowed=[loan("/spec/a"), loan("/spec/b")])),
        RunMoment(time=at(2), status=status("NodeUpgrading", borrowed=[loan("/spec/b")])),
    )
    assert [(item["path"], item["returned"]) for item in model["borrowed"]] == [("spec.a", 120), ("spec.b", None)]


def test_a_secret_that_is_on_loan_is_not_shown() -> None:
    secret = loan("/data/token", kind="Secret", namespace="fleet-local", value="czNjcjN0LXZhbHVl")
    model = model_of(RunMoment(time=at(1), status=status("NodeUpgrading", borrowed=[secret])))
    assert "czNjcjN0" not in json.dumps(model)
    assert "czNjcjN0" not in report_text(model, "html", template_set())


def test_machines_that_were_seen_elsewhere_have_moved_and_listed_ones_were_stopped() -> None:
    def seen(minute: int, node: str, stopped: Mapping[str, list[str]]) -> RunMoment:
        sighting = Sighting(machines={"default/web": node}, stopped=stopped)
        return RunMoment(time=at(minute), status=status("NodeUpgrading"), sighting=sighting)

    model = model_of(seen(1, "n1", {}), seen(2, "n2", {"n1": ["default/db"]}), seen(3, "n2", {"n1": []}))
    assert model["machines"] == [
        {
            "name": "default/db",
            "facts": [{"what": "stopped", "at": 120, "node": "n1"}, {"what": "started again", "at": 180, "node": ""}],
        },
        {"name": "default/web", "facts": [{"what": "moved", "at": 120, "node": "n2"}]},
    ]


def test_a_node_that_was_seen_once_has_one_version_known() -> None:
    release = {"harvester": "v1.8.0", "os": "Harvester v1.8.0"}
    sighting = Sighting(
        nodes={
            "new": NodeVersions(os="Harvester v1.8.0", kubernetes="v2"),
            "old": NodeVersions(os="Harvester v1.7.1", kubernetes="v1"),
        }
    )
    model = model_of(RunMoment(time=at(1), status=status("NodeUpgrading", releaseMetadata=release), sighting=sighting))
    rows = {row["what"]: (row["before"], row["after"]) for row in model["versions"]}
    assert rows["operating system of new"] == ("", "Harvester v1.8.0")
    assert rows["operating system of old"] == ("Harvester v1.7.1", "")


def test_a_failure_says_step_objects_and_time() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "harvester-system", "name": "j", "digest": "1"}
    record = {"state": "Failed", "started": "2026-01-01T00:01:00Z", "ended": "2026-01-01T00:02:00Z", "objects": [job]}
    steps = {"NodeUpgrade": {"records": {"PreDrain/n1": {**record, "message": "no space"}}}}
    model = model_of(RunMoment(time=at(9), status=status("Failed", steps=steps)))
    (failure,) = model["failures"]
    assert (failure["step"], failure["message"], failure["at"]) == ("NodeUpgrade/PreDrain/n1", "no space", 120)
    assert failure["objects"] == ["Job harvester-system/j"]
    assert model["took"] == 120, "it was over then, whenever it is looked at"


def test_a_plan_that_has_not_begun_has_a_report() -> None:
    plan = {"metadata": {"name": "up"}, "spec": {"version": "v1"}}
    model = run_report(run_of_plan(plan, "plan.yaml", at(0)), PHASES, packaged_redactor())
    validate(RUN_REPORT, model)
    assert model["result"] == "not started"
    page(model)


class LookedAt:
    """A source of the objects of these groups; every other kind cannot be read."""

    def __init__(self, **bodies: Sequence[Body]) -> None:
        self._bodies = bodies

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        found = self._bodies.get(group.kind)
        return ReadFailure(why="not allowed") if found is None else tuple(found)

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        return next((body for body in self._bodies.get(ref.kind, ()) if ref_of(body) == ref), None)

    def held(self) -> Mapping[Ref, Body]:
        return {}

    def note(self, body: Body) -> None:
        """Keeps nothing."""


def moved(name: str, minute: int, **state: Any) -> Body:
    ended = {"completed": True, "endTimestamp": f"2026-01-01T00:{minute:02}:00Z", "targetNode": "n2", **state}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": f"m-{name}", "namespace": "default"},
        "spec": {"vmiName": name},
        "status": {"migrationState": ended},
    }


def event_of(plan: str, reason: str) -> Body:
    about = {"kind": "UpgradePlan", "name": plan}
    return {
        **{"apiVersion": "v1", "kind": "Event", "metadata": {"name": reason, "namespace": "default"}},
        **{"involvedObject": about, "type": "Normal", "reason": reason, "message": "", "firstTimestamp": START_TEXT},
    }


def test_a_plan_in_the_cluster_has_what_the_cluster_still_knows() -> None:
    """Migrations since it began, events, machines that are still stopped; what cannot be read is named."""
    record = {"state": "Failed", "started": START_TEXT, "ended": START_TEXT}
    steps = {"NodeUpgrade": {"records": {"PreDrain/n1": record}}}
    plan = {"metadata": {"name": "up"}, "spec": {"version": "v1"}, "status": status("Failed", steps=steps)}
    stopped = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"n1": "default/db"}}
    stopped["metadata"] = {"name": "up-restore-vm", "namespace": "harvester-system"}
    source = LookedAt(
        VirtualMachineInstanceMigration=[
            moved("web", 5),
            moved("bad", 6, failed=True),
            moved("going", 7, completed=False),
        ],
        Event=[event_of("up", "PhaseCompleted"), event_of("another", "PhaseTransition")],
        ConfigMap=[stopped],
    )
    excerpt = LogExcerpt(object="Pod a/b", container="main", lines=("no space",))
    run = with_cluster(run_of_plan(plan, "site", at(9)), source, [], lambda made: (excerpt,))
    model = run_report(run, PHASES, packaged_redactor())
    validate(RUN_REPORT, model)
    assert [(m["name"], [f["what"] for f in m["facts"]]) for m in model["machines"]] == [
        ("default/db", ["stopped"]),
        ("default/web", ["moved"]),
    ]
    assert [event["reason"] for event in model["events"]] == ["PhaseCompleted"]
    assert model["failures"][0]["logs"][0]["lines"] == ["no space"]
    assert model["unread"] == ["Node objects: not allowed"]
    assert "no space" in page(model).text


def test_what_was_found_after_the_upgrade_is_told_in_every_format() -> None:
    found = {"check": "a-check", "outcome": "warned", "message": HOSTILE, "remedy": "look at n1"}
    model = model_of(RunMoment(time=at(9), status=status("Succeeded", verification=[found])))
    assert model["verification"] == [found]
    (section,) = [e for e in page(model).every("section") if e.attributes["aria-labelledby"] == "verification"]
    assert all(text in section.text for text in found.values())
    assert "| a-check | warned | &lt;script&gt;alert(1)&lt;/script&gt; | look at n1 |" in report_text(
        model, "markdown", template_set()
    )


# -------------------------------------------------------------------------------------------------------- the page


def hostile_page_text() -> str:
    fact = MachineFact(time=at(1), machine=f"default/{HOSTILE}", what="moved", node=HOSTILE)
    record = {"state": "Failed", "started": "2026-01-01T00:01:00Z", "ended": "2026-01-01T00:02:00Z", "message": HOSTILE}
    steps = {"NodeUpgrade": {"records": {"PreDrain/n1": record}}}
    body = status("Failed", steps=steps, borrowed=[loan("/spec/a", value=HOSTILE)])
    moment = RunMoment(time=at(2), status=body, waits=(wait(HOSTILE, 0, node="n1"),))
    return page_text(model_of(moment, machine_facts=(fact,), name=HOSTILE, origin=f'"{HOSTILE}'))


def test_text_of_users_is_text() -> None:
    root = read_page(hostile_page_text())
    assert list(root.every("script", "iframe", "object", "img", "form")) == []
    assert root.text.count(HOSTILE) >= 6
    assert [name for element in root.every() for name in element.attributes if name.startswith("on")] == []


@pytest.fixture(scope="module", params=["rehearsal", "hostile"])
def root(request: pytest.FixtureRequest) -> Element:
    return page(recorded()) if request.param == "rehearsal" else read_page(hostile_page_text())


def test_the_page_asks_nobody_for_anything(root: Element) -> None:
    links = [
        element.attributes[name]
        for element in root.every()
        for name in ("href", "src", "xlink:href", "action", "data", "srcset")
        if name in element.attributes
    ]
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    (style,) = root.every("style")
    assert [word for word in ("url(", "@import", "@font-face") if word in style.text] == []
    (policy,) = (e.attributes["content"] for e in root.every("meta") if "http-equiv" in e.attributes)
    assert policy.startswith("default-src 'none';")


def test_headings_are_in_order_and_links_lead_somewhere(root: Element) -> None:
    levels = [int(element.tag[1]) for element in root.every("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []
    ids = [element.attributes["id"] for element in root.every() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    named = [e.attributes["href"][1:] for e in root.every("a")]
    named += [name for e in root.every() for name in e.attributes.get("aria-labelledby", "").split()]
    assert [name for name in named if name not in ids] == []


def test_pictures_and_tables_say_what_they_are(root: Element) -> None:
    (html,) = root.every("html")
    assert html.attributes["lang"] == "en"
    pictures = list(root.every("svg"))
    assert pictures
    for picture in pictures:
        assert [child.tag for child in picture.children[:2]] == ["title", "desc"]
        assert all(child.text.strip() for child in picture.children[:2])
        assert picture.attributes["role"] == "img"
    for table in root.every("table"):
        assert table.children[0].tag == "caption"
        assert {cell.attributes.get("scope") for cell in table.every("th")} == {"col"}


def test_bars_stand_within_the_picture(root: Element) -> None:
    for bar in root.every("rect"):
        x, width = float(bar.attributes["x"]), float(bar.attributes["width"])
        assert x >= 0
        assert width > 0
        assert x + width <= 1000.2


def test_text_and_bars_stand_out_in_light_dark_and_print(root: Element) -> None:
    (style,) = root.every("style")
    found = palettes(style.text)
    assert len(found) == 3
    for palette in found:
        texts = ("text", "quiet", "link", "good", "bad", "warn")
        poor = {(name, on): contrast(palette[name], palette[on]) for name in texts for on in ("page", "panel")}
        assert {pair: ratio for pair, ratio in poor.items() if ratio < 4.5} == {}
        bars = ("bar", "bad", *(f"step{number}" for number in range(6)))
        assert {name for name in bars if contrast(palette[name], palette["track"]) < 3} == set()
        assert contrast(palette["wait"], palette["track"]) >= 2.5


@pytest.mark.slow
def test_a_thousand_nodes_are_drawn_in_part_and_counted() -> None:
    states = {f"n{number}": {"state": "ImagePreloading"} for number in range(1000)}
    waits = tuple(wait(f"w{n}", 0, step=f"NodeUpgrade/PreDrain/n{n}", node=f"n{n}") for n in range(1000))
    moment = RunMoment(time=at(5), status=status("ImagePreloading", nodeUpgradeStatuses=states), waits=waits)
    model = model_of(moment)
    view = page_view(model)
    assert (len(model["nodes"]), len(view["nodes"]), view["nodes_left"]) == (1000, NODES, 1000 - NODES)
    assert (len(view["waits"]), view["waits_left"]) == (WAITS, 1000 - WAITS)
    assert "800 more nodes are not drawn." in page(model).text


# ------------------------------------------------------------------------------------------------------ Markdown


def test_markdown_keeps_the_text_of_users_as_text() -> None:
    moment = RunMoment(time=at(2), status=status("ISODownloading"), waits=(wait("a|b `c` [d](http://e) <f>", 0),))
    text = report_text(model_of(moment), "markdown", template_set())
    assert r"| a\|b &#96;c&#96; &#91;d](http://e) &lt;f&gt; |" in text
    assert text.startswith("# up: unfinished\n")


# ----------------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("file", "expected"), [("a.html", "html"), ("a.md", "markdown"), ("a.json", "json"), ("a", "html")]
)
def test_the_name_of_the_file_says_the_format(file: str, expected: str) -> None:
    assert format_of(file) == expected


def shown(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run(["upgradeplan", *words]) == code
    said = capsys.readouterr()
    return said.out if code == 0 else said.err


@pytest.mark.slow
def test_a_rehearsal_its_journal_and_its_report_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, journal = str(tmp_path / "run.json"), str(tmp_path / "journal.jsonl")
    shown(capsys, "rehearse", "-q", SINGLE_NODE, "--report", file, "--journal", journal)
    first = json.loads(Path(file).read_text(encoding="utf-8"))
    again = json.loads(shown(capsys, "report", file, "-o", "json"))
    of_journal = json.loads(shown(capsys, "report", journal, "-o", "json"))
    assert again == first
    same = ("phases", "nodes", "waits", "checks", "accepted", "versions", "took", "result")
    assert {key: of_journal[key] for key in same} == {key: first[key] for key in same}
    read_page(shown(capsys, "report", journal, "-o", "html"))


@pytest.mark.slow
def test_a_journal_that_was_put_aside_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "journal.jsonl"
    shown(capsys, "rehearse", "-q", SINGLE_NODE, "--journal", str(journal))
    whole = shown(capsys, "report", str(journal))
    bodies: dict[str, Any] = {}
    lines = []
    for text in journal.read_text(encoding="utf-8").splitlines():
        bodies |= (line := json.loads(text))["bodies"]
        lines.append({**line, "bodies": dict(bodies)})
    texts = [f"{json.dumps(line)}\n" for line in lines]
    journal.with_name("journal.jsonl.1").write_text("".join(texts[:9]), encoding="utf-8")
    journal.write_text("".join(texts[9:]) + '{"half of a li', encoding="utf-8")
    assert shown(capsys, "report", str(journal)) == whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: ConfigMap\n", "is neither a run of a plan nor a report on one"),
        ('{"apiVersion": "cli.upgradeplan/v1", "kind": "RehearsalReport"}', "is what `rehearse -o json` prints"),
        ('{"apiVersion": "cli.upgradeplan/v1", "kind": "RunReport"}', "plan: is missing"),
        ('{"decision": {}}', "contains no decision of a plan"),
        ('{"decision": {}, "apiVersion": "upgradeplan/v1", "kind": "JournalEntry", "format": 1}', "has format 1"),
        (json.dumps({**ENTRY, "plan": "sha256:x"}), "contains no decision of a plan"),
        ("a: 1\n---\nb: 2\n", "has 2 documents, and one is expected"),
    ],
)
def test_what_is_no_run_is_refused(
    text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert expected in shown(capsys, "report", str(tmp_path / "x.json"), code=2)


@pytest.mark.slow
def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "run.html"
    assert "--report: " in shown(capsys, "rehearse", "-q", SINGLE_NODE, "--report", str(file), code=2)


def test_an_overlay_may_bring_its_own_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = str(ROOT / "examples" / "single-node" / "upgradeplan.yaml")
    page_file = tmp_path / "report" / "page.html.j2"
    page_file.parent.mkdir()
    page_file.write_text("<h1>{{ report.plan }}</h1>\n", encoding="utf-8")
    words = ("report", plan, "-o", "html", "--templates", str(tmp_path))
    name = parse(Path(plan).read_text(encoding="utf-8"), plan)[-1].value["metadata"]["name"]
    assert shown(capsys, *words) == f"<h1>{name}</h1>\n"
    page_file.write_text("<h1>\n{{ reprot.plan }}</h1>\n", encoding="utf-8")
    assert "page.html.j2:2: 'reprot' is undefined" in shown(capsys, *words, code=2)
