"""Trees that agents pull from Git: what is in them, what is kept out, and what `render` says of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.rendered_plans import assembled, inputs_of_example
from syrupy.assertion import SnapshotAssertion
from test_cli import SINGLE_NODE, THREE_NODE, Shell, shell
from test_render_examples import WholeTree

from renderer.delivery.agents import AGENTS, DeliveryShape
from renderer.delivery.delivery_tree import Delivery
from renderer.delivery.dress import undressed
from renderer.delivery.options import DeliveryOptions, Repository
from renderer.delivery.prepare_delivery import prepare_delivery
from renderer.model.document_type import RENDERED_PLAN
from renderer.validation import document_problems
from renderer.yaml_io import parse

REPOSITORY = Repository(url="https://git.example.com/site.git", path="clusters/site/hvst-upgrade-864fh")
__all__ = ["shell"]
READ_AS_YAML = (".yaml", ".yml", ".json")
"""Endings by which kubectl, Argo CD, Flux and Fleet know a manifest."""

PLAN = "hvst-upgrade-864fh"
PULLED = [name for pair in AGENTS for name in ("--format", pair)]


@functools.cache
def delivery(
    example: str, shape: DeliveryShape = DeliveryShape.PLAN, agents: tuple[str, ...] = tuple(AGENTS), **options: Any
) -> Delivery:
    assembly = assembled(inputs_of_example(example))
    chosen = DeliveryOptions(agents=agents, shape=shape, repository=REPOSITORY, **options)
    return prepare_delivery(assembly, assembly.render(), chosen)


def loaded(text: str) -> Any:
    return yaml.safe_load(text)


# ---------------------------------------------------------------------------------------------------------- shape A


@pytest.mark.parametrize("agent", AGENTS)
def test_what_each_agent_is_given_is_pinned(agent: str, snapshot: SnapshotAssertion) -> None:
    found = delivery("three-node", agents=(agent,)).files()
    shown = {path: text for path, text in found.items() if not path.startswith("review/") and path != "SUMMARY.md"}
    assert {"index.yaml": "", **shown} == snapshot(extension_class=WholeTree)


def test_the_plan_is_the_users_own_with_the_digests_of_its_review() -> None:
    found = delivery("three-node")
    body = loaded(found.files()["plan/upgradeplan.yaml"])
    annotations = undressed(body, found.rules)["metadata"]["annotations"]
    assert annotations["management.harvesterhci.io/rendered-digest"] == found.plan.digest
    approved = yaml.safe_load(annotations["management.harvesterhci.io/approved-digests"])
    assert approved == {phase.phase.name: phase.digest for phase in found.plan.phases}
    own = inputs_of_example("three-node").plan
    assert own is not None
    assert (body["spec"], body["metadata"]["name"]) == (own.body["spec"], PLAN)


def test_what_a_server_has_added_to_the_plan_is_left_out() -> None:
    inputs = inputs_of_example("single-node")
    assembly = assembled(inputs)
    live = {
        **assembly.facts.plan,
        "metadata": {
            **assembly.facts.plan["metadata"],
            **{"uid": "1", "resourceVersion": "2", "generation": 3, "managedFields": [], "finalizers": ["a/b"]},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "site/own": "kept"},
        },
        "status": {"currentPhase": "Pending"},
    }
    made = prepare_delivery(assembly, assembly.render(), DeliveryOptions(agents=("flux",)))
    body = loaded(replace(made, upgrade_plan=live).files()["plan/upgradeplan.yaml"])
    assert sorted(body) == ["apiVersion", "kind", "metadata", "spec"]
    assert sorted(body["metadata"]) == ["annotations", "name"]
    assert "site/own" in body["metadata"]["annotations"]
    assert not [key for key in body["metadata"]["annotations"] if key.startswith("kubectl.")]


def test_a_phase_with_missing_inputs_is_approved_as_pending(shell: Shell, tmp_path: Path) -> None:
    given = [str(path) for path in Path(SINGLE_NODE).glob("*.yaml") if path.name != "harvester-release.yaml"]
    assert shell("render", *given, "--output-dir", str(tmp_path), "--format", "flux").status == 0
    (found,) = tmp_path.glob("*/plan/upgradeplan.yaml")
    approved = loaded(found.read_text())["metadata"]["annotations"]["management.harvesterhci.io/approved-digests"]
    assert loaded(approved)["ImagePreload"] == "pending"
    assert loaded(approved)["ISODownload"].startswith("sha256:")


@pytest.mark.parametrize("shape", [DeliveryShape.PLAN, DeliveryShape.REVIEW])
def test_manifests_are_to_be_read_and_nothing_reads_them_as_yaml(shape: DeliveryShape) -> None:
    found = delivery("three-node", shape)
    bodies = [
        document.value
        for path, text in found.files().items()
        if path.startswith("review/") and not path.endswith("upgradeplan.yaml.txt")
        for document in parse(text, path)
    ]
    key = str
    assert sorted(bodies, key=key) == sorted((dict(item.body) for item in found.plan.manifests()), key=key)
    assert not [path for path in found.files() if path.startswith("review/") and path.endswith(READ_AS_YAML)]
    applied = {path for path in found.files() if path.endswith(READ_AS_YAML) and not path.startswith("agents/")}
    plan = {"kustomization.yaml", "plan/fleet.yaml", "plan/kustomization.yaml", "plan/upgradeplan.yaml"}
    assert applied == (plan if shape is DeliveryShape.PLAN else set())


def test_a_tree_for_review_gives_agents_nothing() -> None:
    found = delivery("three-node", DeliveryShape.REVIEW)
    assert not [path for path in found.files() if path.startswith(("agents/", "plan/", "phases/"))]
    assert found.given() == ()
    assert loaded(found.files()["review/upgradeplan.yaml.txt"])["kind"] == "UpgradePlan"


def test_the_root_lists_the_plan_alone() -> None:
    assert loaded(delivery("three-node").files()["kustomization.yaml"])["resources"] == ["plan"]


def test_switching_agents_changes_nothing_but_their_own_folders() -> None:
    trees = [delivery("three-node", agents=(agent,)).files() for agent in AGENTS]
    shared = [{path: text for path, text in tree.items() if not _is_of_agent(path)} for tree in trees]
    assert shared[0] == shared[1] == shared[2]
    assert all(any(path.startswith("agents/") for path in tree) for tree in trees)


def _is_of_agent(path: str) -> bool:
    return path.startswith("agents/") or path == "SUMMARY.md"


@pytest.mark.parametrize("shape", [DeliveryShape.PLAN, DeliveryShape.REVIEW])
def test_the_index_fits_its_schema_and_names_the_dressings(shape: DeliveryShape) -> None:
    found = delivery("single-node", shape)
    index = RENDERED_PLAN.document(found.index(found.files()))
    document = parse(_text(index), "index.yaml")[0]
    assert document_problems(document, RENDERED_PLAN) == []
    assert [item["name"] for item in index["delivery"]["dressings"]] == ["keep"]
    files = {item["file"] for phase in index["phases"] for step in phase["steps"] for item in step.get("manifests", ())}
    assert files <= {*found.files()}


def _text(body: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(body))


# ------------------------------------------------------------------------------------------------------ the command


def test_render_says_what_to_apply_and_which_folder_each_agent_pulls(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = shell("render", THREE_NODE, "--output-dir", "clusters/site", *PULLED)
    assert ended.status == 0
    for title in AGENTS.values():
        assert f"{title}: apply clusters/site/{PLAN}/agents/" in ended.out
    assert f" once; it pulls clusters/site/{PLAN}/plan\n" in ended.out


def test_a_folder_keeps_what_is_delivered_until_another_choice_is_made(shell: Shell, tmp_path: Path) -> None:
    command = ("render", THREE_NODE, "--output-dir", str(tmp_path))
    assert shell(*command, *PULLED, "--repo", "https://git.example.com/a.git").status == 0
    assert shell(*command, "--check").status == 0
    assert "(0 new, 0 changed, 0 removed)" in shell(*command).out
    shell(*command, "--repo", "https://git.example.com/b.git")
    assert "b.git" in (tmp_path / PLAN / "agents" / "fleet" / "gitrepo.yaml").read_text()
    shell(*command, "--deliver", "review")
    assert not (tmp_path / PLAN / "agents").exists()
    assert shell(*command, "--check").status == 0
    shell(*command, "--format", "plain")
    assert not (tmp_path / PLAN / "review" / "30-repo-create").exists()


def test_a_generated_name_is_refused_with_a_proposed_one(shell: Shell, tmp_path: Path) -> None:
    plan = loaded((Path(THREE_NODE) / "upgradeplan.yaml").read_text())
    plan["metadata"] = {"generateName": "hvst-upgrade-"}
    given = tmp_path / "plan.yaml"
    given.write_text(yaml.safe_dump(plan))
    ended = shell("render", THREE_NODE, "--plan", str(given), "--format", "flux", "-o", "json")
    assert ended.status == 2
    (problem,) = ended.json["problems"]
    assert problem["reason"] == "GeneratedName"
    assert problem["remedy"].startswith("write name: hvst-upgrade-v1-8-0-rc1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "plain", "--format", "flux"], "--format plain is for no agent"),
        (["--deliver", "plan"], "--deliver plan needs a --format that an agent pulls: fleet, argocd, flux"),
        (["--repo", "https://a"], "--repo needs a --format that an agent pulls"),
        (["--format", "flux", "--through", "RepoCreate"], "--through is not for --deliver plan"),
        (["--format", "flux", "--phase", "RepoCreate"], "--phase is not for --deliver plan"),
        (["--format", "flux", "--node", "n1"], "--node is for stdout"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    shell: Shell, tmp_path: Path, words: list[str], message: str
) -> None:
    ended = shell("render", SINGLE_NODE, "--output-dir", str(tmp_path), *words)
    assert (ended.status, message in ended.err) == (2, True)
    assert not list(tmp_path.iterdir())


def test_the_answer_as_json_fits_its_schema_and_has_the_same(shell: Shell, tmp_path: Path) -> None:
    found = shell("render", SINGLE_NODE, "--output-dir", str(tmp_path), *PULLED, "-o", "json").json
    assert [item["agent"] for item in found["agents"]] == [*AGENTS.values()]
    whole = shell("render", SINGLE_NODE, "--format", "fleet", "-o", "json").json
    assert whole["index"]["layout"] == "delivery"
    assert "agents/fleet/gitrepo.yaml" in whole["files"]
