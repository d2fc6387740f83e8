"""The commands that write, as processes of their own on a real API server: one phase, a whole plan, the loop, and what
an operator says to a plan that runs. Nobody plays Harvester here, so plans stand where a test has put them.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.live import BEGUN, IMAGES, PLANS, seed_cluster, without_disk_check
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from theatre import ROOT, inputs_of

EXAMPLE = ROOT / "examples" / "three-node"
PLAN = "hvst-upgrade-864fh"
IMAGE = f"VirtualMachineImage harvester-system/{PLAN}-iso"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/harvester-system/leases/3509939c.harvesterhci.io"

SERVER_VERSION = "/apis/harvesterhci.io/v1beta1/settings/server-version"
REMOVAL = f"/apis/upgrade.cattle.io/v1/namespaces/cattle-system/plans/{PLAN}-skip-manifest-remove"

pytestmark = pytest.mark.controlplane


class Site:
    """The three-node cluster with its plan in it, and our program beside it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.target = ("--kubeconfig", str(plane.kubeconfig))

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "renderer.cli", *words, *self.target]

    def run(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.argv(*words), capture_output=True, text=True, cwd=ROOT, check=False, timeout=60, **more
        )
        assert "Traceback" not in done.stderr
        return done

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            self.argv(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def plan(self) -> Any:
        return self.plane.api.get(f"{PLANS}/{PLAN}")

    def stands(self, **status: Any) -> None:
        release = inputs_of("three-node").release
        assert release is not None
        known = {**BEGUN, "releaseMetadata": dict(release.body), **status}
        self.plane.api.patch(f"{PLANS}/{PLAN}/status", {"status": known})

    def charts_are_let_go(self) -> None:
        """What the last step waits for, whose other half was done before we took over."""
        until("the packaged charts are let go", lambda: self.plane.api.get(REMOVAL.rpartition("/")[0])["items"])
        said = {"type": "Complete", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
        self.plane.api.patch(f"{REMOVAL}/status", {"status": {"conditions": [said]}})

    def images(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.plane.api.get(IMAGES)["items"]]

    def import_says(self, kind: str) -> None:
        said = {"type": kind, "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
        self.plane.api.patch(f"{IMAGES}/{PLAN}-iso", {"status": {"progress": 100, "conditions": [said]}})


@pytest.fixture
def site(wiped_control_plane: ControlPlane) -> Site:
    seed_cluster(wiped_control_plane, EXAMPLE)
    wiped_control_plane.api.create(PLANS, without_disk_check(EXAMPLE))
    return Site(wiped_control_plane)


# ------------------------------------------------------------------------------------------------------------ one phase


def one_phase(*more: str) -> tuple[str, ...]:
    return ("apply", "--phase", "ISODownload", str(EXAMPLE), *more)


def test_nobody_has_confirmed_the_cluster(site: Site) -> None:
    done = site.run(*one_phase(), stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"would write to context test at {site.plane.server}, which nobody has confirmed" in done.stderr
    assert site.images() == []


def test_a_phase_is_applied_waited_for_and_not_applied_twice(site: Site) -> None:
    with site.started(*one_phase("--yes")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{IMAGE}: created\n"
        assert f"ISODownload/Image waits: {IMAGE}: " in process.stdout.readline()
        site.import_says("Imported")
        assert process.stdout.read() == "ISODownload: done\n"
        assert process.wait() == 0
    again = site.run(*one_phase("--yes"))
    assert (again.returncode, again.stdout) == (0, f"{IMAGE}: unchanged\nISODownload: done\n")


def test_a_gate_that_fails_ends_it(site: Site) -> None:
    with site.started(*one_phase("--yes")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        site.import_says("RetryLimitExceeded")
        assert process.stdout.read().endswith("ISODownload: failed\n")
        assert process.wait() == 1


def test_ctrl_c_says_what_was_applied_and_how_to_go_on(site: Site) -> None:
    with site.started(*one_phase("--yes")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == f"stopped; applied so far: {IMAGE}; run the same command again to go on\n"
        assert process.wait() == 1


def test_a_phase_that_only_the_loop_can_take_is_refused_before_its_first_write(site: Site) -> None:
    site.stands()
    done = site.run("apply", "--phase", "NodeUpgrade", str(EXAMPLE), "--yes")
    assert done.returncode == 2
    assert "answers to what happens in the cluster, which only the loop can" in done.stderr


def test_a_plan_that_is_not_there_is_told(site: Site) -> None:
    site.plane.api.delete(f"{PLANS}/{PLAN}")
    done = site.run(*one_phase("--yes"))
    assert done.returncode == 2
    assert f"UpgradePlan {PLAN} is not in the cluster\n    remedy: create it first" in done.stderr


# -------------------------------------------------------------------------------------------------- without permission


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (("diff",), {"upgradeplans", "nodes", "machines", "secrets", "settings"}),
        (("diff", str(EXAMPLE)), {"upgradeplans", "nodes", "machines", "secrets", "settings", "versions"}),
        (one_phase("--yes"), {"upgradeplans", "nodes", "machines", "secrets", "settings", "versions"}),
        (("facts",), {"upgradeplans", "nodes", "secrets", "addons", "kubevirts", "virtualmachines", "volumes"}),
    ],
    ids=["diff", "diff with files", "one phase", "facts"],
)
def test_whoever_may_read_nothing_is_told_every_rule_at_once(
    site: Site, words: tuple[str, ...], kinds: set[str], tmp_path: Path
) -> None:
    account = site.plane.service_account_kubeconfig("default", "nobody")
    site.target = ("--kubeconfig", str(account), *(("--output-dir", str(tmp_path)) if words == ("facts",) else ()))
    done = site.run(*words)
    assert done.returncode == 3
    rules = [json.loads(text) for text in re.findall(r"remedy: add to a .*: (\{.*\})", done.stderr)]
    assert done.stderr.count("cannot be read") == len(rules)
    assert kinds <= {resource for rule in rules for resource in rule["resources"]}
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------------------- a whole plan


def test_a_plan_is_created_driven_to_its_end_and_its_lease_given_back(site: Site) -> None:
    site.stands(currentPhase="CleanedUp")
    with site.started("apply", str(EXAMPLE), "--yes") as process:
        site.charts_are_let_go()
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    assert out.startswith(f"UpgradePlan {PLAN} exists, and goes on from its status\n")
    assert out.endswith(f"{PLAN}: Succeeded\n")
    assert site.plane.api.get(LEASE)["spec"]["holderIdentity"] == ""


def test_a_failed_plan_is_the_answer_no(site: Site) -> None:
    site.stands(nodeUpgradeStatuses={"charlie-1-tink-system": {"state": "PreDrainFailed"}})
    with site.started("apply", "--plan", PLAN, "--yes") as process:
        site.charts_are_let_go()
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, out.splitlines()[-1]) == (1, f"{PLAN}: Failed")


def test_while_another_loop_leads_it_says_so_and_how_to_go_on(site: Site) -> None:
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE.rpartition("/")[2]}}
    site.plane.api.create(LEASE.rpartition("/")[0], {**lease, "spec": spec})
    with site.started("apply", "--plan", PLAN, "--yes") as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("standing by: somebody leads\n")
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == f"stopped; `upgradeplan apply --plan {PLAN}` goes on from where it is\n"
        assert process.wait() == 1
    assert "finalizers" not in site.plan()["metadata"]


# ------------------------------------------------------------------------------------------------------------- the loop


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answer(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_the_loop_answers_the_kubelet_leads_works_and_gives_the_lease_up(site: Site, tmp_path: Path) -> None:
    port, journal = free_port(), tmp_path / "journal.jsonl"
    with site.started("run", "--health-address", f"127.0.0.1:{port}", "--journal", str(journal)) as process:
        until("it is ready", lambda: answer(port, "/readyz") == 200)
        assert (answer(port, "/healthz"), answer(port, "/else")) == (200, 404)
        until("the plan has begun", lambda: site.plan().get("status", {}).get("currentPhase") == "Initialized")
        assert site.plane.api.get(LEASE)["spec"]["holderIdentity"] != ""
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert process.wait() == 0
    assert lines[0]["msg"] == "leading"
    assert {"msg", "time", "plan", "phase", "did", "problems", "waits"} == set(lines[1])
    assert site.plane.api.get(LEASE)["spec"]["holderIdentity"] == ""
    assert site.run("explain", "--replay", str(journal)).returncode == 0


@pytest.mark.parametrize("address", ["x", "127.0.0.1:99999", "taken"])
def test_an_address_that_cannot_be_served_is_told(site: Site, address: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = f"127.0.0.1:{taken.getsockname()[1]}" if address == "taken" else address
        done = site.run("run", "--health-address", given)
    assert done.returncode == 2
    assert done.stderr.startswith(f"--health-address {given}: ")


def test_a_cluster_that_is_too_old_is_refused_before_anything_is_written(site: Site) -> None:
    site.plane.api.patch(SERVER_VERSION, {"value": "v1.7.0"})
    site.plane.api.delete(f"{PLANS}/{PLAN}")
    for words in (("run", "--health-address", ""), ("apply", str(EXAMPLE), "--yes")):
        done = site.run(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Setting server-version: the cluster runs v1.7.0, and only v1.7.1 and newer ")
    assert site.plane.api.get(PLANS)["items"] == []
    assert site.plane.api.get(LEASE.rpartition("/")[0])["items"] == []


# ---------------------------------------------------------------------------------------------- what an operator says


def test_a_node_is_held_and_let_go(site: Site) -> None:
    node = "charlie-2-tink-system"
    assert site.run("pause", node).stdout == f"{PLAN}: {node} is held before its upgrade\n"
    assert site.plan()["spec"]["nodeUpgradeOption"] == {"pauseNodes": [node]}
    assert site.run("pause", node).stdout == f"{PLAN}: {node} is held already\n"
    assert site.run("resume", node).stdout == f"{PLAN}: {node} is free to go\n"
    assert site.plan()["spec"]["nodeUpgradeOption"] == {"pauseNodes": []}
    assert site.run("resume", node).stdout == f"{PLAN}: {node} is not held\n"
    site.stands(nodeUpgradeStatuses={node: {"state": "PreDraining"}})
    begun = site.run("pause", node)
    assert begun.returncode == 1
    assert f"{node} has begun its upgrade (PreDraining), which is not stopped half-way" in begun.stderr
    unknown = site.run("pause", "charlie-9")
    assert unknown.returncode == 2
    assert "there is no Node charlie-9\n    remedy: choose one of: charlie-1-tink-system, " in unknown.stderr


def test_what_a_failed_plan_has_on_loan_is_told_before_it_is_taken_back(site: Site) -> None:
    cluster = {
        "apiVersion": "provisioning.cattle.io/v1",
        "kind": "Cluster",
        "namespace": "fleet-local",
        "name": "local",
    }
    hooks = {"path": "/spec/rkeConfig/upgradeStrategy", "absent": True, "taken": "2026-01-01T00:00:00Z"}
    progress = {"type": "Progressing", "status": "False", "reason": "Failed", "message": "it failed"}
    site.stands(
        currentPhase="Failed",
        conditions=[{**progress, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        borrowed=[{"phase": "NodeUpgrade", "step": "Provision", **cluster, **hooks}],
    )
    asked = site.run("abort", input="n\n")
    assert asked.returncode == 1
    assert asked.stdout.startswith(
        "goes back: Cluster fleet-local/local spec.rkeConfig.upgradeStrategy, to absent\n"
        "warning: nodes that are not upgraded yet are no longer held: Rancher goes on with them without our hooks\n"
    )
    unanswered = site.run("abort", input="")
    assert unanswered.returncode == 1
    assert "nothing was changed\nthe input ended before there was an answer\n    remedy: " in unanswered.stderr
    assert "deletionTimestamp" not in site.plan()["metadata"]


def test_a_plan_is_taken_back_unless_its_phase_forbids_it(site: Site) -> None:
    site.stands()
    refused = site.run("abort", "--yes")
    assert refused.returncode == 1
    assert f"{PLAN} is in phase NodeUpgrade, which cannot be taken back half-way" in refused.stderr
    assert "deletionTimestamp" not in site.plan()["metadata"]
    site.stands(currentPhase="ImagePreloading")
    done = site.run("abort", "--yes")
    assert (done.returncode, done.stdout.startswith(f"{PLAN} is being taken back")) == (0, True)
    assert site.plane.api.get(PLANS)["items"] == []  # nobody holds it
