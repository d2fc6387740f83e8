"""The Secret of the webhook's certificates: who writes it, who only reads it, and whose it is."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from controlplane.waiting import until
from support.small_cluster import world

from reconcile.admission.certificates import Validity, new_authority, new_serving_pair
from reconcile.admission.rotation import Lifetimes, Material, next_material
from reconcile.admission.stored import SECRET, WebhookObjects, data_of, material_in, new_secret
from reconcile.admission.upkeep import CertificateUpkeep, UpkeepConfig
from reconcile.admission.webhook_server import ServingCertificate
from reconcile.cluster.errors import NotFound
from reconcile.cluster.protocol import Cluster

OBJECTS = WebhookObjects(namespace="harvester-system")
NAMES = (f"{OBJECTS.service}.harvester-system.svc", f"{OBJECTS.service}.harvester-system.svc.cluster.local")
NOW = datetime(2026, 11, 2, 8, tzinfo=UTC)


@dataclass
class Kept:
    """An upkeep at work, and what it serves and says. `served` has one entry a certificate."""

    upkeep: CertificateUpkeep
    served: list[ServingCertificate] = field(default_factory=list)
    lines: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def why(self) -> list[str]:
        return [str(fields["why"]) for what, fields in self.lines if what == "webhook not ready"]


@contextmanager
def kept(cluster: Cluster, *, leads: bool = True, now: datetime = NOW) -> Iterator[Kept]:
    served: list[ServingCertificate] = []
    lines: list[tuple[str, Mapping[str, Any]]] = []
    upkeep = CertificateUpkeep(
        UpkeepConfig(
            cluster=cluster,
            objects=OBJECTS,
            leads=lambda: leads,
            serve=served.append,
            log=lambda what, fields: lines.append((what, fields)),
            now=lambda: now,
            clock=time.monotonic,
            random=random.random,
        )
    )
    upkeep.start()
    try:
        yield Kept(upkeep, served, lines)
    finally:
        upkeep.stop()


@pytest.fixture
def cluster() -> Cluster:
    return world().scene.cluster.client()


def secret(cluster: Cluster) -> Any:
    try:
        return cluster.get(SECRET, OBJECTS.secret).body
    except NotFound:
        return None


def material(now: datetime = NOW) -> Material:
    return next_material(Material(), NAMES, now, Lifetimes(), None)


def test_the_leader_makes_it_and_every_replica_serves_it(cluster: Cluster) -> None:
    with kept(cluster, leads=False) as other, kept(cluster) as leader:
        until("both serve", lambda: leader.served and other.served)
        assert leader.served == other.served
    found = secret(cluster)
    assert found["type"] == "kubernetes.io/tls"
    assert set(found["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert material_in(found).serving.certificate == leader.served[0].certificate
    assert [what for what, _ in leader.lines] == ["webhook certificate"]
    assert other.lines == []


def test_the_next_leader_goes_on_with_what_there_is(cluster: Cluster) -> None:
    with kept(cluster) as first:
        until("it serves", lambda: first.served)
    before = secret(cluster)
    with kept(cluster) as second:
        until("it serves", lambda: second.served)
        assert second.upkeep.look() > 2
    assert secret(cluster) == before
    with kept(cluster, now=NOW + timedelta(days=75)) as third:
        until("it is renewed", lambda: len(third.served) == 2)
    renewed = material_in(secret(cluster))
    assert renewed.authorities == material_in(before).authorities
    assert renewed.serving != material_in(before).serving


def test_two_that_believe_to_lead_end_with_one_secret(cluster: Cluster) -> None:
    with kept(cluster) as one, kept(cluster) as another:
        until("both serve the same", lambda: one.served and another.served and one.served[-1] == another.served[-1])
        found = material_in(secret(cluster))
        assert one.served[-1].certificate == found.serving.certificate
    assert one.why() == another.why() == []


@pytest.mark.parametrize("data", [{}, {"tls.crt": "eA=="}, {"tls.crt": "eA==", "tls.key": "eA==", "ca.crt": "eA=="}])
def test_one_of_ours_that_is_broken_is_made_again(cluster: Cluster, data: Mapping[str, str]) -> None:
    cluster.create(SECRET, {**new_secret(material(), OBJECTS.secret), "type": "Opaque", "data": data})
    with kept(cluster) as leader:
        until("it serves", lambda: leader.served)


def test_one_that_is_deleted_comes_back(cluster: Cluster) -> None:
    with kept(cluster) as leader:
        until("it serves", lambda: leader.served)
        cluster.delete(SECRET, OBJECTS.secret)
        until("it serves another", lambda: len(leader.served) == 2)


def somebody_elses(found: Material) -> Any:
    body = new_secret(found, OBJECTS.secret)
    data = {key: value for key, value in data_of(found).items() if key != "ca.key"}
    return {**body, "metadata": {**body["metadata"], "labels": {"app": "another"}}, "data": data}


def test_somebody_elses_is_served_and_never_written(cluster: Cluster) -> None:
    cluster.create(SECRET, somebody_elses(material()))
    before = secret(cluster)
    with kept(cluster, now=NOW + timedelta(days=89)) as leader:
        until("it serves", lambda: leader.served)
        leader.upkeep.look()
        assert leader.why() == []
    assert secret(cluster) == before


def test_what_is_wrong_with_somebody_elses_is_said_once(cluster: Cluster) -> None:
    valid = Validity(not_before=NOW - timedelta(days=2), not_after=NOW - timedelta(days=1))
    authority = new_authority(valid)
    wrong = Material(authorities=(authority.certificate,), serving=new_serving_pair(authority, ["other"], valid))
    cluster.create(SECRET, somebody_elses(wrong))
    before = secret(cluster)
    with kept(cluster) as leader:
        until("it is said", leader.why)
        leader.upkeep.look()
        assert leader.why() == [
            "Secret harvester-system/harvester-upgrade-manager-webhook-certificate: tls.crt has expired at "
            f"2026-11-01T08:00:00Z; tls.crt is not for {', '.join(NAMES)}"
        ]
    assert secret(cluster) == before
