"""Documents of before 0.2, without apiVersion and with other keys, are read for one minor release, with a warning.

To be deleted in 0.3 with `renderer/deprecated.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.rendered_plans import ROOT, overlaid, render_made, templates, three_nodes

from renderer.catalog.load import Catalog, load_catalog
from renderer.cli.program import run
from renderer.deprecated import REMOVED_IN, current
from renderer.documents import recognize
from renderer.errors import Problems
from renderer.model.document_type import DELIVERY_RULES, FACTS, PHASE
from renderer.validation import document_problems
from renderer.yaml_io import parse

EXAMPLE = ROOT / "examples" / "single-node"
OLD = """\
name: Wait
description: Waits.
status: {active: Waiting, completed: Waited}
deletion: free
announce: false
skipWhen: [{expr: plan.spec.force, because: it is forced}]
lanes:
  drain: {atMost: 1, waiting: w, others: {all: [{condition: {type: Ready, is: "True"}}], waiting: w}}
  others: {atMost: 2, waiting: w}
steps:
- name: Do
  forEach: node
  lane: drain
  despiteOthers: true
  keepsLane: &probe {object: &node {apiVersion: v1, kind: Node, name: n1}, all: [{absent: true}]}
  skipUnless: {probe: *probe, because: it is there}
  trigger: {probe: *probe}
  joins: {by: [*node], done: *probe, because: it is done}
  seed: {state: ImagePreloaded}
  traces: [{apiVersion: v1, kind: Node, path: metadata.labels.x}]
  capture: {inherits: {object: *node, path: a, inherits: {when: "true", value: 1}}}
  record: {because: "1"}
  owned: [{file: a.yaml.j2, takeOver: [data], when: {expr: "true", because: it is expected}}]
  borrowed: [{file: b.yaml.j2, return: always, inherits: [{path: a, value: 1}]}]
  undo: {name: Undo, seed: {state: ImagePreloaded}}
"""
NEW = """\
apiVersion: templates.upgradeplan/v1
kind: Phase
name: Wait
description: Waits.
status: {active: Waiting, completed: Waited}
deletion: free
emitEvents: false
skipWhen: [{expr: plan.spec.force, reason: it is forced}]
lanes:
  drain: {atMost: 1, waiting: w, requirePeers: {all: [{condition: {type: Ready, status: "True"}}], waiting: w}}
  others: {atMost: 2, waiting: w}
steps:
- name: Do
  forEach: node
  lane: drain
  ignoreUnhealthyPeers: true
  holdSlotWhile: &probe {object: &node {apiVersion: v1, kind: Node, name: n1}, all: [{absent: true}]}
  skipUnless: {probe: *probe, reason: it is there}
  trigger: {probe: *probe}
  lateNodes: {by: [*node], done: *probe, reason: it is done}
  initialNodeState: {state: ImagePreloaded}
  removeFields: [{apiVersion: v1, kind: Node, path: metadata.labels.x}]
  capture: {inherits: {object: *node, path: a, valueOnTakeOver: {when: "true", value: 1}}}
  record: {because: "1"}
  owned: [{file: a.yaml.j2, setOnTakeOver: [data], when: {expr: "true", reason: it is expected}}]
  borrowed: [{file: b.yaml.j2, return: always, originalsOnTakeOver: [{path: a, value: 1}]}]
  undo: {name: Undo, initialNodeState: {state: ImagePreloaded}}
"""
STEPS = """\
steps:
- {name: First, forEach: node, lane: drain}
- {name: Second, forEach: node, lane: others}
"""
ABSENT = "fetch: {x: {namespace: a, service: b, port: 80, path: /, as: lines, absent: {because: gone, provenBy: /}}}"


def catalog(**files: str) -> Catalog:
    return load_catalog(overlaid(files), document_problems)


def test_an_old_phase_means_what_the_new_one_means() -> None:
    (old,), (new,) = parse(OLD, "p.yaml"), parse(NEW, "p.yaml")
    assert current(old, PHASE).document.value == new.value
    assert document_problems(new, PHASE) == []
    assert current(new, PHASE).document is new
    assert current(new, PHASE).warnings == ()


def test_each_old_key_is_warned_of_by_line_with_the_new_one() -> None:
    (old,) = parse(OLD, "p.yaml")
    header, *keys = current(old, PHASE).warnings
    assert str(header) == (
        f"p.yaml:1: has no apiVersion and kind; release {REMOVED_IN} will refuse it\n"
        "    remedy: add the lines `apiVersion: templates.upgradeplan/v1` and `kind: Phase`"
    )
    lines = [int(str(warning.line)) for warning in keys]
    assert lines == [5, 6, 8, 8, 14, 15, 16, 18, 18, 19, 20, 21, 23, 23, 24, 25]
    for warning in keys:
        old_key = str(warning.field).rpartition(".")[2]
        assert old_key in OLD.splitlines()[int(str(warning.line)) - 1]
        assert str(warning.remedy).startswith("write `")
    assert str(keys[4]) == (
        f"p.yaml:14: steps[0].despiteOthers: the key is now 'ignoreUnhealthyPeers'; release {REMOVED_IN} will refuse "
        "'despiteOthers'\n    remedy: write `ignoreUnhealthyPeers:`"
    )


def test_an_absent_document_too() -> None:
    (old,) = parse(f"{OLD}  {ABSENT}\n", "p.yaml")
    assert current(old, PHASE).warnings[-1].field == "steps[0].fetch.x.absent.because"


@pytest.mark.slow
def test_an_old_phase_has_the_digest_of_the_new_one() -> None:
    """So a site that renames its keys need not have its plan approved again."""
    old = "\n".join(OLD.splitlines()[:9])
    new = "\n".join(NEW.splitlines()[:11])
    digests = {
        render_made(*three_nodes(), tree=overlaid({"90-wait/phase.yaml": f"{text}\n{STEPS}"})).plan.digest
        for text in (old, new)
    }
    assert len(digests) == 1


def test_the_other_documents_of_a_tree() -> None:
    rules = "redact: [{paths: [spec.own]}]\n"
    ready = 'ready: {all: [{condition: {type: R, is: "True"}}]}'
    row = f"- {{apiVersion: a/v1, kind: A, plural: as, namespaced: true, {ready}}}\n"
    values = templates()["values.yaml"].text.replace("apiVersion: templates.upgradeplan/v1\nkind: Values\n", "")
    found = catalog(**{"_kinds/own.yaml": row, "_diff/own.yaml": rules, "values.yaml": values})
    told = {(warning.file, warning.line, warning.remedy) for warning in found.warnings}
    header = "add the lines `apiVersion: templates.upgradeplan/v1` and `kind: "
    assert told == {
        ("overlay/_kinds/own.yaml", 1, f"{header}Kinds` and `kinds:` above the rows"),
        ("overlay/_kinds/own.yaml", 1, "write `status:`"),
        ("overlay/_diff/own.yaml", 1, f"{header}DiffRules`"),
        ("overlay/_diff/own.yaml", 1, "move its rules to a file of the folder _redaction, below `kinds:`"),
        ("overlay/values.yaml", 4, f"{header}Values`"),
    }
    assert found.kinds.row("a/v1", "A").ready
    assert found.values == load_catalog(templates(), document_problems).values
    assert found.redaction.paths_for({"kind": "A"}) == (("spec", "own"),)


def test_a_lint_rule_of_before() -> None:
    text = templates()["delivery/rules.yaml"].text
    old = "".join(
        f"  because: {line[10:]}" if line.startswith("  reason: ") else line for line in text.splitlines(keepends=True)
    )
    (document,), (new,) = parse(old, "r.yaml"), parse(text, "r.yaml")
    found = current(document, DELIVERY_RULES)
    assert found.document.value == new.value
    assert {str(warning).partition(": ")[2] for warning in found.warnings} == {
        f"lint[{index}].because: the key is now 'reason'; release {REMOVED_IN} will refuse 'because'\n"
        "    remedy: write `reason:`"
        for index in range(len(new.value["lint"]))
    }
    assert len(catalog(**{"delivery/rules.yaml": old}).warnings) == len(found.warnings)
    with pytest.raises(Problems, match=r"delivery/rules.yaml:.* unknown field 'lnit'"):
        catalog(**{"delivery/rules.yaml": text.replace("lint:", "lnit:")})


def test_what_is_wrong_in_an_old_document_is_still_wrong() -> None:
    with pytest.raises(Problems, match="stpes: unknown field"):
        catalog(**{"90-wait/phase.yaml": "name: Wait\ndescription: d\nstpes: []\n"})


def test_half_a_header_is_none_of_the_old_form() -> None:
    (document,) = parse("kind: Phase\nname: Wait\n", "p.yaml")
    assert current(document, PHASE).warnings == ()


def test_old_facts() -> None:
    (old,) = parse("# c\nfacts: {kubelet: {a: {imageGCHighThresholdPercent: 85}}}\n", "f.yaml")
    inputs, problems = recognize([old])
    assert problems == ()
    assert inputs.facts == {"kubelet": {"a": {"imageGCHighThresholdPercent": 85}}}
    (warning,) = inputs.warnings
    assert str(warning).startswith("f.yaml:2: has no apiVersion and kind")
    assert document_problems(current(old, FACTS).document, FACTS) == []


def test_a_key_under_its_old_and_its_new_name_is_refused_with_both_names() -> None:
    text = NEW.replace("  ignoreUnhealthyPeers: true\n", "  ignoreUnhealthyPeers: true\n  despiteOthers: true\n")
    (document,) = parse(text, "p.yaml")
    found = current(document, PHASE)
    assert [str(problem) for problem in found.problems] == [
        "p.yaml:17: steps[0].despiteOthers: both 'despiteOthers' (old name) and 'ignoreUnhealthyPeers' are given\n"
        "    remedy: keep `ignoreUnhealthyPeers:`, and remove `despiteOthers:`"
    ]
    assert document_problems(found.document, PHASE) == [], "nothing else is said of the key"
    with pytest.raises(Problems, match="old name") as caught:
        catalog(**{"90-wait/phase.yaml": text})
    assert [problem.reason for problem in caught.value.problems].count("OldAndNewKey") == 1


@pytest.fixture
def old_site(tmp_path: Path) -> list[str]:
    """Words that name an old facts document and an overlay with an old phase."""
    (tmp_path / "facts.yaml").write_text("facts: {}\n")
    phase = tmp_path / "templates" / "90-wait" / "phase.yaml"
    phase.parent.mkdir(parents=True)
    phase.write_text("\n".join(OLD.splitlines()[:9]) + f"\n{STEPS}")
    return [str(EXAMPLE), str(tmp_path / "facts.yaml"), "--templates", str(tmp_path / "templates")]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["render"], ["validate"], ["phases"], ["images"], ["rehearse", "--quiet"]])
def test_every_command_that_reads_them_warns(
    command: list[str], old_site: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upgradeplan", *command, *old_site, "-o", "json"]) == 0
    shown = capsys.readouterr()
    warnings = json.loads(shown.out)["warnings"]
    assert [warning["reason"] for warning in warnings if warning["reason"] == "Deprecated"] == ["Deprecated"] * 6
    assert {Path(warning["file"]).name for warning in warnings} >= {"facts.yaml", "phase.yaml"}
    assert shown.err.count("\nwarning: ") + shown.err.startswith("warning: ") == 6
    assert all(f"{warning['file']}:{warning['line']}: " in shown.err for warning in warnings if "line" in warning)


@pytest.mark.parametrize(
    ("wrong", "command"),
    [
        ("plan", ["render"]),
        ("plan", ["rehearse", "--quiet"]),
        ("phase", ["phases"]),
        ("phase", ["rehearse", "--quiet"]),
        ("file", ["render"]),
    ],
)
def test_a_run_that_is_refused_warns_as_well(
    wrong: str, command: list[str], old_site: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if wrong == "plan":
        (tmp_path / "plan.yaml").write_text(_PLAN_WITH_AN_UNKNOWN_FIELD)
        old_site += ["--plan", str(tmp_path / "plan.yaml")]
    if wrong == "phase":
        phase = tmp_path / "templates" / "90-wait" / "phase.yaml"
        phase.write_text(f"{phase.read_text()}\nstpes: []\n")
    if wrong == "file":
        (tmp_path / "templates" / "own.txt").write_text("x\n")
    assert run(["upgradeplan", *command, *old_site, "-o", "json"]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["problems"]
    warnings = [warning for warning in json.loads(shown.out)["warnings"] if warning["file"].endswith("phase.yaml")]
    assert {warning["reason"] for warning in warnings} == {"Deprecated"}
    assert shown.err.count("phase.yaml:1: has no apiVersion and kind") == 1


_PLAN_WITH_AN_UNKNOWN_FIELD = """\
apiVersion: management.harvesterhci.io/v1beta1
kind: UpgradePlan
metadata: {name: hvst-upgrade-1}
spec: {version: v1.8.0-rc1, forse: true}
"""
