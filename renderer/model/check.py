"""A pre-flight check as declared: what is looked at and when, how grave a finding is, and what accepts its risk.

The document is `kind: Checks` in `preflight/` of the template tree. `reconcile.preflight` carries checks out; nothing
here looks at an object.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from renderer.frozen import frozen
from renderer.model.manifest_spec import Expression
from renderer.model.path import Path
from renderer.model.probe import Probe


class CheckSeverity(StrEnum):
    """The consequence of a finding. Values are the words of a Checks document."""

    BLOCK = "block"
    WARN = "warn"
    ADVISE = "advise"


class CheckTime(StrEnum):
    """A time at which checks run."""

    CREATE = "create"
    START = "start"
    BEFORE_CLUSTER_UPGRADE = "beforeClusterUpgrade"
    BEFORE_NODE = "beforeNode"
    AFTER = "after"


@frozen
class AnnotationOverride:
    """An annotation of the plan that accepts the risk; `key` has no prefix. `equals` is its text, or a boolean for
    whatever Go's ParseBool reads as that."""

    key: str
    equals: str | bool


@frozen
class FieldOverride:
    """A field of the plan that accepts the risk."""

    path: Path
    equals: Any


@frozen
class Denial:
    """The field and the kind of error by which a finding is denied at admission. `each`: the field is a list of names,
    and a finding is about one of them."""

    field: str = "spec"
    cause: str = "Forbidden"
    each: bool = False


@frozen
class PassesWhen:
    """A condition under which what is found passes, and the words of the note about each object."""

    expr: str
    says: str


@frozen
class Check:
    """`offender`, `says` and `remedy` are Jinja text with `object`. `override` is what accepts the risk beside its `id`
    in the annotation `accept-risk`; what is not `acceptable` nothing accepts. A plan waits for what is `patient` for as
    long as it takes. `terminal`: what it has measured at the start ends the plan. `settles`: what it finds right after
    an upgrade is usually over soon, so it is not reported.

    `per_node`: it speaks of `node`, and runs once for each. `off` says why an overlay has switched it off.
    """

    id: str
    title: str
    severity: CheckSeverity
    when: tuple[CheckTime, ...]
    probe: Probe
    applies: Expression | None = None
    offender: str | None = None
    says: str | None = None
    passes_when: PassesWhen | None = None
    remedy: str
    override: AnnotationOverride | FieldOverride | None = None
    acceptable: bool = True
    patient: bool = False
    terminal: bool = False
    settles: bool = False
    denial: Denial = Denial()
    source: str
    per_node: bool = False
    off: str | None = None
