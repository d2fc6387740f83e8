"""Sets a rehearsal up and runs it to its end. Pure but for the clock that it is given: nothing is waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from reconcile.act.schemas import packaged_schemas
from reconcile.actors.ledger import Ledger
from reconcile.actors.script import Script
from reconcile.actors.seeding import NAMESPACES
from reconcile.actors.settings import Settings
from reconcile.actors.world import World
from reconcile.loop.attention import Attention
from reconcile.loop.drive import Drive, Ending
from reconcile.loop.drive import World as PlayedWorld
from reconcile.loop.journal import Entry, keep_nothing
from reconcile.loop.parts import Parts
from reconcile.loop.reconciler import API_VERSION, Reconciler, Round
from reconcile.loop.rendering import Rendering
from reconcile.loop.suitable import check_suitable, oldest_of
from reconcile.observe.fetching import through_the_proxy
from reconcile.observe.readings import Readings
from reconcile.observe.source import DirectSource
from reconcile.rehearsal.client import EmbeddedClient, Hook, no_hook
from reconcile.rehearsal.clock import SimulatedClock
from reconcile.rehearsal.cluster import EmbeddedCluster
from reconcile.rehearsal.seeding import namespace
from reconcile.rehearse.operator import Operator
from reconcile.status.plan import SUCCEEDED
from renderer.assemble import Workshop
from renderer.documents import Inputs, plan_of
from renderer.errors import Problems, problem
from renderer.model.ref import Body, Ref

LIMIT = timedelta(days=7)
"""Simulated time after which an upgrade that has not ended counts as one that never will."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """How it went: `plan` as it is at the end (None if it is gone), what was seen on the way, and what others did.
    `refused` says why the loop would not begin on such a cluster at all; the rehearsal shows then what it kept from."""

    ending: Ending
    started: datetime
    ended: datetime
    plan: Body | None
    last: Round | None
    ledger: Ledger
    events: tuple[Body, ...] = ()
    refused: str = ""

    @property
    def succeeded(self) -> bool:
        return (
            not self.refused
            and self.plan is not None
            and (self.plan.get("status") or {}).get("currentPhase") == SUCCEEDED
        )


@dataclass
class Theatre:
    """One rehearsal's cluster and everybody who acts on it. Tests take it apart; `play` runs it to its end."""

    cluster: EmbeddedCluster
    client: EmbeddedClient
    clock: SimulatedClock
    world: PlayedWorld
    ledger: Ledger
    reconciler: Reconciler
    attention: Attention
    name: str
    parts: Parts
    rounds: list[Round] = field(default_factory=list)

    def play(self, on_round: Callable[[Round], None], limit: timedelta = LIMIT) -> Rehearsed:
        started = self.clock.now()
        refused = self._refused()

        def keep(done: Round) -> None:
            self.rounds.append(done)
            on_round(done)

        drive = Drive(
            self.reconciler,
            self.world,
            self.clock,
            self.attention,
            settle=self.cluster.collect,
            on_round=keep,
        )
        ending = drive.run(self.name, limit)
        plan = self.parts.source.get(Ref(api_version=API_VERSION, kind="UpgradePlan", name=self.name))
        return Rehearsed(
            ending=ending,
            started=started,
            ended=self.clock.now(),
            plan=plan if isinstance(plan, dict) else None,
            last=self.rounds[-1] if self.rounds else None,
            ledger=self.ledger,
            refused=refused,
        )

    def _refused(self) -> str:
        try:
            check_suitable(self.parts.source, oldest_of(self.parts.rendering.catalog.values))
        except Problems as error:
            return error.problems[0].message
        return ""


def stage(
    inputs: Inputs,
    workshop: Workshop,
    *,
    start: datetime,
    script: Script | None = None,
    resume_after: timedelta = timedelta(minutes=10),
    on_write: Hook = no_hook,
    journal: Callable[[Entry], None] = keep_nothing,
) -> Theatre:
    """A theatre with the user's cluster, and the plan created in it as `kubectl create` would. A node that is held is
    let go on `resume_after` it was first held. `journal` takes every round that decides something.

    Raises `Problems`: no plan, or no release, without which nobody knows what the nodes become.
    """
    plan = plan_of(inputs).body
    clock = SimulatedClock(start)
    cluster = EmbeddedCluster(clock)
    cluster.seed(namespace(name) for name in NAMESPACES)
    cluster.seed(source.body for source in inputs.objects)
    kinds = workshop.catalog.kinds
    client = cluster.client(on_write=on_write)
    attention = Attention(clock.now)
    parts = Parts(
        cluster=client,
        source=DirectSource(client, kinds),
        rendering=Rendering(workshop.catalog, workshop.templates, workshop.spec_fields),
        schemas=packaged_schemas(),
        readings=Readings(client, kinds, clock.now, _nobody_answers, _facts(inputs)),
        read=through_the_proxy(client, kinds),
        now=clock.now,
        attended=attention.attended,
    )
    world = World.of(
        cluster.client(),
        kinds,
        settings_of(inputs),
        script=script,
        away=client.faults.away,
        version=lambda: cluster.store.version,
    )
    for (kind, subresource), reader in world.readers.items():
        cluster.backends.serve_read(kind, subresource, reader)
    ref = Ref(api_version=API_VERSION, kind="UpgradePlan", name=str(plan["metadata"]["name"]))
    new = {key: value for key, value in plan.items() if key != "status"}
    cluster.client().create(kinds.row(API_VERSION, "UpgradePlan").kind, new, field_manager="kubectl-create")
    return Theatre(
        cluster=cluster,
        client=client,
        clock=clock,
        world=_Company(world, Operator(cluster.client(), kinds, ref, resume_after)),
        ledger=world.ledger,
        reconciler=Reconciler(parts, journal),
        attention=attention,
        name=ref.name,
        parts=parts,
    )


class _Company:
    """Harvester's world and the operator, as one."""

    def __init__(self, *players: PlayedWorld) -> None:
        self._players = players

    def step(self, now: datetime) -> bool:
        acted = [player.step(now) for player in self._players]
        return any(acted)

    def next_due(self) -> datetime | None:
        return min((due for player in self._players if (due := player.next_due()) is not None), default=None)


def settings_of(inputs: Inputs) -> Settings:
    """What the played world has to know of the inputs. Raises `Problems` where there is no release."""
    if inputs.release is None:
        raise problem(
            "MissingInput",
            "the release is not known, so nobody can play what it brings",
            remedy="give the release's harvester-release.yaml with --release",
        )
    lists: dict[str, Sequence[str]] = inputs.facts.get("imageLists") or {}
    return Settings(
        release=inputs.release.body,
        previous_images=lists.get("previous"),
        current_images=lists.get("current"),
        kubelets=inputs.facts.get("kubelet") or {},
    )


def _facts(inputs: Inputs) -> dict[str, Any]:
    """What was given as facts, and for the rest a cluster whose certificates are fresh."""
    return {"certificates": inputs.facts.get("certificates") or {}}


def _nobody_answers(address: str, port: int) -> datetime | None:
    raise OSError("nobody answers in a rehearsal: give its end date in a facts document")
