"""Support for tests of single rounds: a small cluster, a plan whose status a test writes, and nobody else who acts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconcile.loop.approval import rendered_for_review
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.rendering import Rendering
from reconcile.loop.round import Round
from reconcile.loop.sealing import seal
from reconcile.observe.source import DirectSource
from reconcile.simulator.apiserver.requests import Hook, no_hook
from reconcile.simulator.rehearsal.rehearsal import Rehearsal
from reconcile.status.times import time_text
from renderer.assemble import open_template_set
from renderer.catalog.template_tree import TemplateTree
from renderer.model.document_type import FACTS
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Ref
from support.rehearsals import prepared
from support.rendered_plans import (
    Json,
    image_lists,
    inputs_of,
    machine,
    machine_plan,
    plan,
    release,
    server_version,
    version,
)

PREFIX = "management.harvesterhci.io/"
PRE, POST = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
PRE_HOOK, POST_HOOK = f"{PREFIX}pre-hook", f"{PREFIX}post-hook"
OLD_OS, NEW_OS = "Harvester v1.7.1", "Harvester v1.8.0"
PRE_JOB, POST_JOB = "up-node-upgrade-pre-drain-n1", "up-node-upgrade-post-drain-n1"
STRATEGY = {"controlPlaneConcurrency": "10%", "workerConcurrency": "10%"}
METADATA = {**release()}


def node(name: str, os: str = OLD_OS, boot: str = "boot-1", *, witness: bool = False) -> Json:
    labels = {"harvesterhci.io/managed": "true", "kubernetes.io/hostname": name} | (
        {"node-role.harvesterhci.io/witness": "true"} if witness else {}
    )
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"cluster.x-k8s.io/machine": f"m-{name}"}},
        "status": {
            "nodeInfo": {"osImage": os, "bootID": boot, "kubeletVersion": "v1.34.3+rke2r3", "architecture": "amd64"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def cluster(generation: int | None = 5, kubernetes: str = "v1.34.3+rke2r3") -> Json:
    config: dict[str, Any] = {"upgradeStrategy": STRATEGY}
    return {
        "apiVersion": "provisioning.cattle.io/v1",
        "kind": "Cluster",
        "metadata": {"name": "local", "namespace": "fleet-local"},
        "spec": {
            "kubernetesVersion": kubernetes,
            "rkeConfig": config | ({"provisionGeneration": generation} if generation is not None else {}),
        },
        "status": {"ready": True, "observedGeneration": 1},
    }


def longhorn(value: str = "600") -> Json:
    return {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Setting",
        "metadata": {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"},
        "value": value,
    }


def kubevirt(methods: Sequence[str] = ("LiveMigrate", "Evict")) -> Json:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "harvester-system"},
        "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": list(methods)}},
    }


def managed_chart() -> Json:
    return {
        "apiVersion": "management.cattle.io/v3",
        "kind": "ManagedChart",
        "metadata": {"name": "harvester", "namespace": "fleet-local"},
        "spec": {"chart": "harvester"},
    }


def descheduler(*, enabled: bool) -> Json:
    return {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "Addon",
        "metadata": {"name": "descheduler", "namespace": "kube-system"},
        "spec": {"enabled": enabled, "repo": "r", "chart": "descheduler", "version": "1"},
    }


def api_servers(*addresses: str) -> Json:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": list(addresses)}],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    }


def facts(used: Mapping[str, int], *, expires: str = "2036-01-01T00:00:00Z", threshold: int = 85) -> Json:
    """What kubelets and API servers say: GiB used of 147, and when the certificate ends."""
    kubelet = {
        name: {
            "imageGCHighThresholdPercent": threshold,
            "fs": {"capacityBytes": 147 * 2**30, "usedBytes": gib * 2**30},
        }
        for name, gib in used.items()
    }
    lists = image_lists(["docker.io/rancher/old:v1"], ["docker.io/rancher/same:v1"])["facts"]
    body = {**lists, "kubelet": kubelet, "certificates": {"192.0.2.1": {"notAfter": expires}}}
    return FACTS.document({"facts": body})


def world(
    *names: str, more: Sequence[Json] = (), given: Json | None = None, without: Sequence[str] = (), **spec: Any
) -> Small:
    """A cluster of these nodes, n1 to n3 by default, and a plan that nobody has looked at yet. `without` leaves out
    objects by kind."""
    names = names or ("n1", "n2", "n3")
    objects: list[Json] = [given or plan(**spec), release(), version(), server_version(), cluster(), longhorn()]
    objects += [kubevirt(), managed_chart(), api_servers("192.0.2.1"), *map(node, names)]
    for name in names:
        objects += [machine(f"m-{name}", name), machine_plan(f"p-{name}", f"m-{name}")]
    replaced = {(item["kind"], item["metadata"]["name"]) for item in more if "metadata" in item}
    kept = [
        item
        for item in objects
        if item.get("kind") not in without
        and ("kind" not in item or (item["kind"], item["metadata"]["name"]) not in replaced)
    ]
    given_facts = [item for item in more if "facts" in item] or [facts(dict.fromkeys(names, 20))]
    return Small.of([*kept, *[item for item in more if "facts" not in item], *given_facts])


@dataclass
class Small:
    """The cluster of one test."""

    scene: Rehearsal

    @classmethod
    def of(cls, documents: Sequence[Json], on_write: Hook = no_hook) -> Small:
        return cls(scene=prepared(inputs_of(documents), on_write=on_write))

    @property
    def name(self) -> str:
        return self.scene.name

    # ------------------------------------------------------------------------------------------------------- rounds

    def round(self) -> Round:
        return self.scene.reconciler.round(self.name)

    def rounds(self) -> Round:
        """Until nothing more is decided at once."""
        for _ in range(60):
            done = self.round()
            self.scene.cluster.collect()
            if not done.again or done.problems:
                return done
        raise AssertionError("the loop does not come to rest")

    def until(self, reached: Callable[[Round], bool]) -> Round:
        for _ in range(60):
            done = self.round()
            if reached(done):
                return done
        raise AssertionError("it is never reached")

    def to_its_end(self) -> None:
        """Everybody else does at once what is asked of them."""
        for _ in range(40):
            if self.rounds().over:
                return
            for item in self.all("Plan"):
                self.end_plan(item["metadata"]["name"])
        raise AssertionError(f"it is not over: {self.phase}")

    def restart(self) -> None:
        self.scene.reconciler = Reconciler(self.scene.deps)

    def read_directly(self) -> None:
        """Makes each read a request of its own, which may fail: a watched copy would go on answering."""
        deps = self.scene.deps
        self.scene.deps = replace(deps, source=DirectSource(self.scene.client, deps.kinds))
        self.restart()

    # ------------------------------------------------------------------------------------------------------ looking

    @property
    def plan(self) -> Any:
        found = self.get(PLAN_API_VERSION, "UpgradePlan", self.name)
        assert found is not None
        return found

    @property
    def status(self) -> Any:
        return self.plan.get("status") or {}

    @property
    def phase(self) -> str:
        return str(self.status.get("currentPhase", ""))

    def state(self, name: str) -> str | None:
        entry = (self.status.get("nodeUpgradeStatuses") or {}).get(name) or {}
        return entry.get("state")

    def condition(self, kind: str) -> Any:
        return next((c for c in self.status.get("conditions") or () if c["type"] == kind), None)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Any:
        ref = Ref(api_version=api_version, kind=kind, namespace=namespace, name=name)
        return self.scene.cluster.store.find(ref)

    def all(self, kind: str) -> list[Any]:
        return [body for body in self.scene.cluster.store.everything() if body["kind"] == kind]

    def jobs(self) -> list[str]:
        return sorted(body["metadata"]["name"] for body in self.all("Job"))

    def secret(self, name: str) -> Any:
        return self.get("v1", "Secret", f"p-{name}", "fleet-local")

    def annotation(self, name: str, key: str) -> str | None:
        return (self.secret(name)["metadata"].get("annotations") or {}).get(key)

    def events(self) -> list[tuple[str, str]]:
        return [(body["reason"], body.get("note") or body.get("message", "")) for body in self.all("Event")]

    # ------------------------------------------------------------------------------------------------------ editing

    def patch(self, body: Json, patch: Mapping[str, Any], subresource: str = "") -> None:
        metadata = body["metadata"]
        ref = Ref(
            api_version=body["apiVersion"],
            kind=body["kind"],
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
        )
        kind = self.scene.deps.kinds.row(ref.api_version, ref.kind).kind
        self.scene.cluster.client().patch(kind, ref, patch, subresource=subresource, field_manager="test")

    def set_status(self, **fields: Any) -> None:
        self.patch(self.plan, {"status": fields}, "status")

    def ask(self, name: str, key: str, value: str | None) -> None:
        self.patch(self.secret(name), {"metadata": {"annotations": {key: value}}})

    def approve(self) -> None:
        """As `upgradeplan approve` of a program with the manager's templates."""
        deps = self.scene.deps
        annotations = seal(rendered_for_review(deps, self.plan), deps.rendering.templates)
        self.patch(self.plan, {"metadata": {"annotations": annotations}})

    def use_templates(self, tree: TemplateTree, overrides: Mapping[str, str] | None = None) -> None:
        """As the loop of another program starts, whose templates are these, with other values of its installation."""
        parts = open_template_set(tree)
        rendering = Rendering(parts.catalog, parts.templates, parts.spec_fields, overrides)
        self.scene.deps = replace(self.scene.deps, rendering=rendering)
        self.restart()

    def delete_plan(self) -> None:
        kind = self.scene.deps.kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
        ref = Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=self.name)
        self.scene.cluster.client().delete(kind, ref)

    def create(self, body: Json) -> None:
        kind = self.scene.deps.kinds.row(body["apiVersion"], body["kind"]).kind
        self.scene.cluster.client().create(kind, body)

    def end_job(self, name: str, *, failed: bool = False, message: str = "") -> None:
        """As the Job controller would: the condition, and what it demands beside it."""
        job = next(body for body in self.all("Job") if body["metadata"]["name"] == name)
        moment = time_text(self.scene.clock.now())
        kinds = ("FailureTarget", "Failed") if failed else ("SuccessCriteriaMet", "Complete")
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": "BackoffLimitExceeded" if failed else "CompletionsReached",
                "message": message,
                "lastProbeTime": moment,
                "lastTransitionTime": moment,
            }
            for kind in kinds
        ]
        ended = {"failed": 1} if failed else {"succeeded": 1, "completionTime": moment}
        status = {"conditions": conditions, "startTime": moment, "uncountedTerminatedPods": {}, **ended}
        self.patch(job, {"status": status}, "status")

    def reboot(self, name: str, os: str = NEW_OS, boot: str = "boot-2") -> None:
        body = self.get("v1", "Node", name)
        self.patch(body, {"status": {"nodeInfo": {"osImage": os, "bootID": boot}}}, "status")

    def end_plan(self, name: str, *, failed: bool = False, reason: str = "JobFailed") -> None:
        """As the system-upgrade-controller would say it."""
        body = next(item for item in self.all("Plan") if item["metadata"]["name"] == name)
        condition = {"type": "Complete", "status": "False" if failed else "True", "reason": reason if failed else ""}
        self.patch(body, {"status": {"conditions": [condition]}}, "status")


def upgrading(*names: str, states: Mapping[str, str], **more: Any) -> Small:
    """A world whose plan stands in NodeUpgrading, as the existing manager would have left it."""
    found = world(*(names or states), **more)
    found.set_status(
        currentPhase="NodeUpgrading",
        previousVersion="v1.7.1",
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
        releaseMetadata=METADATA,
        nodeUpgradeStatuses={name: {"state": state} for name, state in states.items()},
    )
    return found


def waiting_for_rancher(**more: Any) -> Small:
    """Two nodes at the start of a node upgrade of our own, that Rancher has been told of."""
    found = upgrading("n1", "n2", states={}, **more)
    found.set_status(currentPhase="ClusterUpgraded")
    found.rounds()
    found.end_plan("up-skip-manifest-apply")
    found.rounds()
    assert found.phase == "NodeUpgrading"
    return found


def being_prepared(found: Small | None = None) -> Small:
    """Rancher has asked to drain node n1, and its pre-drain Job runs; in a world of the test's own, if it has one."""
    found = found or waiting_for_rancher()
    found.ask("n1", PRE, "first")
    found.rounds()
    return found


def drained(found: Small | None = None) -> Small:
    """Node n1 has been drained and Rancher has been answered."""
    found = being_prepared(found)
    found.end_job(PRE_JOB)
    found.rounds()
    return found


def rebooting(found: Small | None = None) -> Small:
    """Rancher is done with node n1 and has asked again; it reboots."""
    found = drained(found)
    found.ask("n1", POST, "second")
    found.rounds()
    found.end_job(POST_JOB)
    found.rounds()
    assert found.state("n1") == "WaitingReboot"
    return found
