"""A kind's readiness rule as an expression about one object, which is all that an agent looks at.

A named rule is written out where the object itself tells the answer. A failure that only other objects prove is left
out, so that an agent waits where we report it. A readiness that only they prove cannot be expressed at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from renderer.catalog.kinds import STATUS_OF_ANOTHER, KindRow, Kinds
from renderer.describe import describe_predicate
from renderer.frozen import frozen
from renderer.model.probe import (
    ConditionPredicate,
    FieldOf,
    FieldPredicate,
    Fixed,
    Predicate,
    RulePredicate,
    Test,
)


@frozen
class AllOf:
    """Holds if every part holds."""

    parts: tuple[Expression, ...]


@frozen
class AnyOf:
    """Holds if one part holds."""

    parts: tuple[Expression, ...]


Expression = ConditionPredicate | FieldPredicate | AllOf | AnyOf


@frozen
class HealthRule:
    """A kind's rule: when an object is ready, and when it has failed, which has no parts where the object never tells.

    `tells_generation`: the status is about the generation that it names. `reports_generation`: it always names one.
    """

    api_version: str
    kind: str
    current: AllOf
    failed: AnyOf
    expected: str
    tells_generation: bool
    reports_generation: bool

    @property
    def group(self) -> str:
        """Empty for Kubernetes' core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def is_custom(self) -> bool:
        """False for Kubernetes' own kinds, which every agent has rules for."""
        return "." in self.group and not self.group.endswith(".k8s.io")


def health_rule(row: KindRow) -> HealthRule | None:
    """None for a kind that has no rule, or one that the object alone does not answer."""
    if row.ready is None:
        return None
    current = tuple(map(_expression, row.ready.all))
    found = tuple(part for part in current if part is not None)
    if len(found) < len(current):
        return None
    failed = tuple(part for item in row.ready.fails if (part := _expression(item)) is not None)
    group = row.kind.api_version.rpartition("/")[0]
    return HealthRule(
        api_version=row.kind.api_version,
        kind=row.kind.kind,
        current=AllOf(parts=found),
        failed=AnyOf(parts=failed),
        expected=" and ".join(describe_predicate(item) for item in row.ready.all),
        tells_generation=(group, row.kind.kind) not in STATUS_OF_ANOTHER,
        reports_generation=row.reports_generation,
    )


def health_rules(kinds: Kinds) -> Iterator[HealthRule]:
    """One a group and kind, under the version that is written."""
    for row in kinds:
        rule = health_rule(row)
        if rule is not None and row.kind.api_version == row.versions[0]:
            yield rule


def judged_by_others(kinds: Kinds, used: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Those of the kinds whose readiness only other objects prove, such as a Service's endpoints: no agent sees it, and
    a gate's Job has to wait for it."""
    rows = (kinds.find(*kind) for kind in sorted(set(used)))
    return tuple(
        (row.kind.api_version, row.kind.kind)
        for row in rows
        if row is not None and row.ready is not None and health_rule(row) is None
    )


def conditions_of(parts: Iterable[Expression]) -> tuple[str, ...]:
    """The types of the conditions that an expression asks about, each once."""
    return tuple(dict.fromkeys(_condition_types(parts)))


def _condition_types(parts: Iterable[Expression]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, ConditionPredicate):
            yield part.type
        elif isinstance(part, AllOf | AnyOf):
            yield from _condition_types(part.parts)


def _expression(predicate: Predicate) -> Expression | None:
    match predicate:
        case ConditionPredicate():
            return predicate
        case FieldPredicate():
            return predicate if _is_plain(predicate) else None
        case RulePredicate(name=name):
            return _NAMED.get(name)
        case _:
            return None


def _is_plain(predicate: FieldPredicate) -> bool:
    """True if both languages can say it: no pattern, no captured value, no index, and scalars only."""
    if predicate.test is Test.MATCHES or not all(isinstance(step, str) for step in predicate.path):
        return False
    match predicate.operand:
        case Fixed(value=value):
            return all(_is_scalar(item) for item in (value if predicate.test is Test.IN else (value,)))
        case FieldOf(path=path, default=default):
            return all(isinstance(step, str) for step in path) and _is_scalar(default)
        case _:
            return False


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | int | str)


def _field(path: str, test: Test, value: object) -> FieldPredicate:
    return FieldPredicate(path=tuple(path.split(".")), test=test, operand=Fixed(value=value))


_NAMED: Mapping[str, Expression] = {
    "podReady": AnyOf(
        parts=(
            _field("status.phase", Test.EQUALS, "Succeeded"),
            ConditionPredicate(type="Ready", status="True"),
        )
    ),
    "addonSettled": AnyOf(
        parts=(
            AllOf(
                parts=(
                    _field("spec.enabled", Test.IN, (True,)),
                    _field("status.status", Test.EQUALS, "AddonDeploySuccessful"),
                )
            ),
            AllOf(
                parts=(
                    _field("spec.enabled", Test.IN, (False, None)),
                    _field("status.status", Test.IN, ("AddonDisabled", "", None)),
                )
            ),
        )
    ),
}
"""Named rules of the probe language, as far as the object itself answers them."""
