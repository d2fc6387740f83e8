"""The commands that write, on a real API server: a whole plan, the loop, and what an operator
says to a plan that runs. Nobody plays Harvester here, so plans stand where a test has put them.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from bench.live import PLANS, without_disk_check
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE, until
from support.real_commands import EXAMPLE, PLAN, CommandSite, SeededCluster
from support.rehearsals import template_set

from renderer.assemble import assembly_of
from renderer.cli.completion import kubectl_candidates
from renderer.cli.program import run
from renderer.files.inputs import read_inputs
from renderer.render.seal import APPROVED

CERTIFICATE = "/api/v1/namespaces/harvester-system/secrets/harvester-upgrade-manager-webhook-certificate"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/harvester-system/leases/3509939c.harvesterhci.io"

SERVER_VERSION = "/apis/harvesterhci.io/v1beta1/settings/server-version"

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]
FAILING = pytest.mark.full("another loop's plan that fails; one that succeeds, and one of our own that fails, stay")


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> SeededCluster:
    return SeededCluster(control_plane)


@pytest.fixture
def site(cluster: SeededCluster) -> CommandSite:
    return cluster.site()


@pytest.fixture(scope="module")
def seen_only(cluster: SeededCluster) -> CommandSite:
    """One for all that change nothing; these stand first, before the first one that is wiped for another test."""
    return cluster.site()


def test_plans_and_nodes_are_completed(seen_only: CommandSite) -> None:
    access = ["--kubeconfig", str(seen_only.plane.kubeconfig)]
    assert kubectl_candidates(["pause", *access, "charlie-2"]).splitlines() == ["charlie-2-tink-system", ":4"]
    assert kubectl_candidates(["status", *access, "hv"]).splitlines() == ["hvst-upgrade-864fh", ":4"]
    for command in ("approve", "report", "verify"):  # where files may stand as well
        assert kubectl_candidates([command, *access, "hv"]).splitlines() == ["hvst-upgrade-864fh", ":0"]


# -------------------------------------------------------------------------------------------------- without permission


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (("diff",), {"upgradeplans", "nodes", "machines", "secrets", "settings"}),
        (("diff", str(EXAMPLE)), {"upgradeplans", "nodes", "machines", "secrets", "settings", "versions"}),
        (
            ("apply", "--phase", "ISODownload", str(EXAMPLE), "--yes"),
            {"upgradeplans", "nodes", "machines", "secrets", "settings", "versions"},
        ),
        (("facts",), {"upgradeplans", "nodes", "secrets", "addons", "kubevirts", "virtualmachines", "volumes"}),
    ],
    ids=["diff", "diff with files", "one phase", "facts"],
)
def test_whoever_may_read_nothing_is_told_every_rule_at_once(
    seen_only: CommandSite, words: tuple[str, ...], kinds: set[str], tmp_path: Path
) -> None:
    account = seen_only.plane.service_account_kubeconfig("default", "nobody")
    folder = ("--output-dir", str(tmp_path)) if words == ("facts",) else ()
    done = CommandSite(seen_only.plane, ("--kubeconfig", str(account), *folder)).run(*words)
    assert done.returncode == 3
    rules = [json.loads(text) for text in re.findall(r"remedy: add to a .*: (\{.*\})", done.stderr)]
    assert done.stderr.count("cannot be read") == len(rules)
    assert kinds <= {resource for rule in rules for resource in rule["resources"]}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--health-address", "--webhook-address"])
@pytest.mark.parametrize("address", ["x", "127.0.0.1:99999", "taken"])
def test_an_address_that_cannot_be_served_is_told(seen_only: CommandSite, address: str, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = f"127.0.0.1:{taken.getsockname()[1]}" if address == "taken" else address
        done = seen_only.run("run", "--health-address", "", option, given)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{option} {given}: ")


# --------------------------------------------------------------------------------------------------------- a whole plan


def test_a_plan_is_created_driven_to_its_end_and_its_lease_given_back(site: CommandSite) -> None:
    site.stands(currentPhase="CleanedUp")
    with site.started("apply", str(EXAMPLE), "--yes") as process:
        site.charts_are_let_go()
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert out.startswith(f"UpgradePlan {PLAN} already exists; continuing from its status\n")
    assert out.endswith(f"{PLAN}: Succeeded\n")
    assert site.plane.api.get(LEASE)["spec"]["holderIdentity"] == ""


def test_what_cannot_be_run_is_refused_before_anything_is_written(site: CommandSite) -> None:
    """Nobody leads: a plan that is not there would be waited for without an end."""
    done = site.answered("", "apply", "--plan", "hvst-upgrade-864fi", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"UpgradePlan hvst-upgrade-864fi not found; did you mean '{PLAN}'?\n")
    site.plane.api.delete(f"{PLANS}/{PLAN}")
    done = site.answered("", "apply", str(EXAMPLE), "--yes", "--journal", "no-folder/journal")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("--journal: no-folder/journal cannot be written: No such file or directory\n")
    assert site.plane.api.get(PLANS)["items"] == []


def test_a_failed_plan_is_the_answer_no(site: CommandSite) -> None:
    site.stands(nodeUpgradeStatuses={"charlie-1-tink-system": {"state": "PreDrainFailed"}})
    with site.started("apply", "--plan", PLAN, "--yes") as process:
        site.charts_are_let_go()
        out, _ = process.communicate(timeout=PATIENCE)
    why = "failed before this manager took over"
    assert out.endswith(f"\n{PLAN}: Failed: {why}\n  next: upgradeplan explain {PLAN}\n")
    assert process.returncode == 1


def led_by_somebody(site: CommandSite) -> None:
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE.rpartition("/")[2]}}
    site.plane.api.create(LEASE.rpartition("/")[0], {**lease, "spec": spec})


def test_while_another_loop_leads_it_says_so_and_how_to_go_on(site: CommandSite) -> None:
    led_by_somebody(site)
    with site.started("apply", "--plan", PLAN, "--yes") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.endswith("somebody holds Lease harvester-system/3509939c.harvesterhci.io; showing its progress\n")
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().endswith(f"stopped; to continue, run: upgradeplan apply --plan {PLAN}\n")
        assert process.wait() == 130
    assert "finalizers" not in site.plan()["metadata"]


def test_whoever_follows_a_plan_may_stop_at_any_time(site: CommandSite) -> None:
    with site.started("status", "--watch") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"{PLAN} to v1.8.0-rc1: ")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        assert (process.returncode, said) == (130, "interrupted\n")


@pytest.mark.parametrize(("phase", "status"), [("Succeeded", 0), pytest.param("Failed", 1, marks=FAILING)])
def test_the_plan_that_another_loop_runs_is_followed_to_its_end(site: CommandSite, phase: str, status: int) -> None:
    led_by_somebody(site)
    site.stands(currentPhase="ImagePreloading")
    with site.started("apply", "--plan", PLAN, "--yes") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any(line.endswith(" ImagePreloading\n") for line in lines)
        ended = {"type": "Progressing", "status": "False", "reason": phase, "message": ""}
        site.stands(currentPhase=phase, conditions=[{**ended, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        last = [f"{PLAN}: {phase}\n", *([f"  next: upgradeplan explain {PLAN}\n"] if phase == "Failed" else [])]
        assert [*lines][-len(last) :] == last
        assert process.wait() == status


def test_a_plan_with_a_generated_name_is_created_once_and_followed(site: CommandSite, tmp_path: Path) -> None:
    site.plane.api.delete(f"{PLANS}/{PLAN}")
    led_by_somebody(site)
    body = without_disk_check(EXAMPLE)
    body["metadata"] = {"generateName": "up-", "annotations": body["metadata"]["annotations"]}
    file = tmp_path / "plan.yaml"
    file.write_text(json.dumps(body), encoding="utf-8")
    first = started_and_stopped(site, "apply", str(file), "--yes")
    (made,) = site.plane.api.get(PLANS)["items"]
    name = made["metadata"]["name"]
    assert (name.startswith("up-"), made["spec"]) == (True, body["spec"])
    assert first == [f"created UpgradePlan {name}", f"stopped; to continue, run: upgradeplan apply --plan {name}"]
    again = started_and_stopped(site, "apply", str(file), "--yes")
    assert again[0] == f"UpgradePlan {name} has not ended; continuing from its status"
    assert len(site.plane.api.get(PLANS)["items"]) == 1


def started_and_stopped(site: CommandSite, *words: str) -> list[str]:
    """The first and the last line of a command that is stopped once it shows the progress of another loop."""
    with site.started(*words) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if "showing its progress" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    return [lines[0], lines[-1]]


def test_a_plan_that_is_deleted_while_another_loop_leads_ends_the_waiting(site: CommandSite) -> None:
    led_by_somebody(site)
    with site.started("apply", "--plan", PLAN, "--yes") as process:
        assert process.stdout is not None
        assert "showing its progress" in process.stdout.readline()
        site.plane.api.delete(f"{PLANS}/{PLAN}")
        assert process.stdout.read().endswith(f"{PLAN}: gone\n")
        assert process.wait() == 1


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


def test_the_loop_answers_the_kubelet_leads_works_and_gives_the_lease_up(site: CommandSite, tmp_path: Path) -> None:
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
    assert {"msg": "phase", "level": "info", "plan": PLAN}.items() <= lines[1].items()
    assert {"applied", "finalizer", "waiting"} & {line["msg"] for line in lines}
    assert site.plane.api.get(LEASE)["spec"]["holderIdentity"] == ""
    assert run(["upgradeplan", "explain", "--replay", str(journal)]) == 0, "a file, and no cluster"


def test_a_loop_whose_webhook_has_no_certificate_is_not_ready(site: CommandSite) -> None:
    """It works all the same: only its Service leaves it out."""
    metadata = {"name": CERTIFICATE.rpartition("/")[2], "namespace": "harvester-system"}
    somebodys = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"tls.crt": "none"}}
    site.plane.api.create(CERTIFICATE.rpartition("/")[0], somebodys)
    port, webhook = free_port(), free_port()
    addresses = ("--health-address", f"127.0.0.1:{port}", "--webhook-address", f"127.0.0.1:{webhook}")
    with site.started("run", *addresses) as process:
        until("the plan has begun", lambda: site.plan().get("status", {}).get("currentPhase"))
        assert (answer(port, "/readyz"), answer(port, "/healthz")) == (503, 200)
        site.plane.api.delete(CERTIFICATE)
        until("it is ready", lambda: answer(port, "/readyz") == 200)
        made = base64.b64decode(site.plane.api.get(CERTIFICATE)["data"]["tls.crt"]).decode()
        assert ssl.get_server_certificate(("127.0.0.1", webhook)) in made
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    site.plane.api.delete(CERTIFICATE)


def test_a_cluster_that_is_too_old_is_refused_before_anything_is_written(site: CommandSite) -> None:
    site.plane.api.patch(SERVER_VERSION, {"value": "v1.7.0"})
    site.plane.api.delete(f"{PLANS}/{PLAN}")
    for words in (("run", "--health-address", ""), ("apply", str(EXAMPLE), "--yes")):
        done = site.run(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Setting server-version: the cluster runs v1.7.0, and only v1.7.1 or newer ")
    assert site.plane.api.get(PLANS)["items"] == []
    assert site.plane.api.get(LEASE.rpartition("/")[0])["items"] == []


# ---------------------------------------------------------------------------------------------- what an operator says


def test_a_node_is_held_and_let_go(site: CommandSite) -> None:
    node = "charlie-2-tink-system"
    assert site.run("pause", node).stdout == f"{PLAN}: {node} will be held before its upgrade\n"
    assert site.plan()["spec"]["nodeUpgradeOption"] == {"pauseNodes": [node]}
    assert site.run("pause", node).stdout == f"{PLAN}: {node} is already paused\n"
    assert site.run("resume", node).stdout == f"{PLAN}: {node} resumed\n"
    assert site.plan()["spec"]["nodeUpgradeOption"] == {"pauseNodes": []}
    assert site.run("resume", node).stdout == f"{PLAN}: {node} is not paused\n"
    site.stands(nodeUpgradeStatuses={node: {"state": "UpgradePaused"}})
    twice = site.run("resume", node)
    assert twice.returncode == 0
    assert twice.stdout == f"{PLAN}: {node} is already resumed; it continues at the manager's next look at the plan\n"
    site.stands(nodeUpgradeStatuses={node: {"state": "PreDraining"}})
    begun = site.run("pause", node)
    assert begun.returncode == 1
    assert f"the upgrade of {node} has already started (PreDraining) and cannot be paused" in begun.stderr
    assert site.run("resume", node).stdout == f"{PLAN}: {node} is not paused\n"
    unknown = site.run("pause", "charlie-9")
    assert unknown.returncode == 2
    assert "Node charlie-9 not found\n    remedy: choose one of: charlie-1-tink-system, " in unknown.stderr


def test_a_change_of_a_plan_that_an_agent_delivers_is_to_be_committed(site: CommandSite) -> None:
    labels = {"kustomize.toolkit.fluxcd.io/name": "upgrade"}
    site.plane.api.patch(f"{PLANS}/{PLAN}", {"metadata": {"labels": labels}})
    warning = f"warning: Flux (label kustomize.toolkit.fluxcd.io/name) delivers {PLAN}: Git "
    for words, change in (
        (("pause", "charlie-2-tink-system"), "      - charlie-2-tink-system"),
        (("resume", "charlie-2-tink-system"), "      pauseNodes: []"),
        (("accept", "pod-ready"), "      management.harvesterhci.io/accept-risk: pod-ready"),
        (("retry", "--yes"), '      management.harvesterhci.io/retry: "1"'),
    ):
        said = site.run(*words).stdout
        assert f"{warning}sets this back unless it is committed as well:\n  apiVersion: " in said
        assert change in said.splitlines()
    assert f"{warning}creates the plan again" in site.answered("n\n", "abort").stdout


def test_what_a_failed_plan_has_on_loan_is_told_before_it_is_taken_back(site: CommandSite) -> None:
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
    asked = site.answered("n\n", "abort")
    assert asked.returncode == 1
    assert asked.stdout.startswith(
        "borrowed: Cluster fleet-local/local spec.rkeConfig.upgradeStrategy (will be removed again)\n"
        "warning: Rancher will upgrade the remaining nodes without the drain hooks\n"
    )
    unanswered = site.answered("", "abort")
    assert unanswered.returncode == 1
    assert "nothing was changed\nthe input ended before there was an answer\n    remedy: " in unanswered.stderr
    assert "deletionTimestamp" not in site.plan()["metadata"]


def test_a_cluster_without_a_plan_and_the_built_in_upgrade_are_diagnosed(site: CommandSite) -> None:
    site.plane.api.send("DELETE", f"{PLANS}/{PLAN}")
    done = site.run("diagnose")
    assert (done.returncode, done.stderr) in ((0, ""), (1, ""))
    assert done.stdout.startswith("no UpgradePlan and no Upgrade found; only the cluster was looked at\n")
    labels = {"harvesterhci.io/latestUpgrade": "true", "harvesterhci.io/upgradeState": "UpgradingNodes"}
    metadata = {"name": "hvst-upgrade-builtin", "namespace": "harvester-system", "labels": labels}
    body = {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Upgrade", "metadata": metadata}
    body["spec"] = {"version": "v1.8.0"}
    site.plane.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    done = site.run("diagnose")
    assert (done.returncode, done.stderr) in ((0, ""), (1, ""))
    assert done.stdout.startswith("Upgrade harvester-system/hvst-upgrade-builtin to v1.8.0: UpgradingNodes (phase 4: ")
    assert "restart: it must not be started again" in done.stdout


def test_a_plan_is_taken_back_unless_its_phase_forbids_it(site: CommandSite) -> None:
    site.stands()
    refused = site.run("abort", "--yes")
    assert refused.returncode == 1
    assert f"{PLAN} is in phase NodeUpgrade, which cannot be aborted" in refused.stderr
    assert "deletionTimestamp" not in site.plan()["metadata"]
    site.stands(currentPhase="ImagePreloading")
    done = site.run("abort", "--yes")
    assert (done.returncode, done.stdout.startswith(f"aborting {PLAN};")) == (0, True)
    assert site.plane.api.get(PLANS)["items"] == []  # nobody holds it


def test_a_risk_is_accepted_by_its_id(site: CommandSite) -> None:
    """Beside what is accepted there, once, and only what can be."""
    annotations = {"management.harvesterhci.io/accept-risk": "pod-ready"}
    site.plane.api.patch(f"{PLANS}/{PLAN}", {"metadata": {"annotations": annotations}})
    said = site.run("accept", "volume-degraded", "pod-ready", PLAN)
    assert said.stdout.splitlines() == [
        f"{PLAN}: volume-degraded is accepted, although this may not hold: no volume is degraded",
        f"{PLAN}: pod-ready is already accepted, although this may not hold: every pod is ready",
    ]
    found = site.plan()["metadata"]["annotations"]
    assert found["management.harvesterhci.io/accept-risk"] == "pod-ready,volume-degraded"
    wrong = site.run("accept", "volume-degradd")
    assert (wrong.returncode, "did you mean 'volume-degraded'?" in wrong.stderr) == (2, True)
    never = site.run("accept", "version-exists")
    assert (never.returncode, "check version-exists cannot be accepted" in never.stderr) == (2, True)


def test_the_digest_of_a_review_is_approved_with_the_files_that_it_was_rendered_from(
    site: CommandSite, tmp_path: Path
) -> None:
    plan = tmp_path / "upgradeplan.yaml"
    plan.write_text(json.dumps(without_disk_check(EXAMPLE)), encoding="utf-8")
    files = [str(plan), *(str(path) for path in EXAMPLE.glob("*.yaml") if path.name != plan.name)]
    digest = assembly_of(read_inputs(files), template_set()).render().digest
    alone = site.run("approve", PLAN, "--digest", digest)
    assert alone.returncode == 1
    remedy = "give the files that the review was rendered from, with release and facts"
    assert f"remedy: {remedy}: upgradeplan approve {PLAN} FILES --digest {digest}\n" in alone.stderr
    other = site.run("approve", *files, "--digest", "sha256:0")
    assert (other.returncode, f"these files render the digest {digest}, not sha256:0" in other.stderr) == (1, True)
    assert APPROVED not in site.plan()["metadata"]["annotations"]
    done = site.run("approve", *files, "--digest", digest)
    assert done.stdout.splitlines() == [
        f"{PLAN}: approved 8 of 8 phases, digest {digest}",
        "sealed now: Initialize, ISODownload, RepoCreate, MetadataPopulate, ClusterUpgrade",
        "approved too, and compared when the cluster knows their inputs: ImagePreload (releaseMetadata), "
        "NodeUpgrade (releaseMetadata), ImageCleanup (imageLists)",
    ]
    missing = site.run("approve", "hvst-upgrade-864fg")
    assert (missing.returncode, f"did you mean '{PLAN}'?" in missing.stderr) == (2, True)


@pytest.mark.parametrize("words", [("abort", "--yes"), ("approve",), ("pause", "charlie-2-tink-system")])
def test_a_plan_that_has_ended_keeps_its_record(site: CommandSite, words: tuple[str, ...]) -> None:
    ended = {"type": "Progressing", "status": "False", "reason": "Succeeded", "message": ""}
    site.stands(currentPhase="Succeeded", conditions=[{**ended, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    before = site.plan()
    refused = site.run(*words)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"{PLAN} has ended: Succeeded\n"
        f"    remedy: its record stays until you delete it: kubectl delete upgradeplan {PLAN}\n"
    )
    assert site.plan() == before
