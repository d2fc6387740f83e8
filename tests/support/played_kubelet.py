"""A kubelet for a real API server, which is asked for the logs of pods, and runs pods of this program as processes.

It serves HTTPS on a loopback address, and a folder stands for every volume.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from controlplane.api import ApiError
from controlplane.cluster import ControlPlane

from reconcile.admission.certificates import Validity, new_authority, new_serving_pair
from reconcile.admission.tls import server_context, use_certificate

ADDRESS = "127.0.0.1"
NODE = "one"
_PODS = "/api/v1/namespaces/{namespace}/pods"
_IMPATIENT = (
    "import sys, reconcile.pod_logs.log_collector as c; c.EVERY = 0.5; from renderer.cli import main; sys.exit(main())"
)


@dataclass
class PlayedKubelet:
    """`printed` has what containers have printed, by namespace, pod and container: lines with their times.

    A pod of this program runs once `runs` is set; `volume` is the folder that its claim stands for.
    """

    plane: ControlPlane
    volume: Path
    printed: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    runs: Event = field(default_factory=Event)
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def line(self, pod: str, second: int, text: str, namespace: str = "harvester-system") -> None:
        """The pod prints a line."""
        time = f"2026-01-01T00:00:{second:02}.5Z"
        self.printed.setdefault((namespace, pod, "main"), []).append(f"{time} {text}")

    def make_pod(self, name: str, labels: dict[str, str], namespace: str = "harvester-system") -> None:
        """A pod on this node whose container runs."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "busybox"}]},
        }
        self.plane.api.create(_PODS.format(namespace=namespace), body)
        self._tell(namespace, name, "main", "Running")

    def remove_pod(self, name: str, namespace: str = "harvester-system") -> None:
        path = f"{_PODS.format(namespace=namespace)}/{name}"
        self.plane.api.send("DELETE", path, {"gracePeriodSeconds": 0})
        self.printed.pop((namespace, name, "main"), None)

    def collectors(self) -> list[str]:
        """Names of the collector's pods that run."""
        running = {name for name, process in self.started.items() if process.poll() is None}
        return sorted(name for name in running if "-reader-" not in name)

    def kill(self, name: str) -> None:
        """SIGKILL, after which the container is started again, as the kubelet does it."""
        process = self.started.pop(name)
        process.kill()
        process.wait()

    def look(self) -> None:
        """Starts and ends what the API server wants."""
        pods = self.plane.api.get(_PODS.format(namespace="harvester-system"))["items"]
        wanted = {pod["metadata"]["name"]: pod for pod in pods if self._is_ours(pod)}
        for name, pod in wanted.items():
            if pod["metadata"].get("deletionTimestamp"):
                self._end(name)
            elif name not in self.started and self.runs.is_set():
                self._start(pod)
        for name in [name for name in self.started if name not in wanted]:
            self._end(name)

    def _is_ours(self, pod: Any) -> bool:
        labels = pod["metadata"].get("labels") or {}
        return bool(labels.get("app.kubernetes.io/component") == "log-collector")

    def _start(self, pod: Any) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        (container,) = spec["containers"]
        assert container["command"] == ["upgradeplan"]
        (mount,) = (m["mountPath"] for m in container["volumeMounts"] if m["name"] == "logs")
        words = [word.replace(mount, str(self.volume)) for word in container["args"]]
        if "nodeName" not in spec:
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            path = f"{_PODS.format(namespace=metadata['namespace'])}/{metadata['name']}/binding"
            self.plane.api.create(path, {"metadata": {"name": metadata["name"]}, "target": target})
        if spec.get("automountServiceAccountToken") is not False:
            account = self.plane.service_account_kubeconfig(metadata["namespace"], spec["serviceAccountName"])
            words.append(f"--kubeconfig={account}")
        process = subprocess.Popen(
            [sys.executable, "-c", _IMPATIENT, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": ""},
        )
        self.started[metadata["name"]] = process
        self._tell(metadata["namespace"], metadata["name"], container["name"], "Running")
        if spec["restartPolicy"] == "Never":
            output, _ = process.communicate()
            key = (metadata["namespace"], metadata["name"], container["name"])
            self.printed[key] = output.decode().splitlines()
            self._tell(*key, "Failed" if process.returncode else "Succeeded")

    def _end(self, name: str) -> None:
        process = self.started.pop(name)
        process.terminate()
        process.wait()
        with suppress(ApiError):
            self.plane.api.send(
                "DELETE", f"{_PODS.format(namespace='harvester-system')}/{name}", {"gracePeriodSeconds": 0}
            )

    def _tell(self, namespace: str, pod: str, container: str, phase: str) -> None:
        state = {"running": {}} if phase == "Running" else {"terminated": {"exitCode": int(phase == "Failed")}}
        status = {"name": container, "state": state, "ready": True, "restartCount": 0, "image": "a", "imageID": "b"}
        ready = {"type": "Ready", "status": "True"}
        body = {"status": {"phase": phase, "containerStatuses": [status], "conditions": [ready]}}
        with suppress(ApiError):
            self.plane.api.patch(f"{_PODS.format(namespace=namespace)}/{pod}/status", body)


@contextmanager
def played_kubelet(plane: ControlPlane, volume: Path) -> Iterator[PlayedKubelet]:
    """One node, whose kubelet this is."""
    kubelet, stop = PlayedKubelet(plane=plane, volume=volume), Event()
    server = _server(kubelet)
    port = server.server_address[1]
    plane.api.create("/api/v1/nodes", {"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}})
    status = {
        "addresses": [{"type": "InternalIP", "address": ADDRESS}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    plane.api.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})

    def work() -> None:
        while not stop.wait(0.1):
            kubelet.look()

    threads = [Thread(target=server.serve_forever, daemon=True), Thread(target=work, daemon=True)]
    for thread in threads:
        thread.start()
    try:
        yield kubelet
    finally:
        stop.set()
        server.shutdown()
        for thread in threads:
            thread.join()
        server.server_close()
        for process in kubelet.started.values():
            process.kill()
            process.wait()


def _server(kubelet: PlayedKubelet) -> ThreadingHTTPServer:
    class LogHandler(BaseHTTPRequestHandler):
        """Answers `/containerLogs/NAMESPACE/POD/CONTAINER`."""

        def do_GET(self) -> None:
            found = urlsplit(self.path)
            _, _, namespace, pod, container = found.path.split("/")
            query = parse_qs(found.query)
            lines = kubelet.printed.get((namespace, pod, container), [])
            since = query.get("sinceTime", [""])[0][:19]
            text = "".join(f"{line}\n" for line in lines if line[:19] >= since or not since).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            return

    now = datetime.now(UTC)
    validity = Validity(not_before=now - timedelta(hours=1), not_after=now + timedelta(hours=1))
    pair = new_serving_pair(new_authority(validity), [ADDRESS], validity)
    context = server_context()
    use_certificate(context, pair.certificate, pair.key)
    server = ThreadingHTTPServer((ADDRESS, 0), LogHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server
