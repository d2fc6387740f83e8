"""The run-once record: what each step has done. This, and not the presence of a Job, says that a step is over.

`Started` is written before a step's first write to the cluster, `Applied` once all its objects are written. A step that
has ended is never begun again, whatever has become of its objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from reconcile.status.times import time_of, time_text
from renderer.digest import short_digest
from renderer.model.ref import Ref
from renderer.model.rendered import Manifest
from renderer.model.sharing import SameObject


class StepState(StrEnum):
    """The state of a step when it was recorded."""

    STARTED = "Started"
    APPLIED = "Applied"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SKIPPED = "Skipped"


_ENDED = (StepState.COMPLETED, StepState.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedObject:
    """An object that a step owns, the template that made it, and the first digits of its manifest's digest."""

    ref: Ref
    template: str
    digest: str

    @classmethod
    def of(cls, manifest: Manifest) -> OwnedObject:
        return cls(ref=manifest.ref, template=manifest.spec.file, digest=short_digest(manifest.digest))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step instance. Times have whole seconds. `objects` are those that the step is about to make or has made,
    `earlier` those of attempts before this one."""

    state: StepState
    started: datetime
    ended: datetime | None = None
    message: str = ""
    objects: tuple[OwnedObject, ...] = ()
    earlier: tuple[OwnedObject, ...] = ()
    captured: Mapping[str, Any] = field(default_factory=dict)
    read_from: Mapping[str, Any] | None = field(default=None, init=False, repr=False, compare=False)
    """The body of a record that was read: what has not changed is written as it was, and compared at a glance."""

    @property
    def is_over(self) -> bool:
        """Completed or skipped."""
        return self.state in _ENDED

    @property
    def all_objects(self) -> tuple[OwnedObject, ...]:
        """Those of earlier attempts included."""
        return (*self.objects, *self.earlier)

    @property
    def failed(self) -> bool:
        return self.state is StepState.FAILED

    @property
    def made_its_objects(self) -> bool:
        """All its writes are made."""
        return self.state not in (StepState.STARTED, StepState.SKIPPED)

    def made_by(self, template: str) -> tuple[Ref, ...]:
        """The objects that the template rendered when the step started."""
        return tuple(made.ref for made in self.objects if made.template == template)

    def ending(self, state: StepState, now: datetime, message: str = "") -> StepRecord:
        return replace(self, state=state, ended=now, message=message)


def record_from(raw: Mapping[str, Any]) -> StepRecord:
    return _record_from(SameObject(raw))


@lru_cache(maxsize=8192)  # of a status of a thousand records one or two change in a round
def _record_from(body: SameObject) -> StepRecord:
    raw: Mapping[str, Any] = body.it
    record = StepRecord(
        state=StepState(raw["state"]),
        started=time_of(raw["started"]),
        ended=time_of(raw["ended"]) if raw.get("ended") else None,
        message=raw.get("message", ""),
        objects=tuple(_object_from(item) for item in raw.get("objects", ())),
        earlier=tuple(_object_from(item) for item in raw.get("earlier", ())),
        captured=raw.get("captured", {}),
    )
    object.__setattr__(record, "read_from", raw)
    return record


def record_body(record: StepRecord) -> Mapping[str, Any]:
    if record.read_from is not None:
        return record.read_from
    entries = {
        "state": str(record.state),
        "started": time_text(record.started),
        "ended": time_text(record.ended) if record.ended else None,
        "message": record.message,
        "objects": [_object_body(item) for item in record.objects],
        "earlier": [_object_body(item) for item in record.earlier],
        "captured": dict(record.captured),
    }
    return {key: value for key, value in entries.items() if value not in (None, "", [], {})}


def folded(record: StepRecord) -> str:
    """A finished record as one short text: when it ended, how long it took, what it owned."""
    if record.state is StepState.SKIPPED:
        return f"{time_text(record.ended or record.started)} skipped"
    took = int(((record.ended or record.started) - record.started).total_seconds())
    owned = short_digest("".join(item.digest for item in record.objects))
    return f"{time_text(record.ended or record.started)} {took}s {owned}".rstrip()


def _object_from(raw: Mapping[str, Any]) -> OwnedObject:
    return OwnedObject(
        ref=Ref(api_version=raw["apiVersion"], kind=raw["kind"], namespace=raw.get("namespace", ""), name=raw["name"]),
        template=raw.get("template", ""),
        digest=raw["digest"],
    )


def _object_body(item: OwnedObject) -> dict[str, str]:
    body = {
        "apiVersion": item.ref.api_version,
        "kind": item.ref.kind,
        "namespace": item.ref.namespace,
        "name": item.ref.name,
        "template": item.template,
        "digest": item.digest,
    }
    return {key: value for key, value in body.items() if value}
