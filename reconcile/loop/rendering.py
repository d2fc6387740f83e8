"""Renders the plan as it is now, with what has been captured; the same inputs are not rendered twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconcile.status.plan import Place, PlanStatus, is_ending
from renderer.catalog.load import Catalog
from renderer.context.facts import Facts, node_of_machine
from renderer.digest import digest_of
from renderer.errors import problem
from renderer.input_rules import unusable_image
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan
from renderer.render.plan import render
from renderer.render.step_cache import StepCache
from renderer.templating import Templates

RETRY = f"{PREFIX}retry"
"""The annotation by which a plan's steps get other names, and so run again."""

_STATUS = ("previousVersion", "singleNode", "version", "releaseMetadata", "isoImageID")


class Rendering:
    """The catalog and its templates, and the last rendering."""

    def __init__(self, catalog: Catalog, templates: Templates, spec_fields: Mapping[str, Any]) -> None:
        self.catalog = catalog
        self._templates = templates
        self._spec_fields = spec_fields
        self._last: dict[str, tuple[str, RenderedPlan]] = {}
        self._kept: dict[str, StepCache] = {}

    def of(self, plan: Body, status: PlanStatus, objects: Sequence[Body], fetched: Mapping[str, Any]) -> RenderedPlan:
        """A plan that ends is rendered as far as that goes. Raises `Problems`: a template that cannot be rendered from
        these facts."""
        name = str(plan["metadata"]["name"])
        key = _key(plan, status, objects, fetched, last=self._is_last(status))
        known, rendered = self._last.get(name, ("", None))
        if rendered is None or known != key:
            rendered = self._render(plan, objects, fetched, status)
            self._last[name] = (key, rendered)
        return rendered

    def forget(self, name: str) -> None:
        """The plan is gone."""
        self._last.pop(name, None)
        self._kept.pop(name, None)

    def sealed(self, plan: Body, objects: Sequence[Body], fetched: Mapping[str, Any]) -> RenderedPlan:
        """As a reviewer sees it: with marks where values are captured at run time."""
        name = f"{plan['metadata']['name']} sealed"
        key = _key(plan, PlanStatus(rest=plan.get("status") or {}), objects, fetched, last=False)
        known, rendered = self._last.get(name, ("", None))
        if rendered is None or known != key:
            rendered = self._render(plan, objects, fetched, None)
            self._last[name] = (key, rendered)
        return rendered

    def _render(
        self, plan: Body, objects: Sequence[Body], fetched: Mapping[str, Any], status: PlanStatus | None
    ) -> RenderedPlan:
        facts = Facts(
            plan=plan,
            objects=objects,
            fetched=fetched,
            values=self.catalog.values,
            spec_fields=self._spec_fields,
            retry=attempt_of(plan),
        )
        ends = status is not None and is_ending(plan, status)
        if (message := unusable_image(plan)) and not ends:
            remedy = "spec.image cannot be changed: delete the plan, and create one that has the image's name alone"
            raise problem("InvalidName", f"spec.image: {message}", remedy=remedy)
        if status is None:
            return render(self.catalog, self._templates, facts)
        kept = self._kept.setdefault(str(plan["metadata"]["name"]), StepCache())
        ending = ends or self._is_last(status)
        return render(self.catalog, self._templates, facts, status, kept, ending=ending, lenient=ends)

    def _is_last(self, status: PlanStatus) -> bool:
        """Whether all phases are completed, and what the plan has made is about to go."""
        return status.phase == self.catalog.phases[-1].phase.completed


def _key(plan: Body, status: PlanStatus, objects: Sequence[Body], fetched: Mapping[str, Any], *, last: bool) -> str:
    """Changes with whatever a template can see; a Node's heartbeat is not among it."""
    metadata = plan["metadata"]
    recorded = [[list(place), status.captured(*place), _made(status, place)] for place in status.records]
    return digest_of(
        [
            [metadata["name"], metadata.get("annotations"), metadata.get("labels"), plan.get("spec")],
            [is_ending(plan, status), last],
            [status.rest.get(name) for name in _STATUS],
            sorted(status.node_states),
            recorded,
            sorted(status.done),
            [_seen(item) for item in objects],
            fetched,
        ]
    )


def _made(status: PlanStatus, place: Place) -> list[Any]:
    """What the steps of one place have begun and made."""
    steps = status.records[place]
    return [
        [name, status.is_under_way(place[0], name, place[1]), status.made_by(place[0], name, place[1])]
        for name in steps
    ]


def _seen(item: Body) -> Any:
    """The part of an object that facts are taken from."""
    metadata = item.get("metadata") or {}
    deps = [item.get("kind"), metadata.get("name"), metadata.get("labels")]
    annotations = metadata.get("annotations") or {}
    machine = annotations.get("cluster.x-k8s.io/machine")
    return [
        *deps,
        machine,
        node_of_machine(item),
        item.get("type"),
        item.get("value"),
        item.get("default"),
        _version(item),
    ]


def _version(item: Body) -> Any:
    return item.get("spec") if item.get("kind") == "Version" else None


def attempt_of(plan: Body) -> int:
    """Which attempt this is, from the plan's annotation; none is the first."""
    text = (plan["metadata"].get("annotations") or {}).get(RETRY, "")
    return int(text) if text.isdecimal() else 0
