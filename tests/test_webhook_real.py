"""The webhook on a real API server: what it refuses, what nobody asks it, and with which permissions it does so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.live import PLANS
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from support.installed import objects_of
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

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]


NOT_HERE = {
    ("", "secrets", "patch"): "a renewal (test_webhook_rotation_real.py)",
    ("longhorn.io", "backingimagemanagers", "list"): "a check before each node",
    ("longhorn.io", "instancemanagers", "list"): "a check before each node",
    ("whereabouts.cni.cncf.io", "ippools", "list"): "a cluster with a storage network",
}
"""What is granted, and who uses it."""


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


def test_every_permission_is_used_and_no_call_is_refused(site: AskedSite) -> None:
    """After the other tests of this module."""
    calls = site.plane.audit(since=site.mark, user=USER)
    assert [str(call) for call in calls if call.code == 403] == []
    used = {(call.group, call.resource, call.verb) for call in calls}
    granted = {
        (group, resource, verb)
        for body in objects_of("checks-rbac", "webhook-rbac")
        for rule in body.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted - used == NOT_HERE.keys()
