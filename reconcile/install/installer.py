"""Applies an installation: everything is tried first, so that a refusal changes nothing; then one write an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from reconcile.act.applied import REFUSALS
from reconcile.cluster.errors import ClusterError, Conflict, NotFound
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.diff.field_changes import FieldChange, changes
from reconcile.install.installed_kinds import DEFINITION, KEPT, installed, kind_of, read
from reconcile.install.rivals import holder_of
from reconcile.preflight.given_objects import GivenObjects
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import ProbeContext
from reconcile.schemas import Schemas
from renderer.catalog.kinds import Kinds
from renderer.errors import ExitCode, Problem, Problems
from renderer.model.node_labels import is_witness
from renderer.model.path import look_up
from renderer.model.probe import BuiltinPredicate, ObjectTarget, Probe
from renderer.model.ref import Body, Kind, Ref, ref_of

NODE = Kind(api_version="v1", kind="Node", plural="nodes", namespaced=False)
_SERVERS_OWN = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


class Done(StrEnum):
    """The effect of applying one object, in kubectl's words."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallChange:
    """`fields` are those that differ of an object that was there."""

    ref: Ref
    done: Done
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """`force` takes over fields that other field managers hold. `pruned` is the name of the installation of which
    objects that are no longer expected are removed; empty for none."""

    cluster: Cluster
    schemas: Schemas
    force: bool = False
    pruned: str = ""

    def tried(self, objects: Sequence[Body]) -> tuple[InstallChange, ...]:
        """The changes that `apply` would make. Raises `Problems` with all that the API server refuses."""
        found: list[InstallChange] = []
        problems: list[Problem] = []
        for body in objects:
            try:
                found.append(self._applied(body, dry_run=True))
            except REFUSALS as error:
                problems.append(_explained(error))
        if problems:
            raise Problems(problems, ExitCode.CLUSTER)
        return (*found, *(InstallChange(ref=ref_of(body), done=Done.PRUNED) for body in self._left_over(objects)))

    def apply(self, objects: Sequence[Body]) -> Iterator[InstallChange]:
        """One write an object, in the order given; then what an earlier installation had and this one has not goes."""
        for body in objects:
            yield self._applied(body)
        for body in self._left_over(objects):
            yield InstallChange(ref=delete(self.cluster, body), done=Done.PRUNED)

    def _applied(self, body: Body, *, dry_run: bool = False) -> InstallChange:
        ref = ref_of(body)
        kind = kind_of(ref)
        live = read(self.cluster, ref, kind)
        force = self.force or ref.kind == DEFINITION  # another manager's lacks fields that this program writes
        after = self.cluster.apply(kind, body, dry_run=dry_run, force=force).body
        if live is None:
            return InstallChange(ref=ref, done=Done.CREATED)
        fields = tuple(changes(_comparable(live), _comparable(after), self.schemas.of(body)))
        return InstallChange(ref=ref, done=Done.CONFIGURED if fields else Done.UNCHANGED, fields=fields)

    def _left_over(self, objects: Iterable[Body]) -> Iterator[Body]:
        expected = set(map(ref_of, objects))
        for live in installed(self.cluster, self.pruned) if self.pruned else ():
            if ref_of(live) not in expected and live["kind"] not in KEPT and holder_of(self.cluster, live) is None:
                yield live


def delete(cluster: Cluster, live: Body) -> Ref:
    """Deletes this very object; one that is gone meanwhile is as well."""
    ref = ref_of(live)
    with suppress(NotFound):
        cluster.delete(kind_of(ref), ref, uid=str(live["metadata"]["uid"]))
    return ref


def _explained(error: ClusterError) -> Problem:
    """A conflict with the option that resolves it, and a namespace that is missing with what that means."""
    if isinstance(error, Conflict) and error.claims:
        return replace(
            error.problem, remedy="take the fields over with --force-conflicts, or leave them to the other one"
        )
    if isinstance(error, NotFound) and error.ref.kind == "Namespace":
        remedy = "install into a Harvester cluster, which has this namespace, or create the one that the values name"
        return replace(error.problem, remedy=remedy)
    return error.problem


def has_one_node(cluster: Cluster) -> bool:
    """True if at most one node can run the manager. A node that is cordoned now will not always be."""
    return sum(map(_can_run, cluster.list(Selection(kind=NODE)).items)) <= 1


def _can_run(node: Body) -> bool:
    taints = (look_up(node, ("spec", "taints")) or ()) if look_up(node, ("spec",)) else ()
    lasting = [taint for taint in taints if not str(taint.get("key")).startswith("node.kubernetes.io/")]
    refusing = [taint for taint in lasting if taint.get("effect") in ("NoSchedule", "NoExecute")]
    return not refusing and not is_witness(node)


def is_ready(body: Body, kinds: Kinds, schemas: Schemas, now: datetime) -> bool:
    """True if the object is ready by the rule of its kind."""
    probe = Probe(target=ObjectTarget(ref=ref_of(body)), all=(BuiltinPredicate(),))
    return evaluate(probe, GivenObjects([body], kinds), ProbeContext(kinds=kinds, schemas=schemas, now=now)).passed


def _comparable(body: Body) -> Body:
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVERS_OWN}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}
