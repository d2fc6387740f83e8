"""Whatever a command tells machines has the form that a file of `schemas/` says: answers, and refusals likewise.

Commands run in this process, those that look at a cluster on a real API server as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import pytest
import yaml
from bench.live import PLANS, seed_cluster, without_disk_check
from controlplane.cluster import ControlPlane
from support.answer_schemas import validator
from support.rendered_plans import ROOT
from support.unreachable import KUBECONFIG

from reconcile.cli import COMMANDS as ON_A_CLUSTER
from reconcile.observe.container_log import LogLine
from reconcile.pod_logs.folder import LogEntry, LogFolder
from renderer.cli.commands import COMMANDS, program
from renderer.cli.program import run
from renderer.model.document_type import GATE

EXAMPLE = ROOT / "examples" / "three-node"
THREE_NODE = str(EXAMPLE)
SINGLE_NODE = str(ROOT / "examples" / "single-node")
MANY = str(ROOT / "examples" / "many-clusters" / "clusters")
OVERLAY = str(ROOT / "examples" / "pre-check-overlay" / "templates")
PLAN = "hvst-upgrade-864fh"
OLDER = {"harvester": "v1.7.0", "os": "Harvester v1.7.0", "kubernetes": "v1.34.1+rke2r1"}
EVERY = (*COMMANDS, *ON_A_CLUSTER)
BY_LINE = {"logs": "log-record"}
"""Commands that answer with a document on each line, and its schema; the others' is named as they are."""


Row = tuple[str, int, Sequence[str]]
"""Schema, exit status, words."""

OFFLINE: Mapping[str, Row] = {
    "render": ("render", 0, ("render", THREE_NODE)),
    "render of a part": (
        "render",
        0,
        ("render", THREE_NODE, "--phase", "NodeUpgrade", "--node", "charlie-1-tink-system"),
    ),
    "render into a folder": ("render", 0, ("render", THREE_NODE, "--output-dir", "out")),
    "render and check": ("render", 1, ("render", THREE_NODE, "--output-dir", "out", "--check")),
    "render clusters": ("render", 0, ("render", "--clusters", MANY, "--output-dir", "many")),
    "render nothing": ("problems", 2, ("render", "nothing")),
    "validate": ("validate", 0, ("validate", THREE_NODE)),
    "validate a plan alone": ("validate", 0, ("validate", f"{THREE_NODE}/upgradeplan.yaml")),
    "validate nothing": ("validate", 2, ("validate", "nothing")),
    "phases": ("phases", 0, ("phases",)),
    "phases of a plan": ("phases", 0, ("phases", THREE_NODE)),
    "phases of a plan alone": ("phases", 0, ("phases", f"{THREE_NODE}/upgradeplan.yaml")),
    "phases of nothing": ("problems", 2, ("phases", "nothing")),
    "context": ("phases", 0, ("phases", "NodeUpgrade", "--context")),
    "context of a plan": ("phases", 0, ("phases", "NodeUpgrade", THREE_NODE, "--context")),
    "images": ("images", 0, ("images", THREE_NODE)),
    "images against": ("images", 1, ("images", THREE_NODE, "--against", "list.txt")),
    "images to be purged": ("images", 0, ("images", THREE_NODE, "--purge-list")),
    "images of nothing": ("problems", 2, ("images", "nothing")),
    "compare": ("compare", 1, ("compare", THREE_NODE, "--to-release", "release.yaml")),
    "compare with itself": (
        "compare",
        0,
        ("compare", THREE_NODE, "--to-release", f"{THREE_NODE}/harvester-release.yaml"),
    ),
    "compare templates": ("compare", 1, ("compare", THREE_NODE, "--to-templates", OVERLAY)),
    "compare nothing": ("problems", 2, ("compare", "nothing", "--to-release", "release.yaml")),
    "version": ("version", 0, ("version",)),
    "rehearse": ("rehearse", 0, ("rehearse", SINGLE_NODE)),
    "rehearse a failure": ("rehearse", 1, ("rehearse", SINGLE_NODE, "--fail", "image-import")),
    "rehearse nothing": ("problems", 2, ("rehearse", "nothing")),
    "report of a plan in a file": ("report", 0, ("report", f"{THREE_NODE}/upgradeplan.yaml")),
    "report of nothing": ("problems", 2, ("report", "nothing.yaml")),
    "preflight": ("preflight", 0, ("preflight", THREE_NODE, "--check", "version-exists")),
    "preflight of a plan alone": ("preflight", 3, ("preflight", f"{THREE_NODE}/upgradeplan.yaml")),
    "preflight nothing": ("problems", 2, ("preflight", "nothing")),
    "preflight, the cluster away": ("problems", 3, ("preflight",)),
    "verify": ("verify", 1, ("verify", THREE_NODE)),
    "verify nothing": ("problems", 2, ("verify", "./nothing")),
    "verify, the cluster away": ("problems", 3, ("verify",)),
    "diff, the cluster away": ("problems", 3, ("diff", THREE_NODE)),
    "status, the cluster away": ("problems", 3, ("status",)),
    "status of clusters that are away": ("status", 3, ("status", "--contexts")),
    "diagnose": ("diagnose", 0, ("diagnose", THREE_NODE)),
    "diagnose nothing": ("problems", 2, ("diagnose", "nothing")),
    "diagnose, the cluster away": ("problems", 3, ("diagnose",)),
    "explain, the cluster away": ("explain", 3, ("explain", "up")),
    "gate, the cluster away": ("gate", 3, ("gate", "Start", "--from", "gate.json", "--timeout", "0s")),
    "gate of nothing": ("problems", 2, ("gate", "Start", "--from", "nothing")),
    "approve, the cluster away": ("problems", 3, ("approve", "up")),
    "logs of a folder": ("log-record", 0, ("logs", "--from", "logs")),
    "logs of no folder": ("problems", 2, ("logs", "--from", "nothing")),
    "logs, the cluster away": ("problems", 3, ("logs",)),
    "no such command": ("problems", 2, ("rendr",)),
}
LIVE: Mapping[str, Row] = {
    "diff": ("diff", 1, ("diff", THREE_NODE)),
    "diff of two phases": ("diff", 1, ("diff", THREE_NODE, "--phase", "RepoCreate", "--phase", "ISODownload")),
    "diff of no such phase": ("problems", 2, ("diff", THREE_NODE, "--phase", "Nowhere")),
    "diff that is refused": ("diff", 3, ("diff", THREE_NODE, "--phase", "ISODownload")),
    "preflight": ("preflight", 0, ("preflight", "--check", "version-exists")),
    "verify": ("verify", 1, ("verify", "--check", "upgraded-server-version")),
    "status": ("status", 1, ("status",)),
    "status of no such plan": ("problems", 2, ("status", "nothing")),
    "explain": ("explain", 0, ("explain",)),
    "report": ("report", 0, ("report",)),
    "approve": ("approve", 0, ("approve",)),
    "explain of no such plan": ("problems", 2, ("explain", "nothing")),
}
NODE = {"apiVersion": "v1", "kind": "Node"}
READY = {"condition": {"type": "Ready", "status": "True"}}
ONE_GATE = {
    "plan": "up",
    "name": "Start",
    "digest": f"sha256:{'0' * 64}",
    "gates": [{"step": "Start/Go", "probe": {"every": NODE, "all": [READY]}}],
    "kinds": [{**NODE, "plural": "nodes", "namespaced": False, "ready": {"all": [READY]}}],
}
IMAGE_OF_ANOTHER = json.dumps(
    {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "VirtualMachineImage",
        "metadata": {"name": f"{PLAN}-iso", "namespace": "harvester-system"},
        "spec": {"displayName": "theirs", "sourceType": "download"},
    }
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the words name stands there; the cluster that is found without more words is away."""
    monkeypatch.chdir(tmp_path)
    Path("list.txt").write_text("busybox\n", encoding="utf-8")
    Path("release.yaml").write_text(yaml.safe_dump(OLDER), encoding="utf-8")
    Path("gate.json").write_text(json.dumps(GATE.document(ONE_GATE)), encoding="utf-8")
    Path("kubeconfig").write_text(KUBECONFIG, encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    kept = LogFolder(path=Path("logs"), limit=2**20)
    kept.open()
    entry = LogEntry(plan=PLAN, namespace="harvester-system", pod="a", container="main")
    kept.keep(kept.append(entry.without("what came before"), [LogLine(time="2026-01-01T00:00:00Z", text="one")]))
    kept.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", OFFLINE)
def test_without_a_cluster(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _assert_fits(OFFLINE[name], (), capsys)


@pytest.mark.parametrize("name", EVERY)
def test_a_mistake_on_the_command_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a command that has no such answer at all."""
    _assert_fits(("problems", 2, (name, "--no-such-option")), (), capsys)


@pytest.mark.controlplane
def test_on_a_cluster(wiped_control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    seed_cluster(wiped_control_plane, EXAMPLE)
    wiped_control_plane.api.create(PLANS, without_disk_check(EXAMPLE))
    for name, row in LIVE.items():
        if name == "diff that is refused":
            wiped_control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=IMAGE_OF_ANOTHER)
        _assert_fits(row, ("--kubeconfig", str(wiped_control_plane.kubeconfig)), capsys)


def test_every_command_with_such_an_answer_has_both_kinds_of_rows() -> None:
    context = click.Context(program)
    commands = {name: program.get_command(context, name) for name in EVERY}
    answering = {name for name, it in commands.items() if it and any(option.name == "output" for option in it.params)}
    rows = [*OFFLINE.values(), *LIVE.values()]
    assert {words[0] for schema, _, words in rows if schema == BY_LINE.get(words[0], words[0])} == answering
    refused = {words[0] for _, status, words in rows if status >= 2}
    assert answering - refused == {"version"}


def _assert_fits(row: Row, target: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    schema, status, words = row
    assert run(["upgradeplan", *words, *target, "-o", "json"]) == status, words
    shown = capsys.readouterr()
    for text in shown.out.splitlines() if schema in BY_LINE.values() else [shown.out]:
        validator(schema).validate(json.loads(text))
    assert shown.err == "" or status < 2
