"""Argo CD's engine on the real control plane, driven by `argo/main.go`: Applications of a tree, a checkout, no port."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controlplane.cluster import ControlPlane
from controlplane.processes import Child

from agents.engines import Engines
from agents.rendered_tree import RenderedTree
from renderer.catalog.kinds import Kinds
from renderer.delivery.health.argo_scripts import argo_health


class ArgoDriver:
    """Its reports are what an Application's status shows."""

    def __init__(self, plane: ControlPlane, engines: Engines, tree: RenderedTree, kinds: Kinds, folder: Path) -> None:
        self._engines = engines
        self._folder = folder
        self._child: Child | None = None
        self._log = folder / engines.argo.name
        (folder / "argocd-cm.json").write_text(json.dumps({"data": dict(argo_health(kinds))}), encoding="utf-8")
        self._config = {
            "kubeconfig": str(plane.kubeconfig),
            "checkout": str(tree.folder),
            "healthRules": str(folder / "argocd-cm.json"),
            "state": str(folder / "state.json"),
        }

    def start(self, *applications: Mapping[str, Any]) -> None:
        config = self._folder / "config.json"
        config.write_text(json.dumps({**self._config, "applications": applications}), encoding="utf-8")
        self._child = Child([str(self._engines.argo), str(config)], self._folder)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def reports(self, name: str) -> list[dict[str, Any]]:
        """All of an Application so far, the newest last."""
        log = self._folder / f"{self._engines.argo.name}.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [report for report in found if report["name"] == name]

    def last(self, name: str) -> dict[str, Any]:
        reports = self.reports(name)
        return reports[-1] if reports else {}


def application_of(body: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """An Application object as the driver takes it."""
    spec = body["spec"]
    automated, retry = spec["syncPolicy"]["automated"], spec["syncPolicy"]["retry"]
    backoff = retry["backoff"]
    return {
        "name": body["metadata"]["name"],
        "path": spec["source"]["path"],
        "namespace": spec["destination"]["namespace"],
        "prune": automated["prune"],
        "selfHeal": automated["selfHeal"],
        "serverSideApply": "ServerSideApply=true" in spec["syncPolicy"].get("syncOptions", []),
        "retries": retry["limit"],
        "backoff": {
            "seconds": _seconds(backoff["duration"]),
            "factor": backoff["factor"],
            "maxSeconds": _seconds(backoff["maxDuration"]),
        },
        **fields,
    }


def _seconds(duration: str) -> int:
    """Of whole seconds or minutes, as Go writes them."""
    return int(duration[:-1]) * {"s": 1, "m": 60}[duration[-1]]


@contextmanager
def argo(plane: ControlPlane, engines: Engines, tree: RenderedTree, kinds: Kinds, folder: Path) -> Iterator[ArgoDriver]:
    """The driver, not started yet; killed at the end."""
    folder.mkdir()
    driver = ArgoDriver(plane, engines, tree, kinds, folder)
    try:
        yield driver
    finally:
        driver.kill()
