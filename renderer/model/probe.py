"""The probe language as values: what is looked at, what must hold, and the messages of gates.

Closed and typed; shared by gates, triggers, skips and pre-flight checks. `reconcile.probes` evaluates probes;
nothing here looks at an object.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.model.ref import Ref


class Test(StrEnum):
    """The test of a field predicate. Values are the words of `phase.yaml`."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    EXISTS = "exists"
    EQUALS = "equals"
    IN = "in"
    AT_LEAST = "atLeast"
    AT_MOST = "atMost"
    MATCHES = "matches"
    DIFFERS_FROM = "differsFrom"


@frozen
class Fixed:
    """A value of the declaration."""

    value: Any


@frozen
class FieldOf:
    """A value read from the same object; `default` where it is absent."""

    path: Path
    default: Any = None


@frozen
class Captured:
    """A value that was captured when a step started; known at run time only."""

    name: str


Operand = Fixed | FieldOf | Captured


@frozen
class ConditionPredicate:
    """`status.conditions` has this type with this status (and reason, where one is given)."""

    type: str
    status: str
    reason: str | None = None


@frozen
class FieldPredicate:
    """Passes if the test holds for the field's value."""

    path: Path
    test: Test
    operand: Operand


@frozen
class AbsentPredicate:
    """The object does not exist."""


@frozen
class BuiltinPredicate:
    """The kind's own rule, a row of the kinds table."""


@frozen
class RulePredicate:
    """A named rule in Python, for what needs arithmetic or several objects."""

    name: str
    arguments: tuple[tuple[str, Any], ...] = ()


Predicate = ConditionPredicate | FieldPredicate | AbsentPredicate | BuiltinPredicate | RulePredicate


@frozen
class ManifestTarget:
    """The objects that a template of the same step renders."""

    file: str


@frozen
class ObjectTarget:
    """One object by its name. `others` are names that it may have instead: the first of all these that exists is looked
    at."""

    ref: Ref
    others: tuple[Ref, ...] = ()


@frozen
class EveryTarget:
    """Every object of a kind that matches. Fewer than `at_least` objects pass nothing."""

    api_version: str
    kind: str
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    where: tuple[Predicate, ...] = ()
    at_least: int = 1


@frozen
class ClusterTarget:
    """The cluster as a whole: for named rules that find their own objects."""


Target = ManifestTarget | ObjectTarget | EveryTarget | ClusterTarget


@frozen
class Probe:
    """Passes when every predicate of `all` holds on the target; fails when one of `fails` does."""

    target: Target
    all: tuple[Predicate, ...]
    fails: tuple[Predicate, ...] = ()


def is_about_fields(probe: Probe) -> bool:
    """True if it asks for nothing but conditions and fields of its target, also where that is every object of a kind:
    the same object gives the same answer. A rule, also that of a kind, may look at other objects."""
    where = probe.target.where if isinstance(probe.target, EveryTarget) else ()
    plain = (ConditionPredicate, FieldPredicate, AbsentPredicate)
    return all(isinstance(predicate, plain) for predicate in (*probe.all, *probe.fails, *where))


class Severity(StrEnum):
    """The consequence of a failed gate for the plan."""

    TERMINAL = "terminal"
    WARNING = "warning"  # recorded and reported; the plan goes on


@frozen
class Event:
    """An event on the plan; `type` is Normal or Warning."""

    type: str
    reason: str
    message: str


@frozen
class Failure:
    """The end of a failed gate. `message` becomes the Progressing message, with `<why>` replaced by the object's own
    message; None keeps the probe's text."""

    message: str | None = None
    severity: Severity = Severity.TERMINAL
    event: Event | None = None


@frozen
class WaitSummary:
    """A wait as people are shown it: what for, and a text for each test of the probe, shown while that does not pass.

    `<found>` in a text stands for the value of the field.
    """

    waits_for: str
    unmet: tuple[str, ...]


@frozen
class Gate:
    """A probe that must pass before a step ends. Times are seconds; without `timeout` no time makes it fail."""

    probe: Probe
    waiting: str | None = None
    summary: WaitSummary | None = None
    failure: Failure = field(default_factory=Failure)
    slow_after: int | None = None
    timeout: int | None = None
    consecutive: int = 1


@frozen
class Trigger:
    """A probe that starts a step. `capture` names the value that the first field predicate saw."""

    probe: Probe
    capture: str | None = None
    waiting: str | None = None
