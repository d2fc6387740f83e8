"""An upgrade played by hand: the rendered manifests of an example, the world, and a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from support.rendered_plans import inputs_of_example, render_example
from support.seeding import seed

from reconcile.cluster.errors import NotFound
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.simulator.actors.actor_client import MACHINE, NODE, PROVISIONING_CLUSTER, SECRET, KindName
from reconcile.simulator.actors.faults import FaultMode, FaultPlan, InjectedFault
from reconcile.simulator.actors.settings import Settings
from reconcile.simulator.actors.simulation import ClusterVersion, Simulation
from reconcile.simulator.actors.simulation_log import SimulationEvent, SimulationEventType
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.model.ref import Body, Ref, ref_of

START = datetime(2026, 11, 28, 12, 0, 0, tzinfo=UTC)
LONG = timedelta(days=2)
SYSTEM, FLEET, PLANS = "harvester-system", "fleet-local", "cattle-system"
BEFORE = ("rke.cattle.io/pre-drain", "management.harvesterhci.io/pre-hook")
AFTER = ("rke.cattle.io/post-drain", "management.harvesterhci.io/post-hook")


def never() -> bool:
    return False


class Hand:
    """Does on any cluster, by hand, what the loop would do: applies steps and answers Rancher."""

    def __init__(self, cluster: Cluster, example: str) -> None:
        self.cluster = cluster
        self.inputs = inputs_of_example(example)
        self.rendered = render_example(example)
        self.kinds = self.rendered.kinds
        assert self.inputs.plan
        assert self.inputs.release
        self.release = self.inputs.release.body
        self._given = {ref_of(source.body) for source in self.inputs.objects}
        self.unseeded = seed(cluster, [source.body for source in self.inputs.objects], self.kinds)
        self.plan = self.create(self.inputs.plan.body)

    # ------------------------------------------------------------------------------------------------------- objects

    def create(self, body: Body) -> Body:
        kind = self.kinds.row(str(body["apiVersion"]), str(body["kind"])).kind
        return self.cluster.create(kind, body).body

    def get(self, kind: KindName, name: str, namespace: str = "") -> Any:
        """The object as it is now; None if it is gone."""
        ref = Ref(api_version=kind[0], kind=kind[1], namespace=namespace, name=name)
        try:
            return self.cluster.get(self.kinds.row(*kind).kind, ref).body
        except NotFound:
            return None

    def all(self, kind: KindName, namespace: str = "", labels: str = "") -> tuple[Any, ...]:
        return self.cluster.list(Selection(kind=self.kinds.row(*kind).kind, namespace=namespace, labels=labels)).items

    def made(self, kind: KindName, namespace: str = "") -> tuple[Any, ...]:
        """Those that were not there at the beginning."""
        return tuple(body for body in self.all(kind, namespace) if ref_of(body) not in self._given)

    def patch(self, body: Body, patch: Body, subresource: str = "") -> Any:
        ref = ref_of(body)
        kind = self.kinds.row(ref.api_version, ref.kind).kind
        return self.cluster.patch(kind, ref, patch, subresource=subresource).body

    def delete(self, body: Body) -> None:
        ref = ref_of(body)
        self.cluster.delete(self.kinds.row(ref.api_version, ref.kind).kind, ref)

    def again(self, body: Body) -> Any:
        ref = ref_of(body)
        return self.get((ref.api_version, ref.kind), ref.name, ref.namespace)

    # --------------------------------------------------------------------------------------------------------- steps

    @property
    def steps(self) -> list[str]:
        return [step.id for step in self.rendered.steps()]

    def apply(self, step: str) -> tuple[Any, ...]:
        """Everything that a step owns, each object owned by the plan; what it borrows as a merge patch."""
        made = []
        for manifest in self.rendered.manifests(step):
            kind = self.kinds.row(manifest.ref.api_version, manifest.ref.kind).kind
            if self._is_borrowed(manifest.body):
                said = {key: value for key, value in manifest.body.items() if key not in ("apiVersion", "kind")}
                if self.again(manifest.body) is not None:
                    made.append(self.cluster.patch(kind, manifest.ref, said).body)
                continue
            metadata = {**manifest.body["metadata"], "ownerReferences": [self._owner()]}
            made.append(self.cluster.apply(kind, {**manifest.body, "metadata": metadata}).body)
        return tuple(made)

    def provision(self) -> None:
        """The Cluster with its hooks, with the next generation in place of the captured one."""
        (manifest,) = self.rendered.manifests("NodeUpgrade/Provision")
        cluster = self.get(PROVISIONING_CLUSTER, "local", FLEET)
        generation = ((cluster["spec"].get("rkeConfig") or {}).get("provisionGeneration") or 0) + 1
        spec = manifest.body["spec"]
        self.patch(cluster, {"spec": {**spec, "rkeConfig": {**spec["rkeConfig"], "provisionGeneration": generation}}})

    def asking(self, keys: tuple[str, str]) -> list[str]:
        """The nodes for which Rancher waits for an answer."""
        theirs, ours = keys
        return [
            self.node_of(secret)
            for secret in self.all(SECRET, FLEET)
            if (said := secret["metadata"].get("annotations") or {}).get(theirs) and said[theirs] != said.get(ours)
        ]

    def answer(self, keys: tuple[str, str], node: str) -> None:
        theirs, ours = keys
        secret = self.secret_of(node)
        self.patch(secret, {"metadata": {"annotations": {ours: secret["metadata"]["annotations"][theirs]}}})

    def secret_of(self, node: str) -> Any:
        found = [secret for secret in self.all(SECRET, FLEET) if secret["type"].endswith("machine-plan")]
        return next(secret for secret in found if self.node_of(secret) == node)

    def node_of(self, secret: Any) -> str:
        machine = self.get(MACHINE, secret["metadata"]["labels"]["rke.cattle.io/machine-name"], FLEET)
        return str(machine["status"]["nodeRef"]["name"])

    def boot_id(self, node: str) -> str:
        return str(self.get(NODE, node)["status"]["nodeInfo"]["bootID"])

    def _is_borrowed(self, body: Body) -> bool:
        return "management.harvesterhci.io/upgrade-plan" not in (body["metadata"].get("labels") or {})

    def _owner(self) -> Body:
        metadata = self.plan["metadata"]
        named = {"apiVersion": self.plan["apiVersion"], "kind": self.plan["kind"], "name": metadata["name"]}
        return {**named, "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}


class Play(Hand):
    """One example on an embedded cluster, and its world."""

    def __init__(
        self, example: str = "three-node", *injected: InjectedFault, faults: FaultPlan | None = None, **pace: Any
    ) -> None:
        self.clock = SimulatedClock(START)
        self.embedded = EmbeddedCluster(self.clock)
        super().__init__(self.embedded.client(), example)
        self.outages: list[float] = []
        given = Settings.given(self.release, self.inputs.facts)
        self.settings = Settings(
            release=given.release,
            previous_images=given.previous_images,
            current_images=given.current_images,
            kubelets=given.kubelets,
            **pace,
        )
        self.actors = self.embedded.client()
        self.world = Simulation.of(
            self.actors,
            self.kinds,
            self.settings,
            faults=faults or FaultPlan(faults=injected),
            away=self.outages.append,
            version=ClusterVersion(now=lambda: self.embedded.store.version),
        )
        for (kind, subresource), reader in self.world.readers.items():
            self.embedded.backends.serve_read(kind, subresource, reader)

    @property
    def facts(self) -> tuple[SimulationEvent, ...]:
        return self.world.log.events

    def told(self, *whats: SimulationEventType) -> list[str]:
        """What happened, without times and details."""
        return [f"{fact.subject} on {fact.node}" if fact.node else fact.subject for fact in self.world.log.of(*whats)]

    # ----------------------------------------------------------------------------------------------------- the clock

    def settle(self) -> None:
        """Until nobody has anything to do now."""
        for _ in range(1000):
            worked = self.world.step(self.clock.now())
            if not self.embedded.collect() and not worked:
                return
        raise AssertionError("the world does not come to rest")

    def run(self, until: Callable[[], object] = never, lasts: timedelta = LONG) -> bool:
        """From one moment at which something happens to the next; whether it ended because of `until`."""
        end = self.clock.now() + lasts
        while True:
            self.settle()
            if until():
                return True
            due = self.world.next_due()
            if due is None or due > end:
                self._wait_until(end)
                return False
            assert due > self.clock.now(), "the world waits for a moment that has passed"
            self._wait_until(due)

    def wait(self, **lasts: float) -> None:
        """Lets exactly so much time pass."""
        self.run(lasts=timedelta(**lasts))

    def _wait_until(self, moment: datetime) -> None:
        if moment - self.clock.now() < LONG:
            self.clock.advance((moment - self.clock.now()).total_seconds())
            self.settle()

    def finish(self, step: str) -> tuple[Any, ...]:
        """Applies a step and lets time pass until all that it made is ready; the objects as they are then."""
        made = self.apply(step)
        assert self.run(until=lambda: all(is_ready(self.again(body)) for body in made)), f"{step} is never ready"
        return tuple(self.again(body) for body in made)


def is_ready(body: Any) -> bool:
    conditions = [type_ for type_ in ("Complete", "Imported", "Available") if condition(body, type_)]
    return not conditions_of(body) or any(condition(body, type_).startswith("True") for type_ in conditions)


def conditions_of(body: Any) -> Iterable[Mapping[str, Any]]:
    if body["kind"] in ("Service", "ConfigMap", "Secret", "Setting", "KubeVirt", "ManagedChart", "Addon"):
        return ()
    return (body.get("status") or {}).get("conditions") or ({"type": "none yet"},)


def condition(body: Any, type_: str) -> str:
    """`STATUS` or `STATUS Reason`; empty where there is none."""
    found: Iterable[Any] = (body.get("status") or {}).get("conditions") or ()
    return next((f"{c['status']} {c.get('reason') or ''}".strip() for c in found if c["type"] == type_), "")


def fault(mode: str, operation: str, target: str = "", times: int | None = None, **lasts: float) -> InjectedFault:
    return InjectedFault(
        mode=FaultMode(mode),
        operation=operation,
        target=target,
        times=times,
        lasts=timedelta(**lasts) if lasts else None,
    )
