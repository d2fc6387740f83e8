"""A new plan after a failed one meets nodes that run the release already: their Jobs do not reboot them again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.rendered_plans import ROOT
from support.small_cluster import (
    METADATA,
    NEW_OS,
    POST,
    POST_HOOK,
    POST_JOB,
    PRE,
    PRE_JOB,
    Small,
    node,
    upgrading,
)

from renderer.cli.program import run


def met(kubernetes: str) -> Small:
    """Node n1 has the new operating system; Rancher asks for it, and its Jobs succeed."""
    body = node("n1", os=NEW_OS)
    body["status"]["nodeInfo"]["kubeletVersion"] = kubernetes
    found = upgrading("n1", "n2", states={"n2": "PostDrained"}, more=[body])
    found.set_status(provisionGeneration=5)
    for request, value, job in ((PRE, "a", PRE_JOB), (POST, "b", POST_JOB)):
        found.ask("n1", request, value)
        found.rounds()
        found.end_job(job)
        found.rounds()
    return found


def test_a_node_that_is_done_is_acknowledged_without_a_boot() -> None:
    found = met(METADATA["kubernetes"])
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("PostDrained", "b")


def test_one_whose_kubernetes_is_another_has_to_boot() -> None:
    found = met("v1.34.3+rke2r3")
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("WaitingReboot", None)


@pytest.mark.slow
def test_the_only_node_that_is_done_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "done"
    shutil.copytree(ROOT / "examples" / "single-node", folder)
    for file in folder.glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        text = text.replace("osImage: Harvester v1.7.1", "osImage: Harvester v1.8.0-rc5")
        file.write_text(
            text.replace("kubeletVersion: v1.34.3+rke2r1", "kubeletVersion: v1.35.2+rke2r1"), encoding="utf-8"
        )
    status = run(["upgradeplan", "rehearse", str(folder), "--skip-preflight"])
    told = capsys.readouterr().out
    assert status == 0, told
    assert "went down" not in told
