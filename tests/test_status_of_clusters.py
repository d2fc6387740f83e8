"""`status` of many clusters: one table, side by side, in which a cluster that is away is a row."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from controlplane.waiting import PATIENCE
from support.answer_schemas import validator
from support.rehearsals import template_set
from support.rendered_plans import templates
from test_cli import Shell, shell

from reconcile.cli.connect import Connection, dial_of
from reconcile.observe.fetching import fetch_all, in_time
from reconcile.observe.patience import Patience
from reconcile.observe.readings import Readings
from reconcile.probes.look import CERTIFICATES, HOSTS
from reconcile.report.plans_of_clusters import ClusterPlans, plans_of_clusters, table_of_clusters
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.catalog.load import load_catalog
from renderer.errors import Problem
from renderer.model.phase import Fetch, FetchAs
from renderer.validation import document_problems

__all__ = ["shell"]

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
STATES = load_catalog(templates(), document_problems).node_states
AWAY = "https://127.0.0.1:1"


def plan(name: str, phase: str = "", **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": "2026-11-29T08:00:00Z"}
    body = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": metadata}
    return {**body, "spec": {"version": "v1.8.0"}, "status": {"currentPhase": phase, **status}}


RUNNING = plan(
    "v1-8-0",
    "NodeUpgrading",
    phaseTransitionTimestamps=[
        {"phase": "ClusterUpgraded", "phaseTransitionTimestamp": "2026-11-29T11:00:00Z"},
        {"phase": "NodeUpgrading", "phaseTransitionTimestamp": "2026-11-29T11:15:00Z"},
    ],
    nodeUpgradeStatuses={"a": {"state": "PostDrained"}, "b": {"state": "PreDraining"}},
    conditions=[{"type": "Progressing", "status": "True", "message": "waiting for node b"}],
)


def test_each_plan_is_a_row_and_so_is_a_cluster_that_is_away() -> None:
    found = [
        ClusterPlans(cluster="lab", plans=(RUNNING, plan("older", "Failed"))),
        ClusterPlans(cluster="north"),
        ClusterPlans(cluster="south", problem=Problem(reason="Away", message="the API server is unavailable: refused")),
    ]
    model = plans_of_clusters(found, STATES, NOW, None)
    assert (model["failed"], model["away"]) == (1, 1)
    assert list(table_of_clusters(model))[1:] == [
        ("lab", "older", "Failed", "", "", ""),
        ("lab", "v1-8-0", "NodeUpgrading", "1/2", "45m", "waiting for node b"),
        ("north", "-", "", "", "", ""),
        ("south", "?", "Unknown", "", "", "the API server is unavailable: refused"),
    ]


def test_a_name_leaves_out_other_plans_and_no_cluster() -> None:
    found = [ClusterPlans(cluster="lab", plans=(RUNNING, plan("older", "Failed"))), ClusterPlans(cluster="north")]
    model = plans_of_clusters(found, STATES, NOW, "v1-8-0")
    assert [[item["plan"] for item in cluster["plans"]] for cluster in model["clusters"]] == [["v1-8-0"], []]
    assert model["failed"] == 0


def config(servers: dict[str, str]) -> str:
    """A kubeconfig with a context for each server, the first one current."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": next(iter(servers)),
            "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in servers],
            "clusters": [{"name": name, "cluster": {"server": server}} for name, server in servers.items()],
            "users": [{"name": "u", "user": {"token": "none"}}],
        }
    )


@pytest.fixture
def server() -> Iterator[str]:
    """Answers each list of plans only once two have asked for one."""
    both = threading.Barrier(2)

    class PlanLists(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            both.wait(PATIENCE)
            answer = {"kind": "UpgradePlanList", "metadata": {"resourceVersion": "1"}, "items": [RUNNING]}
            data = json.dumps({**answer, "apiVersion": RUNNING["apiVersion"]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    found = ThreadingHTTPServer(("127.0.0.1", 0), PlanLists)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()


def test_all_contexts_are_asked_side_by_side(shell: Shell, server: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(config({"lab": server, "away": AWAY, "north": server}))
    answer = shell("status", "--contexts", "--kubeconfig", str(file), "-o", "json")
    model = json.loads(answer.out)
    validator("status").validate(model)
    assert [(item["cluster"], len(item["plans"]), "problem" in item) for item in model["clusters"]] == [
        ("lab", 1, False),
        ("away", 0, True),
        ("north", 1, False),
    ]
    assert (answer.status, model["clusters"][1]["problem"]["reason"]) == (3, "Away")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield f"http://127.0.0.1:{found.getsockname()[1]}"


@pytest.mark.slow
def test_clusters_that_accept_and_never_answer_hold_nobody_up(
    shell: Shell, server: str, silent: str, tmp_path: Path
) -> None:
    """Twenty are silent, which would take 60 s each; one refuses, two answer."""
    file = tmp_path / "config"
    names = {f"silent-{number}": silent for number in range(20)}
    file.write_text(config({"lab": server, **names, "away": AWAY, "north": server}))
    began = time.monotonic()
    answer = shell("status", "--contexts", "--kubeconfig", str(file), "-o", "json")
    assert time.monotonic() - began < 20
    found = {item["cluster"]: item for item in json.loads(answer.out)["clusters"]}
    assert [name for name, item in found.items() if "problem" not in item] == ["lab", "north"]
    problem = found["silent-0"]["problem"]
    assert problem["message"] == "the API server is unavailable: no answer within 1.5 s"
    assert problem["remedy"] == "to wait longer, query this cluster alone with status --watch"
    assert answer.status == 3


@pytest.mark.slow
def test_one_cluster_that_accepts_and_never_answers_is_said_to_be_away(
    shell: Shell, silent: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(config({"lab": silent}))
    began = time.monotonic()
    answer = shell("status", "--kubeconfig", str(file))
    assert time.monotonic() - began < 20
    assert (answer.status, "no answer within 1.5 s" in answer.err) == (3, True)


@pytest.mark.slow
def test_all_who_are_silent_share_the_same_time(silent: str) -> None:
    """Certificates of API servers and the repository: one accepts and is silent, one refuses, one never comes."""
    port, released = int(silent.rpartition(":")[2]), threading.Event()
    slices = [
        {"endpoints": [{"addresses": ["127.0.0.1"]}], "ports": [{"port": port}]},
        {"endpoints": [{"addresses": ["localhost"]}], "ports": [{"port": 1}]},
    ]
    cluster = EmbeddedCluster(SimulatedClock(NOW)).client()
    connection = Connection(cluster=cluster, context="c", server="https://127.0.0.1:1")  # type: ignore[arg-type]
    patience = Patience(0.5, time.monotonic)
    readings = Readings(cluster, template_set().catalog.kinds, lambda: NOW, dial_of(connection)).hurried(patience)

    def never(fetch: Fetch) -> bytes:
        released.wait(PATIENCE)
        return b""

    began = time.monotonic()
    certificates = readings.read(CERTIFICATES, slices)
    hosts = readings.read(HOSTS, [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}])
    wanted = Fetch(name="x", namespace="n", service="s", port=80, path="/x", read_as=FetchAs.LINES)
    fetched = fetch_all([wanted], in_time(never, patience))
    took = time.monotonic() - began
    released.set()
    assert took < 5
    why = {name: getattr(answer, "why", answer) for name, answer in certificates.items()}
    assert why["127.0.0.1"] == "no answer within 0.5 s"
    assert "refused" in str(why["localhost"])
    assert "no answer within 0.5 s" in fetched.missing["x"].why
    assert "it has not been checked" in getattr(hosts["n1"], "why", ""), "the API server has that, and it answers"


def test_a_folder_of_kubeconfigs_names_clusters_by_its_files(shell: Shell, server: str, tmp_path: Path) -> None:
    for name, address in (("lab", server), ("north", server), ("south", AWAY)):
        (tmp_path / f"{name}.yaml").write_text(config({"default": address}))
    (tmp_path / "broken.yaml").write_text("contexts: 1")
    answer = shell("status", "--kubeconfigs", str(tmp_path))
    assert answer.status == 3
    rows = [line.split()[:3] for line in answer.out.splitlines()]
    assert rows[:5] == [
        ["CLUSTER", "PLAN", "PHASE"],
        ["broken", "?", "Unknown"],
        ["lab", "v1-8-0", "NodeUpgrading"],
        ["north", "v1-8-0", "NodeUpgrading"],
        ["south", "?", "Unknown"],
    ]
    assert answer.out.splitlines()[-1] == "4 clusters: 2 could not be queried"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--contexts", "--kubeconfigs", "x"), "in two ways"),
        (("--contexts", "--watch"), "cannot be combined with --watch"),
        (("--contexts", "--context", "a"), "cannot be combined with --context"),
        (("--kubeconfigs", "x", "--kubeconfig", "a"), "cannot be combined with --kubeconfig"),
        (("--kubeconfigs", "nothing"), "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(shell: Shell, words: tuple[str, ...], text: str) -> None:
    answer = shell("status", *words)
    assert (answer.status, text in answer.err) == (2, True)
