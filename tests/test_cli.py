"""The command line: what commands print and how they end. What is told of bad input is pinned in `test_errors.py`.

Commands run in this process, as `main` runs them; only what happens to a whole process has one of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from support.installed import VERSION as PROJECT_VERSION
from support.rendered_plans import EXAMPLES, ROOT, render_example
from test_files_release import image

from reconcile.cli import COMMANDS as CLUSTER_COMMANDS
from reconcile.simulator.actors.faults import SIMULATED_OPERATIONS
from renderer.catalog.rules import RULES
from renderer.cli.answer import wanted_output
from renderer.cli.commands import COMMANDS, CommandGroup, program
from renderer.cli.completion import kubectl_candidates
from renderer.cli.images import is_listed
from renderer.cli.names import COMPLETE_VARIABLE
from renderer.cli.program import run
from renderer.cli.render import render
from renderer.delivery.agents import AGENTS
from renderer.layout.table import LAYOUTS
from renderer.render.refusals import DECIDED

THREE_NODE = str(ROOT / "examples" / "three-node")
SINGLE_NODE = str(ROOT / "examples" / "single-node")
OVERLAY = str(ROOT / "examples" / "pre-check-overlay" / "templates")
RELEASE_FILE = "harvester-release.yaml"
PLAN = "hvst-upgrade-864fh"
ALL_COMMANDS = {**COMMANDS, **CLUSTER_COMMANDS}
PHASES = [
    yaml.safe_load(file.read_text(encoding="utf-8"))["name"] for file in sorted(ROOT.glob("templates/*/phase.yaml"))
]
OLDER = {"harvester": "v1.7.0", "os": "Harvester v1.7.0", "kubernetes": "v1.34.1+rke2r1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Shell = Callable[..., Ended]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs a command by its words."""

    def command(*words: str, name: str = "upgradeplan") -> Ended:
        status = run([name, *words])
        shown = capsys.readouterr()
        return Ended(status=status, out=shown.out, err=shown.err)

    return command


# ------------------------------------------------------------------------------------------------------------- help


def test_the_list_of_commands_shows_every_command_and_nothing_goes_to_stderr(shell: Shell) -> None:
    ended = shell("--help")
    assert (ended.status, ended.err) == (0, "")
    assert [name for name, row in COMMANDS.items() if f"  {name} " in ended.out and row.help in ended.out] == [
        *COMMANDS
    ]


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_a_command_says_of_itself_what_the_list_says(name: str, shell: Shell) -> None:
    context = click.Context(program)
    command = program.get_command(context, name)
    assert command is not None
    assert command.help is not None
    assert shell(name, "--help").status == 0
    assert command.help.splitlines()[0] == ALL_COMMANDS[name].help


def test_the_help_of_render_names_every_layout() -> None:
    option = next(parameter for parameter in render.params if parameter.name == "formats")
    assert isinstance(option, click.Option)
    assert [layout for layout in (*LAYOUTS, *AGENTS) if layout in str(option.help)] == [*LAYOUTS, *AGENTS]


def test_without_a_command_help_is_an_answer_to_a_mistake(shell: Shell) -> None:
    ended = shell()
    assert (ended.status, ended.out) == (2, "")
    assert f"{CommandGroup.REVIEW}:" in ended.err


def test_commands_are_listed_in_groups_in_the_order_of_the_work(shell: Shell) -> None:
    lines = shell("--help").out.splitlines()
    headings = [line.removesuffix(":") for line in lines if line.removesuffix(":") in set(CommandGroup)]
    assert headings == [*CommandGroup]
    under = {heading: lines[lines.index(f"{heading}:") + 1].split()[0] for heading in headings}
    assert list(under.values()) == ["render", "facts", "install", "status", "completion"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("render -f plan.yaml", "unknown option -f; files and folders are given as arguments, without an option"),
        ("version -f plan.yaml", "unknown option -f"),
        ("render --outdir x", "unknown option --outdir; did you mean --output-dir?"),
        ("statsu", "unknown command 'statsu'; did you mean status?"),
        ("plan", "unknown command 'plan'"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one_where_there_is_one(words: str, message: str, shell: Shell) -> None:
    ended = shell(*words.split())
    assert (ended.status, ended.err.splitlines()[0]) == (2, message)


def test_the_help_of_rehearse_lists_every_operation(shell: Shell) -> None:
    lines = shell("rehearse", "--help").out.splitlines()
    operations = {line.split()[0] for line in lines[lines.index("Operations:") + 1 :] if line.startswith("  ")}
    assert operations >= set(SIMULATED_OPERATIONS)


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_option_is_described_in_a_sentence(name: str) -> None:
    command = program.get_command(click.Context(program), name)
    assert command is not None
    options = [item for item in command.get_params(click.Context(command)) if isinstance(item, click.Option)]
    assert [item.name for item in options if not re.fullmatch(r"[A-Z'].*\.", str(item.help))] == []


def test_as_a_plug_in_of_kubectl_it_goes_by_that_name(shell: Shell) -> None:
    assert shell("render", "--help", name="/usr/bin/kubectl-upgradeplan").out.startswith(
        "Usage: kubectl upgradeplan render"
    )
    assert "`kubectl upgradeplan render --help`" in shell("render", "--nope", name="kubectl-upgradeplan").err


def test_the_installed_programs_are_there() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert set(scripts) >= {"upgradeplan", "kubectl-upgradeplan", "kubectl_complete-upgradeplan"}
    for target in scripts.values():
        module, _, name = target.partition(":")
        assert callable(getattr(import_module(module), name))


def test_the_version_is_the_projects(shell: Shell) -> None:
    assert shell("version").out == shell("--version").out == f"upgradeplan {PROJECT_VERSION}\n"
    assert shell("version", "-o", "json").json["version"] == PROJECT_VERSION


# -------------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("render -o json", True),
        ("render --output json", True),
        ("render --output=json", True),
        ("render -ojson", True),
        ("render -o text json", False),
        ("json -o", False),
    ],
)
def test_json_is_asked_for_in_four_ways(words: str, expected: bool) -> None:
    assert (wanted_output(words.split()) == "json") is expected


# ------------------------------------------------------------------------------------------------------------ render


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_stdout_has_every_manifest_in_the_order_of_the_steps_each_with_its_place(example: str, shell: Shell) -> None:
    overlay = ROOT / "examples" / example / "templates"
    options = ["--templates", str(overlay)] if overlay.is_dir() else []
    ended = shell("render", str(ROOT / "examples" / example), *options)
    plan = render_example(example).plan
    expected = list(plan.manifests())
    assert ended.status == 0
    assert [line for line in ended.out.splitlines() if line.startswith("# Source: ")] == [
        f"# Source: {plan.plan}/{manifest.file}" for manifest in expected
    ]
    assert list(yaml.load_all(ended.out, yaml.BaseLoader)) == [
        yaml.load(yaml.safe_dump(manifest.body), yaml.BaseLoader) for manifest in expected
    ]


@pytest.mark.slow
def test_a_part_is_what_its_names_say(shell: Shell) -> None:
    def folders(*options: str) -> set[str]:
        return {path.split("/")[0] for path in shell("render", THREE_NODE, *options, "-o", "json").json["files"]}

    assert folders("--phase", "RepoCreate", "--phase", "ImageCleanup") == {"30-repo-create", "review"}
    assert folders("--through", "RepoCreate") == {"20-iso-download", "30-repo-create"}
    files = shell("render", THREE_NODE, "--node", "charlie-2-tink-system", "-o", "json").json["files"]
    assert {path.split("/")[:3][-1] for path in files} == {"charlie-2-tink-system"}


@pytest.mark.slow
def test_the_digest_of_a_part_is_that_of_the_whole(shell: Shell) -> None:
    whole = shell("render", THREE_NODE, "-o", "json").json["index"]["digest"]
    assert shell("render", THREE_NODE, "--phase", "RepoCreate", "-o", "json").json["index"]["digest"] == whole


@pytest.mark.slow
def test_a_folder_is_written_found_up_to_date_found_stale_and_mended(shell: Shell, tmp_path: Path) -> None:
    command = ("render", THREE_NODE, "--output-dir", str(tmp_path))
    assert "39 files (39 new, 0 changed, 0 removed)" in shell(*command).out
    assert shell(*command, "--check").status == 0
    folder = tmp_path / PLAN
    (folder / "30-repo-create" / "service.yaml").write_text("kind: Service\n", encoding="utf-8")
    (folder / "50-image-preload" / "plan.yaml").unlink()
    (folder / "notes.txt").write_text("mine\n", encoding="utf-8")
    checked = shell(*command, "--check")
    assert checked.status == 1
    assert "  missing  50-image-preload/plan.yaml\n  changed  30-repo-create/service.yaml\n" in checked.out
    mended = shell(*command)
    assert "39 files (1 new, 1 changed, 0 removed)\nleft alone: 1 files" in mended.out
    assert shell(*command, "--check").status == 0


@pytest.mark.slow
def test_the_next_command_that_is_named_is_the_one_to_run(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    said = shell("render", THREE_NODE, "--output-dir", str(folder), name="kubectl-upgradeplan").out
    assert f"`kubectl upgradeplan render {THREE_NODE} --output-dir '{folder}' --check`" in said
    (folder / PLAN / "index.yaml").unlink()
    (folder / PLAN / "index.yaml").write_text("kind: RenderedPlan\nfiles: []\n", encoding="utf-8")
    said = shell("render", THREE_NODE, "--output-dir", str(folder), "--check").out
    assert said.endswith(f"next: `upgradeplan render {THREE_NODE} --output-dir '{folder}'` renders it again\n")


@pytest.mark.slow
def test_through_a_phase_the_folder_holds_the_phases_up_to_it_and_the_whole_comes_back(
    shell: Shell, tmp_path: Path
) -> None:
    command = ("render", THREE_NODE, "--output-dir", str(tmp_path))
    shell(*command)
    shell(*command, "--through", "RepoCreate")
    assert _folders(tmp_path / PLAN) == ["20-iso-download", "30-repo-create"]
    shell(*command)
    assert shell(*command, "--check").status == 0


@pytest.mark.slow
def test_kustomize_lists_what_may_be_applied_from_outside(shell: Shell, tmp_path: Path) -> None:
    done = shell("render", THREE_NODE, "--output-dir", str(tmp_path), "--format", "kustomize")
    assert done.status == 0
    assert "itself is not for an agent" in done.out
    assert "--format fleet, argocd, flux" in done.out
    listed = yaml.safe_load((tmp_path / PLAN / "30-repo-create" / "kustomization.yaml").read_text(encoding="utf-8"))
    assert listed["resources"] == ["deployment.yaml", "service.yaml"]


@pytest.mark.slow
def test_a_folder_keeps_its_layout_until_another_one_is_chosen(shell: Shell, tmp_path: Path) -> None:
    command = ("render", THREE_NODE, "--output-dir", str(tmp_path))
    shell(*command, "--format", "kustomize")
    assert shell(*command, "--check").status == 0
    assert "(0 new, 0 changed, 0 removed)" in shell(*command).out
    assert shell(*command, "--format", "plain", "--check").status == 1
    shell(*command, "--format", "plain")
    assert not list(tmp_path.rglob("kustomization.yaml"))
    index = tmp_path / PLAN / "index.yaml"
    index.write_text(index.read_text().replace("layout: plain", "layout: odd"), encoding="utf-8")
    refused = shell(*command, "--check")
    assert (refused.status, "has the layout 'odd'; choose one with --format" in refused.err) == (2, True)


@pytest.mark.slow
def test_a_retry_gives_one_shot_objects_new_names(shell: Shell) -> None:
    def jobs(*options: str) -> set[str]:
        documents = yaml.safe_load_all(shell("render", THREE_NODE, *options).out)
        return {document["metadata"]["name"] for document in documents if document["kind"] == "Job"}

    assert len(jobs()) == len(jobs("--retry", "1"))
    assert jobs() & jobs("--retry", "1") == set()


def test_inputs_may_come_from_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with (Path(THREE_NODE) / "upgradeplan.yaml").open(encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        ended = shell("validate", "-")
    assert ended.status == 0
    assert ended.out.startswith(f"{PLAN} is valid: 8 phases, ")


def _folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


# --------------------------------------------------------------------------------------- validate, phases and context


@pytest.mark.slow
def test_force_skips_the_version_guard_and_nothing_else(shell: Shell, tmp_path: Path) -> None:
    release, plan = tmp_path / "release.yaml", tmp_path / "plan.yaml"
    release.write_text(yaml.safe_dump(OLDER), encoding="utf-8")
    body = yaml.safe_load((Path(THREE_NODE) / "upgradeplan.yaml").read_text(encoding="utf-8"))
    body["spec"]["force"] = True
    plan.write_text(yaml.safe_dump(body), encoding="utf-8")
    refused = shell("validate", THREE_NODE, "--release", str(release), "-o", "json")
    assert (refused.status, refused.json["problems"][0]["reason"]) == (1, "VersionNotEligible")
    assert refused.json["problems"][0]["message"] == "downgrading is prohibited (current v1.7.1, target v1.7.0)"
    forced = shell("validate", THREE_NODE, "--release", str(release), "--plan", str(plan))
    assert forced.status == 0
    assert f"warning: {plan}:5: spec.force skips the version guard: current v1.7.1, target v1.7.0" in forced.err
    alone = shell("validate", "--plan", str(plan))
    assert f"warning: {plan}:5: spec.force skips the version guard\n" in alone.err  # and not what a template has


@pytest.mark.slow
def test_a_version_beside_an_image_is_warned_of_wherever_inputs_are_read(shell: Shell, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    body = yaml.safe_load((Path(SINGLE_NODE) / "upgradeplan.yaml").read_text(encoding="utf-8"))
    body["spec"]["version"] = "v1.8.0"
    plan.write_text(yaml.safe_dump(body), encoding="utf-8")
    for command in ("validate", "render", "rehearse --quiet"):
        ended = shell(*command.split(), SINGLE_NODE, "--plan", str(plan))
        assert "spec.version is ignored: spec.image names the ISO" in ended.err, command


def test_every_rule_that_its_arguments_decide_is_decided_here() -> None:
    assert {name for name, rule in RULES.items() if rule.render_time} == set(DECIDED)


@pytest.mark.slow
def test_what_is_pending_is_said_with_its_remedy_and_is_no_error(shell: Shell) -> None:
    ended = shell("validate", f"{THREE_NODE}/upgradeplan.yaml")
    assert ended.status == 0
    assert "pending: releaseMetadata; give the release's harvester-release.yaml with --release\n" in ended.out


@pytest.mark.slow
def test_a_release_without_a_minimum_is_warned_of(shell: Shell, tmp_path: Path) -> None:
    """Field rule 11: nothing restricts the version to upgrade from, and that may be an oversight."""
    assert "warning" not in shell("validate", THREE_NODE).err
    given = yaml.safe_load((Path(THREE_NODE) / RELEASE_FILE).read_text(encoding="utf-8"))
    del given["minUpgradableVersion"]
    release = tmp_path / "release.yaml"
    release.write_text(yaml.safe_dump(given), encoding="utf-8")
    ended = shell("validate", THREE_NODE, "--release", str(release))
    assert ended.status == 0
    told = "minUpgradableVersion: is missing, so nothing restricts the version to upgrade from\n    remedy: "
    assert f"warning: {release}:1: {told}" in ended.err
    as_json = shell("validate", THREE_NODE, "--release", str(release), "-o", "json").json
    assert [warning["reason"] for warning in as_json["warnings"]] == ["NoMinimum"]


@pytest.mark.slow
def test_a_version_that_could_not_be_imported_is_warned_of(shell: Shell, tmp_path: Path) -> None:
    """Before anything is downloaded. Harvester takes any text there, so it can be rendered; the import would fail."""
    given = tmp_path / "given.yaml"
    given.write_text(
        """\
kind: UpgradePlan
apiVersion: management.harvesterhci.io/v1beta1
metadata: {name: up}
spec: {version: v1.8.1}
---
kind: Version
apiVersion: harvesterhci.io/v1beta1
metadata: {name: v1.8.1, namespace: harvester-system}
spec:
  isoURL: https://example.com/harvester v1.8.1.iso
  isoChecksum: e3b0c442
---
kind: Version
apiVersion: harvesterhci.io/v1beta1
metadata: {name: v1.7.9, namespace: harvester-system}
spec: {isoURL: ftp://another.example.com, isoChecksum: none}
""",
        encoding="utf-8",
    )
    ended = shell("render", str(given))
    assert ended.status == 0
    refused = shell("validate", str(given))
    assert (refused.status, "the import would fail after it has downloaded the ISO" in refused.err) == (1, True)
    assert [line for line in ended.err.splitlines() if line.startswith("warning: ")] == [
        f"warning: {given}:10: spec.isoURL: 'https://example.com/harvester v1.8.1.iso' is not an http or https URL",
        f"warning: {given}:11: spec.isoChecksum: 'e3b0c442' is not a SHA-512 checksum: "
        "expected 128 hexadecimal digits, not 8",
    ]


@pytest.mark.parametrize("words", [("--output-dir", ""), ("--plan", ""), ("--templates", ""), ("",)])
def test_an_empty_name_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    ended = shell("render", THREE_NODE, *words)
    assert (ended.status, ended.out) == (2, "")
    assert "an empty name is given" in ended.err


@pytest.mark.slow
def test_what_leaves_nothing_to_render_is_refused(shell: Shell) -> None:
    ended = shell("render", THREE_NODE, "--phase", "NodeUpgrade", "--through", "ISODownload")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("no phase left: NodeUpgrade comes after ISODownload\n")
    node = next(iter(render_example("three-node").plan.nodes))
    ended = shell("render", THREE_NODE, "--phase", "ISODownload", "--node", node)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"nothing is done for node '{node}' alone in ISODownload\n")


def test_what_is_pending_is_not_mixed_with_manifests(shell: Shell) -> None:
    ended = shell("render", f"{THREE_NODE}/upgradeplan.yaml")
    assert {document["kind"] for document in yaml.safe_load_all(ended.out)} >= {"KubeVirt", "Job"}
    assert ended.err.startswith("pending: imageLists; ")


def test_a_template_that_no_plan_reaches_is_looked_at_too(shell: Shell, tmp_path: Path) -> None:
    """The phase is pending, so nothing of it is rendered."""
    shutil.copytree(ROOT / "templates" / "80-image-cleanup", tmp_path / "80-image-cleanup")
    (tmp_path / "80-image-cleanup" / "plan.yaml.j2").write_text("{{ oops }\n", encoding="utf-8")
    ended = shell("validate", f"{THREE_NODE}/upgradeplan.yaml", "--templates", str(tmp_path))
    assert ended.status == 2
    assert "80-image-cleanup/plan.yaml.j2:1: unexpected '}'" in ended.err


@pytest.mark.slow
def test_phases_are_listed_as_declared_and_as_this_plan_has_them(shell: Shell) -> None:
    declared = shell("phases").out
    assert "50  ImagePreload      ImagePreloading     ImagePreloaded     careful " in declared
    assert "Preload waits for: what plan.yaml.j2 renders is ready" in declared
    of_plan = shell("phases", THREE_NODE, "NodeUpgrade").out
    assert "SingleNode is skipped: with several nodes Rancher sets the pace" in of_plan
    assert "50  " not in of_plan
    assert "70  NodeUpgrade" in of_plan


def test_a_phase_that_is_pending_says_what_is_missing(shell: Shell) -> None:
    lines = shell("phases", f"{THREE_NODE}/upgradeplan.yaml", "NodeUpgrade").out.splitlines()
    assert lines[2:] == [
        "      pending: nodes; give the cluster's Node objects, as `kubectl get nodes -o yaml` prints them"
    ]


def test_a_phase_of_an_overlay_stands_in_its_place(shell: Shell) -> None:
    names = [phase["name"] for phase in shell("phases", "--templates", OVERLAY, "-o", "json").json["phases"]]
    assert names[:3] == ["Initialize", "PreCheck", "ISODownload"]


@pytest.mark.parametrize("phase", PHASES)
def test_every_name_function_and_filter_of_a_template_is_explained(phase: str, shell: Shell) -> None:
    """With and without inputs the same names, but for what only inputs have."""
    bare = shell("phases", phase, "--context", "-o", "json").json
    full = shell("phases", phase, THREE_NODE, "--context", "-o", "json").json
    assert {item["name"] for item in bare["names"]} - {item["name"] for item in full["names"]} == set()
    assert bare["functions"] == full["functions"]
    assert {"name", "oneShotName", "fail"} <= {item["name"] for item in bare["functions"]}
    assert {"quote", "default"} <= set(bare["filters"])


def test_the_context_says_types_without_inputs_and_values_with_them(shell: Shell) -> None:
    def names(*words: str) -> dict[str, Any]:
        model = shell("phases", "NodeUpgrade", *words, "--context", "-o", "json").json
        return {item["name"]: item for item in model["names"]}

    bare, full = names(), names(THREE_NODE)
    assert bare["plan.spec.force"]["type"] == "boolean"
    assert "value" not in bare["release.harvester"]
    assert bare["values.isoImportRetries"]["value"] == 3
    assert full["release.harvester"]["value"] == "v1.8.0-rc1"
    assert full["cluster.nodes[0].name"]["value"] == "charlie-1-tink-system"
    assert "value" not in full["captured.bootID"]


@pytest.mark.slow
def test_the_context_is_there_for_whoever_mends_a_template(shell: Shell, tmp_path: Path) -> None:
    """The rendering fails, so the context must not need it."""
    shutil.copytree(ROOT / "templates" / "30-repo-create", tmp_path / "30-repo-create")
    (tmp_path / "30-repo-create" / "service.yaml.j2").write_text("{{ oops }}\n", encoding="utf-8")
    assert shell("render", THREE_NODE, "--templates", str(tmp_path)).status == 2
    assert shell("phases", "RepoCreate", THREE_NODE, "--templates", str(tmp_path), "--context").status == 0


# ----------------------------------------------------------------------------------------------- images and compare


def test_a_digest_beside_a_tag_is_no_other_image() -> None:
    listed = frozenset({"docker.io/rancher/a:v1", "docker.io/rancher/b@sha256:1"})
    assert is_listed(listed, "rancher/a:v1@sha256:0")
    assert is_listed(listed, "docker.io/rancher/b@sha256:1")
    assert not is_listed(listed, "rancher/b@sha256:2")


@pytest.mark.slow
def test_images_are_listed_and_found_in_a_list_whatever_its_spelling(shell: Shell, tmp_path: Path) -> None:
    image = "rancher/harvester-upgrade-toolkit:main-head"
    assert shell("images", THREE_NODE).out == f"{image}\n"
    listed = tmp_path / "list.txt"
    listed.write_text(f"# the release's\n\n  docker.io/{image}\r\n", encoding="utf-8")
    ended = shell("images", THREE_NODE, "--against", str(listed))
    assert (ended.status, ended.out) == (0, "none of 1 images is missing\n")


def test_what_the_cleanup_removes_is_known_beforehand(shell: Shell, tmp_path: Path) -> None:
    """The list is that of the rendered Plan; what `retainedImages` keeps is shown as kept."""
    lists = tmp_path / "facts.yaml"
    previous = ["docker.io/rancher/old:v1", "docker.io/rancher/both:v1", "docker.io/rancher/longhorn-engine:v1.9.0"]
    facts = {"imageLists": {"previous": previous, "current": ["docker.io/rancher/both:v1"]}}
    lists.write_text(json.dumps({"apiVersion": "upgradeplan/v1", "kind": "Facts", "facts": facts}), encoding="utf-8")
    plan = str(ROOT / "examples" / "three-node" / "upgradeplan.yaml")
    ended = shell("images", plan, str(lists), "--purge-list")
    assert (ended.status, ended.out.splitlines()) == (
        0,
        ["docker.io/rancher/old:v1", "# kept by retainedImages: docker.io/rancher/longhorn-engine:v1.9.0"],
    )
    assert shell("images", plan, str(lists), "--purge-list", "-o", "json").json["purged"] == previous[:1]
    missing = shell("images", plan, "--purge-list")
    assert missing.status == 2
    assert "give the release as an ISO file" in missing.err


@pytest.mark.slow
def test_with_all_the_images_of_the_installation_are_listed_too(shell: Shell, tmp_path: Path) -> None:
    """The hook of the chart as well; what the release's list has not must be loaded by other means."""
    toolkit, manager = "rancher/harvester-upgrade-toolkit:main-head", f"upgradeplan:{PROJECT_VERSION}"
    ended = shell("images", THREE_NODE, "--all", "-o", "json")
    users = {item["image"]: item["usedBy"] for item in ended.json["images"]}
    assert list(users) == [toolkit, manager]
    deployment = "Deployment harvester-system/harvester-upgrade-manager-controller-manager"
    hosts = [user for user in users[manager] if "host-check" in user]
    assert len(hosts) == 3
    assert users[manager] == [*hosts, deployment, "Job harvester-system/harvester-upgrade-manager-pre-delete"]
    listed = tmp_path / "list.txt"
    listed.write_text(f"{toolkit}\n")
    ended = shell("images", THREE_NODE, "--all", "--against", str(listed))
    assert (ended.status, ended.out.splitlines()[-1]) == (1, "missing: 1 of 2 images")


@pytest.mark.slow
def test_one_value_moves_all_images_to_a_registry(shell: Shell, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("registry: {prefix: 'registry.example.com:5000/harvester'}\ntoolkitTag: v9\n")
    plan = tmp_path / "plan.yaml"
    body = yaml.safe_load(Path(THREE_NODE, "upgradeplan.yaml").read_text(encoding="utf-8"))
    del body["spec"]["upgrade"]
    plan.write_text(yaml.safe_dump(body))
    ended = shell("images", THREE_NODE, "--plan", str(plan), "--all", "--values", str(values))
    release = yaml.safe_load(Path(THREE_NODE, RELEASE_FILE).read_text(encoding="utf-8"))["harvester"]
    assert ended.out.splitlines() == [
        f"registry.example.com:5000/harvester/rancher/harvester-upgrade-toolkit:{release}",
        "registry.example.com:5000/harvester/rancher/harvester-upgrade-toolkit:v9",
        f"registry.example.com:5000/harvester/upgradeplan:{PROJECT_VERSION}",
    ]


def test_values_without_all_are_refused(shell: Shell, tmp_path: Path) -> None:
    assert shell("images", THREE_NODE, "--values", str(tmp_path / "values.yaml")).status == 2


@pytest.mark.slow
def test_an_iso_image_brings_its_own_list(shell: Shell, tmp_path: Path) -> None:
    def against(name: str, images: bytes | None) -> Ended:
        files = {RELEASE_FILE: Path(THREE_NODE, RELEASE_FILE).read_bytes()}
        if images is not None:
            files["bundle/harvester/images-lists-archive/current/image_list_all.txt"] = images
        iso = image(tmp_path / name, files, rock_ridge=True)
        return shell("images", THREE_NODE, "--against", str(iso))

    assert against("whole.iso", b"docker.io/rancher/harvester-upgrade-toolkit:main-head\n").status == 0
    assert against("poor.iso", b"rancher/other:v1\n").status == 1
    without = against("without.iso", None)
    assert (without.status, without.out) == (2, "")
    assert "without.iso: contains no image list" in without.err


def test_what_is_pending_may_bring_more_images_and_is_not_mixed_with_them(shell: Shell) -> None:
    ended = shell("images", f"{THREE_NODE}/upgradeplan.yaml")
    assert "pending" not in ended.out
    assert "pending: releaseMetadata" in ended.err


@pytest.mark.slow
def test_the_same_release_makes_no_difference_and_another_does(shell: Shell, tmp_path: Path) -> None:
    same = shell("compare", THREE_NODE, "--to-release", f"{THREE_NODE}/harvester-release.yaml")
    assert (same.status, same.out) == (0, "no difference: both do the same with 37 manifests\n")
    other = tmp_path / "release.yaml"
    text = (Path(THREE_NODE) / "harvester-release.yaml").read_text(encoding="utf-8")
    other.write_text(text.replace("v1.35.2", "v1.35.4"), encoding="utf-8")
    ended = shell("compare", THREE_NODE, "--to-release", str(other))
    assert ended.status == 1
    assert ended.out.splitlines()[:2] == [
        "OPERATION  OBJECT                       PHASE        FIELDS",
        "changed    Cluster fleet-local/local    NodeUpgrade  spec.kubernetesVersion",
    ]
    assert "-  kubernetesVersion: v1.35.2+rke2r1\n+  kubernetesVersion: v1.35.4+rke2r1\n" in ended.out


@pytest.mark.slow
def test_the_status_of_a_plan_belongs_to_one_release_and_does_not_count(shell: Shell, tmp_path: Path) -> None:
    """It holds the release that was read during the run, and that wins over the one that is given."""
    plan, other = tmp_path / "plan.yaml", tmp_path / "release.yaml"
    body = yaml.safe_load((Path(THREE_NODE) / "upgradeplan.yaml").read_text(encoding="utf-8"))
    text = (Path(THREE_NODE) / "harvester-release.yaml").read_text(encoding="utf-8")
    body["status"] = {"releaseMetadata": {key: str(value) for key, value in yaml.safe_load(text).items()}}
    plan.write_text(yaml.safe_dump(body), encoding="utf-8")
    other.write_text(text.replace("v1.35.2", "v1.35.4"), encoding="utf-8")
    assert shell("compare", THREE_NODE, "--plan", str(plan), "--to-release", str(other)).status == 1


@pytest.mark.slow
def test_what_is_the_same_for_every_node_is_shown_once(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "release.yaml"
    text = (Path(THREE_NODE) / "harvester-release.yaml").read_text(encoding="utf-8")
    other.write_text(text.replace("Harvester v1.8.0-rc1", "Harvester v1.8.0"), encoding="utf-8")
    out = shell("compare", THREE_NODE, "--to-release", str(other)).out
    assert "Node charlie-1-tink-system (and 2 more nodes)" in out
    assert "charlie-2" not in out


# ----------------------------------------------------------------------------- completion, other people's commands


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ren"], [f"render\t{COMMANDS['render'].help}", ":4"]),
        (["render", ""], [":0"]),
        (["render", "--phase", "Node"], ["NodeUpgrade", ":4"]),
        (["render", "--templates", OVERLAY, "--through", "Pre"], ["PreCheck", ":4"]),
        (["render", "--format", "k"], ["kustomize", ":4"]),
        (["render", "--output-dir", ""], [":16"]),
        (["completion", "z"], ["zsh", ":4"]),
        (["phases", "Node"], ["NodeUpgrade", ":0"]),
        *(([command, "--phase", "Node"], ["NodeUpgrade", ":4"]) for command in ("apply", "diff", "logs")),
        (["gate", "ImageC"], ["ImageCleanup", ":4"]),
    ],
)
def test_kubectl_gets_candidates_and_what_to_add_to_them(words: list[str], expected: list[str]) -> None:
    """The last line is a directive of kubectl's: 4 no files, 0 files as well, 16 folders only."""
    assert kubectl_candidates(words).splitlines() == expected


def test_contexts_are_completed_without_asking_a_cluster(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("contexts:\n- {name: site-a, context: {cluster: a}}\n- {name: lab, context: {cluster: b}}\n")
    words = ["status", "--kubeconfig", str(config), "--context"]
    assert kubectl_candidates([*words, ""]).splitlines() == ["lab", "site-a", ":4"]
    assert kubectl_candidates([*words, "s"]).splitlines() == ["site-a", ":4"]


def test_bash_is_told_of_files_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its script forgets the words that stand before the one for files."""
    monkeypatch.setenv(COMPLETE_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "upgradeplan phases Node")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run(["upgradeplan"]) == 0
    assert capsys.readouterr().out.splitlines() == ["file,Node", "plain,NodeUpgrade"]


@pytest.mark.parametrize("words", [["pause"], ["status"], ["accept"], ["new", "--pause-node"], ["facts", "--plan"]])
def test_nothing_is_completed_where_no_cluster_can_be_asked(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    assert kubectl_candidates([*words, ""]).splitlines() == [":4"]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_asks_this_program(name: str, shell: Shell) -> None:
    ended = shell("completion", name)
    assert ended.status == 0
    assert f"{COMPLETE_VARIABLE}={name}_complete" in ended.out


def test_the_script_is_answered(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPLETE_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "upgradeplan ren")
    monkeypatch.setenv("COMP_CWORD", "1")
    ended = shell()
    assert (ended.status, ended.out) == (0, "plain,render\n")


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed beside ours and brings commands."""
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[upgradeplan.commands]\nothers = others_table:TABLE\n", encoding="utf-8")
    (tmp_path / "others_table.py").write_text(
        "from renderer.cli.commands import Row\n"
        "TABLE = {\n"
        "    'greet': Row(target='others_commands:greet', help='Say hello.'),\n"
        "    'fall': Row(target='others_commands:fall', help='Fall over.'),\n"
        "    'leak': Row(target='others_commands:leak', help='Show a secret.'),\n"
        "    'render': Row(target='others_commands:greet', help='Take the place of render.'),\n"
        "    'away': Row(target='others_nowhere:away', help='Is listed and not imported.'),\n"
        "}\n",
        encoding="utf-8",
    )
    (tmp_path / "others_commands.py").write_text(
        "import click\n"
        "@click.command\n"
        "def greet():\n"
        "    click.echo('hello')\n"
        "@click.command\n"
        "@click.argument('words', nargs=-1)\n"
        "def fall(words):\n"
        "    raise ZeroDivisionError('of course')\n"
        "@click.command\n"
        "def leak():\n"
        "    parts = [b'Bearer hunter2\\nhunter2', b'basic aHVudGVyMg==', 'Authorization: Bearer hunter2']\n"
        "    raise ValueError('; '.join(map(str, parts)))\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    commands = import_module("renderer.cli.commands")
    commands._extensions.cache_clear()
    monkeypatch.setattr(commands, "_extensions", commands._extensions.__wrapped__)


@pytest.mark.usefixtures("extension")
def test_commands_of_other_packages_are_listed_found_and_never_in_the_place_of_ours(shell: Shell) -> None:
    listed = re.sub(" +", " ", shell("--help").out)
    assert "greet Say hello." in listed
    assert "away Is listed and not imported." in listed
    assert "Take the place" not in listed
    assert shell("greet").out == "hello\n"
    assert shell("render", "--help").out.startswith("Usage: upgradeplan render [OPTIONS] [FILE|FOLDER]...")
    assert kubectl_candidates(["gre"]).splitlines() == ["greet\tSay hello.", ":4"]


@pytest.mark.usefixtures("extension")
def test_a_bug_shows_a_traceback_and_leaves_a_log_without_secrets(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(logs))
    ended = shell("fall", "https://me:secret@example.com/a?token=secret")
    (log,) = logs.iterdir()
    assert (ended.status, ended.out) == (4, "")
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert ended.err.splitlines()[-2:] == [
        f"this is a bug in {shell('version').out.strip()}, not in your files: ZeroDivisionError",
        f"    remedy: report it with the file {log}; leave out of it what must stay secret",
    ]
    written = log.read_text(encoding="utf-8")
    assert "\n$ upgradeplan fall https://example.com/a\nTraceback" in written
    assert "ZeroDivisionError: of course" in written
    assert "secret" not in written


@pytest.mark.usefixtures("extension")
def test_credentials_in_a_traceback_are_masked(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(logs))
    ended = shell("leak")
    (log,) = logs.iterdir()
    for text in (ended.err, log.read_text(encoding="utf-8")):
        assert "ValueError: b'Bearer REDACTED'; b'basic REDACTED'; Authorization: REDACTED\n" in text
        assert "hunter2" not in text
        assert "aHVudGVyMg" not in text


@pytest.mark.usefixtures("extension")
def test_a_log_that_cannot_be_kept_is_no_second_bug(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", os.devnull)
    ended = shell("fall")
    assert ended.status == 4
    assert "report it with the lines above (no file could be written)" in ended.err
