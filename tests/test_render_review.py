"""The review of a rendering: what is borrowed and what it goes back to, what has changed since the base branch."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.answer_schemas import validator
from support.rendered_plans import ROOT

from renderer.cli.program import run
from renderer.markdown.limited_page import page
from renderer.markdown.rendering_blocks import rendering_blocks

pytestmark = pytest.mark.slow

PLAN = "hvst-upgrade-864fh"
TOOLKIT = "rancher/harvester-upgrade-toolkit"
Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A folder with the inputs, and `base/` as an earlier commit rendered them."""
    shutil.copytree(ROOT / "examples" / "three-node", tmp_path / "in")
    monkeypatch.chdir(tmp_path)

    def asked(*words: str) -> tuple[int, str, str]:
        status = run(["upgradeplan", *words])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    assert asked("render", "in", "--output-dir", "base")[0] == 0
    return asked


def edit(file: str, old: str, new: str) -> None:
    path = Path("in") / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def review(shell: Shell, *words: str) -> Any:
    status, out, _ = shell("render", "in", *words, "-o", "json")
    assert status == 0
    model = json.loads(out)
    validator("render").validate(model)
    return model["review"]


def test_versions_and_what_borrowed_fields_go_back_to(shell: Shell) -> None:
    found = review(shell)
    assert (found["from"], found["to"], found["nodes"]) == ("v1.7.1", "v1.8.0-rc1", 3)
    fields = {f"{item['object']} {item['path']}": item for item in found["borrowed"]}
    wait = fields["Setting longhorn-system/replica-replenishment-wait-interval value"]
    assert (wait["now"], wait["set"], wait["returned"]) == ("600", "1800", "success, abort, failure")
    strategy = fields["Cluster fleet-local/local spec.rkeConfig.upgradeStrategy"]
    assert (strategy["known"], strategy["now"], strategy["returned"]) == (True, None, "success, abort")
    assert fields["Cluster fleet-local/local spec.kubernetesVersion"]["returned"] == ""
    (listed,) = [item for key, item in fields.items() if "restore-vm data" in key]
    assert listed["nodes"] == 3
    (pending,) = [item for key, item in fields.items() if "pendingOSImage" in key]
    assert (pending["nodes"], pending["set"]) == (3, "Harvester v1.8.0-rc1")


def test_the_page_has_versions_phases_gates_loans_and_images(shell: Shell) -> None:
    status, text, _ = shell("render", "in", "-o", "markdown")
    assert status == 0
    assert text.startswith(f"### Upgrade {PLAN}: v1.7.1 to v1.8.0-rc1\n\n3 nodes, digest <code>sha256:")
    preload = f"Plan cattle-system/{PLAN}-image-preload"
    assert f"|  | Preload | {preload} | {preload} is ready (condition Complete is True) |" in text
    assert "|  | SingleNode, once a node |  | skipped: with several nodes Rancher sets the pace |" in text
    setting = "<code>Setting longhorn-system/replica-replenishment-wait-interval value</code>"
    assert (
        f"| {setting} | <code>600</code> | <code>1800</code> | to <code>600</code> on success, abort, failure |" in text
    )
    assert f"| <code>{TOOLKIT}:main-head</code> |" in text
    assert "base branch" not in text


def test_what_has_changed_since_the_base_branch_is_shown_by_object(shell: Shell) -> None:
    edit("upgradeplan.yaml", "upgrade: main-head", "upgrade: v1.8.0")
    found = review(shell, "--against", "base")["against"]
    assert (found["known"], found["files"]) == (True, [])
    assert found["images"] == {"added": [f"{TOOLKIT}:v1.8.0"], "removed": [f"{TOOLKIT}:main-head"]}
    assert {item["operation"] for item in found["differences"]} == {"changed"}
    assert {field for item in found["differences"] for field in item["fields"]} == {
        "spec.template.spec.containers[0].image",
        "spec.version",
    }
    _, text, _ = shell("render", "in", "--against", "base", "-o", "markdown")
    assert "#### Changed since the base branch: 15 differences" in text
    assert f"+        image: {TOOLKIT}:v1.8.0\n" in text
    assert "-job-pre-drain" not in text


def test_nothing_has_changed_and_a_plan_is_new(shell: Shell) -> None:
    _, same, _ = shell("render", "in", "--against", f"base/{PLAN}", "-o", "markdown")
    assert "#### Changed since the base branch: no object" in same
    edit("upgradeplan.yaml", f"name: {PLAN}", "name: another")
    _, new, _ = shell("render", "in", "--against", "base", "-o", "markdown")
    assert "#### New: the base branch has no rendering of this plan" in new


def test_a_node_that_joins_and_a_step_that_comes_are_shown(shell: Shell) -> None:
    edit("upgradeplan.yaml", "restoreVM: true", "restoreVM: false")
    found = review(shell, "--against", "base")["against"]
    named = {f"{item['operation']} {item['name']}" for item in found["differences"] if item["subject"] != "manifest"}
    assert "changed NodeUpgrade/RestoreVM" in named
    gone = [item for item in found["differences"] if item["operation"] == "removed"]
    assert {item["step"] for item in gone} == {"RestoreVM"}
    assert len(gone) == 3


def test_other_files_that_differ_are_named(shell: Shell) -> None:
    """Such as what an agent is given."""
    kustomized = review(shell, "--format", "kustomize", "--against", "base")["against"]
    assert kustomized["differences"] == []
    assert "20-iso-download/kustomization.yaml" in kustomized["files"]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda base: shutil.rmtree(base), "base: no such folder"),
        (lambda base: (base / PLAN / "index.yaml").write_text("a: b\n"), "is not a RenderedPlan"),
        (lambda base: (base / PLAN / "index.yaml").write_text("a: [\n"), "index.yaml"),
    ],
)
def test_what_cannot_be_compared_with_is_refused(shell: Shell, damage: Callable[[Path], Any], expected: str) -> None:
    damage(Path("base"))
    status, out, err = shell("render", "in", "--against", "base", "-o", "markdown")
    assert status == 2
    assert expected in err
    assert out.startswith("### Refused: 1 problem\n")


def test_a_file_of_the_base_that_is_gone_or_broken_is_no_obstacle(shell: Shell) -> None:
    deployment, plan = (
        Path("base") / PLAN / file for file in ("30-repo-create/deployment.yaml", "50-image-preload/plan.yaml")
    )
    deployment.unlink()
    plan.write_text("a: [\n", encoding="utf-8")
    found = review(shell, "--against", "base")["against"]
    assert {item["name"].partition(" ")[0] for item in found["differences"]} == {"Deployment", "Plan"}


def test_against_is_for_reviews(shell: Shell) -> None:
    status, _, err = shell("render", "in", "--against", "base")
    assert (status, "--against needs -o markdown or -o json" in err) == (2, True)


def test_a_job_that_agents_have_from_the_base_branch_is_not_changed(shell: Shell) -> None:
    """Whatever is in the folder that is rendered to: CI compares with the branch that agents pull."""
    phases = ("render", "in", "--format", "flux", "--deliver", "phases", "--repo", "https://git.example.com/a.git")
    assert shell(*phases, "--output-dir", "delivered")[0] == 0
    assert shell(*phases, "--against", "delivered", "-o", "markdown")[0] == 0
    (gate,) = Path("delivered").glob("*/phases/50-*/gate.yaml.txt")
    gate.write_text(gate.read_text(encoding="utf-8").replace("backoffLimit: 6", "backoffLimit: 1"), encoding="utf-8")
    status, out, _ = shell(*phases, "--against", "delivered", "-o", "markdown")
    assert (status, out.startswith("### Refused: 1 problem\n")) == (2, True)
    assert "was delivered with another content" in out


def test_a_folder_that_is_stale_is_told_in_the_page(shell: Shell) -> None:
    edit("upgradeplan.yaml", "upgrade: main-head", "upgrade: v1.8.0")
    status, text, _ = shell("render", "in", "--output-dir", "base", "--check", "-o", "markdown")
    assert status == 1
    assert "#### The folder is stale: render again, and commit it" in text
    assert "| changed | <code>30-repo-create/deployment.yaml</code> |" in text
    assert shell("render", "in", "--output-dir", "base", "-o", "markdown")[0] == 0
    assert "stale" not in shell("render", "in", "--output-dir", "base", "--check", "-o", "markdown")[1]


def test_a_thousand_nodes_fit() -> None:
    hostile = "<script> | `a` @all"
    nodes = [{"name": f"n{number}", "manifests": [{"file": "f", "object": hostile}] * 2} for number in range(1_000)]
    step = {"name": "S", "forEach": "node", "nodes": nodes, "waitsFor": [hostile] * 50, "heldNodes": [hostile] * 1_000}
    index = {
        "plan": hostile,
        "digest": "sha256:0",
        "images": [f"registry.example/{number}" for number in range(5_000)],
        "phases": [{"name": f"P{number}", "steps": [step] * 40} for number in range(20)],
    }
    field = {
        "object": hostile,
        "path": "a",
        "nodes": 9,
        "known": True,
        "now": hostile,
        "set": hostile,
        "returned": "abort",
    }
    found = {"from": hostile, "to": "b", "nodes": 1_000, "components": [], "borrowed": [field] * 5_000}
    text = "\n".join(page(rendering_blocks(index, found)))
    assert 30_000 < len(text) < 60_000
    assert len(re.findall(r"_\d+ more (steps|fields|images) left out; `-o json` has all._", text)) == 3
    assert not re.search(r"<script|@(?!\u200b)", text)
