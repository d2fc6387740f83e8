"""The guide's commands, in their order, on a real API server: from a cluster to a finished upgrade.

Harvester, Rancher, the node and the manager's pod are played; the loop is the manager's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE, until
from support.real_upgrade import carried, world_of
from support.rehearsals import ROOT

from reconcile.loop.round import Round

GUIDE = ROOT / "docs" / "guide" / "from-v1.7.1.md"
EXAMPLE = "single-node"
RELEASE = "v1.8.0-rc5"
LEASE = "3509939c.harvesterhci.io"
SHELL = re.compile(r"(?<=^```sh\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
DIFFERS = ("upgradeplan install --dry-run", "upgradeplan diff")
"""Commands whose exit status 1 says that there is a difference, as of `kubectl diff`."""

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.lane("upgrades"),
    pytest.mark.full("a whole upgrade by the guide; its commands have tests of their own, and so has the upgrade"),
]


def commands() -> Iterator[str]:
    for block in SHELL.findall(GUIDE.read_text(encoding="utf-8")):
        yield from filter(None, block.splitlines())


@pytest.fixture
def desk(tmp_path: Path, control_plane: ControlPlane) -> dict[str, str]:
    """The environment of an operator's shell, in a folder with the release's file."""
    programs = tmp_path / ".bin"
    programs.mkdir()
    program = programs / "upgradeplan"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m renderer.cli "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (programs / "kubectl").symlink_to(control_plane.kubectl_path)
    shutil.copy(ROOT / "examples" / EXAMPLE / "harvester-release.yaml", tmp_path)
    environment = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
    return {**environment, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def run(command: str, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    allowed = (0, 1) if command.startswith(DIFFERS) else (0,)
    assert done.returncode in allowed, f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr


def test_the_guide_leads_to_a_finished_upgrade(
    wiped_control_plane: ControlPlane, desk: dict[str, str], tmp_path: Path
) -> None:
    plane, environment, rounds = wiped_control_plane, dict(desk), list[Round]()
    with world_of(plane, EXAMPLE, f"to-{RELEASE.replace('.', '-')}") as place:
        manager = Thread(target=lambda: rounds.extend(carried(place, EXAMPLE)), daemon=True)
        for command in commands():
            if assigned := re.fullmatch(r"(RELEASE|ISO_URL)=(\S+)", command):
                environment[assigned[1]] = assigned[2].replace("v1.8.0", RELEASE)
                continue
            run(command, tmp_path, environment)
            if command == "upgradeplan install":  # the API server does not reach a pod that is played
                plane.kubectl("delete", "validatingwebhookconfigurations", "--all")
                manager.start()
                until("the manager leads", lambda: LEASE in plane.kubectl("get", "leases", "-A").stdout)
        manager.join(timeout=PATIENCE)
        assert rounds
        assert place.plan() is None
    assert "name: to-v1-8-0-rc5" in (tmp_path / "plan.yaml").read_text(encoding="utf-8")
    assert (tmp_path / "review" / "to-v1-8-0-rc5" / "index.yaml").exists()
