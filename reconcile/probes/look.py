"""What a probe may look at: the questions, the answers, and what was settled before it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from reconcile.schemas import Schemas
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Every object of a kind with these labels; an empty namespace means all of them."""

    api_version: str
    kind: str
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()


class Reading(StrEnum):
    """What is known of a cluster and is no object."""

    KUBELET = "kubelet"  # one a Node
    CERTIFICATES = "certificates"  # one an address of the API servers


Need = Ref | Group | Reading
"""Something that must have been read before a probe is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailure:
    """It could not be looked at, and why: `connection refused`, `forbidden: nodes/proxy`; and what would help, such as
    the rule that is missing."""

    why: str
    remedy: str | None = None

    @property
    def text(self) -> str:
        """Both, for where there is no place of its own for a remedy."""
        return f"{self.why}; {self.remedy}" if self.remedy else self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletReading:
    """A kubelet's disk, in bytes, and at which percentage it starts to remove images. None is what it did not say."""

    capacity_bytes: int | None
    used_bytes: int | None
    image_gc_high_threshold_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateReading:
    """When the first of the certificates ends that one API server presents; None where it presented none."""

    not_after: datetime | None


class Look(Protocol):
    """What was read this tick. It may be asked for no more than `needs` named, and for parts of it: a group's objects
    one by one, or a narrower group within one that was read."""

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """The object; None where it does not exist, or its kind does not."""
        ...

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        """The objects, in the order of namespace and name; none where the kind does not exist."""
        ...

    def kubelet(self, node: str) -> KubeletReading | ReadFailure: ...

    def certificate(self, address: str) -> CertificateReading | ReadFailure: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Within what a probe is evaluated. `manifests` are the refs that each template of the step rendered, by the name
    that a gate calls it; `captured` are the step's recorded values; `schemas` say which fields are quantities;
    `now` has a time zone."""

    kinds: Kinds
    schemas: Schemas
    now: datetime
    manifests: Mapping[str, tuple[Ref, ...]] = field(default_factory=dict)
    captured: Mapping[str, Any] = field(default_factory=dict)
