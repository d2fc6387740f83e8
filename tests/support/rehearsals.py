"""Support for tests of the loop: an example as a rehearsal, a loop that is killed and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.journal import JournalEntry, keep_nothing
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.rendering import Rendering
from reconcile.loop.round import Round
from reconcile.simulator.actors.fault_options import FaultOptions, KnownTargets, fault_plan_of
from reconcile.simulator.apiserver.requests import Authorizer, Hook, no_hook
from reconcile.simulator.rehearsal.driver import Ending
from reconcile.simulator.rehearsal.rehearsal import LIMIT, Rehearsal, prepare
from reconcile.simulator.rehearsal.watches import WatchedSource
from renderer.assemble import TemplateSet, open_template_set
from renderer.documents import Inputs
from renderer.files.inputs import read_inputs
from renderer.files.templates import read_templates
from renderer.model.ref import Body
from renderer.render.step_cache import StepCache
from support.installed import ACCOUNT, objects_of
from support.rbac import Rbac

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 1, 1, tzinfo=UTC)
_STEPS = StepCache(limit=300)
"""All rehearsals of a process render a step once. What finds it again is the digest of all that it has looked at
(test_rendering_key.py), and nobody changes what was rendered (test_sharing.py): a loop that has just been started gets
what it would render."""


@cache
def template_set() -> TemplateSet:
    return open_template_set(read_templates())


@cache
def inputs_of(example: str) -> Inputs:
    return read_inputs([str(ROOT / "examples" / example)])


def rehearsal_of(
    example: str,
    *,
    access: Authorizer | None = None,
    on_write: Hook = no_hook,
    journal: Callable[[JournalEntry], None] = keep_nothing,
    **wishes: list[str],
) -> Rehearsal:
    """The example, with what shall go wrong: `fail=["pre-drain on charlie-2"]`."""
    inputs = inputs_of(example)
    nodes = tuple(str(s.body["metadata"]["name"]) for s in inputs.objects if s.body["kind"] == "Node")
    faults = fault_plan_of(FaultOptions(**wishes), KnownTargets(nodes=nodes))
    return prepared(inputs, faults=faults, access=access, on_write=on_write, journal=journal)


@cache
def permissions() -> Rbac:
    """What the rendered rules grant to the loop's account: no rehearsal of an example asks for more."""
    return permitted(objects_of("rbac"))


def permitted(granted: Iterable[Body]) -> Rbac:
    """What these roles and bindings grant to it. A rehearsal reads the repository through the API server, as a laptop
    does."""
    namespace, account = ACCOUNT
    proxy = {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]}
    laptop = {"kind": "Role", "metadata": {"name": "laptop", "namespace": namespace}, "rules": [proxy]}
    binding = {
        "kind": "RoleBinding",
        "metadata": laptop["metadata"],
        "roleRef": {"kind": "Role", "name": "laptop"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
    }
    return Rbac([*granted, laptop, binding], namespace=namespace, account=account)


def prepared(inputs: Inputs, **more: Any) -> Rehearsal:
    """A rehearsal of these inputs with the packaged templates; `more` as `prepare` takes it."""
    scene = prepare(inputs, template_set(), start=START, **more)
    scene.deps.rendering.new_cache = _steps
    return scene


def _steps() -> StepCache:
    return _STEPS


def rendering() -> Rendering:
    """As a loop has it that has just been started."""
    templates = template_set()
    made = Rendering(templates.catalog, templates.templates, templates.spec_fields)
    made.new_cache = _steps
    return made


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


def play_through_kills(scene: Rehearsal, on_round: Callable[[Round], None] = lambda done: None) -> int:
    """Plays to the end; whenever the loop is killed a new one begins, with nothing of the old one's memory. Answers how
    often it was killed."""
    kills = 0
    parts = scene.deps
    while True:
        source = WatchedSource(scene.client, scene.cluster.store, parts.kinds, lambda: after_start(scene))
        drive = scene.drive(Reconciler(_reopened(parts, source)), on_round, source)
        try:
            ending = drive.run(scene.name, LIMIT)
        except Killed:
            kills += 1
            continue
        assert ending is Ending.OVER
        settle(scene)
        return kills


def settle(scene: Rehearsal) -> None:
    """Lets everybody else finish what the end of the plan has left them to do."""
    for _ in range(50):
        scene.clock.advance(60)
        while scene.participants.step(scene.clock.now()):
            scene.cluster.collect()


def after_start(scene: Rehearsal) -> float:
    """Seconds of the rehearsal's clock."""
    return (scene.clock.now() - START).total_seconds()


def _reopened(parts: ReconcilerDeps, source: WatchedSource) -> ReconcilerDeps:
    return ReconcilerDeps(
        cluster=parts.cluster,
        source=source,
        watched=source.watched,
        rendering=rendering(),
        schemas=parts.schemas,
        readings=parts.readings,
        read=parts.read,
        now=parts.now,
        attended=parts.attended,
    )


def after(minutes: float) -> timedelta:
    return timedelta(minutes=minutes)
