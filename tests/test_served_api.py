"""A cluster whose definition of UpgradePlan is another manager's: it refuses, or prunes, what this program writes."""

from __future__ import annotations

import copy
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from controlplane import waiting
from controlplane.binaries import built, clients_dir
from controlplane.cluster import ControlPlane, running
from support.real_upgrade import PLAN, client, now
from support.rehearsals import ROOT, template_set
from support.rendered_plans import Json, plan
from support.small_cluster import Small, world

from reconcile.cluster.errors import NoSuchKind
from reconcile.cluster.protocol import Selection
from reconcile.loop.health import health_server
from reconcile.loop.manager import Manager
from reconcile.loop.served_api import REMEDY, check_served_api, unknown_fields
from reconcile.loop.setup import ManagerConfig, assemble_manager
from reconcile.schemas import packaged_schemas
from renderer.cli.program import run

ADDED = ("steps", "borrowed", "waitingSince", "acceptedRisks", "verification", "templates", "observedGeneration")
OURS = ROOT / "schemas" / "crds" / "upgradeplan.yaml"


def other_definition() -> Any:
    """As the Harvester Upgrade Manager has it: without what we add."""
    definition = copy.deepcopy(yaml.safe_load(OURS.read_text(encoding="utf-8")))
    status = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for name in ADDED:
        del status[name]
    return definition


def under(definition: Json) -> Small:
    found = world()
    found.scene.cluster.registry.learn(definition)
    return found


def verdict(found: Small, plans: list[Any]) -> Any:
    return check_served_api(found.scene.cluster.client(), PLAN, packaged_schemas(), plans)


@pytest.mark.slow
def test_our_own_definition_fits() -> None:
    assert verdict(world(), []) is None


@pytest.mark.slow
def test_another_definition_is_named_with_its_fields_and_the_remedy() -> None:
    problem = verdict(under(other_definition()), [])
    assert problem.reason == "AnotherDefinition"
    assert problem.message == (
        "CustomResourceDefinition upgradeplans.management.harvesterhci.io is another program's, or of an earlier "
        "version: it does not have "
        "status.observedGeneration, status.steps, status.borrowed, status.waitingSince, "
        "status.verification, status.acceptedRisks, status.templates; "
        "no plan is touched"
    )
    assert problem.remedy == REMEDY


@pytest.mark.slow
def test_a_definition_that_keeps_unknown_fields_fits() -> None:
    definition = other_definition()
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"]["x-kubernetes-preserve-unknown-fields"] = True
    assert verdict(under(definition), []) is None


@pytest.mark.parametrize(
    ("expected", "served", "missing"),
    [
        ({"properties": {"a": {}}}, {"properties": {"a": {}}}, []),
        ({"properties": {"a": {"properties": {"b": {}}}}}, {"properties": {"a": {"type": "object"}}}, ["status.a.b"]),
        ({"properties": {"a": {}}}, {"additionalProperties": True}, []),
        (
            {"properties": {"a": {"items": {"properties": {"b": {}}}}}},
            {"properties": {"a": {"items": {"properties": {}}}}},
            ["status.a[].b"],
        ),
        (
            {"additionalProperties": {"properties": {"b": {}}}},
            {"additionalProperties": {"properties": {}}},
            ["status.*.b"],
        ),
    ],
)
def test_what_a_schema_lacks(expected: Mapping[str, Any], served: Mapping[str, Any], missing: list[str]) -> None:
    assert list(unknown_fields(expected, served, "status")) == missing


@pytest.mark.parametrize("others", [True, False])
def test_a_cluster_without_the_definition(others: bool) -> None:
    """Whether it serves other kinds of the group, or none."""

    class Without:
        def published_schema(self, kind: Any) -> Json:
            if others:
                return {}
            raise NoSuchKind(kind)

        def list(self, selection: Selection, keep: object = None) -> Any:
            raise NoSuchKind(selection.kind)

    without: Any = Without()
    found = check_served_api(without, PLAN, packaged_schemas())
    assert found is not None
    assert found.message == "the cluster has no CustomResourceDefinition upgradeplans.management.harvesterhci.io"
    assert "upgradeplan install --crds" in str(found.remedy)


@pytest.mark.slow
def test_a_refused_field_is_named_by_a_dry_run_where_no_schema_is_published() -> None:
    found = under(other_definition())

    class Silent:
        """A server that has not published the schema yet."""

        def __init__(self) -> None:
            self.patch = found.scene.cluster.client().patch
            self.list = found.scene.cluster.client().list

        def published_schema(self, kind: Any) -> Json:
            return {}

    silent: Any = Silent()
    assert check_served_api(silent, PLAN, packaged_schemas()) is None
    problem = check_served_api(silent, PLAN, packaged_schemas(), [found.plan])
    assert problem is not None
    assert all(f"status.{name}" in problem.message for name in ADDED)


# ------------------------------------------------------------------------------------------- plans of early managers


@pytest.mark.slow
@pytest.mark.parametrize("spec", [{"mode": "automatic"}, {"skipOSUpgrade": False}])
def test_what_every_plan_does_is_silent(spec: Mapping[str, Any]) -> None:
    found = world(version="v1.8.0", **spec)
    found.rounds()
    assert found.phase == "ISODownloading"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"mode": "interactive"}, "spec.mode is 'interactive', and only 'automatic' is supported"),
        ({"skipOSUpgrade": True}, "spec.skipOSUpgrade is true, and only false is supported"),
    ],
)
def test_a_plan_that_asks_for_what_is_not_done_is_held(spec: Mapping[str, Any], text: str) -> None:
    found = world()
    found.patch(found.plan, {"spec": spec})
    found.rounds()
    assert (found.phase, found.jobs(), found.all("VirtualMachineImage")) == ("", [], [])
    assert text in found.condition("Degraded")["message"]
    assert ("UnsupportedSpec", f"the plan is held: {text}") in found.events()
    found.patch(found.plan, {"spec": dict.fromkeys(spec)})
    found.rounds()
    assert found.phase == "ISODownloading"


# ------------------------------------------------------------------------------------------------- a real API server


@pytest.fixture
def other_api(wiped_control_plane: ControlPlane, tmp_path: Path) -> Iterator[ControlPlane]:
    """The other manager's definition in place of ours, as `kubectl apply` installs it; ours is back afterwards."""
    plane, file = wiped_control_plane, tmp_path / "crd.yaml"
    file.write_text(yaml.safe_dump(other_definition()), encoding="utf-8")
    try:  # in place: a definition that came since the start would be wiped before the next test
        plane.kubectl("replace", "--save-config", "-f", str(file))
        plane.kubectl("apply", "-f", str(file))
        plane.kubectl("wait", "--for=condition=Established", "-f", str(file))
        yield plane
    finally:
        plane.kubectl("replace", "-f", str(OURS))
        plane.kubectl("wait", "--for=condition=Established", "-f", str(OURS))
        _until_published(plane, present=True)


def _until_published(plane: ControlPlane, *, present: bool) -> None:
    reader = client(plane.kubeconfig)

    def is_so() -> bool:
        schema = reader.published_schema(PLAN)
        status = (schema.get("properties") or {}).get("status") or {}
        return bool(schema) and ("steps" in status.get("properties", {})) is present

    waiting.until("published", is_so)


def _install_with_helm(plane: ControlPlane, folder: Path) -> None:
    """The same definition, as a chart of it: whose each field is, is Helm's from then on."""
    helm = clients_dir() / "helm"
    if not helm.exists():
        pytest.skip("helm is not installed: make controlplane-clients")
    (folder / "templates").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: other\nversion: 1.0.0\n", encoding="utf-8")
    (folder / "templates" / "crd.yaml").write_text(yaml.safe_dump(other_definition()), encoding="utf-8")
    name = f"crd/{other_definition()['metadata']['name']}"
    plane.kubectl("patch", name, "--type=merge", "-p", '{"metadata": {"managedFields": [{}]}}')
    command = ["install", "other", str(folder), "--take-ownership", "--server-side=true", "--force-conflicts"]
    subprocess.run(
        [str(helm), *command, f"--kubeconfig={plane.kubeconfig}"],
        env={"PATH": os.defpath, "HOME": str(folder)},
        capture_output=True,
        check=True,
    )


def _carry_out_the_remedy(plane: ControlPlane) -> None:
    program, *words = REMEDY.partition(": ")[2].split()
    assert run([program, *words, "--kubeconfig", str(plane.kubeconfig)]) == 0


@pytest.mark.controlplane
@pytest.mark.full("the definition as Helm has left it; the remedy that a loop waits for is carried out as well")
def test_the_remedy_works_on_a_definition_that_helm_has_installed(other_api: ControlPlane, tmp_path: Path) -> None:
    plane, folder = other_api, tmp_path / "chart"
    folder.mkdir()
    _install_with_helm(plane, folder)
    _until_published(plane, present=False)
    crd = f"crd/{other_definition()['metadata']['name']}"
    owners = plane.kubectl("get", crd, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager}")
    assert "helm" in owners.stdout
    found = check_served_api(client(plane.kubeconfig), PLAN, packaged_schemas())
    assert found is not None
    _carry_out_the_remedy(plane)
    _until_published(plane, present=True)
    assert check_served_api(client(plane.kubeconfig), PLAN, packaged_schemas()) is None


@pytest.mark.controlplane
def test_the_loop_is_not_ready_and_writes_nothing_until_the_remedy_is_carried_out(
    other_api: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    plane = other_api
    _until_published(plane, present=False)
    admin, lines = client(plane.kubeconfig), []
    admin.create(PLAN, {**plan(version="v1.8.0")})

    def log(what: str, fields: Mapping[str, Any]) -> None:
        lines.append((what, dict(fields)))

    manager = _manager(plane, log)
    health = health_server("127.0.0.1:0", lambda: manager.ready)
    health.start()
    thread = threading.Thread(target=manager.run, daemon=True)
    thread.start()
    try:
        waiting.until("not ready is said", lambda: [line for line in lines if line[0] == "not ready"])
        (_, said), *_ = lines
        assert (said["field"], said["remedy"]) == ("status.observedGeneration", REMEDY)
        assert _readiness(health.port) == 503
        (found,) = admin.list(Selection(kind=PLAN)).items
        assert "status" not in found
        assert "finalizers" not in found["metadata"]
        _commands_name_the_remedy(plane, found["metadata"]["name"], capsys)
        _carry_out_the_remedy(plane)
        waiting.until("ready", lambda: _readiness(health.port) == 200)
    finally:
        manager.stop()
        thread.join(timeout=waiting.PATIENCE)
        health.stop()


def _commands_name_the_remedy(plane: ControlPlane, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`apply` begins nothing that it could not record, and `status` and `explain` lead to the remedy."""
    remedy, to_plane = REMEDY.partition(": ")[2], ("--kubeconfig", str(plane.kubeconfig))
    assert run(["upgradeplan", "apply", "--plan", name, "--yes", *to_plane]) == 3
    assert remedy in capsys.readouterr().err
    assert run(["upgradeplan", "status", name, *to_plane]) == 1
    assert f"next: {remedy}" in capsys.readouterr().out
    assert run(["upgradeplan", "explain", name, *to_plane]) == 0
    assert f"next: {remedy}" in capsys.readouterr().out


@pytest.mark.controlplane
@pytest.mark.full("a control plane of its own that never had the definition; a client that is told so stands for it")
def test_without_the_definition_commands_say_what_installs_it_and_a_manager_is_not_ready(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    binaries = built()
    assert binaries is not None
    with running(binaries, []) as plane:
        _says_what_installs_the_definition(plane, capsys, tmp_path)


def _says_what_installs_the_definition(plane: ControlPlane, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines: list[tuple[str, dict[str, Any]]] = []
    to_plane = ("--kubeconfig", str(plane.kubeconfig))
    install = ["upgradeplan", "install", "--crds", *to_plane]
    manager = _manager(plane, lambda what, fields: lines.append((what, dict(fields))))
    health = health_server("127.0.0.1:0", lambda: manager.ready)
    health.start()
    thread = threading.Thread(target=manager.run, daemon=True)
    thread.start()
    try:
        for code, words in (
            (3, ("status",)),
            (3, ("apply", "--yes", "examples/single-node/upgradeplan.yaml")),
            (0, ("facts", "--output-dir", str(tmp_path / "facts"))),
        ):
            assert run(["upgradeplan", *words, *to_plane]) == code
            assert "upgradeplan install --crds" in capsys.readouterr().err
        waiting.until("not ready is said", lambda: [line for line in lines if line[0] == "not ready"])
        assert "upgradeplan install" in lines[0][1]["remedy"]
        assert _readiness(health.port) == 503
        assert run(install) == 0
        waiting.until("ready", lambda: _readiness(health.port) == 200)
    finally:
        manager.stop()
        thread.join(timeout=waiting.PATIENCE)
        health.stop()


def _readiness(port: int) -> int:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def _manager(plane: ControlPlane, log: Any) -> Manager:
    return assemble_manager(
        ManagerConfig(
            cluster=client(plane.kubeconfig),
            template_set=template_set(),
            schemas=packaged_schemas(),
            now=now,
            clock=time.monotonic,
            random=random.random,
            dial=lambda address, port: None,
            log=log,
            identity="test",
            lease_namespace="default",
        )
    )
