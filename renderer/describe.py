"""Describes what a gate or a trigger waits for: for a reviewer in `index.yaml`, for an operator in `explain`.

Always one line; pure. The present state of an object does not matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from renderer.catalog.rules import RULES, RuleSubject
from renderer.frozen import frozen
from renderer.model.path import path_name
from renderer.model.phase import RequirePeers
from renderer.model.probe import (
    AbsentPredicate,
    BuiltinPredicate,
    Captured,
    ClusterTarget,
    ConditionPredicate,
    EveryTarget,
    FieldOf,
    FieldPredicate,
    Fixed,
    Gate,
    ManifestTarget,
    ObjectTarget,
    Operand,
    Predicate,
    Probe,
    RulePredicate,
    Target,
    Test,
    Trigger,
)
from renderer.model.ref import Ref
from renderer.redaction import packaged_redactor


def _no_rule(_api_version: str, _kind: str) -> tuple[Predicate, ...]:
    return ()


@frozen
class DescriptionContext:
    """The details that make a description exact: the refs that each template of the step renders, and a kind's own rule
    (`kinds.row(api_version, kind).ready.all`). Without it a template is called by its file name."""

    manifests: Mapping[str, tuple[Ref, ...]] = field(default_factory=dict)
    ready: Callable[[str, str], tuple[Predicate, ...]] = _no_rule


_PLAIN = DescriptionContext()


def describe_gate(gate: Gate, names: DescriptionContext = _PLAIN) -> str:
    """`condition Ready of Node a is True`; says how often in a row where that is more than once."""
    words = describe_probe(gate.probe, names)
    return f"{words}, {gate.consecutive} times in a row" if gate.consecutive > 1 else words


def describe_trigger(trigger: Trigger, names: DescriptionContext = _PLAIN) -> str:
    words = describe_probe(trigger.probe, names)
    return f"{words} (the value is kept as {trigger.capture})" if trigger.capture else words


def describe_probe(probe: Probe, names: DescriptionContext = _PLAIN) -> str:
    """Describes what must hold; the object is named once, with the first predicate."""
    subjects = [describe_target(probe.target, names), *[""] * (len(probe.all) - 1)]
    own = _own_rule(probe.target, names)
    shown = (_without_secrets(item, *_kind_of(probe.target, names)) for item in probe.all)
    return _and(describe_predicate(item, subject, own) for item, subject in zip(shown, subjects, strict=True))


def _kind_of(target: Target, names: DescriptionContext) -> tuple[str, str]:
    """API version and kind of what a probe looks at; empty for the cluster as a whole."""
    match target:
        case ObjectTarget(ref=ref):
            return ref.api_version, ref.kind
        case EveryTarget():
            return target.api_version, target.kind
        case ManifestTarget(file=file):
            return next(((ref.api_version, ref.kind) for ref in names.manifests.get(file, ())), ("", ""))
        case ClusterTarget():
            return "", ""


def _without_secrets(predicate: Predicate, api_version: str, kind: str) -> Predicate:
    """The predicate as it may be shown: a value that is expected of a secret field is as secret."""
    if not isinstance(predicate, FieldPredicate) or not isinstance(predicate.operand, Fixed):
        return predicate
    hide, value = packaged_redactor().field, predicate.operand.value
    if predicate.test is Test.IN:
        shown: Any = [hide(api_version, kind, predicate.path, item) for item in value]
    else:
        shown = hide(api_version, kind, predicate.path, value)
    return replace(predicate, operand=Fixed(value=shown)) if shown != value else predicate


def describe_peers(peers: RequirePeers) -> str:
    """The conditions for every other node before a node begins a step of a lane."""
    return _and(describe_predicate(item, "every other Node") for item in peers.all)


def describe_target(target: Target, names: DescriptionContext = _PLAIN) -> str:
    """`Node a`, `every Secret in fleet-local`; empty for the cluster as a whole."""
    match target:
        case ObjectTarget():
            return " or ".join([str(target.ref), *(other.name for other in target.others)])
        case ManifestTarget(file=file):
            return _and(map(str, names.manifests.get(file, (f"what {file} renders",))))
        case EveryTarget():
            words = f"every {describe_group(target)}"
            return words if target.at_least == 1 else f"{words} (at least {target.at_least})"
        case ClusterTarget():
            return ""


def describe_group(target: EveryTarget) -> str:
    """`Secret in fleet-local whose type is 'rke.cattle.io/machine-plan'`."""
    words = target.kind
    if target.namespace:
        words += f" in {target.namespace}"
    if target.labels:
        words += f" with {', '.join(f'{key}={value}' for key, value in target.labels)}"
    if target.where:
        words += f" whose {_and(describe_predicate(item) for item in target.where)}"
    return words


def describe_predicate(predicate: Predicate, subject: str = "", own: tuple[Predicate, ...] = ()) -> str:
    """`own` is the kind's own rule, said after `is ready`. Without a subject, words that may follow an `and`."""
    of = f" of {subject}" if subject else ""
    it = subject or "it"
    match predicate:
        case ConditionPredicate(type=type_, status=status, reason=reason):
            return f"condition {type_}{of} is {status}" + (f" with reason {reason}" if reason else "")
        case FieldPredicate(path=path):
            return f"{'field ' if subject else ''}{path_name(path)}{of} {_asks(predicate)}"
        case AbsentPredicate():
            return f"{it} does not exist"
        case BuiltinPredicate():
            return f"{it} is ready" + (f" ({_and(describe_predicate(part) for part in own)})" if own else "")
        case RulePredicate():
            return _rule(predicate, it)


def asks_presence(predicate: FieldPredicate) -> bool:
    """True if an `exists` test asks for a value, False if it asks for none."""
    return not (isinstance(predicate.operand, Fixed) and predicate.operand.value is False)


def describe_value(value: Any) -> str:
    """A value as YAML writes it, on one line: text in quotes, `true`, `null`."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(describe_value, value))}]"
    return repr(value)


def describe_pattern(pattern: Any) -> str:
    """A regular expression between slashes, its backslashes as they are."""
    text = str(pattern)
    return f"/{text}/" if text.isprintable() else repr(text)


def _own_rule(target: Target, names: DescriptionContext) -> tuple[Predicate, ...]:
    match target:
        case ObjectTarget(ref=ref):
            return names.ready(ref.api_version, ref.kind)
        case EveryTarget(api_version=api_version, kind=kind):
            return names.ready(api_version, kind)
        case ManifestTarget(file=file):
            kinds = {(ref.api_version, ref.kind) for ref in names.manifests.get(file, ())}
            return names.ready(*kinds.pop()) if len(kinds) == 1 else ()
        case ClusterTarget():
            return ()


def _asks(predicate: FieldPredicate) -> str:
    operand = predicate.operand
    match predicate.test:
        case Test.EXISTS:
            return "is set" if asks_presence(predicate) else "is not set"
        case Test.IN:
            return f"is {_or(operand)}"
        case Test.EQUALS:
            return f"is {_operand(operand)}"
        case Test.AT_LEAST:
            return f"is at least {_operand(operand)}"
        case Test.AT_MOST:
            return f"is at most {_operand(operand)}"
        case Test.MATCHES:
            return f"matches {describe_pattern(operand.value) if isinstance(operand, Fixed) else _operand(operand)}"
        case Test.DIFFERS_FROM:
            return f"is set and differs from {_operand(operand)}"


def _or(operand: Operand) -> str:
    values = operand.value if isinstance(operand, Fixed) else (operand,)
    return " or ".join("absent" if value is None else describe_value(value) for value in values)


def _operand(operand: Operand) -> str:
    match operand:
        case FieldOf(path=path):
            return path_name(path)
        case Captured(name=name):
            return f"the {name} that was captured"
        case _:
            return describe_value(operand.value)


def _rule(predicate: RulePredicate, it: str) -> str:
    spec = RULES.get(predicate.name)
    if spec is None:
        return f"{it} passes {predicate.name}"
    words = spec.words.format_map(dict.fromkeys(spec.required, "?") | dict(predicate.arguments))
    return words if spec.subject is RuleSubject.CLUSTER else f"{it} {words}"


def _and(parts: Iterable[str]) -> str:
    *head, last = parts
    return f"{', '.join(head)} and {last}" if head else last
