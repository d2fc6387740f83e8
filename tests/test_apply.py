"""Applying, borrowing and giving back: the same tests on the embedded cluster and on a real API server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path as File
from typing import Any

import pytest
import yaml
from controlplane import waiting
from support.rbac import Rbac

from reconcile.act.applied import Applied, ApplyResult
from reconcile.act.apply import ObjectWriter
from reconcile.act.belonging import Plan
from reconcile.act.dry_run import try_phase
from reconcile.borrow.loan import Loan, on_loan, record, settle
from reconcile.borrow.returns import plan_return
from reconcile.borrow.take import Taking, plan_take
from reconcile.cluster.client import connect
from reconcile.cluster.errors import AlreadyExists, Away, Conflict, NotFound, without_dumps
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster
from reconcile.objects import FIELD_MANAGER, PLAN_LABEL
from reconcile.schemas import packaged_schemas
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.catalog.declare import step_from
from renderer.catalog.kinds import Kinds, rows_from
from renderer.digest import digest_of, short_digest
from renderer.model.manifest_spec import ManifestSpec, Occasion, Owned
from renderer.model.path import parse_path
from renderer.model.phase import Deletion, Phase, Position, Step
from renderer.model.ref import Body, Kind, Ref, ref_of
from renderer.model.rendered import Manifest, RenderedPhase, RenderedStep
from renderer.render.manifest import in_order

ROOT = File(__file__).resolve().parents[1]
START = datetime(2026, 11, 28, 12, 0, 0, tzinfo=UTC)
KINDS = Kinds(
    row
    for file in sorted((ROOT / "templates" / "_kinds").glob("*.yaml"))
    for row in rows_from(yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
)
SCHEMAS = packaged_schemas()
QUANTITIES = SCHEMAS.quantities_of({})  # nothing that is borrowed here has any
NAMESPACE = "apply"


@dataclass
class ApplyStage:
    """A cluster with a namespace and a plan; `requests` tells what was asked since it was asked last, writes first."""

    cluster: Cluster
    plan: Plan
    requests: Callable[[], tuple[int, int]]
    settle: Callable[[Callable[[], bool]], object]
    account: Callable[[str], Cluster]

    @property
    def writer(self) -> ObjectWriter:
        return ObjectWriter(cluster=self.cluster, kinds=KINDS, schemas=SCHEMAS, plan=self.plan)

    def kind(self, body: Body) -> Kind:
        return KINDS.row(body["apiVersion"], body["kind"]).kind

    def get(self, body: Body) -> Body | None:
        try:
            return self.cluster.get(self.kind(body), ref_of(body)).body
        except NotFound:
            return None

    def there(self, body: Body) -> Body:
        found = self.get(body)
        assert found is not None
        return found

    def delete(self, kind: Kind, ref: Ref) -> None:
        self.cluster.delete(kind, ref)

    def create(self, body: Body, manager: str = "kubectl") -> Body:
        return self.cluster.create(self.kind(body), body, field_manager=manager).body

    def own(self, manifest: Manifest, recorded: str | None = None) -> Applied:
        return self.writer.own(manifest, self.get(manifest.body), recorded=recorded)

    def take(self, manifest: Manifest, loans: tuple[Loan, ...] = ()) -> tuple[Applied | None, tuple[Loan, ...]]:
        """As the loop does: look, plan, record, write."""
        plan = plan_take(manifest.body, spec_of(manifest), self.get(manifest.body), QUANTITIES)
        recorded = record(loans, plan.originals, phase="P", step="S", ref=manifest.ref, taken="2026-11-28T12:00:00Z")
        return (self.writer.take(manifest, plan.patch) if plan.patch else None), recorded

    def write_return(
        self, manifest: Manifest, loans: tuple[Loan, ...], occasion: Occasion
    ) -> tuple[Applied, tuple[Loan, ...]]:
        live = self.get(manifest.body)
        plan = plan_return(manifest.body, spec_of(manifest), live, loans, occasion, QUANTITIES)
        left = settle(loans, plan.settled, "2026-11-28T13:00:00Z")
        last = not on_loan(left, manifest.ref)
        return self.writer.write_return(manifest.ref, live, plan.patch, last=last), left


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.controlplane)])
def stage(request: pytest.FixtureRequest) -> ApplyStage:
    return embedded() if request.param == "embedded" else real(request.getfixturevalue("control_plane"))


def embedded() -> ApplyStage:
    whole = EmbeddedCluster(SimulatedClock(START))
    client = whole.client()
    mark = 0

    def requests() -> tuple[int, int]:
        nonlocal mark
        new = client.log.requests[mark:]
        mark = len(client.log.requests)
        return sum(request.writes for request in new), len(new)

    def settle(done: Callable[[], bool]) -> None:
        whole.collect()
        assert done()

    def account(name: str) -> Cluster:
        return whole.client(access=Rbac(whole.store.everything(), namespace=NAMESPACE, account=name))

    return begun(client, requests, settle, account)


def real(plane: Any) -> ApplyStage:
    client = client_by(plane.kubeconfig)
    mark = plane.audit_mark()

    def requests() -> tuple[int, int]:
        nonlocal mark
        events = [event for event in plane.audit(since=mark, user="admin") if event.user_agent == "upgradeplan"]
        mark = plane.audit_mark()
        return sum(event.verb != "get" and "dryRun" not in event.uri for event in events), len(events)

    def account(name: str) -> Cluster:
        return client_by(plane.service_account_kubeconfig(NAMESPACE, name))

    return begun(client, requests, lambda done: waiting.until("controllers", done), account)


def client_by(kubeconfig: File) -> Cluster:
    access = find_access({}, kubeconfig=os.fspath(kubeconfig))
    return connect(access, environ={}, now=lambda: datetime.now(UTC))


def begun(
    cluster: Cluster,
    requests: Callable[[], tuple[int, int]],
    settle: Callable[[Callable[[], bool]], object],
    account: Callable[[str], Cluster],
) -> ApplyStage:
    """Empties what an earlier test has left on a cluster that all of them share."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    with suppress(AlreadyExists):
        cluster.create(KINDS.row("v1", "Namespace").kind, namespace)
    stage = ApplyStage(cluster=cluster, plan=made_plan(cluster), requests=requests, settle=settle, account=account)
    maps = (config_map(name) for name in ("it", "it-true", "it-false"))
    for body in (*maps, job(), setting(), chart()):
        with suppress(NotFound):
            stage.delete(stage.kind(body), ref_of(body))
    requests()
    return stage


def made_plan(cluster: Cluster) -> Plan:
    body = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "up"},
        "spec": {"version": "v1.8.0"},
    }
    kind = KINDS.row("management.harvesterhci.io/v1beta1", "UpgradePlan").kind
    with suppress(AlreadyExists):
        cluster.create(kind, body)
    return Plan.of(cluster.get(kind, ref_of(body)).body)


def spec_of(manifest: Manifest) -> Any:
    return manifest.spec


def owned(body: Body, **parts: Any) -> Manifest:
    return made(body, Owned(file="it.yaml.j2", **parts))


def borrowed(body: Body, **declared: Any) -> Manifest:
    raw = {"name": "S", "borrowed": [{"file": "it.yaml.j2", **declared}]}
    return made(body, step_from(raw, Position.DURING).manifests[0])


def made(body: Body, spec: ManifestSpec, **parts: Any) -> Manifest:
    return Manifest(
        file="60-x/it.yaml",
        template="60-x/it.yaml.j2",
        spec=spec,
        body=body,
        run_time=(),
        images=(),
        digest=digest_of(body),
        **parts,
    )


def config_map(name: str = "it", labels: Mapping[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"a": "1"}}


def job(image: str = "example/it:1", secret: str = "letmein") -> dict[str, Any]:
    container = {"name": "it", "image": image, "env": [{"name": "P", "value": secret}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "it", "namespace": NAMESPACE},
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def setting(value: str | None = None) -> dict[str, Any]:
    metadata = {"name": "replica-replenishment-wait-interval", "namespace": NAMESPACE}
    body = {"apiVersion": "longhorn.io/v1beta2", "kind": "Setting", "metadata": metadata}
    return body if value is None else {**body, "value": value}


def managers(body: Body) -> set[tuple[str, str]]:
    return {(entry["manager"], entry["operation"]) for entry in body["metadata"].get("managedFields") or ()}


# ---------------------------------------------------------------------------------------------------------- owned


def test_what_is_made_is_labelled_and_owned(stage: ApplyStage) -> None:
    manifest = owned(config_map(a="1"))

    applied = stage.own(manifest)

    assert applied.outcome is ApplyResult.CREATED
    metadata = stage.there(manifest.body)["metadata"]
    assert metadata["labels"] == {PLAN_LABEL: "up"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "management.harvesterhci.io/v1beta1",
            "kind": "UpgradePlan",
            "name": "up",
            "uid": stage.plan.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert managers(applied.body or {}) == {(FIELD_MANAGER, "Apply")}


def test_the_second_time_nothing_is_asked(stage: ApplyStage) -> None:
    manifest = owned(config_map(a="1"))
    stage.own(manifest)
    live = stage.there(manifest.body)
    stage.requests()

    applied = stage.writer.own(manifest, live, recorded=short_digest(manifest.digest))

    assert applied.outcome is ApplyResult.UNCHANGED
    assert stage.requests() == (0, 0)


def test_the_second_time_without_a_record_nothing_is_written(stage: ApplyStage) -> None:
    manifest = owned(job())
    assert stage.own(manifest).outcome is ApplyResult.CREATED
    live = stage.there(manifest.body)
    stage.requests()

    assert stage.own(manifest).outcome is ApplyResult.UNCHANGED

    assert stage.requests() == (0, 2)
    assert stage.there(manifest.body)["metadata"]["uid"] == live["metadata"]["uid"]


def test_a_field_that_is_no_longer_expected_is_a_change(stage: ApplyStage) -> None:
    """It cannot be seen by looking whether the live object has all that is expected."""
    stage.own(owned(config_map(a="1", b="2")))

    assert stage.own(owned(config_map(a="1"))).outcome is ApplyResult.CHANGED

    assert stage.there(config_map())["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("labels", "owner", "says"),
    [
        ({}, None, "does not belong to an upgrade plan"),
        ({"app": "x"}, None, "does not belong to an upgrade plan"),
        ({PLAN_LABEL: "other"}, None, "belongs to plan 'other'"),
        ({PLAN_LABEL: "up"}, ("Deployment", "web"), "is controlled by Deployment web"),
        ({PLAN_LABEL: "up"}, ("UpgradePlan", "up"), "belongs to an earlier plan of the same name"),
    ],
)
def test_what_is_not_ours_is_refused(
    stage: ApplyStage, labels: Mapping[str, str], owner: tuple[str, str] | None, says: str
) -> None:
    body = config_map(labels=labels, a="theirs")
    if owner:
        kind, name = owner
        uid = "00000000-0000-4000-8000-000000000000"
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
        body["metadata"]["ownerReferences"] = [reference]
    before = stage.create(body)
    stage.requests()

    applied = stage.writer.own(owned(config_map(a="ours")), before)

    assert applied.outcome is ApplyResult.REFUSED
    assert applied.problem is not None
    assert applied.problem.reason == "NotOurs"
    assert f"ConfigMap {NAMESPACE}/it exists and {says}" in applied.problem.message
    assert stage.requests() == (0, 0)


def test_what_an_agent_has_brought_for_this_plan_is_adopted(stage: ApplyStage) -> None:
    labels = {PLAN_LABEL: "up"}
    stage.create(config_map(labels=labels, a="1"), manager="fleet")

    assert stage.own(owned(config_map(labels=labels, a="1"))).outcome is ApplyResult.ADOPTED

    live = stage.there(config_map())
    assert [owner["uid"] for owner in live["metadata"]["ownerReferences"]] == [stage.plan.uid]
    assert managers(live) == {("fleet", "Update"), (FIELD_MANAGER, "Apply")}
    assert stage.own(owned(config_map(labels=labels, a="1"))).outcome is ApplyResult.UNCHANGED


def of_the_other_manager(stage: ApplyStage, image: str = "example/other:1", **spec: Any) -> Body:
    """The Job as the Harvester Upgrade Manager makes it for this very plan."""
    body = job(image=image)
    metadata = {**body["metadata"], "labels": {PLAN_LABEL: "up"}, "ownerReferences": [stage.plan.reference()]}
    whole = {key: value for key, value in body["spec"].items() if key != "backoffLimit"}
    return stage.create({**body, "metadata": metadata, "spec": {**whole, **spec}}, manager="manager")


@pytest.mark.parametrize("image", ["example/it:1", "example/other:1"])
def test_what_the_other_manager_has_made_for_this_plan_stays_as_it_is(stage: ApplyStage, image: str) -> None:
    """Be it that its fields are in conflict with ours, or that a Job's pods may not be changed."""
    live = of_the_other_manager(stage, image=image)
    applied = stage.own(owned(job()))
    assert (applied.outcome, applied.problem) == (ApplyResult.ADOPTED, None)
    assert applied.because == "Job apply/it was created for this plan by another manager and stays as it is"
    there = stage.there(job())
    assert there["spec"] == live["spec"]
    assert FIELD_MANAGER not in {manager for manager, _ in managers(there)}


def test_of_what_is_taken_over_only_what_is_declared_changes(stage: ApplyStage) -> None:
    live = of_the_other_manager(stage, suspend=True)
    manifest = made(job(), Owned(file="it.yaml.j2", set_on_take_over=(("spec", "suspend"),)))
    applied = stage.own(manifest)
    while applied.outcome is ApplyResult.STALE:  # its own controller writes meanwhile, and the loop reads again then
        applied = stage.own(manifest)
    assert applied.outcome is ApplyResult.ADOPTED
    assert stage.there(job())["spec"] == {**live["spec"], "suspend": False}
    stage.requests()
    assert stage.own(manifest).outcome is ApplyResult.ADOPTED
    assert stage.requests()[0] == 0


def test_a_field_of_another_manager_is_never_forced(stage: ApplyStage) -> None:
    stage.create(config_map(labels={PLAN_LABEL: "up"}, a="theirs"), manager="fleet")

    applied = stage.own(owned(config_map(a="ours")))

    assert applied.outcome is ApplyResult.REFUSED
    assert isinstance(applied.error, Conflict)
    assert [(claim.manager, claim.field) for claim in applied.error.claims] == [("fleet", ".data.a")]
    assert applied.problem is not None
    assert "held by another field manager: .data.a (held by 'fleet')" in applied.problem.message
    assert applied.problem.file == "60-x/it.yaml"
    assert stage.there(config_map())["data"] == {"a": "theirs"}


def test_an_immutable_field_is_refused_in_few_words(stage: ApplyStage) -> None:
    """The server repeats the whole pod template, environment and all."""
    stage.own(owned(job(image="example/it:1")))

    applied = stage.own(owned(job(image="example/it:2")))

    assert applied.outcome is ApplyResult.REFUSED
    assert applied.problem is not None
    assert (applied.problem.reason, applied.problem.field) == ("Immutable", "spec.template")
    assert applied.problem.message == f"Job {NAMESPACE}/it is invalid: field is immutable"


def test_dumps_are_cut_and_short_values_stay() -> None:
    assert without_dumps(f"x: Invalid value: {'v' * 99}: field is immutable") == "x: field is immutable"
    short = "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    assert without_dumps(short) == short


def test_what_is_being_deleted_is_waited_for(stage: ApplyStage) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["example.org/hold"]
    stage.own(owned(body))
    stage.delete(stage.kind(body), ref_of(body))

    applied = stage.own(owned(config_map(a="2")))

    assert applied.outcome is ApplyResult.WAITING
    assert "is being deleted (since " in applied.because
    stage.cluster.patch(stage.kind(body), ref_of(body), {"metadata": {"finalizers": None}})


def test_what_was_made_and_is_gone_is_not_made_again(stage: ApplyStage) -> None:
    manifest = owned(job())
    applied = stage.own(manifest, recorded=manifest.digest)
    assert applied.outcome is ApplyResult.MISSING
    assert (
        applied.because
        == f"Job {NAMESPACE}/it was created and is gone; run-once objects are never recreated automatically"
    )
    assert stage.get(manifest.body) is None


def test_what_is_maintained_is_made_again(stage: ApplyStage) -> None:
    manifest = owned(config_map(), maintained=True)
    assert stage.own(manifest, recorded=manifest.digest).outcome is ApplyResult.CREATED


def test_what_goes_between_look_and_write_is_not_made_again(stage: ApplyStage) -> None:
    manifest = owned(config_map(a="1"))
    stage.own(manifest)
    live = stage.there(manifest.body)
    stage.delete(stage.kind(live), ref_of(live))

    applied = stage.writer.own(owned(config_map(a="2")), live)

    assert applied.outcome is ApplyResult.STALE
    assert stage.get(manifest.body) is None


def test_a_successor_of_the_same_name_is_left_alone(stage: ApplyStage) -> None:
    manifest = owned(config_map(a="1"))
    stage.own(manifest)
    live = stage.there(manifest.body)
    stage.delete(stage.kind(live), ref_of(live))
    stage.create(config_map(labels={PLAN_LABEL: "up"}, a="1"))

    assert stage.writer.own(owned(config_map(a="1", b="2")), live).outcome is ApplyResult.STALE

    assert stage.there(config_map())["data"] == {"a": "1"}


def test_drift_is_mended_on_what_is_maintained_only(stage: ApplyStage) -> None:
    for maintained, outcome in ((False, ApplyResult.UNCHANGED), (True, ApplyResult.CHANGED)):
        manifest = owned(config_map(name=f"it-{maintained}".lower(), a="1"), maintained=maintained)
        stage.own(manifest)
        patch = {"data": {"a": None}}
        stage.cluster.patch(stage.kind(manifest.body), manifest.ref, patch, field_manager="kubectl")
        assert stage.own(manifest, recorded=manifest.digest).outcome is outcome
        assert ("data" in stage.there(manifest.body)) is maintained
        stage.requests()
        assert stage.own(manifest, recorded=manifest.digest).outcome is ApplyResult.UNCHANGED
        assert stage.requests() == (0, 1)


def test_a_missing_namespace_is_the_objects_problem(stage: ApplyStage) -> None:
    body = config_map()
    body["metadata"]["namespace"] = "nowhere"
    applied = stage.own(owned(body))
    assert applied.outcome is ApplyResult.REFUSED
    assert applied.problem is not None
    assert applied.problem.message == "Namespace nowhere not found"


def test_a_value_that_is_known_at_run_time_only_is_not_sent(stage: ApplyStage) -> None:
    manifest = replace(owned(config_map(a="<captured>")), run_time=(parse_path("data.a"),))
    for applied in (stage.writer.own(manifest, None), stage.writer.take(manifest, any_patch())):
        assert applied.outcome is ApplyResult.REFUSED
        assert applied.problem is not None
        assert applied.problem.reason == "RunTimeValue"
    assert stage.requests() == (0, 0)


def any_patch() -> Any:
    plan = plan_take(setting("1800"), spec_of(borrowed(setting("1"), **{"return": "never"})), setting("1"), QUANTITIES)
    assert plan.patch is not None
    return plan.patch


def test_an_absent_cluster_is_nobodys_result() -> None:
    whole = EmbeddedCluster(SimulatedClock(START))
    client = whole.client()
    stage = begun(client, lambda: (0, 0), lambda done: None, lambda name: client)
    client.faults.add(InjectedApiFault(trouble=ApiFault.AWAY, verb="apply"))
    with pytest.raises(Away):
        stage.own(owned(config_map()))


def test_what_others_stand_in_comes_first() -> None:
    kinds = [
        "Deployment",
        "ConfigMap",
        "ValidatingAdmissionPolicy",
        "RoleBinding",
        "Job",
        "Role",
        "Namespace",
        "Secret",
    ]
    kinds += ["CustomResourceDefinition", "ServiceAccount"]
    bodies = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "it"}} for kind in kinds]
    assert [manifest.ref.kind for manifest in in_order(map(owned, bodies))] == [
        "Namespace",
        "CustomResourceDefinition",
        "Role",
        "ServiceAccount",
        "RoleBinding",
        "ConfigMap",
        "Secret",
        "Deployment",
        "Job",
        "ValidatingAdmissionPolicy",
    ]


# -------------------------------------------------------------------------------------------------------- borrowed


def test_nothing_of_us_is_left_after_giving_back(stage: ApplyStage) -> None:
    """And the next server-side apply of somebody else succeeds."""
    manifest = borrowed(setting("1800"), raiseOnly=True, **{"return": "always"})
    stage.create({**setting("600"), "status": {"applied": True}}, manager="longhorn")
    stage.cluster.patch(
        stage.kind(setting()), manifest.ref, {"metadata": {"labels": {"a": "b"}}}, field_manager="longhorn"
    )

    applied, loans = stage.take(manifest)
    assert applied is not None
    assert applied.outcome is ApplyResult.TAKEN
    assert stage.there(setting())["value"] == "1800"
    assert (FIELD_MANAGER, "Update") in managers(stage.there(setting()))

    returned, left = stage.write_return(manifest, loans, Occasion.SUCCESS)

    assert returned.outcome is ApplyResult.RETURNED
    assert on_loan(left, manifest.ref) == ()
    live = stage.there(setting())
    assert live["value"] == "600"
    assert {manager for manager, _ in managers(live)} == {"longhorn"}
    stage.cluster.apply(stage.kind(setting()), setting("900"), field_manager="other")


def test_a_sole_claim_goes_too(stage: ApplyStage) -> None:
    """We took the only field that anybody held: the server would ignore an empty list of claims."""
    manifest = borrowed(setting("1800"), **{"return": "always"})
    stage.create(setting("600"), manager="longhorn")

    _, loans = stage.take(manifest)
    assert managers(stage.there(setting())) == {(FIELD_MANAGER, "Update")}
    stage.write_return(manifest, loans, Occasion.ABORT)

    assert managers(stage.there(setting())) == set()
    assert stage.there(setting())["value"] == "600"
    stage.cluster.patch(stage.kind(setting()), manifest.ref, {"value": "700"}, field_manager="longhorn")


def test_the_second_time_nothing_is_borrowed(stage: ApplyStage) -> None:
    manifest = borrowed(setting("1800"), raiseOnly=True, **{"return": "always"})
    stage.create(setting("600"))
    _, loans = stage.take(manifest)
    stage.requests()

    applied, again = stage.take(manifest, loans)

    assert (applied, again) == (None, loans)
    assert stage.requests() == (0, 1)


def test_giving_back_twice_writes_once(stage: ApplyStage) -> None:
    manifest = borrowed(setting("1800"), **{"return": "always"})
    stage.create(setting("600"))
    _, loans = stage.take(manifest)
    _, left = stage.write_return(manifest, loans, Occasion.SUCCESS)
    stage.requests()

    applied, _ = stage.write_return(manifest, left, Occasion.SUCCESS)

    assert applied.outcome is ApplyResult.UNCHANGED
    assert stage.requests() == (0, 1)


def test_a_claim_stays_while_anything_is_on_loan(stage: ApplyStage) -> None:
    manifest = borrowed(setting("1800"), **{"return": "always"})
    stage.create(setting("600"))
    _, loans = stage.take(manifest)
    live = stage.there(setting())
    plan = plan_return(manifest.body, spec_of(manifest), live, loans, Occasion.SUCCESS, QUANTITIES)

    stage.writer.write_return(manifest.ref, live, plan.patch, last=False)

    assert (FIELD_MANAGER, "Update") in managers(stage.there(setting()))


def test_an_object_that_is_gone_needs_nothing_back(stage: ApplyStage) -> None:
    manifest = borrowed(setting("1800"), **{"return": "always"})
    assert stage.writer.write_return(manifest.ref, None, None, last=True).outcome is ApplyResult.UNCHANGED
    live = stage.create(setting("1800"))
    stage.delete(stage.kind(live), manifest.ref)
    assert stage.writer.write_return(manifest.ref, live, any_patch(), last=True).outcome is ApplyResult.STALE


COMPARE_PATCHES = {"path": "spec.diff.comparePatches", "keys": ["apiVersion", "kind", "name"], "values": "jsonPointers"}
POINTER = "/spec/workloadUpdateStrategy/workloadUpdateMethods"


def chart(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "management.cattle.io/v3",
        "kind": "ManagedChart",
        "metadata": {"name": "harvester", "namespace": NAMESPACE},
        "spec": {"diff": {"comparePatches": list(entries)}},
    }


def entry(kind: str, *pointers: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "kubevirt", "jsonPointers": list(pointers), **more}


def test_a_list_that_others_change_meanwhile_is_read_again(stage: ApplyStage) -> None:
    """Their entry came after we had looked: our stale list is refused, the next look has both, and only ours goes."""
    manifest = borrowed(chart(entry("KubeVirt", POINTER)), union=COMPARE_PATCHES, **{"return": "always"})
    stage.create(chart(entry("CDI", "/a", operations=None)))
    stale = plan_take(manifest.body, spec_of(manifest), stage.there(chart()), QUANTITIES)
    theirs = [entry("CDI", "/a"), entry("Other", "/b")]
    stage.cluster.patch(stage.kind(chart()), manifest.ref, chart(*theirs), field_manager="rancher")

    assert stale.patch is not None
    assert stage.writer.take(manifest, stale.patch).outcome is ApplyResult.STALE
    applied, loans = stage.take(manifest)

    assert applied is not None
    assert applied.outcome is ApplyResult.TAKEN
    assert entries(stage.there(chart())) == ["CDI", "Other", "KubeVirt"]
    stage.write_return(manifest, loans, Occasion.SUCCESS)
    assert entries(stage.there(chart())) == ["CDI", "Other"]
    assert FIELD_MANAGER not in {manager for manager, _ in managers(stage.there(chart()))}


def entries(body: Body) -> list[str]:
    return [str(item["kind"]) for item in body["spec"]["diff"]["comparePatches"]]


def test_nulls_of_others_survive(stage: ApplyStage) -> None:
    manifest = borrowed(chart(entry("KubeVirt", POINTER)), union=COMPARE_PATCHES, **{"return": "always"})
    before = stage.create(chart(entry("CDI", "/a", operations=None)))
    assert before["spec"]["diff"]["comparePatches"][0]["operations"] is None

    _, loans = stage.take(manifest)
    assert stage.there(chart())["spec"]["diff"]["comparePatches"][0]["operations"] is None
    stage.write_return(manifest, loans, Occasion.SUCCESS)

    assert stage.there(chart())["spec"] == before["spec"]


def test_what_changes_between_look_and_return_is_not_overwritten(stage: ApplyStage) -> None:
    manifest = borrowed(setting("1800"), **{"return": "always"})
    stage.create(setting("600"))
    _, loans = stage.take(manifest)
    live = stage.there(setting())
    plan = plan_return(manifest.body, spec_of(manifest), live, loans, Occasion.SUCCESS, QUANTITIES)
    stage.cluster.patch(stage.kind(setting()), manifest.ref, {"value": "3600"}, field_manager="operator")

    assert stage.writer.write_return(manifest.ref, live, plan.patch, last=True).outcome is ApplyResult.STALE
    applied, left = stage.write_return(manifest, loans, Occasion.SUCCESS)

    assert stage.there(setting())["value"] == "3600"
    assert on_loan(left, manifest.ref) == ()
    assert applied.outcome is ApplyResult.UNCHANGED


def test_claims_that_change_meanwhile_are_read_again(stage: ApplyStage) -> None:
    manifest = borrowed(setting("1800"), **{"return": "always"})
    stage.create(setting("600"), manager="longhorn")
    stage.take(manifest)
    live = stage.there(setting())
    stage.cluster.patch(
        stage.kind(setting()), manifest.ref, {"metadata": {"labels": {"a": "b"}}}, field_manager="another"
    )

    assert stage.writer.write_return(manifest.ref, live, None, last=True).outcome is ApplyResult.STALE


def test_an_undeclared_field_is_refused(stage: ApplyStage) -> None:
    manifest = borrowed({**setting("1800"), "valeu": "1"}, **{"return": "never"})
    stage.create(setting("600"))
    applied, _ = stage.take(manifest)
    assert applied is not None
    assert applied.outcome is ApplyResult.REFUSED
    assert applied.problem is not None
    assert applied.problem.field == "valeu"


def test_a_dry_run_changes_nothing(stage: ApplyStage) -> None:
    trying = replace(stage.writer, dry_run=True)
    live = stage.create(setting("600"))
    manifest = borrowed(setting("1800"), **{"return": "always"})
    plan = plan_take(manifest.body, spec_of(manifest), live, QUANTITIES)
    assert plan.taking is Taking.TAKE
    assert plan.patch is not None
    stage.requests()

    taken = trying.take(manifest, plan.patch)
    made_ = trying.own(owned(config_map()), None)

    assert (taken.outcome, made_.outcome) == (ApplyResult.TAKEN, ApplyResult.CREATED)
    assert (taken.body or {})["value"] == "1800"
    assert stage.requests() == (0, 2)
    assert stage.there(setting())["value"] == "600"
    assert stage.get(config_map()) is None


def test_a_dry_run_of_giving_back_changes_nothing(stage: ApplyStage) -> None:
    manifest = borrowed(setting("1800"), **{"return": "always"})
    stage.create(setting("600"))
    _, loans = stage.take(manifest)
    live = stage.there(setting())
    plan = plan_return(manifest.body, spec_of(manifest), live, loans, Occasion.SUCCESS, QUANTITIES)
    stage.requests()

    applied = replace(stage.writer, dry_run=True).write_return(manifest.ref, live, plan.patch, last=True)

    assert applied.outcome is ApplyResult.RETURNED
    assert (applied.body or {})["value"] == "600"
    assert stage.requests() == (0, 1)
    assert stage.there(setting()) == live


def test_a_record_holds_the_head_of_a_digest() -> None:
    assert short_digest("sha256:0123456789abcdef") == short_digest("0123456789ab") == "0123456789ab"


def test_the_garbage_collector_takes_what_a_gone_plan_owned(stage: ApplyStage) -> None:
    stage.own(owned(config_map()))
    plan = KINDS.row(stage.plan.api_version, stage.plan.kind).kind

    stage.delete(plan, Ref(api_version=plan.api_version, kind=plan.kind, name=stage.plan.name))

    stage.settle(lambda: stage.get(config_map()) is None)


# --------------------------------------------------------------------------------------------------- a whole phase


def phase_of(*manifests: Manifest) -> RenderedPhase:
    phase = Phase(
        name="P", number=60, folder="60-p", description="", active="Ping", completed="Ped", deletion=Deletion.FREE
    )
    step = RenderedStep(phase="P", step=Step(name="S", position=Position.DURING), manifests=in_order(manifests))
    return RenderedPhase(phase=phase, steps=(step,))


def test_a_phase_is_tried_as_a_whole_and_nothing_is_changed(stage: ApplyStage) -> None:
    stage.own(owned(job(image="example/it:1")))
    stage.create(config_map(labels={PLAN_LABEL: "up"}, a="theirs"), manager="fleet")
    stage.create(setting("600"))
    newcomer = config_map(name="newcomer")
    newcomer["metadata"]["namespace"] = "brand-new"
    phase = phase_of(
        owned(newcomer),
        owned({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brand-new"}}),
        owned(config_map(a="ours")),
        owned(config_map(name="it-true")),
        owned(job(image="example/it:2")),
        borrowed(setting("1800"), **{"return": "always"}),
    )
    stage.requests()

    trials = try_phase(stage.writer, phase)

    assert [(str(trial.manifest.ref), str(trial.operation)) for trial in trials] == [
        ("Namespace brand-new", "create"),
        ("ConfigMap brand-new/newcomer", "create"),
        (f"ConfigMap {NAMESPACE}/it", "conflict"),
        (f"ConfigMap {NAMESPACE}/it-true", "create"),
        (f"Job {NAMESPACE}/it", "refused"),
        (f"Setting {NAMESPACE}/replica-replenishment-wait-interval", "borrow"),
    ]
    assert trials[1].because == "not tried: Namespace brand-new is created in this phase"
    assert stage.requests() == (0, 12)
    assert stage.there(setting())["value"] == "600"


def account_with(stage: ApplyStage, resource: str, verbs: list[str]) -> Cluster:
    """An account of its own that may do this in the namespace, and nothing else."""
    name = f"apply-{resource}-{'-'.join(verbs)}".strip("-")
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "rules": [{"apiGroups": [""], "resources": [resource], "verbs": verbs}] if verbs else [],
    }
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    binding = {
        **role,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject],
    }
    del binding["rules"]
    for body in (role, binding):
        stage.cluster.apply(stage.kind(body), body, force=True)
    return stage.account(name)


def rule_for(resource: str, verbs: list[str]) -> str:
    rule = {"apiGroups": [""], "resources": [resource], "verbs": verbs}
    return f"add to a Role in namespace {NAMESPACE}: {json.dumps(rule)}"


@pytest.mark.parametrize("verbs", [[], ["get"], ["get", "patch"]])
def test_every_missing_permission_is_named_at_once(stage: ApplyStage, verbs: list[str]) -> None:
    """The rule in the remedy is the one that is missing."""
    writer = replace(stage.writer, cluster=account_with(stage, "configmaps", verbs))
    expected = rule_for("configmaps", [verb for verb in ("get", "create", "patch") if verb not in verbs])

    def look() -> Any:
        (trial,) = try_phase(writer, phase_of(owned(config_map())))
        return trial.problem and trial.problem.remedy

    stage.settle(lambda: look() == expected)


def acknowledgement(name: str) -> Manifest:
    """All that it sets is known only at run time."""
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": {"hook": "<captured>"}}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    return replace(borrowed(body, **{"return": "never"}), run_time=(parse_path("metadata.annotations.hook"),))


@pytest.mark.parametrize(
    ("verbs", "missing"), [(["get", "list"], ["patch"]), (["list"], ["get", "patch"]), (["get", "patch"], [])]
)
def test_what_cannot_be_tried_yet_is_asked_for_permission(
    stage: ApplyStage, verbs: list[str], missing: list[str]
) -> None:
    writer = replace(stage.writer, cluster=account_with(stage, "secrets", verbs))
    phase = phase_of(*(acknowledgement(f"plan-{number}") for number in range(6)))
    expected = {("refused", rule_for("secrets", missing)) if missing else ("pending", None)}

    def look() -> set[tuple[str, str | None]]:
        trials = try_phase(writer, phase)
        return {(str(trial.operation), trial.problem.remedy if trial.problem else None) for trial in trials}

    stage.settle(lambda: look() == expected)


def test_permission_for_many_objects_of_a_kind_is_asked_for_once() -> None:
    stage = embedded()
    stage.requests()
    try_phase(stage.writer, phase_of(*(acknowledgement(f"plan-{number}") for number in range(6))))
    assert stage.requests() == (0, 2)


def test_permission_for_a_name_that_is_not_known_yet_is_asked_for_all() -> None:
    stage = embedded()
    writer = replace(stage.writer, cluster=account_with(stage, "secrets", []))
    pending = replace(owned(config_map(name="<captured>")), run_time=(("metadata", "name"),))
    (trial,) = try_phase(writer, phase_of(pending))
    assert trial.problem is not None
    assert "get configmaps in namespace" in trial.problem.message
