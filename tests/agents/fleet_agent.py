"""Fleet on the real control plane: each bundle goes through the real helm. What Fleet's agent does with helm is a
model, after `internal/helmdeployer` of rancher/fleet:

- a release that is `uninstalling` or `pending-install` is uninstalled first, and installed again;
- a release without a deployed revision is installed, in place of a failed one; any other is upgraded, and takes
  ownership;
- an upgrade that finds another operation in progress is rolled back to the revision before, and tried again;
- a bundle waits until bundles with the labels of its `dependsOn` are there and Ready.

Helm gets kustomize's output with the labels of Fleet, never as templates.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane import binaries
from controlplane.cluster import ControlPlane

from agents.rendered_tree import RenderedTree
from renderer.yaml_io import dump, parse

READY, HELD = "Ready", "waits for its dependencies"
_IN_PROGRESS = "another operation (install/upgrade/rollback) is in progress"
_CHART = "{apiVersion: v2, name: bundle, version: 0.1.0}\n"
_TEMPLATE = '{{ .Files.Get "objects.yaml" }}\n'


@dataclass(frozen=True, kw_only=True)
class _Bundle:
    """A folder as Fleet reads it. `text` has its objects, `options` are those of fleet.yaml."""

    folder: str
    options: Mapping[str, Any]
    text: str

    @property
    def release(self) -> str:
        return str(self.options["helm"]["releaseName"])

    @property
    def namespace(self) -> str:
        return str(self.options["defaultNamespace"])

    @property
    def content(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class FleetAgent:
    """Delivers the folders of the tree's GitRepo. `patience` stands for the seconds of `timeoutSeconds`."""

    def __init__(self, plane: ControlPlane, tree: RenderedTree, folder: Path, patience: int) -> None:
        self._plane = plane
        self._tree = tree
        self._folder = folder
        self._patience = patience
        self._states: dict[str, tuple[str, str]] = {}
        self._bundles: dict[tuple[str, str], _Bundle] = {}
        self._stopped = threading.Event()
        self._worker: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self.log: list[tuple[str, ...]] = []
        """What helm was told, in order."""

    def start(self, only: str = "") -> None:
        """Begins, or goes on, with the folders that end so."""
        self._stopped.clear()
        self._worker = threading.Thread(target=self._work, args=(only,), daemon=True)
        self._worker.start()

    def kill(self) -> None:
        """With SIGKILL, whatever helm is doing."""
        with self._lock:
            self._stopped.set()
            if self._process is not None:
                self._process.kill()
        if self._worker is not None:
            self._worker.join()
            self._worker = None

    def state(self, ending: str) -> str:
        """Of the bundle whose folder ends so: Ready, held, or what helm said last."""
        return next((state for folder, (_, state) in self._states.items() if folder.endswith(ending)), "")

    def status(self, ending: str) -> str:
        """Of its release, as helm has it now."""
        bundle = self._bundle(next(folder for folder in self._paths() if folder.endswith(ending)))
        return next((str(entry["status"]) for entry in reversed(self._history(bundle))), "")

    def _paths(self) -> list[str]:
        (repo,) = self._tree.documents("agents/fleet/gitrepo.yaml")
        return [str(path).removeprefix(f"{self._tree.plan}/") for path in repo["spec"]["paths"]]

    def _work(self, only: str) -> None:
        while not self._stopped.wait(0.2):
            for folder in self._paths():
                if folder.endswith(only) and not self._stopped.is_set():
                    self._look_at(self._bundle(folder), is_alone=bool(only))

    def _look_at(self, bundle: _Bundle, *, is_alone: bool) -> None:
        if self._states.get(bundle.folder) == (bundle.content, READY):
            return
        if not is_alone and not self._may_begin(bundle):
            self._states[bundle.folder] = bundle.content, HELD
            return
        done = self._deploy(bundle)
        if not self._stopped.is_set():
            self._states[bundle.folder] = bundle.content, done.stderr.strip() if done.returncode else READY

    def _may_begin(self, bundle: _Bundle) -> bool:
        wanted = [item["selector"]["matchLabels"] for item in bundle.options.get("dependsOn", ())]
        ready = [
            other.options["labels"]
            for other in map(self._bundle, self._paths())
            if self._states.get(other.folder) == (other.content, READY)
        ]
        return all(any(labels.items() <= found.items() for found in ready) for labels in wanted)

    def _deploy(self, bundle: _Bundle) -> subprocess.CompletedProcess[str]:
        history = self._history(bundle)
        if history and history[-1]["status"] in ("uninstalling", "pending-install"):
            self._helm("uninstall", bundle.release, "-n", bundle.namespace)
        is_deployed = any(entry["status"] == "deployed" for entry in self._history(bundle))
        how = ("upgrade", "--take-ownership") if is_deployed else ("install", "--replace")
        command = (*how, bundle.release, str(self._chart(bundle)), "-n", bundle.namespace, *self._waits(bundle))
        done = self._helm(*command)
        if _IN_PROGRESS in done.stderr:
            self._helm("rollback", bundle.release, "-n", bundle.namespace)
            done = self._helm(*command)
        return done

    def _waits(self, bundle: _Bundle) -> tuple[str, ...]:
        """Fleet waits where it is given a time, and for Jobs only then."""
        if not bundle.options["helm"].get("timeoutSeconds"):
            return ("--wait=hookOnly",)
        jobs = ("--wait-for-jobs",) if bundle.options["helm"].get("waitForJobs") else ()
        return ("--wait", *jobs, "--timeout", f"{self._patience}s")

    def _history(self, bundle: _Bundle) -> list[dict[str, Any]]:
        done = self._helm("history", bundle.release, "-n", bundle.namespace, "-o", "json")
        return list(json.loads(done.stdout)) if done.returncode == 0 else []

    def _helm(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.defpath, "HOME": str(self._folder), "KUBECONFIG": str(self._plane.kubeconfig)}
        command = [str(binaries.clients_dir() / "helm"), *words]
        pipe = subprocess.PIPE
        with self._lock:
            if self._stopped.is_set() and words[0] != "history":
                return subprocess.CompletedProcess(command, 1, "", "killed")
            process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)
            if words[0] != "history":
                self.log.append(words[:3])
                self._process = process
        said, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(command, process.returncode, said, errors)

    def _bundle(self, folder: str) -> _Bundle:
        key = self._tree.revision, folder
        if key not in self._bundles:
            self._bundles[key] = self._built(folder)
        return self._bundles[key]

    def _built(self, folder: str) -> _Bundle:
        (options,) = self._tree.documents(f"{folder}/fleet.yaml")
        built = self._plane.kubectl("kustomize", str(self._tree.current / self._tree.plan / folder)).stdout
        bodies = [_labelled(document.value, options["name"]) for document in parse(built, folder)]
        return _Bundle(folder=folder, options=options, text="---\n".join(map(dump, bodies)))

    def _chart(self, bundle: _Bundle) -> Path:
        chart = self._folder / bundle.content
        (chart / "templates").mkdir(parents=True, exist_ok=True)
        (chart / "Chart.yaml").write_text(_CHART, encoding="utf-8")
        (chart / "objects.yaml").write_text(bundle.text, encoding="utf-8")
        (chart / "templates" / "all.yaml").write_text(_TEMPLATE, encoding="utf-8")
        return chart


def _labelled(body: Mapping[str, Any], bundle: str) -> dict[str, Any]:
    """With what Fleet's post-renderer adds to each object."""
    metadata = body["metadata"]
    labels = {**metadata.get("labels", {}), "objectset.rio.cattle.io/hash": hashlib.sha1(bundle.encode()).hexdigest()}
    annotations = {**metadata.get("annotations", {}), "objectset.rio.cattle.io/id": f"default-{bundle}"}
    return {**body, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


@contextmanager
def fleet(plane: ControlPlane, tree: RenderedTree, folder: Path, patience: int = 4) -> Iterator[FleetAgent]:
    """The agent, not started yet; killed at the end."""
    folder.mkdir()
    agent = FleetAgent(plane, tree, folder, patience)
    try:
        yield agent
    finally:
        agent.kill()
