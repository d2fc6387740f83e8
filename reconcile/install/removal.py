"""Takes an installation away, unless a plan is under way; the definition, all plans and the volume of logs stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcile.admission.stored import SECRET, WebhookObjects, is_ours
from reconcile.cluster.errors import NoSuchKind
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.decide.plan import is_over
from reconcile.install.installed_kinds import CLAIM, KEPT, KINDS, NAME, OURS, PART_OF, installed, read
from reconcile.install.installer import delete
from reconcile.install.rivals import Holder, holder_of
from reconcile.status.plan_body import outline_of
from renderer.errors import Problem
from renderer.model.plan_api import PLAN_KIND
from renderer.model.ref import Body, Ref, ref_of


def plans_of(cluster: Cluster) -> tuple[Body, ...]:
    """All UpgradePlans; none where the kind is not served."""
    try:
        return cluster.list(Selection(kind=PLAN_KIND)).items
    except NoSuchKind:
        return ()


def under_way(plans: Iterable[Body]) -> Iterator[Problem]:
    """A problem for each plan that has begun and has not ended: without a manager its cluster stays half upgraded."""
    for plan in plans:
        status = outline_of(plan)
        if status.phase and not is_over(status):
            name = plan["metadata"]["name"]
            remedy = f"let it end (upgradeplan status {name} --watch), or take it back: upgradeplan abort {name}"
            message = f"UpgradePlan {name} is under way: it is in phase {status.phase}"
            yield Problem(reason="PlanUnderWay", message=message, remedy=remedy)


def to_remove(cluster: Cluster, name: str) -> tuple[Body, ...]:
    """Every object of the installation but what is kept, last created first, and the certificates that a manager has
    made for its webhook."""
    found = [body for body in installed(cluster, name) if body["kind"] not in KEPT]
    return tuple(reversed([*_certificates(cluster, name, found), *found]))


def _certificates(cluster: Cluster, name: str, found: Iterable[Body]) -> Iterator[Body]:
    for namespace in {str(body["metadata"]["namespace"]) for body in found if body["kind"] == "Deployment"}:
        ref = WebhookObjects(namespace=namespace, name=name).secret
        secret = read(cluster, ref, SECRET)
        if secret is not None and is_ours(secret):
            yield secret


def holders_of(cluster: Cluster, objects: Iterable[Body]) -> tuple[Holder, ...]:
    """The releases that hold objects of the installation: they take them away, and not this program."""
    found = (holder_of(cluster, body) for body in objects if body["kind"] != SECRET.kind)
    return tuple(sorted({holder for holder in found if holder is not None}))


def remove(cluster: Cluster, objects: Iterable[Body]) -> Iterator[Ref]:
    for body in objects:
        yield delete(cluster, body)


def volumes_of(cluster: Cluster, name: str) -> tuple[Body, ...]:
    """The claims for volumes of logs that the installation has made."""
    return cluster.list(Selection(kind=KINDS["v1", CLAIM], labels=f"{PART_OF}={OURS},{NAME}={name}")).items


def stays(plans: Iterable[Body], volumes: Iterable[Body]) -> Iterator[str]:
    """The lines for what is left."""
    names = [str(plan["metadata"]["name"]) for plan in plans]
    held = [str(plan["metadata"]["name"]) for plan in plans if plan["metadata"].get("finalizers")]
    yield f"stays: CustomResourceDefinition {PLAN_KIND.plural}.{PLAN_KIND.group}"
    yield from (f"stays: UpgradePlan {name}" for name in names)
    yield from (f"stays: {ref_of(body)}, the volume with the collected logs" for body in volumes)
    for name in held:
        yield f"note: UpgradePlan {name} has borrowed fields or objects; only a manager returns them: abort it first"
