"""`apply --phase`: one phase by hand, on a real API server."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.live import PLANS
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE, until
from support.real_commands import EXAMPLE, PLAN, CommandSite, SeededCluster

IMAGE = f"VirtualMachineImage harvester-system/{PLAN}-iso"

KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/harvester-system/kubevirts/kubevirt"
PREFIX = "management.harvesterhci.io/"
MAPS = "/api/v1/namespaces/harvester-system/configmaps"
SPACES = "/api/v1/namespaces"
METHODS = ["LiveMigrate", "Evict"]
LATE = pytest.mark.full(
    "more of one phase that is applied on a real API server; a phase that is waited for and not applied twice, what is "
    "borrowed, a loop that takes it over, a refusal, what is being deleted and checks that hold stay"
)

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> SeededCluster:
    return SeededCluster(control_plane)


@pytest.fixture
def site(cluster: SeededCluster) -> CommandSite:
    return cluster.site()


def one_phase(*more: str) -> tuple[str, ...]:
    return ("apply", "--phase", "ISODownload", str(EXAMPLE), *more)


def test_nobody_has_confirmed_the_cluster(site: CommandSite) -> None:
    done = site.answered("", *one_phase())
    assert (done.returncode, done.stdout) == (2, "")
    assert f"refusing to change context test at {site.plane.server} without confirmation" in done.stderr
    assert site.images() == []


def test_a_phase_is_applied_waited_for_and_not_applied_twice(site: CommandSite) -> None:
    with site.started(*one_phase("--yes")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{IMAGE}: created\n"
        assert f"ISODownload/Image is waiting: {IMAGE}: " in process.stdout.readline()
        site.import_says("Imported")
        assert process.stdout.read() == "ISODownload: done\n"
        assert process.wait() == 0
    again = site.run(*one_phase("--yes"))
    assert (again.returncode, again.stdout) == (0, f"{IMAGE}: unchanged\nISODownload: done\n")


@LATE
def test_the_release_that_ran_before_is_recorded_while_it_can_still_be_read(site: CommandSite) -> None:
    """Later phases compare with it, and by then the cluster says that it runs the new one."""
    for version in ("v1.7.1", "v1.8.0"):
        site.plane.api.patch("/apis/harvesterhci.io/v1beta1/settings/server-version", {"value": version})
        with site.started(*one_phase("--yes")) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
        assert site.plan()["status"]["previousVersion"] == "v1.7.1"


@LATE
def test_what_the_loop_has_done_is_not_done_again(site: CommandSite) -> None:
    moment = "2026-01-01T00:00:00Z"
    record = {"state": "Completed", "started": moment, "ended": moment}
    site.stands(steps={"ISODownload": {"records": {"Image": record}}})
    done = site.run(*one_phase("--yes"))
    told = "ISODownload/Image: already done, according to the plan's status\nISODownload: done\n"
    assert (done.returncode, done.stdout) == (0, told)
    assert site.images() == []


@LATE
def test_a_gate_that_fails_ends_it(site: CommandSite) -> None:
    with site.started(*one_phase("--yes")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        site.import_says("RetryLimitExceeded")
        assert process.stdout.read().endswith("ISODownload: failed\n")
        assert process.wait() == 1


@LATE
def test_ctrl_c_says_what_was_applied_and_how_to_go_on(site: CommandSite) -> None:
    with site.started(*one_phase("--yes")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == f"stopped; applied so far: {IMAGE}; run the same command again to continue\n"
        assert process.wait() == 130


def test_a_phase_that_only_the_loop_can_take_is_refused_before_its_first_write(site: CommandSite) -> None:
    site.stands()
    done = site.run("apply", "--phase", "NodeUpgrade", str(EXAMPLE), "--yes")
    assert done.returncode == 2
    assert "reacts to events in the cluster, so it cannot be applied alone" in done.stderr


def test_a_plan_that_is_not_there_is_told(site: CommandSite) -> None:
    site.plane.api.delete(f"{PLANS}/{PLAN}")
    done = site.run(*one_phase("--yes"))
    assert done.returncode == 2
    assert f"UpgradePlan {PLAN} not found\n    remedy: create it first" in done.stderr


# ------------------------------------------------------------------------------------------------- what is borrowed


def workload_updates(*methods: str) -> dict[str, Any]:
    return {"spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": list(methods)}}}


def test_what_is_borrowed_is_recorded_shown_and_given_back_by_the_loop(site: CommandSite) -> None:
    site.plane.api.patch(KUBEVIRT, workload_updates(*METHODS))
    site.stands(currentPhase="")
    with site.started("apply", "--phase", "ClusterUpgrade", str(EXAMPLE), "--yes") as process:
        assert process.stdout is not None
        until("the Job is waited for", lambda: " is waiting: Job " in str(process.stdout and process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        assert "applied so far: ManagedChart fleet-local/harvester, KubeVirt " in process.stdout.read()
    assert site.plane.api.get(KUBEVIRT)["spec"]["workloadUpdateStrategy"] == {"workloadUpdateMethods": []}
    loans = {item["kind"]: item for item in site.plan()["status"]["borrowed"]}
    assert set(loans) == {"ManagedChart", "KubeVirt"}
    assert loans["KubeVirt"]["value"] == METHODS
    assert (loans["KubeVirt"]["phase"], loans["KubeVirt"]["step"]) == ("ClusterUpgrade", "StopWorkloadUpdates")
    shown = site.run("diff", "--phase", "ClusterUpgrade", str(EXAMPLE))
    assert 'workloadUpdateMethods is set back to ["LiveMigrate", "Evict"] on ' in shown.stdout
    site.plane.api.delete(f"{PLANS}/{PLAN}")
    assert "deletionTimestamp" in site.plan()["metadata"]  # it is held until all is given back
    refused = site.run("apply", "--phase", "ClusterUpgrade", str(EXAMPLE), "--yes")
    assert (refused.returncode, refused.stderr) == (3, f"UpgradePlan {PLAN} is being deleted\n")
    done = site.run("apply", "--plan", PLAN, "--yes")
    assert done.stdout.endswith(f"{PLAN}: gone\n")
    given_back(site)


def given_back(site: CommandSite) -> None:
    """Exactly, and nothing of us is left."""
    kubevirt = site.plane.api.get(KUBEVIRT)
    assert kubevirt["spec"]["workloadUpdateStrategy"] == {"workloadUpdateMethods": METHODS}
    assert "upgradeplan" not in {entry["manager"] for entry in kubevirt["metadata"]["managedFields"]}


def test_what_was_recorded_by_hand_counts_for_a_loop_that_takes_the_plan_over(site: CommandSite) -> None:
    """It does not know better what stood there."""
    site.plane.api.patch(KUBEVIRT, workload_updates(*METHODS))
    site.stands(currentPhase="")
    with site.started("apply", "--phase", "ClusterUpgrade", str(EXAMPLE), "--yes"):
        until("it is borrowed", lambda: not methods_of(site))
    site.stands(currentPhase="CleanedUp")
    with site.started("apply", "--plan", PLAN, "--yes") as process:
        site.charts_are_let_go()
        assert process.communicate(timeout=PATIENCE)[0].endswith(f"{PLAN}: Succeeded\n")
    given_back(site)


def methods_of(site: CommandSite) -> Any:
    return site.plane.api.get(KUBEVIRT)["spec"]["workloadUpdateStrategy"]["workloadUpdateMethods"]


# ---------------------------------------------------------------------------------------------- order, waits, refusals

PHASE = """\
apiVersion: templates.upgradeplan/v1
kind: Phase
name: Mine
description: Does.
status: {active: Minding, completed: Minded}
deletion: free
steps:
- name: Do
"""
KIND = """\
apiVersion: templates.upgradeplan/v1
kind: Kinds
kinds:
- apiVersion: example.com/v1
  kind: Thing
  plural: things
  namespaced: true
  ready: {all: [{field: {path: metadata.uid, exists: true}}]}
"""
THINGS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
"""


def overlay(folder: Path, manifests: Mapping[str, str], declared: str = "") -> tuple[str, ...]:
    """A phase of one step; `declared` stands for owning all of its manifests in the order given."""
    own = f"  owned: [{', '.join(f'{name}.yaml.j2' for name in manifests)}]\n"
    files = {f"15-mine/{name}.yaml.j2": text for name, text in manifests.items()}
    files |= {"15-mine/phase.yaml": PHASE + (declared or own), "_kinds/mine.yaml": KIND}
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    return ("apply", "--phase", "Mine", str(EXAMPLE), "--yes", "--templates", str(folder))


def config_map(name: str, namespace: str = "harvester-system", data: str = "{}") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {data}\n"


def namespace(name: str) -> str:
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


@LATE
def test_a_step_is_written_in_the_order_that_diff_shows(site: CommandSite, tmp_path: Path) -> None:
    thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: it, namespace: mine}\n"
    manifests = {"map": config_map("it", "mine"), "thing": thing, "crd": THINGS, "space": namespace("mine")}
    words = overlay(tmp_path, manifests)
    shown = site.run("diff", *words[1:4], *words[5:])
    order = ["Namespace mine", "CustomResourceDefinition things.example.com", "ConfigMap mine/it", "Thing mine/it"]
    assert re.findall(r"^create +(\S+ \S+) +all", shown.stdout, re.MULTILINE) == order
    done = site.run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if " is waiting: " not in line] == [
        *(f"{name}: created" for name in order),
        "Mine: done",
    ]


@LATE
def test_what_is_borrowed_of_is_waited_for(site: CommandSite, tmp_path: Path) -> None:
    declared = "  borrowed: [{file: map.yaml.j2, whenAbsent: wait, return: never}]\n"
    with site.started(*overlay(tmp_path, {"map": config_map("late", data="{a: b}")}, declared)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.endswith(" Mine/Do is waiting: ConfigMap harvester-system/late does not exist\n")
        site.plane.api.create(MAPS, {"metadata": {"name": "late"}, "data": {"c": "d"}})
        assert process.stdout.read() == "ConfigMap harvester-system/late: taken\nMine: done\n"
    assert site.plane.api.get(f"{MAPS}/late")["data"] == {"a": "b", "c": "d"}


def dying(site: CommandSite, path: str, name: str) -> None:
    """Made for the plan, being deleted, and held."""
    metadata = {"name": name, "finalizers": ["example.com/held"], "labels": {f"{PREFIX}upgrade-plan": PLAN}}
    site.plane.api.create(path, {"metadata": metadata})
    site.plane.api.delete(f"{path}/{name}")


@pytest.mark.parametrize("kind", ["ConfigMap", pytest.param("Namespace", marks=LATE)])
def test_what_is_being_deleted_is_made_once_it_is_gone(site: CommandSite, tmp_path: Path, kind: str) -> None:
    """And nothing that comes behind it before."""
    path, ref = (MAPS, "ConfigMap harvester-system/it") if kind == "ConfigMap" else (SPACES, "Namespace it")
    first = config_map("it") if kind == "ConfigMap" else namespace("it")
    after = config_map("after", "harvester-system" if kind == "ConfigMap" else "it")
    dying(site, path, "it")
    words = overlay(tmp_path, {"it": first, "after": after})
    with site.started(*words) as process:
        assert process.stdout is not None
        assert f" Mine/Do is waiting: {ref} is being deleted (since " in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().startswith("stopped; applied so far: nothing; ")
        assert process.wait() == 130
    with site.started(*words) as process:
        assert process.stdout is not None
        process.stdout.readline()
        site.plane.api.patch(f"{path}/it", {"metadata": {"finalizers": None}})
        told = process.stdout.read().splitlines()
    made = [line for line in told if " is waiting: " not in line]
    assert made == [
        f"{ref}: created",
        f"ConfigMap {yaml.safe_load(after)['metadata']['namespace']}/after: created",
        "Mine: done",
    ]


def test_a_refusal_says_what_was_applied_and_how_to_go_on(site: CommandSite, tmp_path: Path) -> None:
    site.plane.api.create(MAPS, {"metadata": {"name": "theirs"}})
    done = site.run(*overlay(tmp_path, {"fine": config_map("fine"), "theirs": config_map("theirs")}))
    fine = "ConfigMap harvester-system/fine"
    assert done.returncode == 3
    stopped = f"stopped; applied so far: {fine}; run the same command again to continue\n"
    assert done.stdout == f"{fine}: created\n{stopped}"
    assert "ConfigMap harvester-system/theirs exists and does not belong to an upgrade plan" in done.stderr


# --------------------------------------------------------------------------------------------------------------- outage


@pytest.mark.full("an outage under a command; the one under a watch, and those of rehearsals, stand for it")
def test_an_api_server_that_goes_away_is_waited_for(site: CommandSite) -> None:
    with site.started(*one_phase("--yes")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        with site.plane.outage():
            assert " ISODownload/Image is waiting: the API server is unavailable: " in process.stdout.readline()
        site.import_says("Imported")
        assert process.stdout.read().endswith("ISODownload: done\n")
        assert process.wait() == 0


@pytest.mark.full("an outage between two writes; the one under a watch, and those of rehearsals, stand for it")
def test_an_api_server_that_goes_away_before_all_is_written_is_waited_for(site: CommandSite, tmp_path: Path) -> None:
    declared = "  noGate: it is there\n  owned: [first.yaml.j2, second.yaml.j2]\n"
    dying(site, MAPS, "second")
    words = overlay(tmp_path, {"first": config_map("first"), "second": config_map("second")}, declared)
    with site.started(*words) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ConfigMap harvester-system/first: created\n"
        assert "is being deleted" in process.stdout.readline()
        with site.plane.outage():
            assert " Mine/Do is waiting: the API server is unavailable: " in process.stdout.readline()
        site.plane.api.patch(f"{MAPS}/second", {"metadata": {"finalizers": None}})
        assert process.stdout.read().endswith("ConfigMap harvester-system/second: created\nMine: done\n")


def test_checks_hold_a_phase_that_is_applied_by_hand_until_they_pass_or_are_accepted(site: CommandSite) -> None:
    """Nobody says where this cluster's API servers are, so that their certificates cannot be judged."""
    with site.started("apply", "--phase", "Initialize", str(EXAMPLE), "--yes") as process:
        assert process.stdout is not None
        held = process.stdout.readline()
        assert "Initialize/Preflight is waiting: check api-server-certificates could not be evaluated" in held
        annotation = {"metadata": {"annotations": {f"{PREFIX}accept-risk": "api-server-certificates"}}}
        site.plane.api.patch(f"{PLANS}/{PLAN}", annotation)
        assert process.stdout.read() == "Initialize: done\n"
        assert process.wait() == 0
    accepted = [(risk["check"], risk["when"]) for risk in site.plan()["status"]["acceptedRisks"]]
    assert ("api-server-certificates", "start") in accepted
    events = site.plane.api.get("/apis/events.k8s.io/v1/events")["items"]
    told = [event["reason"] for event in events if event["regarding"]["name"] == PLAN]
    assert told == ["RiskAccepted"] * len(accepted)
