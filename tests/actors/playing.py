"""An upgrade played by hand: the rendered manifests of an example, the world, and a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from rendering import inputs_of_example, render_example

from reconcile.actors.script import Script
from reconcile.actors.seeding import seed
from reconcile.actors.settings import Settings
from reconcile.actors.stage import KindName
from reconcile.actors.world import World
from reconcile.cluster.errors import NotFound
from reconcile.cluster.protocol import Selection
from reconcile.rehearsal.clock import SimulatedClock
from reconcile.rehearsal.cluster import EmbeddedCluster
from renderer.model.ref import Body, Ref, ref_of

START = datetime(2026, 11, 28, 12, 0, 0, tzinfo=UTC)
LONG = timedelta(days=2)


class Play:
    """One example on an embedded cluster."""

    def __init__(self, example: str, script: Script | None = None, **settings: Any) -> None:
        inputs = inputs_of_example(example)
        self.rendered = render_example(example)
        self.kinds = self.rendered.kinds
        self.clock = SimulatedClock(START)
        self.embedded = EmbeddedCluster(self.clock)
        self.cluster = self.embedded.client()
        seed(self.cluster, [source.body for source in inputs.objects], self.kinds)
        assert inputs.plan
        assert inputs.release
        self.plan = self.create(inputs.plan.body)
        lists = inputs.facts.get("imageLists") or {}
        self.settings = Settings(
            release=inputs.release.body,
            previous_images=lists.get("previous"),
            current_images=lists.get("current"),
            kubelets=inputs.facts.get("kubelet") or {},
            **settings,
        )
        self.outages: list[float] = []
        self.world = World.of(self.cluster, self.kinds, self.settings, script=script, away=self.outages.append)
        for (kind, subresource), reader in self.world.readers.items():
            self.embedded.backends.serve_read(kind, subresource, reader)

    # ----------------------------------------------------------------------------------------------------- the clock

    def settle(self) -> None:
        """Until nobody has anything to do now."""
        for _ in range(1000):
            worked = self.world.step(self.clock.now())
            collected = self.embedded.collect()
            if not worked and not collected:
                return
        raise AssertionError("the world does not come to rest")

    def run(self, lasts: timedelta = LONG, until: Callable[[], object] = lambda: False) -> None:
        """Lets time pass, from one moment at which something happens to the next."""
        end = self.clock.now() + lasts
        while True:
            self.settle()
            due = self.world.next_due()
            if until():
                return
            if due is None or due > end:
                break
            assert due > self.clock.now()
            self.clock.advance((due - self.clock.now()).total_seconds())
        if lasts is not LONG:
            self.clock.advance((end - self.clock.now()).total_seconds())
            self.settle()

    # --------------------------------------------------------------------------------------------------- the objects

    def create(self, body: Body) -> Body:
        kind = self.kinds.row(str(body["apiVersion"]), str(body["kind"])).kind
        return self.cluster.create(kind, body).body

    def apply(self, step_id: str) -> tuple[Body, ...]:
        """Everything that a step owns, each object owned by the plan."""
        made = []
        for manifest in self.rendered.manifests(step_id):
            kind = self.kinds.row(manifest.ref.api_version, manifest.ref.kind).kind
            metadata = {**manifest.body["metadata"], "ownerReferences": [self._owner()]}
            made.append(self.cluster.apply(kind, {**manifest.body, "metadata": metadata}).body)
        return tuple(made)

    def get(self, kind: KindName, name: str, namespace: str = "") -> Any:
        """The object as it is now; None if it is gone."""
        ref = Ref(api_version=kind[0], kind=kind[1], namespace=namespace, name=name)
        try:
            return self.cluster.get(self.kinds.row(*kind).kind, ref).body
        except NotFound:
            return None

    def all(self, kind: KindName, namespace: str = "", labels: str = "") -> tuple[Any, ...]:
        return self.cluster.list(Selection(kind=self.kinds.row(*kind).kind, namespace=namespace, labels=labels)).items

    def patch(self, body: Body, patch: Body) -> Any:
        ref = ref_of(body)
        return self.cluster.patch(self.kinds.row(ref.api_version, ref.kind).kind, ref, patch).body

    def delete(self, body: Body) -> None:
        ref = ref_of(body)
        self.cluster.delete(self.kinds.row(ref.api_version, ref.kind).kind, ref)

    def _owner(self) -> Body:
        metadata = self.plan["metadata"]
        named = {"apiVersion": self.plan["apiVersion"], "kind": self.plan["kind"], "name": metadata["name"]}
        return {**named, "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}


def condition(body: Any, type_: str) -> str:
    """`STATUS` or `STATUS Reason`; empty where there is none."""
    found: Iterable[Any] = (body.get("status") or {}).get("conditions") or ()
    return next((f"{c['status']} {c.get('reason') or ''}".strip() for c in found if c["type"] == type_), "")
