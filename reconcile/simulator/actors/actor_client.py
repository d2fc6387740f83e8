"""The cluster as actors see it: objects by kind and name, read once a step; writes under an actor's field manager.

A write that would change nothing is not sent, so that an actor with nothing to do is quiet. It knows no actor and no
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from reconcile.cluster.errors import AlreadyExists, Away, NoSuchKind, NotFound
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.simulator.actors.kind_cache import KindCache, Test, key_of, version_of
from reconcile.simulator.apiserver.patches import merge_patched
from renderer.catalog.kinds import Kinds
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Kind, Ref, ref_of

KindName = tuple[str, str]
ChangesOf = Callable[[Kind], Iterable[tuple[Body | None, Body | None]] | None]
"""Gives what has become of which object of a kind, in order; None stands for an object that is not there, or where
nobody can say."""

NODE: KindName = ("v1", "Node")
POD: KindName = ("v1", "Pod")
SECRET: KindName = ("v1", "Secret")
SERVICE: KindName = ("v1", "Service")
CONFIG_MAP: KindName = ("v1", "ConfigMap")
CLAIM: KindName = ("v1", "PersistentVolumeClaim")
DEPLOYMENT: KindName = ("apps/v1", "Deployment")
REPLICA_SET: KindName = ("apps/v1", "ReplicaSet")
JOB: KindName = ("batch/v1", "Job")
ENDPOINT_SLICE: KindName = ("discovery.k8s.io/v1", "EndpointSlice")
DISRUPTION_BUDGET: KindName = ("policy/v1", "PodDisruptionBudget")
IMAGE: KindName = ("harvesterhci.io/v1beta1", "VirtualMachineImage")
SETTING: KindName = ("harvesterhci.io/v1beta1", "Setting")
ADDON: KindName = ("harvesterhci.io/v1beta1", "Addon")
UPGRADE_PLAN: KindName = (PLAN_API_VERSION, "UpgradePlan")
NODE_PLAN: KindName = ("upgrade.cattle.io/v1", "Plan")
MACHINE: KindName = ("cluster.x-k8s.io/v1beta1", "Machine")
CAPI_CLUSTER: KindName = ("cluster.x-k8s.io/v1beta1", "Cluster")
PROVISIONING_CLUSTER: KindName = ("provisioning.cattle.io/v1", "Cluster")
MANAGED_CHART: KindName = ("management.cattle.io/v3", "ManagedChart")
KUBEVIRT: KindName = ("kubevirt.io/v1", "KubeVirt")
VM: KindName = ("kubevirt.io/v1", "VirtualMachine")
VMI: KindName = ("kubevirt.io/v1", "VirtualMachineInstance")
MIGRATION: KindName = ("kubevirt.io/v1", "VirtualMachineInstanceMigration")
VOLUME: KindName = ("longhorn.io/v1beta2", "Volume")
REPLICA: KindName = ("longhorn.io/v1beta2", "Replica")
LONGHORN_SETTING: KindName = ("longhorn.io/v1beta2", "Setting")

_WITHOUT_STATUS_DOOR = (IMAGE, SETTING, VMI)

_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


@dataclass
class _Desk:
    """The objects of each kind that all actors have at hand, and the state of those kinds that one of them has looked
    at in its present step."""

    kinds: dict[KindName, KindCache] = field(default_factory=dict)
    looked_at: dict[KindName, object] = field(default_factory=dict)


class PodHandler(Protocol):
    """Binds pods to nodes and ends them: an embedded API server has other ways than a real one."""

    def bind(self, client: ActorClient, pod: Body, node: str) -> None: ...

    def end(self, client: ActorClient, pod: Body) -> None:
        """Ends a pod that is being deleted."""
        ...


class EmbeddedPods:
    """The embedded API server takes no Binding: a pod is created again with its node."""

    def bind(self, client: ActorClient, pod: Body, node: str) -> None:
        client.delete(pod)
        kept = {key: value for key, value in pod["metadata"].items() if key not in _OF_THE_SERVER}
        client.create({**pod, "metadata": kept, "spec": {**pod["spec"], "nodeName": node}})

    def end(self, client: ActorClient, pod: Body) -> None:
        client.delete(client.patch_status(pod, {"phase": "Succeeded"}))


class ActorClient:
    """One actor's client. `as_manager` gives another actor its own, with the same objects at hand."""

    def __init__(self, cluster: Cluster, kinds: Kinds) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._manager = "harvester"
        self._desk = _Desk()
        self._writes = 0

    def as_manager(self, manager: str) -> ActorClient:
        """Writes under this field manager."""
        other = ActorClient(self._cluster, self._kinds)
        other._manager = manager
        other._desk = self._desk
        return other

    def refresh(self, changes_of: ChangesOf = lambda kind: None) -> None:
        """Takes over what others have changed; a kind of which nobody can say what that is will be read again."""
        for name, cached in tuple(self._desk.kinds.items()):
            for kind in self._kinds.served_as(*name):
                changes = changes_of(kind)
                if changes is None or (changes and kind != cached.kind):
                    del self._desk.kinds[name]
                    break
                for before, after in changes:
                    if after is not None:
                        cached.put(after)
                    elif before is not None:
                        cached.drop(before)

    def looks_from_now(self) -> None:
        """Begins to note the kinds that this client, or another actor's, looks at."""
        self._desk.looked_at = {}

    @property
    def looked_at(self) -> Mapping[KindName, object]:
        """The kinds that were looked at since, and the state in which they were then."""
        return self._desk.looked_at

    def is_as_seen(self, seen: Mapping[KindName, object]) -> bool:
        """True if none of the kinds has changed since it was in that state."""
        kinds = self._desk.kinds
        return all(name in kinds and kinds[name].state is state for name, state in seen.items())

    def take_changed(self) -> bool:
        """True if this view has written anything since it was last asked."""
        found, self._writes = self._writes > 0, 0
        return found

    # ------------------------------------------------------------------------------------------------------- reading

    def all(self, kind: KindName, namespace: str = "") -> tuple[Body, ...]:
        """Ordered by namespace and name; none where the cluster does not serve the kind."""
        return self.those(kind, _within(namespace))

    def those(self, kind: KindName, test: Test) -> tuple[Body, ...]:
        """The objects that pass, in the same order. An actor that works on few of many is not shown the others each
        time; so the answer has to follow from the object alone."""
        return self._cache_of(kind).those(test)

    def find(self, kind: KindName, name: str, namespace: str = "") -> Body | None:
        return self._cache_of(kind).objects.get((namespace, name))

    def owned(self, kind: KindName, owner: Body) -> tuple[Body, ...]:
        """The objects of the kind that the owner owns."""
        found = self._cache_of(kind).owned.get(str(owner["metadata"]["uid"]), {})
        return tuple(found[key] for key in sorted(found))

    # ------------------------------------------------------------------------------------------------------- writing

    def create(self, body: Body) -> Body:
        """The object as it is now, whether it was there already or not."""
        ref = ref_of(body)

        def send() -> Body:
            return self._cluster.create(self._kind(ref), body, field_manager=self._manager).body

        try:
            made = self._sent(ref, send, lambda found: found is not None)
        except AlreadyExists:
            return self._cluster.get(self._kind(ref), ref).body
        return self._written(made)

    def patch(self, body: Body, patch: Body) -> Body:
        """Merge patch of the object."""
        return self._patch(body, patch, "")

    def patch_status(self, body: Body, status: Body) -> Body:
        """Merge patch of its status."""
        named = (str(body["apiVersion"]), str(body["kind"]))
        return self._patch(body, {"status": status}, "" if named in _WITHOUT_STATUS_DOOR else "status")

    def delete(self, body: Body) -> None:
        ref = ref_of(body)

        def send() -> Body:
            return self._cluster.delete(self._kind(ref), ref, uid=str(body["metadata"].get("uid") or "")).body

        try:
            left = self._sent(ref, send, lambda found: not found or "deletionTimestamp" in found["metadata"])
        except NotFound:
            left = {}
        cached = self._cache_of((ref.api_version, ref.kind))
        cached.drop(body)
        if left:
            cached.put(left)
        self._writes += not left or "deletionTimestamp" not in body["metadata"]  # a finalizer may keep it

    def put_subresource(self, body: Body, subresource: str) -> None:
        """`start` or `stop` of a VirtualMachine. Raises NoSuchKind, NotFound and Conflict."""
        kind = Kind(
            api_version="subresources.kubevirt.io/v1", kind="VirtualMachine", plural="virtualmachines", namespaced=True
        )
        ref = ref_of(body)
        self._cluster.put(
            kind, Ref(api_version=kind.api_version, kind=kind.kind, namespace=ref.namespace, name=ref.name), subresource
        )
        self.wrote(VM)

    def wrote(self, kind: KindName) -> None:
        """Counts a write after which the objects of the kind have to be read again."""
        self._desk.kinds.pop(kind, None)
        self._writes += 1

    # -------------------------------------------------------------------------------------------------------- inside

    def _kind(self, ref: Ref) -> Kind:
        return self._kinds.row(ref.api_version, ref.kind).kind

    def _cache_of(self, kind: KindName) -> KindCache:
        """One for all versions of a kind."""
        row = self._kinds.find(*kind)
        name = (row.versions[0], kind[1]) if row else kind
        cached = self._desk.kinds.get(name)
        if cached is None:
            cached = self._desk.kinds[name] = self._listed(kind) if row else KindCache(None, ())
        self._desk.looked_at.setdefault(name, cached.state)
        return cached

    def _listed(self, kind: KindName) -> KindCache:
        for served in self._kinds.served_as(*kind):
            with suppress(NoSuchKind):
                if items := self._cluster.list(Selection(kind=served)).items:
                    return KindCache(served, items)
        return KindCache(None, ())

    def _patch(self, body: Body, patch: Body, subresource: str) -> Body:
        if merge_patched(body, patch) == body:
            return body
        ref, manager = ref_of(body), self._manager

        def send() -> Body:
            return self._cluster.patch(self._kind(ref), ref, patch, subresource=subresource, field_manager=manager).body

        return self._written(
            self._sent(ref, send, lambda found: found is not None and merge_patched(found, patch) == found)
        )

    def _sent(self, ref: Ref, send: Callable[[], Body], is_done: Callable[[Body | None], bool]) -> Body:
        """An answer can be lost: then the object itself says whether the write was carried out."""
        try:
            return send()
        except Away:
            try:
                found: Body | None = self._cluster.get(self._kind(ref), ref).body
            except NotFound:
                found = None
            if not is_done(found):
                raise
            return found or {}

    def _written(self, body: Body) -> Body:
        """A no-op write is not counted."""
        cached = self._cache_of((str(body["apiVersion"]), str(body["kind"])))
        self._writes += version_of(cached.objects.get(key_of(body))) != version_of(body)
        cached.put(body)
        return body


@cache
def _within(namespace: str) -> Test:
    return (lambda body: key_of(body)[0] == namespace) if namespace else (lambda body: True)
