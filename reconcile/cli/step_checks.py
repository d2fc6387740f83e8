"""Carries out the pre-flight checks of one step that is taken by hand, as the loop does, until nothing keeps the step.

What the plan accepts is recorded in its status, and in an event.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from reconcile.act.status import write_status
from reconcile.cli.live import Live
from reconcile.cli.one_step import readable
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.check_gate import ACCEPTED, CheckedStep, carry_out
from reconcile.decide.observation import Observation
from reconcile.loop.plan_events import emit_events
from reconcile.objects import is_owned_by, uid
from reconcile.observe.facts import gather
from reconcile.observe.snapshot import Snapshot, judge
from reconcile.probes.look import Look
from reconcile.status.plan_body import status_of
from renderer.model.manifest_spec import Owned
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import RenderedPhase, RenderedStep

_AGAIN = 10.0
"""Seconds after which checks look again, unless the plan asks for something else: they read much."""


class CheckedByHand:
    """`failed`: they have measured what ends an upgrade."""

    def __init__(self, live: Live, step: RenderedStep) -> None:
        self.failed = False
        self._live = live
        self._step = step
        self._looked = float("-inf")
        self._asked: object = None
        self._waits: tuple[str, ...] = ()

    def waits(self) -> Sequence[str]:
        """Says what keeps the step; nothing once it may begin."""
        ref = ref_of(self._live.plan)
        plan = readable(ref, self._live.parts.source.get(ref)) or self._live.plan
        asked = (plan["metadata"].get("annotations"), plan.get("spec"))
        if asked != self._asked or time.monotonic() - self._looked >= _AGAIN:
            self._waits = self._look(ref, plan)
            self._asked, self._looked = asked, time.monotonic()
        return self._waits

    def _look(self, ref: Ref, plan: Body) -> tuple[str, ...]:
        parts = self._live.parts
        observation = self._observation(plan)

        def ask(look: Look) -> tuple[DecisionBuilder, CheckedStep]:
            builder = DecisionBuilder(replace(observation, look=look), status_of(plan))
            return builder, carry_out(builder, self._step)

        builder, checked = judge(ask, parts.source, parts.readings).answer
        if not self._record(plan, builder):
            return (f"{ref} has changed since it was read",)
        self.failed = bool(checked.ends)
        redact = parts.rendering.redactor.text
        return tuple(map(redact, checked.ends or (wait.text for wait in builder.waits)))

    def _observation(self, plan: Body) -> Observation:
        parts = self._live.parts
        objects = tuple(gather(parts.source, plan))
        return Observation(
            plan=plan,
            rendered=self._live.rendered,
            kinds=parts.kinds,
            schemas=parts.schemas,
            look=Snapshot(),
            now=parts.now(),
            attended=parts.attended,
            preflight=partial(parts.rendering.preflight, plan, objects, {}, parts.schemas),
        )

    def _record(self, plan: Body, builder: DecisionBuilder) -> bool:
        parts = self._live.parts
        written = write_status(parts.cluster, parts.kinds, plan, status_of(plan), builder.status)
        if written is not None:
            emit_events(parts, written, [event for event in builder.events if event.reason == ACCEPTED])
        return written is not None


def has_begun(live: Live, phase: RenderedPhase) -> bool:
    """True if an object of the phase was made for the plan: the checks before the phase are not evaluated again."""
    refs = [item.ref for step in phase.steps for item in step.manifests if isinstance(item.spec, Owned)]
    found = (readable(ref, live.parts.source.get(ref)) for ref in refs)
    return any(body is not None and is_owned_by(body, uid(live.plan)) for body in found)
