"""The interface of probes to a cluster: the questions, the answers, and what was settled before it looks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

from reconcile.probes.verdict import Verdict
from reconcile.schemas import Schemas
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Ref
from renderer.model.sharing import ByIdentity
from renderer.redaction import Redactor, packaged_redactor

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Every object of a kind with these labels; an empty namespace means all of them, as an empty name does.

    `seldom`: it is looked at now and then, so it is not watched; an answer some seconds old is enough."""

    api_version: str
    kind: str
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    name: str = ""
    seldom: bool = False

    def holds(self, ref: Ref) -> bool:
        """True if the group, unlabelled, would hold the object if it exists."""
        same = (self.api_version, self.kind) == (ref.api_version, ref.kind)
        return same and not self.labels and self.namespace in ("", ref.namespace) and self.name in ("", ref.name)

    def includes(self, group: Group) -> bool:
        """True if every object of the other group is one of this group, and is looked at as often."""
        same = (self.api_version, self.kind) == (group.api_version, group.kind)
        as_often = group.seldom or not self.seldom
        within = self.namespace in ("", group.namespace) and self.name in ("", group.name)
        return same and as_often and within and set(self.labels) <= set(group.labels)


NODES = Group(api_version="v1", kind="Node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A fact about a cluster that is no object. `of` are the objects that say whom to ask; `name` is its section of
    a facts document, and schemas/facts.json says what an answer looks like."""

    name: str
    of: Group

    def at(self, name: str) -> Reading:
        """The answer of the one object of this name."""
        return Reading(name=self.name, of=replace(self.of, name=name))

    def includes(self, other: Reading) -> bool:
        """True if every answer of the other is one of these."""
        return self.name == other.name and self.of.includes(other.of)


KUBELET = Reading(name="kubelet", of=NODES)
"""One a Node: its disk."""

CERTIFICATES = Reading(
    name="certificates",
    of=Group(
        api_version="discovery.k8s.io/v1",
        kind="EndpointSlice",
        namespace="default",
        labels=(("kubernetes.io/service-name", "kubernetes"),),
    ),
)
"""One an address of the API servers: when the certificate ends that it presents; empty where it presents none."""

HOSTS = Reading(name="hosts", of=NODES)
"""One a Node: what only its host knows, such as files, partitions and its own certificates."""

OWN_SERVER = "kubernetes.default.svc"
"""Stands among them for the address by which this program speaks to the API server, such as a virtual one."""


Need = Ref | Group | Reading
"""Something that must have been read before a probe is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailure:
    """It could not be looked at, and why: `connection refused`, `forbidden: nodes/proxy`; and what would help, such as
    the rule that is missing. `out_of_reach`: this kind of input never has it, as files have no disk usage."""

    why: str
    remedy: str | None = None
    out_of_reach: bool = False

    @property
    def text(self) -> str:
        """Both, for where there is no place of its own for a remedy."""
        return f"{self.why}; {self.remedy}" if self.remedy else self.why


NOT_READ = ReadFailure(why="it was not read")
"""The answer for what has yet to be read: the caller is called again."""

Answer = Mapping[str, Any] | ReadFailure
"""One answer of a reading, as a facts document has it."""


class Look(Protocol):
    """The objects read in this round. Of a group that was read, its objects one by one and narrower groups are known as
    well."""

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """The object; None where it does not exist, or its kind does not."""
        ...

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        """The objects, in the order of namespace and name; none where the kind does not exist."""
        ...

    def reading(self, reading: Reading, name: str) -> Answer:
        """The reading of one node, address, ..."""
        ...


@runtime_checkable
class LookAtMany(Protocol):
    """A `Look` that answers for many objects at once."""

    def get_all(self, refs: Collection[Ref]) -> Sequence[Body | ReadFailure | None]:
        """The answer for each, in their order."""
        ...


def get_all(look: Look, refs: Collection[Ref]) -> Sequence[Body | ReadFailure | None]:
    """The answer for each, in their order; quick where most have been read one by one."""
    return look.get_all(refs) if isinstance(look, LookAtMany) else [look.get(ref) for ref in refs]


class WorkedOut:
    """Results that rules keep: a rule that runs for each of many nodes reads all objects once."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], Any]] = {}

    def once(self, name: str, of: tuple[object, ...], work: Callable[[], _T]) -> _T:
        """The result of `work`, which depends on nothing but these very objects; the last one of each name is kept."""
        kept = self._kept.get(name)
        if kept is None or not _same(kept[0], of):
            kept = self._kept[name] = (of, work())
        result: _T = kept[1]
        return result


def _same(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeContext:
    """Within what a probe is evaluated. `manifests` are the refs that each template of the step rendered, by the name
    that a gate calls it; `captured` are the step's recorded values; `schemas` say which fields are quantities;
    `now` has a time zone; `redactor` hides values that a reason quotes. `passing` remembers, by probe and object, which
    pass, where the same probes are evaluated again and again."""

    kinds: Kinds
    schemas: Schemas
    now: datetime
    manifests: Mapping[str, tuple[Ref, ...]] = field(default_factory=dict)
    captured: Mapping[str, Any] = field(default_factory=dict)
    redactor: Redactor = field(default_factory=packaged_redactor, compare=False, repr=False)
    worked_out: WorkedOut = field(default_factory=WorkedOut, compare=False, repr=False)
    passing: ByIdentity[Verdict] | None = field(default=None, compare=False, repr=False)
