"""The webhook on a real API server: what it refuses, what nobody asks it, and with which permissions it does so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from bench.live import PLANS
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from support.installed import objects_of
from support.real_commands import CommandSite
from support.real_webhook import (
    CONFIGURATIONS,
    OBJECTS,
    USER,
    WRONG,
    Replica,
    asked,
    is_asked,
    plan,
    refused,
    replica,
    seed_site,
)

from reconcile.admission.webhook_server import PATH

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]


@pytest.fixture(scope="module")
def account(clean_control_plane: ControlPlane) -> Path:
    return seed_site(clean_control_plane)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSite:
    plane: ControlPlane
    replica: Replica
    mark: int


@pytest.fixture(scope="module")
def site(clean_control_plane: ControlPlane, account: Path) -> Iterator[AskedSite]:
    seeded = clean_control_plane
    mark = seeded.audit_mark()
    with replica(seeded, account) as found, asked(seeded, found.webhook.port):
        until("the webhook is asked", lambda: is_asked(seeded))
        yield AskedSite(plane=seeded, replica=found, mark=mark)


def causes(error: ApiError | None) -> list[tuple[str, str]]:
    assert error is not None
    assert error.code == 422
    return [(cause.get("field", ""), cause["reason"]) for cause in error.status["details"]["causes"]]


WRONGS = [("spec.version", "FieldValueNotFound"), ("spec.nodeUpgradeOption.pauseNodes[1]", "FieldValueNotFound")]


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
def test_everything_that_is_wrong_is_refused_at_once(site: AskedSite, query: str) -> None:
    error = refused(lambda: site.plane.api.create(f"{PLANS}{query}", WRONG))
    assert causes(error) == WRONGS
    assert error is not None
    assert 'admission webhook "vupgradeplan-v1beta1.kb.io" denied the request: UpgradePlan' in error.status["message"]


def test_kubectl_shows_each_cause_on_a_line(site: AskedSite) -> None:
    done = site.plane.kubectl("create", "-f", "-", stdin=json.dumps(WRONG), check=False)
    assert done.returncode == 1
    assert 'The UpgradePlan "wrong" is invalid:' in done.stderr
    assert '\n* spec.version: Not found: "v1.8": Version harvester-system/v1.8 does not exist' in done.stderr
    assert '\n* spec.nodeUpgradeOption.pauseNodes[1]: Not found: "charlie-2": Node charlie-2 does not' in done.stderr


def test_a_good_plan_is_created_and_only_its_pause_list_is_looked_at_later(site: AskedSite) -> None:
    api, path = site.plane.api, f"{PLANS}/good"
    api.create(PLANS, plan("good"))
    asked_before = len(site.replica.reviewed())
    api.patch(path, {"metadata": {"annotations": {"a": "b"}}, "spec": {"restoreVM": False}})
    api.patch(f"{path}/status", {"status": {"currentPhase": "Initializing"}})
    assert len(site.replica.reviewed()) == asked_before, "the loop's own writes ask nobody"
    api.patch(path, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["charlie-1-tink-system"]}}})
    assert len(site.replica.reviewed()) == asked_before + 1
    misspelt = {"spec": {"nodeUpgradeOption": {"pauseNodes": ["charlie-1-tink-system", "charly-2-tink-system"]}}}
    error = refused(lambda: api.patch(path, misspelt))
    assert causes(error) == [("spec.nodeUpgradeOption.pauseNodes[1]", "FieldValueNotFound")]
    api.delete(path)


def test_a_configuration_that_lost_its_authority_gets_it_back(site: AskedSite) -> None:
    path = f"{CONFIGURATIONS}/{OBJECTS.configuration.name}"
    gone = [{"op": "remove", "path": f"/webhooks/{index}/clientConfig/caBundle"} for index in (0, 1)]
    site.plane.api.send("PATCH", path, gone, {"Content-Type": "application/json-patch+json"})  # type: ignore[arg-type]
    until(
        "caBundle is back",
        lambda: all(item["clientConfig"].get("caBundle") for item in site.plane.api.get(path)["webhooks"]),
    )
    until("the webhook is asked", lambda: is_asked(site.plane))


def test_two_replicas_serve_and_one_writes(site: AskedSite, account: Path) -> None:
    with replica(site.plane, account, leads=False) as other:
        until("the other one has the certificate", lambda: other.webhook.ready)
        assert [what for what, _ in other.lines] == []


def test_apply_says_each_cause_at_its_line(site: AskedSite, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(WRONG, sort_keys=False), encoding="utf-8")
    done = CommandSite(site.plane).run("apply", str(file), "--yes")
    assert done.returncode == 3
    assert f'{file}:6: spec.version: Not found: "v1.8": Version harvester-system/v1.8 does not exist' in done.stderr
    assert f'{file}:11: spec.nodeUpgradeOption.pauseNodes[1]: Not found: "charlie-2": Node charlie-2' in done.stderr
    assert done.stderr.count(str(file)) == 2


@pytest.fixture
def manager_down(site: AskedSite) -> Iterator[ControlPlane]:
    """Nobody listens where the API server asks; afterwards it is as before."""
    api, path = site.plane.api, f"{CONFIGURATIONS}/{OBJECTS.configuration.name}"

    def at(port: int) -> None:
        url = f"https://127.0.0.1:{port}{PATH}"
        found = [{"op": "replace", "path": f"/webhooks/{index}/clientConfig/url", "value": url} for index in (0, 1)]
        api.send("PATCH", path, found, {"Content-Type": "application/json-patch+json"})  # type: ignore[arg-type]

    def code() -> int:
        error = refused(lambda: api.create(f"{PLANS}?dryRun=All", plan("canary")))
        return error.code if error else 201

    api.create(PLANS, plan("there"))
    at(1)
    until("the webhook is away", lambda: code() == 500)
    try:
        yield site.plane
    finally:
        at(site.replica.webhook.port)
        until("the webhook is back", lambda: code() == 201)
        api.delete(f"{PLANS}/there")


def test_with_the_manager_down_nothing_is_created_and_nodes_can_be_paused(
    manager_down: ControlPlane, tmp_path: Path
) -> None:
    manager_down.api.patch(f"{PLANS}/there", {"spec": {"nodeUpgradeOption": {"pauseNodes": ["charlie-1-tink-system"]}}})
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan("new"), sort_keys=False), encoding="utf-8")
    done = CommandSite(manager_down).run("apply", str(file), "--yes")
    assert done.returncode == 3
    assert "admission webhook vupgradeplan-v1beta1.kb.io is unavailable: it could not be asked" in done.stderr
    assert "remedy: start the manager" in done.stderr


def test_every_permission_is_used_and_no_call_is_refused(site: AskedSite) -> None:
    """After the other tests of this module."""
    calls = site.plane.audit(since=site.mark, user=USER)
    assert [str(call) for call in calls if call.code == 403] == []
    used = {(call.group, call.resource, call.verb) for call in calls}
    granted = {
        (group, resource, verb)
        for body in objects_of("webhook-rbac")
        for rule in body.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted - used == {("", "secrets", "patch")}, "with which it is renewed (test_webhook_rotation_real.py)"
