"""What can be seen of a cluster is the same for the loop, for a rehearsal, and for a command that looks once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from support.rbac import Rbac
from support.rehearsals import START, inputs_of, template_set
from support.rendered_plans import overlaid

from reconcile.cluster.protocol import AccessReview, Permission
from reconcile.loop.reconciler import Reconciler
from reconcile.observe.cached import CachedSource
from reconcile.observe.source import DirectSource, Source
from reconcile.probes.look import Group, ReadFailure
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from reconcile.simulator.apiserver.requests import Authorizer
from reconcile.simulator.rehearsal.rehearsal import prepare
from reconcile.simulator.rehearsal.watches import WatchedSource
from renderer.assemble import open_template_set
from renderer.model.ref import Body, Ref

KINDS = template_set().catalog.kinds
PHASE = """\
name: Site
description: Waits for the site's token.
status: {active: SiteWaiting, completed: SiteWaited}
deletion: free
steps:
- name: Token
  gates:
  - probe:
      object: {apiVersion: v1, kind: Secret, namespace: harvester-system, name: site-token}
      all: [{field: {path: type, equals: Opaque}}]
"""


def secret(namespace: str, name: str, kind: str = "Opaque") -> Body:
    metadata = {"name": name, "namespace": namespace, "labels": {"of": "site"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind}


TOKEN = secret("harvester-system", "site-token")
OTHER = secret("fleet-local", "other")
PLAN = secret("fleet-local", "plan", "rke.cattle.io/machine-plan")
NODE: Body = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"images": [{"names": ["a"]}], "phase": "Running"},
}


def ref_to(body: Body) -> Ref:
    metadata = body["metadata"]
    return Ref(api_version="v1", kind=body["kind"], namespace=metadata.get("namespace", ""), name=metadata["name"])


# ------------------------------------------------------------------------------------------------ the sources agree


def embedded() -> EmbeddedCluster:
    cluster = EmbeddedCluster(SimulatedClock(START))
    cluster.seed([TOKEN, OTHER, PLAN, NODE])
    return cluster


def direct(cluster: EmbeddedCluster, client: EmbeddedClient) -> Source:
    return DirectSource(client, KINDS)


def watched(cluster: EmbeddedCluster, client: EmbeddedClient) -> Source:
    return WatchedSource(client, cluster.store, KINDS, lambda: 0.0)


def threaded(cluster: EmbeddedCluster, client: EmbeddedClient) -> Source:
    return CachedSource(client, KINDS, lambda ref: None)


Make = Callable[[EmbeddedCluster, EmbeddedClient], Source]


@pytest.fixture(params=[direct, watched, threaded])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


@pytest.fixture
def source(make: Make) -> Iterator[Source]:
    cluster = embedded()
    source = make(cluster, cluster.client())
    yield source
    if isinstance(source, CachedSource):
        source.stop()


@pytest.mark.parametrize("body", [TOKEN, OTHER, PLAN])
def test_a_secret_is_read_by_its_name(source: Source, body: Body) -> None:
    found = source.get(ref_to(body))
    assert isinstance(found, dict)
    assert found["type"] == body["type"]


def test_a_secret_that_does_not_exist_is_absent(source: Source) -> None:
    assert source.get(ref_to(TOKEN)._replace(name="none")) is None
    assert source.get(ref_to(PLAN)._replace(name="none")) is None


@pytest.mark.parametrize("labels", [(), (("of", "site"),)])
def test_of_secrets_machine_plans_are_listed(source: Source, labels: tuple[tuple[str, str], ...]) -> None:
    found = source.list(Group(api_version="v1", kind="Secret", namespace="fleet-local", labels=labels))
    assert isinstance(found, tuple)
    assert [body["metadata"]["name"] for body in found] == ["plan"]


@pytest.mark.parametrize("namespace", ["", "harvester-system"])
def test_other_secrets_are_not_listed_and_that_is_said(source: Source, namespace: str) -> None:
    found = source.list(Group(api_version="v1", kind="Secret", namespace=namespace))
    assert isinstance(found, ReadFailure)
    assert found.text == (
        "of Secret objects only the machine plans of fleet-local are listed; "
        "name the Secret: each one is read by its name"
    )


def test_a_node_s_images_are_left_out(source: Source) -> None:
    listed = source.list(Group(api_version="v1", kind="Node"))
    assert isinstance(listed, tuple)
    for found in (source.get(ref_to(NODE)), *listed):
        assert isinstance(found, dict)
        assert "images" not in found["status"]


def test_a_missing_right_is_told_with_its_rule(make: Make) -> None:
    cluster = embedded()
    client = cluster.client(access=Rbac(cluster.store.everything(), namespace="default", account="nobody"))
    found = make(cluster, client).get(ref_to(TOKEN))
    assert isinstance(found, ReadFailure)
    assert found.text == (
        "not allowed: get secrets site-token in namespace harvester-system; add to a Role in namespace "
        'harvester-system: {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], '
        '"resourceNames": ["site-token"]}'
    )


# ------------------------------------------------------------------------------------- an overlay's gate on a Secret


class NoSecretByName:
    """Everything but `get` on Secrets outside fleet-local: what the manager's own Role allows."""

    def verdict(self, permission: Permission) -> AccessReview:
        is_secret = (permission.verb, permission.resource) == ("get", "secrets")
        return AccessReview(allowed=not is_secret or permission.namespace == "fleet-local")


def waits_for_a_secret(*more: Body, access: Authorizer | None = None) -> list[str]:
    """What the plan waits for in the overlay's step, once it has come there; nothing if the step is over."""
    scene = prepare(inputs_of("single-node"), open_template_set(overlaid({"15-site/phase.yaml": PHASE})), start=START)
    scene.cluster.seed(more)
    client = scene.cluster.client(access=access)
    source = WatchedSource(client, scene.cluster.store, KINDS, lambda: 0.0)
    loop = Reconciler(replace(scene.deps, source=source))
    done = [loop.round(scene.name) for _ in range(12)][-1]
    assert done.decision is not None
    assert "Site" in {phase for phase, _ in done.decision.status.records}
    return [wait.text for wait in done.decision.waits if wait.step == "Site/Token"]


@pytest.mark.slow
def test_it_passes_once_the_secret_is_there() -> None:
    assert waits_for_a_secret(TOKEN) == []


@pytest.mark.slow
def test_it_waits_while_there_is_no_secret() -> None:
    assert waits_for_a_secret() == ["Secret harvester-system/site-token does not exist"]


@pytest.mark.slow
def test_it_names_the_rule_where_the_secret_may_not_be_read() -> None:
    [text] = waits_for_a_secret(TOKEN, access=NoSecretByName())
    assert text == (
        "Secret harvester-system/site-token could not be read: not allowed: get secrets site-token in namespace "
        'harvester-system; add to a Role in namespace harvester-system: {"apiGroups": [""], '
        '"resources": ["secrets"], "verbs": ["get"], "resourceNames": ["site-token"]}'
    )
