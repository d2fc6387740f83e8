"""Starts etcd, kube-apiserver and kube-controller-manager on loopback and takes them down, whatever happens.

There is no kubelet and no scheduler: a pod stays as it was created until a test or an actor writes its status.
"""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane import audit, crds, keys, waiting, wiping
from controlplane.api import Api, ApiError
from controlplane.binaries import Binaries
from controlplane.processes import Child, ReservedPort, Workdir, sweep
from controlplane.servers import Servers

NAMESPACES = ("harvester-system", "cattle-system", "fleet-local", "longhorn-system")
SECONDS_TO_START = 120.0
TOKEN_SECONDS = 24 * 3600


class StartError(Exception):
    """A server ended before it was ready; carries the last lines of its log."""


@contextmanager
def running(
    binaries: Binaries, crd_folders: Sequence[Path], say: Callable[[str], None] | None = None
) -> Iterator[ControlPlane]:
    """A control plane with the namespaces and every definition of the folders, in a private temporary folder.

    Taken down at the end, after Ctrl-C, and by the kernel if this process is killed.
    """
    with ExitStack() as stack:
        sweep()
        workdir = Workdir()
        stack.callback(workdir.remove)
        ports = [stack.enter_context(ReservedPort()) for _ in range(3)]
        servers = Servers(
            binaries=binaries,
            workdir=workdir.path,
            api_port=ports[0].number,
            etcd_port=ports[1].number,
            peer_port=ports[2].number,
        )
        plane = ControlPlane(servers, say or (lambda text: None))
        stack.callback(plane.stop)
        plane.start(crd_folders)
        yield plane


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was there at a revision: the path of every object by its uid, and, of those that came since the start, the
    last write by key."""

    revision: int
    paths: Mapping[str, str]
    written: Mapping[str, int]


class ControlPlane:
    """A running control plane; made by `running`, used through the fixture `control_plane`."""

    def __init__(self, servers: Servers, say: Callable[[str], None]) -> None:
        self.server = servers.url
        self.kubectl_path = servers.binaries.kubectl
        self.kubeconfig = servers.workdir / "admin.kubeconfig"
        self.workdir = servers.workdir
        self._servers = servers
        self._say = say
        self._children: dict[str, Child] = {}
        self._numbers = itertools.count()
        self._clean = Snapshot(revision=0, paths={}, written={})

    @functools.cached_property
    def api(self) -> Api:
        """The API as system:masters."""
        return self.api_as(self._servers.admin_token)

    @property
    def certificate_authority(self) -> str:
        """The PEM text by which clients trust the API server."""
        return self._servers.ca_file.read_text(encoding="utf-8")

    @property
    def pids(self) -> Mapping[str, int]:
        return {name: child.pid for name, child in self._children.items()}

    @property
    def rss_mib(self) -> Mapping[str, int]:
        return {name: child.rss_mib for name, child in self._children.items()}

    @property
    def revision(self) -> int:
        """Another one whenever anything was written; a small question."""
        return keys.revision(self._servers.etcd_url)

    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """By plural, what is another value whenever an object of the kind was written."""
        return keys.shapes(self._servers.etcd_url)

    def api_as(self, token: str) -> Api:
        return Api("127.0.0.1", self._servers.api_port, self._servers.ca_file, token)

    def kubectl(
        self, *args: str, kubeconfig: Path | None = None, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl, by default as admin; with `check` a failure raises with what it wrote."""
        done = subprocess.run(
            [os.fspath(self.kubectl_path), f"--kubeconfig={kubeconfig or self.kubeconfig}", *args],
            input=stdin,
            env={"PATH": os.defpath, "HOME": os.fspath(self.workdir)},
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def create_namespace(self, name: str) -> None:
        """Creates the namespace and waits for its default service account: until that is there, no Pod is admitted."""
        self.api.create_if_absent("/api/v1/namespaces", {"metadata": {"name": name}})
        waiting.until(f"service account of {name}", lambda: name in self._namespaces_with("serviceaccounts", "default"))

    def service_account_token(self, namespace: str, name: str) -> str:
        """A token of the service account, which is made if absent."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.api.create_if_absent(accounts, {"metadata": {"name": name}})
        answer = self.api.create(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": TOKEN_SECONDS}})
        token: str = answer["status"]["token"]
        return token

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig of the service account, which is made if absent."""
        return self._servers.write_kubeconfig(f"{namespace}.{name}", self.service_account_token(namespace, name))

    def audit_mark(self) -> int:
        """The end of the audit log now, for `audit(since=...)`."""
        self._settle_audit()
        return self._servers.audit_log.stat().st_size

    def audit(self, since: int = 0, user: str | None = None) -> tuple[audit.AuditEvent, ...]:
        """What was asked since the mark, in order, by all users or one (`system:serviceaccount:NAMESPACE:NAME`)."""
        self._settle_audit()
        events = audit.read(self._servers.audit_log, since)
        return tuple(event for event in events if user in (None, event.user) and not event.uri.startswith(_SETTLED))

    def wipe(self, back_to: Snapshot | None = None) -> None:
        """Deletes every object and CRD that came since the start, or since the snapshot, finalizers or not, and waits
        until they are gone."""
        kept = back_to or self._clean
        wiping.wipe(self.api, kept.paths, lambda: keys.made_since(self._servers.etcd_url, kept.revision))
        self._create_namespaces()

    def snapshot(self) -> Snapshot:
        """What is there now, once each namespace has what its controllers make in it."""
        self._wait("service accounts", self._controllers_work)
        url, start = self._servers.etcd_url, self._clean.revision
        paths = wiping.inventory(self.api, keys.made_since(url, start))
        return Snapshot(
            revision=self.revision, paths={**self._clean.paths, **paths}, written=keys.written_since(url, start)
        )

    def still_has(self, snapshot: Snapshot) -> bool:
        """Whether nothing that came before the snapshot, and after the start, has been changed or deleted since."""
        written = keys.written_since(self._servers.etcd_url, self._clean.revision)
        return all(written.get(key) == revision for key, revision in snapshot.written.items())

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Within, connections are refused; afterwards the API server is back at the same address with the same data."""
        self._children["kube-apiserver"].kill()
        try:
            yield
        finally:
            self._start_api_server()
            self._wait("every kind", self._serves_every_kind)

    @contextmanager
    def hang(self) -> Iterator[None]:
        """Within, connections are accepted and nothing is answered."""
        self._children["kube-apiserver"].suspend()
        try:
            yield
        finally:
            self._children["kube-apiserver"].resume()

    def start(self, crd_folders: Sequence[Path]) -> None:
        self._servers.write_inputs()
        self._spawn(self._servers.etcd())
        self._start_api_server()
        self._servers.write_kubeconfig("admin", self._servers.admin_token)
        self._create_namespaces()
        for folder in crd_folders:  # first: the garbage collector looks for new kinds only every 30 seconds
            crds.install(self.api, folder)
        self._spawn(self._servers.controller_manager())
        self._wait("service accounts", self._controllers_work)
        self._clean = Snapshot(revision=self.revision, paths=wiping.inventory(self.api), written={})

    def stop(self) -> None:
        for child in reversed(self._children.values()):
            child.kill()

    def _start_api_server(self) -> None:
        self._spawn(self._servers.api_server())
        self._wait("/readyz", self._is_ready)

    def _spawn(self, command: list[str]) -> None:
        child = Child(command, self.workdir)
        self._children[child.name] = child
        self._say(f"started {child.name}, pid {child.pid}")

    def _wait(self, what: str, look: Callable[[], bool]) -> None:
        def look_at_children_first() -> bool:
            for child in self._children.values():
                if not child.running:
                    raise StartError(f"{child.name} ended before {what}:\n{child.last_words()}")
            return look()

        waiting.until(what, look_at_children_first, SECONDS_TO_START)

    def _is_ready(self) -> bool:
        try:
            return self._servers.ca_file.exists() and bool(self.api.get("/readyz") == "ok")
        except (ApiError, OSError):
            return False

    def _serves_every_kind(self) -> bool:
        """Once the server is ready the storage of custom resources is not, for a moment."""
        try:
            return bool(wiping.inventory(self.api))
        except ApiError:
            return False

    def _controllers_work(self) -> bool:
        """Each namespace has its default service account and the root certificate."""
        accounts = self._namespaces_with("serviceaccounts", "default")
        certificates = self._namespaces_with("configmaps", "kube-root-ca.crt")
        found = {item["metadata"]["name"] for item in self.api.get("/api/v1/namespaces")["items"]}
        return {*NAMESPACES, *found} <= accounts & certificates

    def _namespaces_with(self, resource: str, name: str) -> set[str]:
        found: dict[str, Any] = self.api.get(f"/api/v1/{resource}?fieldSelector=metadata.name%3D{name}")
        return {item["metadata"]["namespace"] for item in found["items"]}

    def _create_namespaces(self) -> None:
        for name in NAMESPACES:
            self.api.create_if_absent("/api/v1/namespaces", {"metadata": {"name": name}})

    def _settle_audit(self) -> None:
        """Asks something of our own and waits for its line: then the lines of earlier requests are there as well."""
        uri = f"{_SETTLED}{next(self._numbers)}"
        size = self._servers.audit_log.stat().st_size
        self.api.get(uri)
        waiting.until("audit log", lambda: f'"{uri}"'.encode() in _tail(self._servers.audit_log, size))


_SETTLED = "/version?settled="


def _tail(file: Path, offset: int) -> bytes:
    with file.open("rb") as content:
        content.seek(offset)
        return content.read()
