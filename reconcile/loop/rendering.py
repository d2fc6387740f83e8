"""Renders the plan as it is now, with what has been captured; the same inputs are not rendered twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from reconcile.loop.overrides import Overrides, reviewed
from reconcile.preflight.check_context import CheckContext, checks_of, context_of_facts
from reconcile.preflight.running_plan import LivePreflight
from reconcile.schemas import Schemas
from reconcile.status.attempt import attempt_of
from reconcile.status.plan import Place, PlanStatus, is_ending
from renderer.catalog.load import Catalog
from renderer.catalog.template_digests import TemplateDigests, template_digests
from renderer.context.build import Context, context_of
from renderer.context.facts import Facts
from renderer.context.nodes import seen_again, seen_of
from renderer.context.scope import Scope
from renderer.digest import digest_of
from renderer.errors import Problems, problem
from renderer.input_rules import unusable_image
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan
from renderer.model.sharing import changed
from renderer.redaction import Redactor
from renderer.render.last_rendering import LastRendering
from renderer.render.manifest import DigestOf
from renderer.render.plan import render
from renderer.render.step_cache import StepCache
from renderer.templating import Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rendered:
    """The last rendering, and what it was made of: of the `status`, of what a rendering sees of it."""

    seen: list[Any]
    status: PlanStatus
    rendered: RenderedPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownContext:
    """A context, its digest, and what it was made from: of the objects a context sees their `traits` alone."""

    inputs: list[Any]
    objects: tuple[Body, ...]
    traits: list[Any]
    context: Context
    digest: str


class Rendering:
    """The catalog and its templates, and the last rendering. `new_cache` gives the steps that several plans have in
    common; by default there are none. `digest` is given where inputs are redacted: a replay. `overrides` stand in place
    of values."""

    def __init__(
        self,
        catalog: Catalog,
        templates: Templates,
        spec_fields: Mapping[str, Any],
        overrides: Overrides | None = None,
        digest: DigestOf = digest_of,
    ) -> None:
        self.catalog = catalog
        self.overrides = dict(overrides or {})
        self.new_cache: Callable[[], StepCache | None] = lambda: None
        self.redactor = Redactor(catalog.redaction)
        self._digest = digest
        self._templates = templates
        self._spec_fields = spec_fields
        self._last: dict[str, _Rendered] = {}
        self._sealed: dict[str, tuple[str, RenderedPlan]] = {}
        self._seen: dict[tuple[str, int], _KnownContext] = {}
        self._kept: dict[str, LastRendering] = {}
        self._checked: dict[str, tuple[tuple[Any, ...], CheckContext]] = {}
        self._refused: dict[tuple[str, bool], tuple[list[Any], Problems]] = {}

    @cached_property
    def templates(self) -> TemplateDigests:
        """The digests of the files that plans are rendered from. Only the loop and `approve` ask for them."""
        return template_digests(self.catalog, reviewed(self.overrides))

    def of(self, plan: Body, status: PlanStatus, objects: Sequence[Body], fetched: Mapping[str, Any]) -> RenderedPlan:
        """A plan that has begun is rendered as far as that goes. Raises `Problems`: a template that cannot be rendered
        from these facts."""
        name, facts = str(plan["metadata"]["name"]), self._facts(plan, objects, fetched)
        context, digest = self._read(facts)
        seen, last = [digest, is_ending(plan, status), self._is_last(status)], self._last.get(name)
        if last is None or last.seen != seen or not _shows_the_same(status, last.status):
            rendered = self._unless_refused([seen, status.records, status.done], plan, context, status)
        else:
            rendered = last.rendered
        self._last[name] = _Rendered(seen=seen, status=status, rendered=rendered)
        return rendered

    def overridden(self, overrides: Overrides) -> Rendering:
        """The same with other overrides."""
        if overrides == self.overrides:
            return self
        return Rendering(self.catalog, self._templates, self._spec_fields, overrides, self._digest)

    def forget(self, name: str) -> None:
        """The plan is gone."""
        for kept in (self._last, self._sealed, self._kept, self._checked):
            kept.pop(name, None)
        self._seen = {key: known for key, known in self._seen.items() if key[0] != name}
        for review in (True, False):
            self._refused.pop((name, review), None)

    def sealed(self, plan: Body, objects: Sequence[Body], fetched: Mapping[str, Any]) -> RenderedPlan:
        """As a reviewer sees it: with marks where values are captured at run time. A retry gives objects other names
        and is no other upgrade, so what was approved holds for it."""
        name, facts = (
            str(plan["metadata"]["name"]),
            replace(self._facts(_first_attempt(plan), objects, fetched), retry=0),
        )
        context, key = self._read(facts)
        known, rendered = self._sealed.get(name, ("", None))
        if rendered is None or known != key:
            rendered = self._unless_refused([key], plan, self._for_review(context), None)
            self._sealed[name] = (key, rendered)
        return rendered

    def _for_review(self, context: Context) -> Context:
        """The context without the values that no reviewer knows."""
        values = {**self.catalog.values, **reviewed(self.overrides)}
        return replace(context, names={**context.names, "values": Scope("values", values)})

    def preflight(
        self, plan: Body, objects: Sequence[Body], fetched: Mapping[str, Any], schemas: Schemas
    ) -> LivePreflight:
        """The checks of this plan, as it is now."""
        facts = self._facts(plan, objects, fetched)
        _, digest = self._read(facts)
        name, inputs = str(plan["metadata"]["name"]), (digest, plan.get("spec"), plan["metadata"].get("annotations"))

        def context(now: datetime) -> CheckContext:
            known, made = self._checked.get(name, (None, None))
            if made is None or known != inputs:
                made = context_of_facts(self.catalog, self._templates, facts, schemas, now, running=True)
            elif made.probes.now != now:
                made = made.at(now)
            self._checked[name] = inputs, made
            return made

        return LivePreflight(checks=partial(checks_of, self.catalog), context=context, inputs=inputs)

    def check_context(self, plan: Body, objects: Sequence[Body], schemas: Schemas, now: datetime) -> CheckContext:
        """The context of checks, and of known causes, about this plan."""
        facts = self._facts(plan, objects, {})
        return context_of_facts(self.catalog, self._templates, facts, schemas, now, running=True)

    def _read(self, facts: Facts) -> tuple[Context, str]:
        """The context, the very same one while it is equal, and the digest of all that a template can see of it: a
        Node's heartbeat is not among it. Values never change."""
        key, inputs = (str(facts.plan["metadata"]["name"]), facts.retry), _inputs(facts)
        known = self._seen.get(key)
        if known is None or known.inputs != inputs or known.objects != facts.objects:
            traits = seen_again(facts.objects, known.objects, known.traits) if known else seen_of(facts.objects)
            is_same = known is not None and known.inputs == inputs and known.traits == traits
            context, digest = (known.context, known.digest) if known and is_same else _context_and_digest(facts)
            if known is not None and known.digest == digest:
                context = known.context
            known = _KnownContext(inputs=inputs, objects=facts.objects, traits=traits, context=context, digest=digest)
            self._seen[key] = known
        return known.context, known.digest

    def _facts(self, plan: Body, objects: Sequence[Body], fetched: Mapping[str, Any]) -> Facts:
        return Facts(
            plan=plan,
            objects=tuple(objects),
            fetched=fetched,
            values={**self.catalog.values, **self.overrides},
            spec_fields=self._spec_fields,
            retry=attempt_of(plan),
        )

    def _unless_refused(self, key: list[Any], plan: Body, context: Context, status: PlanStatus | None) -> RenderedPlan:
        """Refuses at once, as before, what is made of the same as the last refusal: rendering it may take long."""
        place = (str(plan["metadata"]["name"]), status is None)
        known, refusal = self._refused.get(place, (None, None))
        if refusal is not None and known == key:
            raise Problems(refusal.problems)
        self._refused.pop(place, None)
        try:
            return self._render(plan, context, status)
        except Problems as error:
            self._refused[place] = (key, error)
            raise

    def _render(self, plan: Body, context: Context, status: PlanStatus | None) -> RenderedPlan:
        ends = status is not None and is_ending(plan, status)
        if (message := unusable_image(plan)) and not ends:
            remedy = "spec.image cannot be changed: delete the plan, and create one that has the image's name alone"
            raise problem("InvalidName", f"spec.image: {message}", remedy=remedy)
        if status is None:
            return render(self.catalog, self._templates, context, digest=self._digest)
        name = str(plan["metadata"]["name"])
        kept = self._kept.get(name) or self._kept.setdefault(name, LastRendering(self.new_cache()))
        ending = ends or self._is_last(status)
        return render(
            self.catalog,
            self._templates,
            context,
            status,
            kept,
            ending=ending,
            lenient=bool(status.phase),
            digest=self._digest,
        )

    def _is_last(self, status: PlanStatus) -> bool:
        """True if all phases are completed, and what the plan has made is about to go."""
        return status.phase == self.catalog.phases[-1].phase.completed


_NOT_SEEN = ("steps", "conditions", "borrowed", "nodeUpgradeStatuses", "waitingSince")
"""The parts of a plan's status that change all the time; of the nodes' states a context has the names."""


def _inputs(facts: Facts) -> list[Any]:
    """The inputs of a context but the objects, to be compared."""
    plan, status = facts.plan, facts.plan.get("status") or {}
    seen_status = {name: value for name, value in status.items() if name not in _NOT_SEEN}
    metadata = {name: value for name, value in plan["metadata"].items() if name not in _BOOKKEEPING}
    nodes = list(status.get("nodeUpgradeStatuses") or ())
    return [plan.get("spec"), metadata, seen_status, nodes, facts.fetched, facts.retry]


def _context_and_digest(facts: Facts) -> tuple[Context, str]:
    context = context_of(facts)
    data = {name: value for name, value in context.data.items() if name != "values"}
    return context, digest_of([data, sorted(context.given), sorted(context.marks)])


def _first_attempt(plan: Body) -> Body:
    """The plan as if none of its steps were retried: the import of the ISO gets another image then."""
    status = plan.get("status") or {}
    if "retry" not in status or (plan.get("spec") or {}).get("image"):
        return plan
    return {**plan, "status": {key: value for key, value in status.items() if key not in ("isoImageID", "retry")}}


_BOOKKEEPING = ("managedFields", "resourceVersion", "generation")


def _shows_the_same(now: PlanStatus, then: PlanStatus) -> bool:
    """True if a rendering sees the same of what the steps have done so far."""
    places = (*changed(now.records, then.records), *changed(now.done, then.done))
    return now.done.keys() == then.done.keys() and all(_shown(now, it) == _shown(then, it) for it in places)


def _shown(status: PlanStatus, place: Place) -> list[Any] | None:
    """The values captured at one place, and the steps that have begun there, with what they made."""
    steps = status.records.get(place)
    if steps is None:
        return None
    made = [
        [name, status.is_under_way(place[0], name, place[1]), status.made_by(place[0], name, place[1])]
        for name in steps
    ]
    return [status.captured(*place), made]
