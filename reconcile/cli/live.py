"""A plan rendered from the live cluster, or from files over the objects of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reconcile.cli.connect import Connection, Target, connect_to, template_set_of
from reconcile.cli.parts import parts_on, plan_named, plan_there
from renderer.errors import Problems, problem
from renderer.model.ref import Body, ref_of

if TYPE_CHECKING:
    from reconcile.act.apply import ObjectWriter
    from reconcile.diff.masks import DiffRules
    from reconcile.loop.deps import ReconcilerDeps
    from renderer.documents import Inputs
    from renderer.model.rendered import RenderedPhase, RenderedPlan

_NOBODY = "00000000-0000-0000-0000-000000000000"
"""Stands for the uid of a plan that has not been created; only dry runs carry it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """`plan` is the live plan, or the one from the files if the cluster has none of that name."""

    connection: Connection
    parts: ReconcilerDeps
    plan: Body
    rendered: RenderedPlan

    @property
    def exists(self) -> bool:
        return bool(self.plan["metadata"].get("uid"))

    def writer(self) -> ObjectWriter:
        """Raises nothing; a plan that does not exist may only be tried."""
        from reconcile.act.apply import ObjectWriter
        from reconcile.act.belonging import Plan

        metadata = {"uid": _NOBODY, **self.plan["metadata"]}
        return ObjectWriter(
            cluster=self.parts.cluster,
            kinds=self.parts.kinds,
            schemas=self.parts.schemas,
            plan=Plan.of({**self.plan, "metadata": metadata}),
        )

    def phase(self, name: str) -> RenderedPhase:
        """Raises `Problems` for a name that the plan does not have."""
        from renderer.layout.select import select

        return select(self.rendered, phases=[name]).phases[0]


def live_of(target: Target, inputs: Inputs | None, name: str | None) -> Live:
    """Reads the cluster and renders. `inputs` bring a plan and a release that the cluster may not have yet.

    Raises `Problems`, among them everything that is wrong in the rendering.
    """
    from renderer.layout.credentials import redacted_problems

    connection = connect_to(target)
    parts = parts_on(connection, template_set_of(target.templates))
    plan = _plan(parts, inputs, name)
    rendered = _rendered(parts, plan, inputs)
    if redacted := list(redacted_problems(rendered)):
        raise Problems(redacted)
    return Live(connection=connection, parts=parts, plan=plan, rendered=rendered)


def diff_rules(parts: ReconcilerDeps) -> DiffRules:
    """The rules for what a diff leaves out and hides, as the template tree has it."""
    from reconcile.diff.masks import rules_from

    return rules_from(parts.rendering.catalog.diff_rules, parts.rendering.catalog.redaction)


def _plan(parts: ReconcilerDeps, inputs: Inputs | None, name: str | None) -> Body:
    """Raises `Unreadable` with everything that may not be read, so that one run names every missing rule."""
    from reconcile.observe.facts import Unreadable, refusals

    given = inputs.plan.body if inputs and inputs.plan else None
    try:
        chosen = name or (str(given["metadata"]["name"]) if given else plan_named(parts, None))
        plan = plan_there(parts, chosen) or given
    except Unreadable as error:
        raise Unreadable((*error.problems, *refusals(parts.source, given or {}))) from None
    if plan is None:
        raise problem("NoSuchPlan", f"UpgradePlan {chosen} not found", remedy="pass its file, or create it first")
    return plan


def _rendered(parts: ReconcilerDeps, plan: Body, inputs: Inputs | None) -> RenderedPlan:
    from reconcile.observe.facts import gather
    from reconcile.status.plan_body import status_of

    objects = [*gather(parts.source, plan), *_only_given(parts, inputs)]
    status = plan.get("status") or {}
    release = inputs.release.body if inputs and inputs.release else None
    if release and not status.get("releaseMetadata"):
        plan = {**plan, "status": {**status, "releaseMetadata": dict(release)}}
    return parts.rendering.of(plan, status_of(plan), objects, _fetched(inputs))


def _only_given(parts: ReconcilerDeps, inputs: Inputs | None) -> Sequence[Body]:
    """Objects of the files that rendering looks at and the cluster does not have, such as a Version to be applied."""
    given = [source.body for source in inputs.objects if source.body["kind"] == "Version"] if inputs else []
    return [body for body in given if parts.source.get(ref_of(body)) is None]


def _fetched(inputs: Inputs | None) -> Mapping[str, Any]:
    lists = inputs.facts.get("imageLists") if inputs else None
    return dict(lists) if lists else {}
