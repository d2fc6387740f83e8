"""Trees that agents pull from Git: what is in them, what is kept out, and what `render` says of them."""

from __future__ import annotations

import functools
import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane import binaries
from support.rendered_plans import assembled, inputs_of_example, overlaid, templates
from syrupy.assertion import SnapshotAssertion
from test_cli import SINGLE_NODE, THREE_NODE, Shell, shell
from test_render_examples import WholeTree

from renderer.catalog.kinds import Kinds, rows_from
from renderer.catalog.load import load_catalog
from renderer.catalog.places import DELIVERY_FOLDERS
from renderer.catalog.probes import gate_from
from renderer.delivery.agents import AGENTS, DeliveryShape
from renderer.delivery.delivered_jobs import changed_jobs
from renderer.delivery.delivery_rules import load_rules
from renderer.delivery.delivery_tree import Delivery
from renderer.delivery.dress import dressed, record_of, records_of, undressed
from renderer.delivery.health.fleet_settings import fleet_health
from renderer.delivery.linter import LintedDocument, lint
from renderer.delivery.options import DeliveryOptions, Repository
from renderer.delivery.prepare_delivery import prepare_delivery
from renderer.delivery.units import unit_name
from renderer.errors import Problems
from renderer.files.tree import write_tree
from renderer.model.document_type import GATE, RENDERED_PLAN
from renderer.model.ref import ref_of
from renderer.validation import document_problems
from renderer.yaml_io import dump, parse

REPOSITORY = Repository(url="https://git.example.com/site.git", path="clusters/site/hvst-upgrade-864fh")
__all__ = ["shell"]
READ_AS_YAML = (".yaml", ".yml", ".json")
"""Endings by which kubectl, Argo CD, Flux and Fleet know a manifest."""

PLAN = "hvst-upgrade-864fh"
FETCHED = binaries.clients_dir() / "kubectl"
KUSTOMIZE = str(FETCHED) if FETCHED.exists() else shutil.which("kubectl") or ""
"""The kubectl of the tests on the control plane, where it has been fetched."""
PULLED = [name for pair in AGENTS for name in ("--format", pair)]


@functools.cache
def delivery(
    example: str, shape: DeliveryShape = DeliveryShape.PLAN, agents: tuple[str, ...] = tuple(AGENTS), **options: Any
) -> Delivery:
    assembly = assembled(inputs_of_example(example))
    chosen = DeliveryOptions(agents=agents, shape=shape, repository=REPOSITORY, **options)
    return prepare_delivery(assembly, assembly.render(), chosen, version="1.2.3")


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
    made = prepare_delivery(assembly, assembly.render(), DeliveryOptions(agents=("flux",)), version="1")
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


@pytest.mark.slow
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
    assert [item["name"] for item in index["delivery"]["dressings"]] == ["keep", "newKind", "gate", "runOnce"]
    files = {item["file"] for phase in index["phases"] for step in phase["steps"] for item in step.get("manifests", ())}
    assert files <= {*found.files()}


def _text(body: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(body))


# ---------------------------------------------------------------------------------------------------------- shape B

PHASES = DeliveryShape.PHASES


def in_phases(found: Delivery) -> Mapping[str, str]:
    return {path: text for path, text in found.files().items() if path.startswith("phases/")}


def documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def objects(found: Delivery, folder: str) -> list[Any]:
    """What the folder's kustomization lists."""
    tree = found.files()
    listed = loaded(tree[f"{folder}/kustomization.yaml"])["resources"]
    return [body for name in listed for body in documents(tree[f"{folder}/{name}"])]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_phases_that_each_agent_is_given_are_pinned(agent: str, snapshot: SnapshotAssertion) -> None:
    """The folders that agents pull are the same for all: they are pinned once."""
    found = delivery("single-node", PHASES, agents=(agent,)).files()
    above = ("agents/", "phases/") if agent == next(iter(AGENTS)) else ("agents/",)
    shown = {path: text for path, text in found.items() if path.startswith(above) and "argocd-cm" not in path}
    file = "phases/10-initialize/gate.yaml.txt"
    if start := shown.get(file):
        head, _, rest = start.partition("    checks:\n")
        shown[file] = f"{head}    # the catalogue of checks\n---{rest.rpartition('---')[2]}"
    shown = {path: re.sub(r"(-gate-initialize)-\w{8}\b", r"\1-digest00", text) for path, text in shown.items()}
    assert {"index.yaml": "", **shown} == snapshot(extension_class=WholeTree)


def test_it_ends_before_the_phase_that_borrows() -> None:
    folders = [unit.folder for unit in delivery("three-node", PHASES).units]
    names = ("10-initialize", "20-iso-download", "30-repo-create", "50-image-preload")
    assert folders == [f"phases/{name}" for name in names]


def test_a_phase_that_borrows_is_refused_with_its_fields() -> None:
    with pytest.raises(Problems) as caught:
        delivery("three-node", PHASES, through="ClusterUpgrade").files()
    told = [problem.message for problem in caught.value.problems]
    assert any("spec.workloadUpdateStrategy.workloadUpdateMethods of KubeVirt" in text for text in told)
    assert any("spec.diff.comparePatches of ManagedChart" in text for text in told)


def test_a_phase_with_missing_inputs_is_refused_with_what_is_missing(shell: Shell, tmp_path: Path) -> None:
    given = [str(path) for path in Path(SINGLE_NODE).glob("*.yaml") if path.name != "harvester-release.yaml"]
    ended = shell("render", *given, "--output-dir", str(tmp_path), "--format", "flux", "--deliver", "phases")
    assert (ended.status, "ImagePreload cannot be delivered without releaseMetadata" in ended.err) == (2, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("through", ["NodeUpgrade", "ImageCleanup"])
def test_the_nodes_are_never_upgraded_by_an_agent(through: str) -> None:
    with pytest.raises(Problems) as caught:
        delivery("three-node", PHASES, through=through, also=("ImageCleanup",)).files()
    assert any("NodeUpgrade cannot be delivered" in problem.message for problem in caught.value.problems)


@pytest.mark.slow
def test_images_are_removed_on_request_only_and_after_a_gate_on_every_node() -> None:
    with pytest.raises(Problems) as caught:
        delivery("three-node", PHASES, through="ImageCleanup").files()
    assert any(problem.remedy == "add --phase ImageCleanup" for problem in caught.value.problems)
    found = delivery("three-node", PHASES, also=("ImageCleanup",))
    gate, last = found.units[-2:]
    assert (gate.folder, last.folder) == ("phases/79-image-cleanup-gate", "phases/80-image-cleanup")
    (config,) = (body for body in objects(found, gate.folder) if body["kind"] == "ConfigMap")
    (looked,) = loaded(config["data"]["gate.yaml"])["gates"]
    assert looked["probe"] == {
        "every": {"apiVersion": "v1", "kind": "Node", "labels": {"harvesterhci.io/managed": "true"}, "atLeast": 1},
        "all": [
            {"field": {"path": "status.nodeInfo.osImage", "equals": "Harvester v1.8.0-rc1"}},
            {"field": {"path": "status.nodeInfo.kubeletVersion", "equals": "v1.35.2+rke2r1"}},
            {"condition": {"type": "Ready", "status": "True"}},
        ],
    }
    depends = loaded(found.files()[f"{last.folder}/fleet.yaml"])["dependsOn"]
    assert depends[0]["selector"]["matchLabels"]["management.harvesterhci.io/upgrade-phase"] == "79-image-cleanup-gate"


@pytest.mark.slow
def test_each_folder_has_the_manifests_and_nothing_but_dressings_beside_them() -> None:
    found = delivery("three-node", PHASES, also=("ImageCleanup",))
    expected = {str(item.ref): dict(item.body) for item in found.plan.manifests()}
    seen = {}
    for unit in found.units:
        for body in objects(found, unit.folder):
            if body["metadata"]["labels"].get("management.harvesterhci.io/upgrade-component") != "gate":
                seen[str(ref_of(body))] = undressed(body, found.rules)
    assert len(seen) == 5
    assert seen == {name: expected[name] for name in seen}


def test_nothing_reads_the_manifests_of_all_phases_at_once() -> None:
    """Such as `kubectl apply -R`: a kustomization lists them by names that nothing else takes for YAML."""
    found = delivery("three-node", PHASES, also=("ImageCleanup",))
    read = [path for path in found.files() if path.endswith(READ_AS_YAML) and not path.startswith("agents/")]
    assert {path.rpartition("/")[2] for path in read} == {"kustomization.yaml", "fleet.yaml"}
    assert len(in_phases(found)) > len(read)


@pytest.mark.slow
def test_no_file_of_a_phase_is_unlisted_but_the_one_for_fleet() -> None:
    found = delivery("three-node", PHASES)
    for unit in found.units:
        names = {path.rpartition("/")[2] for path in found.files() if path.startswith(f"{unit.folder}/")}
        listed = set(loaded(found.files()[f"{unit.folder}/kustomization.yaml"])["resources"])
        assert names - listed == {"fleet.yaml", "kustomization.yaml"}


@pytest.mark.slow
@pytest.mark.skipif(not KUSTOMIZE, reason="there is no kubectl")
def test_kustomize_builds_each_folder_to_the_same_objects(tmp_path: Path) -> None:
    found = delivery("single-node", PHASES)
    write_tree(tmp_path / "tree", {**found.files(), "index.yaml": "x"})
    key = str
    for folder in (*(unit.folder for unit in found.units),):
        command = [KUSTOMIZE, "kustomize", str(tmp_path / "tree" / folder)]
        built = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert sorted(documents(built), key=lambda body: key(ref_of(body))) == sorted(
            objects(found, folder), key=lambda body: key(ref_of(body))
        )


@pytest.mark.skipif(not KUSTOMIZE, reason="there is no kubectl")
@pytest.mark.parametrize("folder", [".", "phases", "review"])
def test_a_folder_that_holds_all_phases_builds_to_nothing(tmp_path: Path, folder: str) -> None:
    write_tree(tmp_path / "tree", {**delivery("single-node", PHASES).files(), "index.yaml": "x"})
    command = [KUSTOMIZE, "kustomize", str(tmp_path / "tree" / folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert folder == "review" or "give-the-agent-each-folder-below-phases" in ended.stderr


@pytest.mark.parametrize("example", ["single-node", "three-node", "three-node-v1.6.1", "air-gap"])
def test_each_gate_fits_its_schema(example: str) -> None:
    found = delivery(example, PHASES)
    gates = [body for unit in found.units for body in unit.objects if body["kind"] == "ConfigMap"]
    assert len(gates) >= 3
    for body in gates:
        (document,) = parse(body["data"]["gate.yaml"], "gate.yaml")
        assert document_problems(document, GATE) == []
        assert Kinds(rows_from(document.value))
        assert [gate_from(item) for item in document.value["gates"]] or document.value["checks"]


def test_the_first_folder_is_a_gate_that_runs_the_checks_of_the_start() -> None:
    found = delivery("three-node", PHASES)
    bodies = objects(found, "phases/10-initialize")
    assert [body["kind"] for body in bodies if body["kind"] in ("Job", "ConfigMap")] == ["ConfigMap", "Job"]
    gate = loaded(next(body for body in bodies if body["kind"] == "ConfigMap")["data"]["gate.yaml"])
    assert gate["checks"]["when"] == "start"
    assert gate["checks"]["upgradePlan"]["metadata"]["name"] == PLAN
    assert "preflight/nodes.yaml" in gate["checks"]["files"]


def test_a_gate_may_read_what_it_looks_at_and_nothing_else() -> None:
    found = delivery("three-node", PHASES)
    (role,) = (body for body in objects(found, "phases/50-image-preload") if body["kind"] == "Role")
    assert role["metadata"]["namespace"] == "cattle-system"
    assert role["rules"] == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]},
        {"apiGroups": ["upgrade.cattle.io"], "resources": ["plans"], "verbs": ["get", "list"]},
    ]


def test_names_keep_the_limits_of_helm_and_of_labels() -> None:
    long = "a-plan-with-a-name-that-is-as-long-as-a-plan-s-may-be-here"
    units = [unit_name(long, folder) for folder in ("20-iso-download", "30-repo-create")]
    assert len({*units}) == 2
    assert all(len(name) <= 53 for name in units)


def test_a_job_runs_its_command_unless_it_has_succeeded(tmp_path: Path) -> None:
    """The script as the Job runs it, with a kubectl that keeps the ConfigMap in a file."""
    found = delivery("single-node", PHASES)
    (manifest,) = found.plan.phases[5].steps[-1].manifests
    made = dressed(manifest.body, found.rules, record_of(manifest.body, "up", "Manifests"))
    assert undressed(made, found.rules) == manifest.body
    command = made["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[3:6] == ["run-once", "harvester-system", "up-manifests-done"]
    tool = tmp_path / "kubectl"
    tool.write_text(KUBECTL)
    tool.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "STORE": str(tmp_path / "store"), "RAN": str(tmp_path / "ran")}
    script = [*command[:-1], "sh", "-c", 'echo x >> "$RAN"; exit ${CODE:-0}']
    run = functools.partial(subprocess.run, script, check=False, capture_output=True)
    assert run(env={**environment, "CODE": "3"}).returncode == 3
    assert not (tmp_path / "store").exists()
    assert run(env=environment).returncode == 0
    assert run(env=environment).returncode == 0
    assert (tmp_path / "ran").read_text() == "x\nx\n"
    ended = run(env={**environment, "PATH": f"{tmp_path}/empty"}, executable="/bin/sh")
    assert (ended.returncode, "this image has no kubectl" in str(ended.stderr)) == (127, True)


KUBECTL = """#!/bin/sh
case "$*" in
  *" get configmap "*) cat "$STORE" 2>/dev/null || true ;;
  *"create configmap"*) for word; do case $word in *=done) printf done ;; esac; done ;;
  "apply "*) cat > "$STORE" ;;
esac
"""


@pytest.mark.slow
def test_an_overlay_with_a_job_is_delivered_with_the_guard() -> None:
    phase = """apiVersion: templates.upgradeplan/v1
kind: Phase
name: Site
status: {active: SiteWorking, completed: SiteWorked}
deletion: careful
description: Does something at the site.
steps:
- name: Do
  description: Runs a Job.
  owned: [job.yaml.j2]
  gates: [{probe: {manifest: job.yaml.j2, all: [{builtin: true}]}}]
"""
    container = {"name": "do", "image": "a/b:c", "command": ["do"]}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "site-do", "namespace": "harvester-system"},
        "spec": {
            **{"completions": 1, "parallelism": 1, "backoffLimit": 0},
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    tree = overlaid({"45-site/phase.yaml": phase, "45-site/job.yaml.j2": yaml.safe_dump(body)})
    assembly = assembled(inputs_of_example("single-node"), tree)
    made = prepare_delivery(assembly, assembly.render(), DeliveryOptions(agents=("fleet",), shape=PHASES), version="1")
    role, binding, body = objects(made, "phases/45-site")
    command = body["spec"]["template"]["spec"]["containers"][0]["command"]
    assert (command[0], command[-1]) == ("sh", "do")
    assert "phases/45-site/gate.yaml.txt" not in made.files()

    # Whatever else its account may do, it may keep this record, and no other ConfigMap.
    (rule,) = role["rules"]
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (
        ["configmaps"],
        [command[5]],
        ["get", "create", "patch"],
    )
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "default", "namespace": command[4]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_jobs_of_one_step_share_a_role_and_not_a_record() -> None:
    """Their digests differ, so each would take the other's for another Job's."""
    jobs = [job(metadata={"name": name}, pod={"serviceAccountName": f"{name}-account"}) for name in ("one", "two")]
    (record,) = records_of([*jobs, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}], "up", "Do")
    assert (record.name, record.accounts) == ("up-do-done", ("one-account", "two-account"))
    made = [dressed(body, RULES, record.name) for body in jobs]
    assert len({body["spec"]["template"]["spec"]["containers"][0]["command"][6] for body in made}) == 2


# ----------------------------------------------------------------------------------------------------------- linter


def linted(body: Mapping[str, Any], *, delivered: bool = True) -> list[str]:
    """The rules that find something."""
    document = LintedDocument(file="it.yaml", body=body, delivered=delivered)
    return [problem.message.rpartition("(rule ")[2].rstrip(")") for problem in lint(RULES.lint, [document])]


def job(**changes: Any) -> Mapping[str, Any]:
    """A Job that agents take; `metadata`, `spec`, `pod` and `container` are laid over it."""
    container = {"name": "do", "image": "a/b:c", "command": ["do"], **changes.get("container", {})}
    pod = {
        **changes.get("pod", {}),
        "restartPolicy": "Never",
        "containers": [{key: it for key, it in container.items() if it is not None}],
    }
    spec = {"completions": 1, "parallelism": 1, "backoffLimit": 0, "template": {"spec": pod}, **changes.get("spec", {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "do", "namespace": "site", **changes.get("metadata", {})},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


RULES = load_rules(templates(), document_problems)
FOUND: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "TTL": (job(spec={"ttlSecondsAfterFinished": 600}), "job-runs-once"),
    "suspend": (job(spec={"suspend": True}), "job-runs-once"),
    "selector": (job(spec={"selector": {}}), "job-runs-once"),
    "defaults": (job(spec={"completions": None}), "job-says-what-defaults-say"),
    "no token": (job(pod={"automountServiceAccountToken": False}), "job-may-keep-its-record"),
    "no command": (job(container={"command": None}), "job-has-a-command"),
    "generated name": (job(metadata={"generateName": "do-"}), "name-is-fixed"),
    "helm hook": (job(metadata={"annotations": {"helm.sh/hook": "post-install"}}), "no-hooks"),
    "owner": (job(metadata={"ownerReferences": [{"uid": "1"}]}), "no-owners"),
    "uid": (job(metadata={"uid": "1"}), "nothing-of-the-server"),
    "tracking": (job(metadata={"labels": {"app.kubernetes.io/instance": "x"}}), "no-tracking-marks"),
    "Flux's mark": (job(metadata={"labels": {"kustomize.toolkit.fluxcd.io/name": "x"}}), "no-tracking-marks"),
    "last applied": (
        job(metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}),
        "no-tracking-marks",
    ),
    "create once": (
        job(metadata={"annotations": {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}}),
        "no-options-of-agents",
    ),
    "replace": (
        job(metadata={"annotations": {"argocd.argoproj.io/sync-options": "Replace=true"}}),
        "no-options-of-agents",
    ),
    "too large": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x" * 2**20}},
        "fits-into-etcd",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_agents_would_refuse_or_misread_is_found(name: str) -> None:
    body, rule = FOUND[name]
    assert rule in linted(body)
    assert linted(job()) == []


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"name": "x" * 54, "helm": {"releaseName": "x"}, "correctDrift": {"enabled": False}}, "fleet-keeps-what-runs"),
        ({"name": "x", "helm": {"releaseName": "x"}, "correctDrift": {"enabled": True}}, "fleet-keeps-what-runs"),
        ({"name": "x", "helm": {"releaseName": "x", "atomic": True}}, "fleet-keeps-what-runs"),
    ],
)
def test_a_file_for_fleet_is_looked_at(body: Mapping[str, Any], rule: str) -> None:
    assert rule in linted(body, delivered=False)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("flux/kustomizations.yaml.j2", "force: false", "force: true"),
        ("flux/kustomizations.yaml.j2", "prune: false", "prune: true"),
        ("flux/kustomizations.yaml.j2", "wait: true", "wait: false"),
        ("flux/kustomizations.yaml.j2", "deletionPolicy: Orphan", "deletionPolicy: MirrorPrune"),
        ("_application.j2", "selfHeal: false", "selfHeal: true"),
        ("fleet/gitrepo.yaml.j2", "keepResources: true", "keepResources: false"),
        ("plan/fleet.yaml.j2", "takeOwnership: false", "takeOwnership: true"),
    ],
)
def test_an_overlay_of_an_agents_objects_keeps_the_rules(path: str, before: str, after: str) -> None:
    text = templates()[f"delivery/{path}"].text
    assert before in text
    assembly = assembled(inputs_of_example("single-node"), overlaid({f"delivery/{path}": text.replace(before, after)}))
    made = prepare_delivery(assembly, assembly.render(), DeliveryOptions(agents=tuple(AGENTS)), version="1")
    with pytest.raises(Problems) as caught:
        made.files()
    assert {problem.reason for problem in caught.value.problems} == {"UnfitForAgents"}


CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Site, plural: sites, singular: site}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
SITE = "{apiVersion: example.com/v1, kind: Site, metadata: {name: here, namespace: harvester-system}}"
SITE_KIND = """apiVersion: templates.upgradeplan/v1
kind: Kinds
kinds:
- apiVersion: example.com/v1
  kind: Site
  plural: sites
  namespaced: true
  ready: {all: [{field: {path: spec, exists: false}}]}
"""


def site_phase(name: str, *files: str) -> str:
    """A phase with a step for its files."""
    owned = ", ".join(f"{file}.yaml.j2" for file in files)
    head = f"{{active: {name}Going, completed: {name}Gone}}"
    step = f"{{name: Do, description: Does it., owned: [{owned}]}}"
    text = f"name: {name}\nstatus: {head}\ndeletion: careful\ndescription: Is made.\nsteps: [{step}]\n"
    return f"apiVersion: templates.upgradeplan/v1\nkind: Phase\n{text}"


def with_overlay(files: Mapping[str, str]) -> Delivery:
    assembly = assembled(inputs_of_example("single-node"), overlaid(dict(files)))
    options = DeliveryOptions(agents=tuple(AGENTS), shape=PHASES, repository=REPOSITORY)
    return prepare_delivery(assembly, assembly.render(), options, version="1")


def refused(files: Mapping[str, str]) -> str:
    with pytest.raises(Problems) as caught:
        with_overlay(files).files()
    assert {problem.reason for problem in caught.value.problems} == {"UnfitForAgents"}
    return "\n".join(problem.message for problem in caught.value.problems)


def test_what_fleet_is_told_comes_from_the_kinds_table() -> None:
    """And what it cannot judge in a folder has a gate there."""
    table = templates()["_kinds/harvester.yaml"].text
    said = '  notReadiness: [{type: Available, status: "False"}]\n'
    assert said in table
    assembly = assembled(inputs_of_example("single-node"), overlaid({"_kinds/harvester.yaml": table.replace(said, "")}))
    bare = prepare_delivery(assembly, assembly.render(), DeliveryOptions(agents=("fleet",)), version="1").files()
    ignored = {"conditions": [{"type": "Available", "status": "False"}]}
    assert loaded(delivery("single-node").files()["plan/fleet.yaml"])["ignore"] == ignored
    assert "ignore" not in loaded(bare["plan/fleet.yaml"])

    found = delivery("single-node", PHASES, also=("ImageCleanup",))
    for unit in found.units:
        told = fleet_health(found.kinds, [(ref.api_version, ref.kind) for ref in unit.refs])
        assert found.rules.gate_file in unit.files or not told.unjudged
        assert loaded(found.files()[f"{unit.folder}/fleet.yaml"])["helm"]["waitForJobs"] is told.wait_for_jobs is True


def test_a_definition_is_not_beside_its_objects() -> None:
    """Helm, and so Fleet, looks all kinds up before it makes the first object."""
    files = {"_kinds/site.yaml": SITE_KIND, "45-site/crd.yaml.j2": CRD, "45-site/site.yaml.j2": SITE}
    found = refused({**files, "45-site/phase.yaml": site_phase("Site", "crd", "site")})
    assert "phases/45-site: has Site here and the definition of its kind" in found
    assert "(rule definitions-come-first)" in found


def test_the_dry_run_of_argo_passes_over_a_kind_that_an_earlier_phase_defines() -> None:
    files = {"_kinds/site.yaml": SITE_KIND, "44-kinds/crd.yaml.j2": CRD, "45-site/site.yaml.j2": SITE}
    phases = {"44-kinds/phase.yaml": site_phase("SiteKind", "crd"), "45-site/phase.yaml": site_phase("Site", "site")}
    found = with_overlay({**files, **phases})
    assert found.files()
    bodies = [body for folder in ("phases/44-kinds", "phases/45-site") for body in objects(found, folder)]
    options = {body["kind"]: body["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] for body in bodies}
    assert options["Site"] == "Prune=false,Delete=confirm,SkipDryRunOnMissingResource=true"
    assert options["CustomResourceDefinition"] == "Prune=false,Delete=confirm"
    assert "annotations" not in undressed(next(body for body in bodies if body["kind"] == "Site"), RULES)["metadata"]


@pytest.mark.slow
def test_a_folder_fits_into_one_bundle_of_fleet() -> None:
    """Each object fits into etcd, and all of them together do not, even compressed."""
    noise = {f"n{number}": random.Random(number).randbytes(300_000).hex() for number in range(3)}
    maps = {
        f"45-site/{name}.yaml.j2": yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "harvester-system"},
                "data": {"x": text},
            }
        )
        for name, text in noise.items()
    }
    found = refused({**maps, "45-site/phase.yaml": site_phase("Site", *noise)})
    assert "(rule folder-fits-into-a-bundle)" in found


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("delivery/phase/Chart.yaml.j2", "has Chart.yaml beside its manifests"),
        ("delivery/phase/overlays/site/job_patch.yaml.j2", "has overlays/site/job_patch.yaml beside its manifests"),
        ("delivery/phase/more.yaml.j2", "has more.yaml beside its manifests"),
        ("delivery/phase/kustomization.yaml.j2", "replaces kustomization.yaml"),
    ],
)
def test_an_overlay_adds_no_file_that_fleet_or_kubectl_would_misread(path: str, says: str) -> None:
    assert says in refused({path: "a: b\n"})


@pytest.mark.parametrize("name", ["gate", "run-once"])
def test_a_manifest_does_not_take_the_place_of_a_dressing(name: str) -> None:
    body = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: harvester-system}}"
    found = refused({f"45-site/{name}.yaml.j2": body, "45-site/phase.yaml": site_phase("Site", name)})
    assert found.startswith(f"45-site/{name}.yaml.j2 replaces {name}.yaml.txt")


@pytest.mark.parametrize("path", ["delivery/other/a.yaml.j2", "delivery/gate/more.yaml.j2", "delivery/loose.j2"])
def test_a_template_that_no_agent_is_given_is_reported(path: str) -> None:
    with pytest.raises(Problems) as caught:
        load_catalog(overlaid({path: "a: b\n"}), document_problems)
    assert [problem.reason for problem in caught.value.problems] == ["UnusedFile"]


def test_every_file_of_a_delivery_may_be_laid_over() -> None:
    own = {path: file.text for path, file in templates().items() if path.startswith("delivery/")}
    assert load_catalog(overlaid(own), document_problems)
    assert {path.split("/")[1] for path in own if path.count("/") > 1} == {*DELIVERY_FOLDERS, "gate"}
    assert {*AGENTS} < {*DELIVERY_FOLDERS}


def test_a_job_that_was_delivered_is_not_changed() -> None:
    one, other = ({"phases/60-x/job.yaml": dump(job(container={"command": [word]}))} for word in ("a", "b"))
    assert list(changed_jobs(one, one)) == []
    (problem,) = changed_jobs(one, other)
    assert (problem.reason, problem.file) == ("DeliveredJobChanges", "phases/60-x/job.yaml")
    assert list(changed_jobs({"review/60-x/job.yaml.txt": "x", "phases/broken.yaml": "a: ["}, other)) == []


@pytest.mark.slow
def test_render_does_not_change_a_job_that_the_folder_has(shell: Shell, tmp_path: Path) -> None:
    command = ("render", SINGLE_NODE, "--output-dir", str(tmp_path), "--format", "fleet", "--deliver", "phases")
    assert shell(*command).status == 0
    (gate,) = tmp_path.glob("*/phases/50-*/gate.yaml.txt")
    gate.write_text(gate.read_text().replace("backoffLimit: 6", "backoffLimit: 1"))
    ended = shell(*command)
    assert (ended.status, "was delivered with another content" in ended.err) == (2, True)


# ------------------------------------------------------------------------------------------------------ the command


@pytest.mark.slow
def test_render_says_what_to_apply_and_which_folder_each_agent_pulls(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = shell("render", THREE_NODE, "--output-dir", "clusters/site", *PULLED)
    assert ended.status == 0
    assert "warning: the agents are configured to pull from https://git.example.invalid/change-me.git" in ended.err
    for title in AGENTS.values():
        assert f"{title}: apply clusters/site/{PLAN}/agents/" in ended.out
    assert f" once; it pulls clusters/site/{PLAN}/plan\n" in ended.out
    patch = (
        f"kubectl -n argocd patch configmap argocd-cm --patch-file clusters/site/{PLAN}/agents/argocd/argocd-cm.patch"
    )
    assert f"Argo CD: {patch}\n" in ended.out


@pytest.mark.slow
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


@pytest.mark.slow
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
        (["--format", "plain", "--format", "flux"], "--format plain is not for an agent"),
        (["--deliver", "plan"], "--deliver plan needs a --format that an agent pulls: fleet, argocd, flux"),
        (["--format", "flux", "--repo", "https://me:secret@git.example.com"], "--repo has a password"),
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


@pytest.mark.slow
def test_the_answer_as_json_fits_its_schema_and_has_the_same(shell: Shell, tmp_path: Path) -> None:
    found = shell("render", SINGLE_NODE, "--output-dir", str(tmp_path), *PULLED, "-o", "json").json
    assert [item["agent"] for item in found["agents"]] == [*AGENTS.values()]
    whole = shell("render", SINGLE_NODE, "--format", "fleet", "-o", "json").json
    assert whole["index"]["layout"] == "delivery"
    assert "agents/fleet/gitrepo.yaml" in whole["files"]
