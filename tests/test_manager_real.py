"""The manager of an installation on a real API server: its nodes are drained, it is rolled out, replaced and measured.

The test is the scheduler and the kubelet of its pods; two processes stand for two pods where the program itself counts.
"""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from controlplane import promtool, waiting
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.processes import ReservedPort
from controlplane.waiting import PATIENCE
from support.installed import ACCOUNT, text_of
from support.real_upgrade import site

from renderer.cli.program import run

NAMESPACE, NAME = ACCOUNT
DEPLOYMENT = f"{NAME}-controller-manager"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Managers:
    """The pods of the Deployment: bound and ready by hand."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def pods(self) -> list[Any]:
        selector = f"labelSelector=control-plane%3Dcontroller-manager,app.kubernetes.io/name%3D{NAME}"
        found: list[Any] = self._plane.api.get(f"{PODS}?{selector}")["items"]
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def nodes(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self.pods()}

    def allowed(self) -> int:
        path = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/{DEPLOYMENT}"
        return int(self._plane.api.get(path).get("status", {}).get("disruptionsAllowed", 0))

    def run_on(self, nodes: set[str]) -> None:
        """Both pods are there, bound to these nodes as evenly as may be, and ready."""
        waiting.until("two pods", lambda: len(self.pods()) == 2)
        for name, node in self.nodes().items():
            if not node:
                used = list(self.nodes().values())
                self._bind(name, min(sorted(nodes), key=used.count))

    def _bind(self, name: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self._plane.api.create(f"{PODS}/{name}/binding", binding)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self._plane.api.patch(f"{PODS}/{name}/status", {"status": ready})

    def evict(self, *, on: str) -> int:
        """The API server's answer; an evicted pod is gone at once, as no kubelet waits for its end."""
        name = next(name for name, node in self.nodes().items() if node == on)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            self._plane.api.create(f"{PODS}/{name}/eviction", eviction)
        except ApiError as error:
            return error.code
        self._remove(name)
        return 201

    def leave(self, node: str) -> None:
        self._remove(next(name for name, found in self.nodes().items() if found == node))

    def _remove(self, name: str) -> None:
        with suppress(ApiError):  # it is gone already
            self._plane.api.send("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})


@pytest.fixture
def plane(wiped_control_plane: ControlPlane) -> ControlPlane:
    for name in ("one", "two"):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        wiped_control_plane.api.create("/api/v1/nodes", node)
    return wiped_control_plane


def install(plane: ControlPlane, *words: str) -> int:
    return int(run(["upgradeplan", "install", *words, "--kubeconfig", str(plane.kubeconfig)]))


def test_each_node_is_drained_in_turn_and_one_manager_is_always_ready(plane: ControlPlane) -> None:
    """Through the Eviction API, with the real controller of disruption budgets."""
    assert install(plane) == 0
    managers = Managers(plane)
    managers.run_on({"one", "two"})
    for drained, other in (("one", "two"), ("two", "one")):
        waiting.until("the budget allows an eviction", lambda: managers.allowed() == 1)
        assert managers.evict(on=drained) == 201
        assert managers.evict(on=other) == 429
        managers.run_on({other})  # where it can be started again, since the drained node is cordoned
        assert set(managers.nodes().values()) == {other}
        waiting.until("the budget allows an eviction", lambda: managers.allowed() == 1)
        managers.leave(other)
        managers.run_on({"one", "two"})


def test_install_waits_until_the_manager_is_ready(plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    started = Event()

    def kubelet() -> None:
        started.set()
        Managers(plane).run_on({"one", "two"})

    worker = Thread(target=kubelet, daemon=True)
    assert install(plane, "--wait", "--timeout", "1") == 1
    said = capsys.readouterr()
    assert f"Deployment {NAMESPACE}/{DEPLOYMENT} is not ready after 1 seconds" in said.err
    assert f"remedy: see `kubectl -n {NAMESPACE} describe deployment {DEPLOYMENT}`" in said.err
    worker.start()
    started.wait()
    assert install(plane, "--wait", "--timeout", "60") == 0
    worker.join()
    assert f"Deployment {NAMESPACE}/{DEPLOYMENT} is ready" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------ two processes


class Process:
    """`run` as a pod runs it, with metrics on loopback."""

    def __init__(self, folder: Path, kubeconfig: Path, port: int, name: str) -> None:
        self.log, self.journal, self.port = folder / f"{name}.log", folder / f"{name}.journal", port
        words = [*("--kubeconfig", str(kubeconfig)), *("--namespace", NAMESPACE), *("--journal", str(self.journal))]
        served = ["--health-address=", "--webhook-address=", f"--metrics-address=127.0.0.1:{port}"]
        command = [sys.executable, "-m", "renderer.cli", "run", "--log-format=json", *words, *served]
        with self.log.open("wb") as log:
            self.child = subprocess.Popen(command, stderr=log)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def said(self, what: str) -> bool:
        return any(line["msg"] == what for line in self.lines())

    def rounds(self) -> int:
        return self.journal.read_text(encoding="utf-8").count("\n") if self.journal.exists() else 0

    def metrics(self, token: str) -> tuple[int, str]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=context)
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@contextmanager
def processes(plane: ControlPlane, folder: Path) -> Iterator[tuple[Process, Process]]:
    """The first one leads, the second one stands by."""
    plane.kubectl("apply", "-f", "-", stdin=text_of("metrics"))
    kubeconfig = plane.service_account_kubeconfig(*ACCOUNT)
    with ExitStack() as open_:
        found = []
        for name, state in (("first", "leading"), ("second", "standing by")):
            reserved = ReservedPort()
            reserved.__exit__()
            made = Process(folder, kubeconfig, reserved.number, name)
            open_.callback(made.child.wait)
            open_.callback(made.child.kill)
            waiting.until(f"the {name} one is {state}", lambda made=made, state=state: made.said(state))  # type: ignore[misc]
            found.append(made)
        first, second = found
        yield first, second


LEASE = "/apis/coordination.k8s.io/v1/namespaces/harvester-system/leases/3509939c.harvesterhci.io"
NO_KUBELET = "management.harvesterhci.io/skip-garbage-collection-threshold-check=true"
"""Nobody answers for the node's kubelet here, so its disk is not known."""


@pytest.mark.full(
    "a rolling update of two processes; the loop that gives its Lease up (test_commands_real.py), and two loops that "
    "hand it over on the embedded cluster (test_loop_rivals.py), stand for it"
)
def test_a_rolling_update_hands_the_lease_over_and_no_round_is_made_by_both(
    wiped_control_plane: ControlPlane, tmp_path: Path
) -> None:
    plane = wiped_control_plane
    with site(plane, "single-node") as place, processes(plane, tmp_path) as (first, second):
        waiting.until("a round", lambda: first.rounds() > 2)
        plane.kubectl("annotate", "upgradeplan", place.name, NO_KUBELET)
        waiting.until("kubectl shows its events", lambda: "PhaseTransition" in events_of(plane, place.name))
        assert_metrics_are_for_who_may_read_them(plane, first, second)
        assert second.rounds() == 0
        held_by = plane.api.get(LEASE)["spec"]["holderIdentity"]
        assert held_by
        first.child.send_signal(signal.SIGTERM)
        assert first.child.wait(timeout=PATIENCE) == 0
        at_the_end = first.rounds()
        assert plane.api.get(LEASE)["spec"].get("holderIdentity") != held_by, "it is given up, so that nobody waits"
        waiting.until("the second one leads", lambda: second.said("leading"))
        waiting.until("a round of the second", lambda: second.rounds() > 0)
        assert first.rounds() == at_the_end


def events_of(plane: ControlPlane, plan: str) -> str:
    return plane.kubectl("describe", "upgradeplan", plan).stdout.partition("Events:")[2]


def assert_metrics_are_for_who_may_read_them(plane: ControlPlane, first: Process, second: Process) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prometheus", "namespace": NAMESPACE}}
    plane.api.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
    token = plane.service_account_token(NAMESPACE, "prometheus")
    assert first.metrics("")[0] == 401
    assert first.metrics("nonsense")[0] == 401
    assert second.metrics(token)[0] == 403
    role = ("--clusterrole", f"{NAME}-metrics-reader", "--serviceaccount", f"{NAMESPACE}:prometheus")
    plane.kubectl("create", "clusterrolebinding", "reads-metrics", *role)
    waiting.until("it may", lambda: first.metrics(token)[0] == 200)
    renewed = 'upgradeplan_api_requests_total{code="200",kind="Lease",verb="get"}'  # not when it was first taken
    waiting.until("the Lease is renewed", lambda: renewed in first.metrics(token)[1])
    text = first.metrics(token)[1]
    assert "upgradeplan_leader 1.0\n" in text
    assert 'upgradeplan_running{plan="' in text
    if (tool := promtool.find()) is not None:
        done = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
