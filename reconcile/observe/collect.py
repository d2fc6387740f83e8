"""Collects what rendering and probes need to know of a live cluster, without anything that is secret.

Of a Secret just its metadata and type are kept, of a certificate just its end. What is secret in other objects is
redacted. The same cluster gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.observe.facts import Unreadable, unreadable
from reconcile.observe.readings import READERS, Readings
from reconcile.observe.selection import MACHINE_PLANS
from reconcile.observe.snapshot import Snapshot, take
from reconcile.observe.source import Source
from reconcile.probes.look import CERTIFICATES, KUBELET, Group, ReadFailure
from renderer.errors import Problem
from renderer.model.collected import CollectedKind
from renderer.model.ref import Body, Ref, ref_of
from renderer.redaction import Redactor

_HARVESTER = "harvesterhci.io/v1beta1"
_LONGHORN = "longhorn.io/v1beta2"

_FILES: Mapping[str, tuple[Group | Ref, ...]] = {
    "nodes.yaml": (KUBELET.of,),
    "rancher.yaml": (
        Ref(api_version="provisioning.cattle.io/v1", kind="Cluster", namespace="fleet-local", name="local"),
        Ref(api_version="cluster.x-k8s.io/v1beta1", kind="Cluster", namespace="fleet-local", name="local"),
        Group(api_version="cluster.x-k8s.io/v1beta1", kind="Machine", namespace="fleet-local"),
        MACHINE_PLANS,
        Group(api_version="management.cattle.io/v3", kind="ManagedChart", namespace="fleet-local"),
    ),
    "settings.yaml": (
        Ref(api_version=_HARVESTER, kind="Setting", name="server-version"),
        Group(api_version=_LONGHORN, kind="Setting", namespace="longhorn-system"),
    ),
    "versions.yaml": (Group(api_version=_HARVESTER, kind="Version", namespace="harvester-system"),),
    "components.yaml": (
        Group(api_version="kubevirt.io/v1", kind="KubeVirt", namespace="harvester-system"),
        Group(api_version=_HARVESTER, kind="Addon"),
        CERTIFICATES.of,
        Ref(api_version="storage.k8s.io/v1", kind="StorageClass", name="longhorn-static"),
        Group(api_version=_LONGHORN, kind="Volume", namespace="longhorn-system"),
    ),
    "vms.yaml": (
        Group(api_version="kubevirt.io/v1", kind="VirtualMachine"),
        Group(api_version="kubevirt.io/v1", kind="VirtualMachineInstance"),
    ),
}
"""File to what stands in it. A Longhorn setting holds names of Secrets, never their content."""

FACTS, PLAN, CHECKED = "facts.yaml", "upgradeplan.yaml", "checked.yaml"
NAMES = (*_FILES, CHECKED, PLAN, FACTS)
"""Every file that a collection may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """`files` has the bodies of each file, `facts` the facts, `whole` what was read completely; `unread` says which
    readings nobody gave, and what checks look at and nobody may read."""

    files: Mapping[str, tuple[Body, ...]]
    facts: Mapping[str, Any]
    whole: tuple[CollectedKind, ...] = ()
    unread: tuple[str, ...] = ()


def collect(
    source: Source,
    readings: Readings,
    plan: Body | None,
    redactor: Redactor,
    looked_at: Iterable[Group | Ref] = (),
) -> Collected:
    """`looked_at` is what checks look at beside what rendering needs.

    Raises `Unreadable` with everything that rendering needs and could not be read: half a cluster must not pass for a
    whole one.
    """
    refused: list[Problem] = []
    known = [item for items in _FILES.values() for item in items if item is not MACHINE_PLANS]  # of Secrets not all
    others = [need for need in looked_at if not any(_covers(item, need) for item in known)]
    more = [_more(source, need) for need in others]
    expected = {**_FILES, **({PLAN: (ref_of(plan),)} if plan else {})}
    found = {file: _sorted(_read(source, items, refused)) for file, items in expected.items()}
    if refused:
        raise Unreadable(refused)
    there = {ref_of(body) for bodies in found.values() for body in bodies}
    bodies = {ref_of(body): body for item in more for body in item.bodies}
    found[CHECKED] = _sorted(body for ref, body in bodies.items() if ref not in there)
    snapshot = take((*(reading.of for reading in READERS), *READERS), source, readings)
    return Collected(
        files={file: tuple(redacted(body, redactor) for body in bodies) for file, bodies in found.items() if bodies},
        facts=_facts(snapshot),
        whole=tuple(sorted(map(_whole, [*known, *(item.need for item in more if not item.refused)]), key=_order)),
        unread=tuple(
            map(redactor.text, [*_unread(snapshot), *(problem.message for item in more for problem in item.refused)])
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    need: Group | Ref
    bodies: tuple[Body, ...]
    refused: tuple[Problem, ...]


def _more(source: Source, need: Group | Ref) -> _Answer:
    refused: list[Problem] = []
    return _Answer(need=need, bodies=tuple(_read(source, (need,), refused)), refused=tuple(refused))


def _covers(item: Group | Ref, need: Group | Ref) -> bool:
    if isinstance(item, Ref):
        return item == need
    return item.holds(need) if isinstance(need, Ref) else item.includes(need)


def _whole(need: Group | Ref) -> CollectedKind:
    name = need.name if isinstance(need, Ref) else ""
    return CollectedKind(api_version=need.api_version, kind=need.kind, namespace=need.namespace, name=name)


def _order(item: CollectedKind) -> tuple[str, ...]:
    return (item.api_version, item.kind, item.namespace, item.name)


def refusals(source: Source) -> tuple[Problem, ...]:
    """All of that which cannot be read, except for the plan."""
    refused: list[Problem] = []
    for items in _FILES.values():
        tuple(_read(source, items, refused))
    return tuple(refused)


def redacted(body: Body, redactor: Redactor) -> Body:
    """The object without secrets, and without what only a server has use for. Of a Secret just its head."""
    if ref_of(body).kind == "Secret":
        body = {key: body[key] for key in ("apiVersion", "kind", "metadata", "type") if key in body}
    return redactor.body(without_managed_fields(body))


def without_managed_fields(body: Body) -> Body:
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key != "managedFields"}
    return {**body, "metadata": metadata}


def _read(source: Source, requested: Iterable[Group | Ref], refused: list[Problem]) -> Iterator[Body]:
    for item in requested:
        answer = source.get(item) if isinstance(item, Ref) else source.list(item)
        if isinstance(answer, ReadFailure):
            what = str(item) if isinstance(item, Ref) else f"{item.kind} objects"
            refused.append(unreadable(what, answer))
        elif isinstance(answer, tuple):
            yield from ({"apiVersion": item.api_version, "kind": item.kind, **body} for body in answer)
        elif answer is not None:
            yield answer


def _sorted(bodies: Iterable[Body]) -> tuple[Body, ...]:
    return tuple(sorted(bodies, key=ref_of))


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    """An answer that says nothing is no fact."""
    sections = {
        section: {name: answer for name, answer in sorted(answers.items()) if answer and isinstance(answer, Mapping)}
        for section, answers in snapshot.readings.items()
    }
    return {section: answers for section, answers in sections.items() if answers}


def _unread(snapshot: Snapshot) -> Iterator[str]:
    for reading, reader in READERS.items():
        for name, answer in sorted(snapshot.readings[reading.name].items()):
            if isinstance(answer, ReadFailure) and not answer.out_of_reach:
                yield f"{reader.what} {name}: {answer.why}"
