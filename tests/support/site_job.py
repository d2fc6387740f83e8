"""A phase of a site with one Job, which an agent delivers; and what its pod does, by the real command and kubectl."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.cluster import ControlPlane

from renderer.yaml_io import dump

NAMESPACE, NAME, ACCOUNT = "harvester-system", "site-do", "site-worker"
FOLDER = "45-site"
_PHASE = {
    "apiVersion": "templates.upgradeplan/v1",
    "kind": "Phase",
    "name": "Site",
    "status": {"active": "SiteWorking", "completed": "SiteWorked"},
    "deletion": "careful",
    "description": "Does something at the site.",
    "steps": [
        {
            "name": "Do",
            "description": "Runs a Job.",
            "owned": ["job.yaml.j2"],
            "gates": [{"probe": {"manifest": "job.yaml.j2", "all": [{"builtin": True}]}}],
        }
    ],
}
_CONTAINER = {
    "name": "do",
    "image": "registry.example.com/toolkit:v1",
    "command": ["sh", "-c", 'echo did >> "$RAN"; exit "${CODE:-0}"'],
}
_JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": NAME, "namespace": NAMESPACE},
    "spec": {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 0,
        "template": {
            "spec": {"restartPolicy": "Never", "serviceAccountName": ACCOUNT, "containers": [_CONTAINER]},
        },
    },
}


def overlay(folder: Path) -> Path:
    """A folder for `--templates` with the phase."""
    phase = folder / FOLDER
    phase.mkdir(parents=True)
    (phase / "phase.yaml").write_text(dump(_PHASE), encoding="utf-8")
    (phase / "job.yaml.j2").write_text(dump(_JOB), encoding="utf-8")
    return folder


@dataclass(frozen=True, kw_only=True)
class SitePod:
    """The pod of the Job, as a process with its account's kubeconfig and the real kubectl. `folder` has what it did."""

    plane: ControlPlane
    folder: Path

    @property
    def times(self) -> int:
        """How often the command itself has run."""
        ran = self.folder / "ran"
        return len(ran.read_text(encoding="utf-8").splitlines()) if ran.exists() else 0

    @property
    def record(self) -> Mapping[str, str]:
        """The ConfigMap's data; empty without one."""
        maps = self.plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps")["items"]
        found = [body for body in maps if body["metadata"]["name"].endswith("-do-done")]
        return dict(found[0]["data"]) if found else {}

    def start(self, kubeconfig: Path | None = None, code: int = 0) -> subprocess.Popen[str]:
        """Runs the first container's command as the API server has it."""
        job = self.plane.api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{NAME}")
        command = job["spec"]["template"]["spec"]["containers"][0]["command"]
        file = kubeconfig or self.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        tools = self.plane.kubectl_path.parent
        environment: dict[str, Any] = {
            **{"PATH": f"{tools}{os.pathsep}{os.defpath}", "HOME": str(self.folder), "KUBECONFIG": str(file)},
            **{"RAN": str(self.folder / "ran"), "CODE": str(code)},
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def run(self, code: int = 0) -> tuple[int, str]:
        """Exit code and output."""
        process = self.start(code=code)
        said, _ = process.communicate(timeout=120)
        return process.returncode, said
