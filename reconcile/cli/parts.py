"""The parts that commands on a live cluster work with: the same parts as the loop, reading directly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconcile.cli.connect import Connection, Target, connect_to, dial_of, template_set_of, wall_clock
from renderer.errors import ExitCode, Problems, problem
from renderer.model.plan_api import PLAN_API_VERSION, plan_ref
from renderer.model.ref import Body
from renderer.suggest import did_you_mean

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.observe.patience import Patience
    from renderer.assemble import TemplateSet
    from renderer.errors import Problem


def parts_of(target: Target) -> ReconcilerDeps:
    """Raises `Problems` where no cluster is named, or the templates do not hold together."""
    return parts_on(connect_to(target), template_set_of(target.templates))


def parts_on(connection: Connection, template_set: TemplateSet) -> ReconcilerDeps:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.loop.outage_clock import OutageClock
    from reconcile.loop.rendering import Rendering
    from reconcile.observe.fetching import through_the_proxy
    from reconcile.observe.readings import Readings
    from reconcile.observe.source import DirectSource
    from reconcile.schemas import packaged_schemas

    cluster, kinds = connection.cluster, template_set.catalog.kinds
    return ReconcilerDeps(
        cluster=cluster,
        source=DirectSource(cluster, kinds),
        rendering=Rendering(template_set.catalog, template_set.templates, template_set.spec_fields),
        schemas=packaged_schemas(),
        readings=Readings(cluster, kinds, wall_clock, dial_of(connection)),
        read=through_the_proxy(cluster, kinds),
        now=wall_clock,
        attended=OutageClock(wall_clock).attended,
    )


def hurried(parts: ReconcilerDeps, patience: Patience) -> ReconcilerDeps:
    """The same parts, that wait for nobody any longer than that but for the API server itself."""
    from reconcile.observe.fetching import in_time

    return replace(parts, readings=parts.readings.hurried(patience), read=in_time(parts.read, patience))


def require_fitting_api(parts: ReconcilerDeps) -> None:
    """Raises `Problems` where the cluster's definition of UpgradePlan lacks what this program writes."""
    if found := _unfit_api(parts):
        raise Problems([found], ExitCode.CLUSTER)


def require_definition(parts: ReconcilerDeps) -> None:
    """Raises `Problems` where the cluster has no definition of UpgradePlan."""
    from reconcile.loop.served_api import NO_DEFINITION

    found = _unfit_api(parts)
    if found is not None and found.reason == NO_DEFINITION:
        raise Problems([found], ExitCode.CLUSTER)


def _unfit_api(parts: ReconcilerDeps) -> Problem | None:
    from reconcile.loop.served_api import check_served_api

    kind = parts.kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
    return check_served_api(parts.cluster, kind, parts.schemas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """The reason why no loop runs a plan, and the command that changes that."""

    why: str
    command: str


def nobody_works(parts: ReconcilerDeps, phase: str, plan: str) -> Idle | None:
    """Explains why a plan that has not ended makes no progress: no loop runs, or the cluster's definition of
    UpgradePlan lacks what a loop writes."""
    from reconcile.loop.lease import nobody_leads
    from reconcile.status.plan import TERMINAL

    if phase in TERMINAL:
        return None
    if found := _unfit_api(parts):
        return Idle(why=f"{found.message}; {found.remedy}", command="upgradeplan install --crds")
    text = nobody_leads(parts.cluster, "harvester-system", wall_clock())
    return Idle(why=text, command=f"upgradeplan apply --plan {plan}") if text else None


def plan_named(parts: ReconcilerDeps, name: str | None) -> str:
    """The plan that a command is about: the one named, or the only one that has not ended, or the newest.

    Raises `Problems` if there is none, or more than one to choose from, and `Unreadable`.
    """
    from reconcile.decide.plan import is_over
    from reconcile.loop.plan_round import PLANS
    from reconcile.observe.facts import Unreadable, unreadable
    from reconcile.probes.look import ReadFailure
    from reconcile.status.plan_body import status_of

    plans = parts.source.list(PLANS)
    if isinstance(plans, ReadFailure):
        raise Unreadable([unreadable("UpgradePlan objects", plans)])
    if not plans:
        require_definition(parts)
    names = {str(plan["metadata"]["name"]): plan for plan in plans}
    if name is not None:
        if name not in names:
            remedy = f"choose one of: {', '.join(sorted(names))}" if names else "create one with kubectl apply"
            message = f"UpgradePlan {name} not found" + ("" if names else "; the cluster has none")
            raise problem("NoSuchPlan", f"{message}{did_you_mean(name, names)}", remedy=remedy)
        return name
    active = [key for key, plan in names.items() if not is_over(status_of(plan))]
    if len(active) > 1:
        raise problem(
            "WhichPlan", f"{len(active)} plans have not ended: {', '.join(sorted(active))}", remedy="name one"
        )
    if not names:
        raise problem("NoSuchPlan", "the cluster has no UpgradePlan", remedy="create one with kubectl apply")
    return active[0] if active else max(names, key=lambda key: names[key]["metadata"].get("creationTimestamp") or "")


def plan_there(parts: ReconcilerDeps, name: str) -> Body | None:
    """The live plan of that name. Raises `Unreadable`."""
    from reconcile.observe.facts import Unreadable, unreadable
    from reconcile.probes.look import ReadFailure

    ref = plan_ref(name)
    found = parts.source.get(ref)
    if isinstance(found, ReadFailure):
        raise Unreadable([unreadable(str(ref), found)])
    return found
