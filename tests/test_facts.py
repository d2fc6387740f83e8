"""Collecting facts: what a cluster is rendered from comes out whole, and no secret comes out at all."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane
from support.preflight_cases import checks
from support.rbac import Rbac
from support.rehearsals import ROOT, START, inputs_of, rehearsal_of, template_set
from support.seeding import seed

from reconcile.cli.facts import as_files, next_command
from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster
from reconcile.observe.collect import NAMES, Collected, collect, redacted
from reconcile.observe.facts import Unreadable, gather, refusals
from reconcile.observe.readings import READERS, Access, Readings, ReadingSource
from reconcile.observe.snapshot import judge, take
from reconcile.observe.source import DirectSource
from reconcile.preflight.check_context import check_context
from reconcile.preflight.checking import run_checks
from reconcile.preflight.looked_at import looked_at
from reconcile.probes.look import CERTIFICATES as SERVER_CERTIFICATES
from reconcile.probes.look import OWN_SERVER, Answer, Group, Need, ReadFailure, Reading
from reconcile.schemas import packaged_schemas
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.status.times import time_text
from renderer.cli.program import run
from renderer.errors import ExitCode, Problems
from renderer.files.flat import write_flat
from renderer.model.check import CheckTime
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref, ref_of
from renderer.redaction import REDACTED, packaged_redactor

EXAMPLE = ROOT / "examples" / "three-node"
KINDS = template_set().catalog.kinds
HIDE = packaged_redactor()
PASSWORD = "hunter2-correct-horse"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()


def nobody(address: str, port: int) -> datetime | None:
    raise OSError("nobody answers")


def collected_from(cluster: Cluster, plan: Body | None = None) -> Collected:
    source = DirectSource(cluster, KINDS)
    known = {"kubelet": inputs_of("three-node").facts["kubelet"], "certificates": CERTIFICATES}
    readings = Readings(cluster, KINDS, lambda: START, nobody, known)
    return collect(source, readings, plan, HIDE, looked_at(checks().values(), _seen(source, readings)))


def _seen(source: DirectSource, readings: Readings) -> Iterable[Need]:
    """What the checks look at on the three-node example."""
    inputs = inputs_of("three-node")
    context = check_context(
        template_set(), packaged_schemas(), START, objects=[source.body for source in inputs.objects]
    )
    return judge(lambda look: run_checks(checks().values(), look, context, [*CheckTime]), source, readings).looked_at


CERTIFICATES = inputs_of("three-node").facts["certificates"]


def embedded() -> EmbeddedCluster:
    cluster = EmbeddedCluster(SimulatedClock(START))
    cluster.seed([*(source.body for source in inputs_of("three-node").objects), KUBECONFIG])
    return cluster


KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "cluster.x-k8s.io/secret",
    "metadata": {
        "name": "local-kubeconfig",
        "namespace": "fleet-local",
        "labels": {"cluster.x-k8s.io/cluster-name": "local"},
    },
}
"""Of every cluster of Rancher; the example has no Secret but the machine plans."""


def rendered(capsys: pytest.CaptureFixture[str], out: Path, *cluster: str) -> dict[str, bytes]:
    words = ["render", str(EXAMPLE), "--output-dir", str(out), *cluster]
    assert run(["upgradeplan", *words]) == 0, capsys.readouterr().err
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def assert_same_rendering(collected: Collected, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "facts"
    write_flat(folder, as_files(collected), NAMES)
    expected = rendered(capsys, tmp_path / "expected")
    assert expected
    assert rendered(capsys, tmp_path / "found", "--cluster", str(folder)) == expected


@pytest.mark.slow
def test_rendering_from_what_was_collected_is_rendering_from_the_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_same_rendering(collected_from(embedded().client()), tmp_path, capsys)


@pytest.mark.slow
def test_the_live_plan_is_collected_with_the_rest(tmp_path: Path) -> None:
    scene = rehearsal_of("three-node")
    scene.reconciler.round(scene.name)
    plan = scene.deps.source.get(Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=scene.name))
    assert isinstance(plan, dict)
    folder = tmp_path / "facts"
    write_flat(folder, as_files(collected_from(scene.client, plan)), NAMES)
    assert run(["upgradeplan", "render", str(folder), "--output-dir", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / scene.name / "index.yaml").exists()


@pytest.mark.controlplane
def test_on_a_real_control_plane(
    wiped_control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = find_access({}, kubeconfig=str(wiped_control_plane.kubeconfig))
    admin = connect(access, environ={}, now=lambda: datetime.now(UTC))
    seed(admin, [source.body for source in inputs_of("three-node").objects], KINDS)
    assert_same_rendering(collected_from(admin), tmp_path, capsys)


@pytest.mark.slow
def test_what_was_collected_answers_what_the_cluster_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is unknown for the want of an object: that there is none of a kind is written down."""
    folder = tmp_path / "facts"
    write_flat(folder, as_files(collected_from(embedded().client())), NAMES)
    words = [
        "preflight",
        str(EXAMPLE / "upgradeplan.yaml"),
        str(EXAMPLE / "harvester-release.yaml"),
        "--cluster",
        str(folder),
    ]
    run(["upgradeplan", *words, "-o", "json"])
    found = json.loads(capsys.readouterr().out)["checks"]
    assert [
        why for check in found for item in check["readFailures"] if "among the inputs" in (why := item["why"])
    ] == []


@pytest.mark.slow
def test_the_next_command_can_be_run_as_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first half names the newest Version, or asks; where there is a plan it is rendered."""
    monkeypatch.chdir(tmp_path)
    collected = collected_from(embedded().client())
    write_flat(Path("my facts"), as_files(collected), NAMES)
    first, second = next_command("my facts", None, collected).split(" && ")
    assert first == "upgradeplan new --version v1.8.0-rc1 > plan.yaml"
    assert run(shlex.split(first.partition(" > ")[0])) == 0
    Path("plan.yaml").write_text(capsys.readouterr().out)
    assert run(shlex.split(second)) in (ExitCode.YES, ExitCode.NO, ExitCode.CLUSTER)
    capsys.readouterr()

    plan = {"metadata": {"name": "to-v1-8-0"}}
    assert next_command("facts", plan, collected) == "upgradeplan render facts"
    old = replace(collected, files={**collected.files, "versions.yaml": ()})
    assert next_command("facts", None, old).startswith("upgradeplan new > plan.yaml && upgradeplan preflight ")


@pytest.mark.slow
def test_the_same_cluster_gives_the_same_bytes() -> None:
    cluster = embedded()
    assert as_files(collected_from(cluster.client())) == as_files(collected_from(cluster.client()))


TO_ITS_END = pytest.mark.full("three nodes to the end; the same until an image cannot be imported stands for it")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [("--fail", "image-import"), pytest.param((), marks=TO_ITS_END)])
def test_a_rehearsal_plays_on_what_was_collected(
    fault: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "facts"
    write_flat(folder, as_files(collected_from(embedded().client())), NAMES)
    words = (str(EXAMPLE), "--cluster", str(folder), *fault, "-q", "-o", "json")
    assert run(["upgradeplan", "rehearse", *words]) == (1 if fault else 0)
    report = json.loads(capsys.readouterr().out)
    assert report["succeeded"] is not bool(fault)
    assert report["notInjected"] == []


SECRETIVE: list[Body] = [
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "custom-1-machine-plan",
            "namespace": "fleet-local",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": PASSWORD,
                "objectset.rio.cattle.io/applied": PASSWORD,
                "rke2.io/node-args": PASSWORD,
            },
        },
        "type": "rke.cattle.io/machine-plan",
        "data": {"plan": ENCODED},
        "stringData": {"probes": PASSWORD},
    },
    {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "vm", "namespace": "default"},
        "spec": {"template": {"spec": {"volumes": [{"cloudInitNoCloud": {"userData": PASSWORD}}]}}},
    },
    {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "Addon",
        "metadata": {"name": "monitoring", "namespace": "default"},
        "spec": {"valuesContent": f"adminPassword: {PASSWORD}"},
    },
    {
        "apiVersion": "management.cattle.io/v3",
        "kind": "ManagedChart",
        "metadata": {"name": "harvester", "namespace": "fleet-local"},
        "spec": {"values": {"grafana": {"adminPassword": PASSWORD, "existingSecretName": "grafana"}}},
    },
    {
        "apiVersion": "provisioning.cattle.io/v1",
        "kind": "Cluster",
        "metadata": {"name": "local", "namespace": "fleet-local"},
        "spec": {"agentEnvVars": [{"name": "HTTP_PROXY", "value": PASSWORD}]},
    },
]


@pytest.mark.parametrize("body", SECRETIVE, ids=lambda body: str(body["kind"]))
def test_no_secret_is_collected(body: Body) -> None:
    cluster = EmbeddedCluster(SimulatedClock(START))
    cluster.seed([body])
    files = as_files(collected_from(cluster.client()))
    assert body["metadata"]["name"] in "".join(files.values())
    assert PASSWORD not in "".join(files.values())
    assert ENCODED not in "".join(files.values())


def test_names_of_secrets_stay_and_so_does_what_is_no_text() -> None:
    body = {
        "apiVersion": "a/v1",
        "kind": "K",
        "metadata": {"name": "n"},
        "spec": {"dataSecretName": "x", "secretRef": {"name": "y"}, "tokens": [PASSWORD, 5], "automountToken": True},
    }
    assert redacted(body, HIDE)["spec"] == {
        "dataSecretName": "x",
        "secretRef": {"name": "y"},
        "tokens": [REDACTED, 5],
        "automountToken": True,
    }


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_metadata_is_looked_through_as_well(where: str) -> None:
    found = {"alpha.example.com/password": PASSWORD, "b": f"http://me:{PASSWORD}@h", "c": "d"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", where: found}}
    assert redacted(body, HIDE)["metadata"] == {
        "name": "n",
        where: {"alpha.example.com/password": REDACTED, "b": "http://REDACTED@h", "c": "d"},
    }


def test_a_status_is_looked_through_as_well() -> None:
    status = {"phase": "Running", "images": [], "url": f"http://me:{PASSWORD}@h", "observedGeneration": 2}
    body = {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}, "status": status}
    assert redacted(body, HIDE)["status"] == {**status, "url": "http://REDACTED@h"}


def test_nothing_of_a_chart_s_values_is_kept_but_their_form() -> None:
    (chart,) = [body for body in SECRETIVE if body["kind"] == "ManagedChart"]
    values = {"a": [PASSWORD, 1], "anything": "at all", "on": True}
    assert redacted({**chart, "spec": {"values": values}}, HIDE)["spec"] == {
        "values": {"a": [REDACTED, 1], "anything": REDACTED, "on": True}
    }


def test_what_may_not_be_read_is_all_said_at_once() -> None:
    class PartlyBlindSource(DirectSource):
        def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
            return ReadFailure(why="forbidden") if group.kind in ("Machine", "Addon") else super().list(group)

    client = embedded().client()
    with pytest.raises(Problems) as refused:
        collect(
            PartlyBlindSource(client, KINDS), Readings(client, KINDS, lambda: START, nobody), None, packaged_redactor()
        )
    assert [item.message for item in refused.value.problems] == [
        "Machine objects cannot be read: forbidden",
        "Addon objects cannot be read: forbidden",
    ]


def account_without_rights() -> Cluster:
    cluster = embedded()
    return cluster.client(access=Rbac(cluster.store.everything(), namespace="default", account="nobody"))


def rule(verb: str, resource: str, group: str = "", name: str = "") -> str:
    named = {"resourceNames": [name]} if name else {}
    return json.dumps({"apiGroups": [group], "resources": [resource], "verbs": [verb], **named})


def test_what_rendering_may_not_read_is_all_said_at_once_each_with_its_rule() -> None:
    plan = {"spec": {"version": "v1.8.0"}}
    source = DirectSource(account_without_rights(), KINDS)
    with pytest.raises(Unreadable) as refused:
        gather(source, plan)
    assert refused.value.exit_code is ExitCode.CLUSTER
    assert [item.remedy for item in refused.value.problems] == [
        f"add to a ClusterRole: {rule('list', 'nodes')}",
        f"add to a Role in namespace fleet-local: {rule('list', 'machines', 'cluster.x-k8s.io')}",
        f"add to a Role in namespace fleet-local: {rule('list', 'secrets')}",
        f"add to a ClusterRole: {rule('get', 'settings', 'harvesterhci.io', 'server-version')}",
        f"add to a Role in namespace harvester-system: {rule('get', 'versions', 'harvesterhci.io', 'v1.8.0')}",
    ]
    assert refusals(source, plan) == refused.value.problems


def test_what_may_not_be_collected_has_its_rule_too() -> None:
    client = account_without_rights()
    with pytest.raises(Unreadable) as refused:
        collect(DirectSource(client, KINDS), Readings(client, KINDS, lambda: START, nobody), None, HIDE)
    assert len(refused.value.problems) == 16
    assert all(str(item.remedy).startswith("add to a ") for item in refused.value.problems)


def test_readings_that_nobody_gives_are_named() -> None:
    client = embedded().client()
    collected = collect(
        DirectSource(client, KINDS), Readings(client, KINDS, lambda: START, nobody), None, packaged_redactor()
    )
    assert collected.facts == {}
    assert "certificate at 192.0.2.11: nobody answers" in collected.unread
    assert any(text.startswith("kubelet of charlie-1-tink-system: ") for text in collected.unread)


@pytest.mark.parametrize(
    "wrong", [None, 5, "x", [None], [5], ["x"], [{"addresses": 5}], [{"addresses": [5, None]}]], ids=str
)
def test_only_addresses_are_dialled(wrong: object) -> None:
    slices = [
        {"endpoints": wrong, "ports": wrong},
        {"endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 1}]},
    ]
    dialled = []

    def dial(address: str, port: int) -> datetime:
        dialled.append((address, port))
        return START

    found = Readings(embedded().client(), KINDS, lambda: START, dial).read(SERVER_CERTIFICATES, slices)
    assert found == {name: {"notAfter": time_text(START)} for name in ("192.0.2.1", OWN_SERVER)}
    assert sorted(dialled) == [("192.0.2.1", 1), (OWN_SERVER, 0)]


def test_a_folder_with_anything_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "nodes.yaml").write_text("old")
    with pytest.raises(Problems, match=r"notes\.txt: was not written by an earlier run"):
        write_flat(tmp_path, {"nodes.yaml": "new"}, NAMES)
    assert (tmp_path / "nodes.yaml").read_text() == "old"


def test_a_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "facts"
    folder.mkdir()
    (folder / "nodes.yaml").symlink_to(outside)
    with pytest.raises(Problems):
        write_flat(folder, {"nodes.yaml": "new"}, NAMES)
    assert outside.read_text() == "mine"


def test_what_is_not_expected_any_more_goes(tmp_path: Path) -> None:
    write_flat(tmp_path / "a" / "b", {"nodes.yaml": "1", "vms.yaml": "1"}, NAMES)
    write_flat(tmp_path / "a" / "b", {"nodes.yaml": "2"}, NAMES)
    assert [(path.name, path.read_text()) for path in (tmp_path / "a" / "b").iterdir()] == [("nodes.yaml", "2")]


def test_each_reading_has_its_section_of_a_facts_document() -> None:
    """What is asked and what is given have one form; image lists are read from the release's repository."""
    schema = json.loads((ROOT / "schemas" / "facts.json").read_text(encoding="utf-8"))
    sections = schema["properties"]["facts"]["properties"]
    assert {reading.name for reading in READERS} == set(sections) - {"imageLists"}


def test_a_reading_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked, kept for a minute, given as a fact instead, collected, and refused by one of those that are asked."""
    clocks = Reading(name="clock", of=Group(api_version="v1", kind="Node"))
    asked: list[str] = []

    def ask(name: str) -> Answer:
        asked.append(name)
        return ReadFailure(why="no answer") if name == "b" else {"skewSeconds": 3}

    def asks(access: Access, nodes: Iterable[Body]) -> Mapping[str, Callable[[], Answer]]:
        return {ref.name: partial(ask, ref.name) for ref in map(ref_of, nodes) if ref.name in "abc"}

    monkeypatch.setitem(READERS, clocks, ReadingSource(what="clock of", asks=asks))
    client = embedded().client()
    for name in "abc":
        client.create(KINDS.row("v1", "Node").kind, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    readings = Readings(client, KINDS, lambda: START, nobody, {"clock": {"c": {"skewSeconds": 0}}})

    snapshot = take((clocks.of, clocks), DirectSource(client, KINDS), readings)
    assert snapshot.reading(clocks, "a") == {"skewSeconds": 3}
    assert snapshot.reading(clocks, "c") == {"skewSeconds": 0}
    assert sorted(asked) == ["a", "b"]
    collected = collect(DirectSource(client, KINDS), readings, None, HIDE)
    assert collected.facts["clock"] == {"a": {"skewSeconds": 3}, "c": {"skewSeconds": 0}}
    assert "clock of b: no answer" in collected.unread
    assert sorted(asked) == ["a", "b", "b"]
