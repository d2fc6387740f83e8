"""Finds the objects in the way of an installation: those of its names, and webhooks for UpgradePlans, that belong to
somebody else. Reads only.

The definition of UpgradePlan is no such object: there is one for all managers, and this program's has every field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.protocol import Cluster, Selection
from reconcile.install.installed_kinds import DEFINITION, KINDS, is_ours, kind_of, read
from reconcile.objects import items, label
from renderer.errors import Problem
from renderer.model.plan_api import GROUP
from renderer.model.ref import Body, Kind, Ref, ref_of

_RELEASE, _RELEASE_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
_KEEP = "helm.sh/resource-policy"
_ADDON = Kind(api_version="harvesterhci.io/v1beta1", kind="Addon", plural="addons", namespaced=True)
_WEBHOOKS = tuple(kind for (_, name), kind in KINDS.items() if name.endswith("WebhookConfiguration"))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Holder:
    """The holder of an object: a Helm release, which an Addon may have installed, or nobody who can be named."""

    release: str = ""
    namespace: str = ""
    addon: bool = False

    def __str__(self) -> str:
        if not self.release:
            return "another program"
        kind = "Addon" if self.addon else "Helm release"
        return f"{kind} {self.namespace}/{self.release}"

    def change(self) -> str:
        """The command that gives it other values; CHART is what `install --format helm-chart` has written."""
        if self.addon:
            return f"kubectl -n {self.namespace} edit addons.harvesterhci.io {self.release}"
        return f"helm upgrade -n {self.namespace} {self.release} CHART --reuse-values"

    def removal(self) -> str:
        """The command that takes it away."""
        if self.addon:
            patch = """--type merge -p '{"spec": {"enabled": false}}'"""
            return f"kubectl -n {self.namespace} patch addons.harvesterhci.io {self.release} {patch}"
        return f"helm uninstall -n {self.namespace} {self.release}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """Objects of others, by holder. `webhooks` are configurations that judge UpgradePlans. `are_ours`: they are all of
    this program's own chart."""

    objects: Mapping[Holder, tuple[Ref, ...]]
    webhooks: tuple[Ref, ...]
    are_ours: bool
    definition_is_kept: bool

    def __bool__(self) -> bool:
        return bool(self.objects)


def rivals_of(cluster: Cluster, expected: Iterable[Body]) -> Rivals:
    """`expected` are the objects of the installation."""
    found: dict[Holder, list[Ref]] = {}
    webhooks = [body for body in _webhooks(cluster) if not is_ours(body)]
    are_ours = not webhooks
    for live in (*_same_names(cluster, expected), *webhooks):
        if (holder := holder_of(cluster, live)) is not None:
            found.setdefault(holder, []).append(ref_of(live))
            are_ours = are_ours and is_ours(live)
    return Rivals(
        objects={holder: tuple(dict.fromkeys(refs)) for holder, refs in sorted(found.items())},
        webhooks=tuple(map(ref_of, webhooks)),
        are_ours=are_ours,
        definition_is_kept=_is_kept(cluster, expected),
    )


def holder_of(cluster: Cluster, live: Body) -> Holder | None:
    """None for an object of ours that no release holds."""
    annotations = live["metadata"].get("annotations") or {}
    release, namespace = str(annotations.get(_RELEASE, "")), str(annotations.get(_RELEASE_NAMESPACE, ""))
    if release:
        addon = Ref(api_version=_ADDON.api_version, kind=_ADDON.kind, namespace=namespace, name=release)
        return Holder(release=release, namespace=namespace, addon=read(cluster, addon, _ADDON) is not None)
    return None if is_ours(live) else Holder()


def _same_names(cluster: Cluster, expected: Iterable[Body]) -> Iterator[Body]:
    for ref in map(ref_of, expected):
        live = read(cluster, ref, kind_of(ref)) if ref.kind != DEFINITION else None
        if live is not None:
            yield live


def _webhooks(cluster: Cluster) -> Iterator[Body]:
    for kind in _WEBHOOKS:
        for body in cluster.list(Selection(kind=kind)).items:
            if any(_judges_plans(rule) for hook in items(body.get("webhooks")) for rule in items(hook.get("rules"))):
                yield body


def _judges_plans(rule: Mapping[str, Any]) -> bool:
    """A wildcard rule, as policy engines have, does not count as one for UpgradePlans."""
    plural = {str(resource).partition("/")[0] for resource in items(rule.get("resources"))}
    return GROUP in items(rule.get("apiGroups")) and bool(plural & {"upgradeplans", "*"})


def _is_kept(cluster: Cluster, expected: Iterable[Body]) -> bool:
    """True unless a release has a definition that goes with it, and all plans too."""
    for ref in map(ref_of, expected):
        live = read(cluster, ref, kind_of(ref)) if ref.kind == DEFINITION else None
        annotations = (live or {"metadata": {}})["metadata"].get("annotations") or {}
        if _RELEASE in annotations:
            return bool(annotations.get(_KEEP) == "keep")
    return True


def problems_of(rivals: Rivals) -> Iterator[Problem]:
    """One problem a holder, with the names of what is in the way."""
    for holder, refs in rivals.objects.items():
        named = ", ".join(map(str, refs[:3])) + (f" and {len(refs) - 3} more objects" if len(refs) > 3 else "")
        verb = "belong" if len(refs) > 1 else "belongs"
        yield Problem(reason="BelongsToAnother", message=f"{named} {verb} to {holder}; nothing was changed")


def ways_out(rivals: Rivals, deployments: Iterable[Ref], again: str) -> Iterator[str]:
    """The two ways in which this program can still be installed. `again` is the command that installs."""
    if rivals.are_ours:
        yield "That is this program, installed by its chart. To change that installation:"
        for holder in rivals.objects:
            yield f"  {holder.change()}"
        yield from _in_place(rivals, again)
        return
    yield "To install beside the other manager, stop it, and remove its webhooks, which would refuse every plan then:"
    for ref in deployments:
        yield f"  kubectl -n {ref.namespace} scale deployment {ref.name} --replicas=0"
    for ref in rivals.webhooks:
        yield f"  kubectl delete {ref.kind.lower()} {ref.name}"
    yield f"  {again} --name upgradeplan"
    yield from _in_place(rivals, again)


def _in_place(rivals: Rivals, again: str) -> Iterator[str]:
    releases = [holder for holder in rivals.objects if holder.release]
    if not releases:
        return
    yield "To install in its place; the definition of UpgradePlan and all plans stay:"
    if not rivals.definition_is_kept:
        yield "  first set crd.keep in the values of the release: else its definition and all plans are deleted with it"
    for holder in releases:
        yield f"  {holder.removal()}"
    yield f"  {again}"


def their_deployments(cluster: Cluster, rivals: Rivals) -> Iterator[Ref]:
    """Deployments of the holders that run UpgradePlans: those in the way, and those of the same releases."""
    kind = KINDS["apps/v1", "Deployment"]
    for live in cluster.list(Selection(kind=kind, labels="control-plane=controller-manager")).items:
        holder = holder_of(cluster, live)
        manages = label(live, "app.kubernetes.io/name").startswith("harvester-upgrade-manager")
        if holder in rivals.objects and (manages or (holder and holder.release)):
            yield ref_of(live)
