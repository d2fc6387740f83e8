"""Flux's kustomize-controller on the real control plane, with a source that serves a tree over loopback HTTP.

There is no source-controller: the test writes the status of the GitRepository, as that one does for an artifact.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controlplane import crds, waiting
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.processes import Child

from agents.engines import Engines
from agents.rendered_tree import ServedTree

GROUP = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations"
SOURCES = "source.toolkit.fluxcd.io"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


class FluxController:
    """`publish` takes a revision of the tree to the source; `apply` the tree's own objects for Flux."""

    def __init__(self, plane: ControlPlane, engines: Engines, tree: ServedTree, port: int, served: Path) -> None:
        self._plane = plane
        self._engines = engines
        self._tree = tree
        self._port = port
        self._served = served
        self._child: Child | None = None

    def start(self) -> None:
        environment = (f"KUBECONFIG={self._plane.kubeconfig}", "RUNTIME_NAMESPACE=flux-system")
        options = (
            "--metrics-addr=0",
            "--health-addr=0",
            "--watch-all-namespaces=false",
            "--requeue-dependency=2s",
            "--http-retry=1",
            "--interval-jitter-percentage=0",
            "--log-encoding=console",
            "--feature-gates=CancelHealthCheckOnNewRevision=true",
        )
        self._child = Child(["/usr/bin/env", *environment, str(self._engines.flux), *options], self._served)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def publish(self) -> str:
        """The newest revision as an artifact; returns its name."""
        revision = self._tree.revision
        archive = self._served / f"{revision}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(self._tree.current, arcname=".")
        (source,) = self._tree.documents("agents/flux/gitrepository.yaml")
        path = f"/apis/{SOURCES}/v1/namespaces/flux-system/gitrepositories"
        self._plane.api.create_if_absent(path, source)
        found = self._plane.api.get(f"{path}/{source['metadata']['name']}")
        self._plane.api.patch(f"{path}/{source['metadata']['name']}/status", {"status": self._status(archive, found)})
        return f"main@sha1:{revision}"

    def _status(self, archive: Path, source: Any) -> Any:
        generation, now = source["metadata"]["generation"], f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored"}
        return {
            "observedGeneration": generation,
            "artifact": {
                "path": archive.name,
                "url": f"http://127.0.0.1:{self._port}/{archive.name}",
                "revision": f"main@sha1:{archive.name.partition('.')[0]}",
                "digest": f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}",
                "size": archive.stat().st_size,
                "lastUpdateTime": now,
            },
            "conditions": [{**ready, "lastTransitionTime": now, "observedGeneration": generation}],
        }

    def apply(self, only: str = "", **spec: Any) -> list[str]:
        """The Kustomizations of the tree, or those whose path ends so, with these fields of their spec instead; returns
        their names."""
        names = []
        bodies = self._tree.documents("agents/flux/kustomizations.yaml")
        for body in (body for body in bodies if body["spec"]["path"].endswith(only)):
            self._plane.api.create_if_absent(GROUP, {**body, "spec": {**body["spec"], **spec}})
            names.append(body["metadata"]["name"])
        return names

    def ready(self, name: str) -> tuple[str, str, str]:
        """Status, reason and message of the condition Ready; empty where there is none."""
        found = self._plane.api.get(f"{GROUP}/{name}").get("status", {}).get("conditions", [])
        ready: Any = next((entry for entry in found if entry["type"] == "Ready"), {})
        return ready.get("status", ""), ready.get("reason", ""), ready.get("message", "")

    def delete(self, name: str) -> None:
        """Deletes a Kustomization and waits until it has gone."""
        self._plane.api.delete(f"{GROUP}/{name}")
        waiting.until(f"{name} has gone", lambda: not self._exists(name))

    def _exists(self, name: str) -> bool:
        try:
            self._plane.api.get(f"{GROUP}/{name}")
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True


@contextmanager
def flux(plane: ControlPlane, engines: Engines, tree: ServedTree, folder: Path) -> Iterator[FluxController]:
    """The controller with its definitions, not started yet; killed at the end."""
    folder.mkdir()
    plane.create_namespace("flux-system")
    crds.install(plane.api, engines.definitions)
    crds.install(plane.api, Path(__file__).parent / "definitions")
    handler = functools.partial(_Quiet, directory=os.fspath(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        controller = FluxController(plane, engines, tree, server.server_port, folder)
        try:
            yield controller
        finally:
            controller.kill()
            server.shutdown()
            thread.join()
