"""Writes gates down as the document `Gate`: resolved probes, in the words of `phase.yaml`, with the kinds that they
look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from renderer.catalog.template_tree import TemplateTree
from renderer.frozen import frozen
from renderer.model.check import CheckTime
from renderer.model.document_type import GATE
from renderer.model.path import path_name
from renderer.model.probe import (
    AbsentPredicate,
    BuiltinPredicate,
    Captured,
    ConditionPredicate,
    EveryTarget,
    FieldOf,
    FieldPredicate,
    Gate,
    ManifestTarget,
    ObjectTarget,
    Operand,
    Predicate,
    Probe,
    RulePredicate,
    Target,
)
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedPlan, RenderedStep
from renderer.yaml_io import parse

Pair = tuple[str, str]


@frozen
class NamedGate:
    """A gate whose probe looks at objects, and the step that it ends, as Phase/Step."""

    step: str
    gate: Gate

    @property
    def target(self) -> Target:
        return self.gate.probe.target

    @property
    def kind(self) -> Pair | None:
        """API version and kind of what is looked at; None for the cluster as a whole."""
        match self.target:
            case ObjectTarget(ref=ref):
                return ref.api_version, ref.kind
            case EveryTarget(api_version=api_version, kind=kind):
                return api_version, kind
            case _:
                return None


@frozen
class GateContent:
    """All that a gate's Job waits for: gates, and the checks of a time."""

    name: str
    gates: tuple[NamedGate, ...]
    checks: CheckTime | None = None

    def __bool__(self) -> bool:
        return bool(self.gates) or self.checks is not None


def resolved(step: RenderedStep) -> Iterator[NamedGate]:
    """The step's gates, one on a manifest for each of its objects."""
    for gate in step.step.gates:
        target = gate.probe.target
        if isinstance(target, ManifestTarget):
            refs = (manifest.ref for manifest in step.manifests if manifest.spec.file == target.file)
            for ref in refs:
                probe = replace(gate.probe, target=ObjectTarget(ref=ref))
                yield NamedGate(step=step.id, gate=replace(gate, probe=probe))
        else:
            yield NamedGate(step=step.id, gate=gate)


def gate_document(
    content: GateContent, plan: RenderedPlan, tree: TemplateTree, kinds: Iterable[Pair], checks: Mapping[str, Any]
) -> dict[str, Any]:
    """The document. `kinds` are those that are looked at, `checks` what a run of checks needs beside its time."""
    run = {"checks": {"when": str(content.checks), **checks}} if content.checks else {}
    return GATE.document(
        {
            "plan": plan.plan,
            "name": content.name,
            "digest": plan.digest,
            "gates": [_gate(item) for item in content.gates],
            "kinds": list(_rows(tree, {*kinds})),
            **run,
        }
    )


def _rows(tree: TemplateTree, kinds: set[Pair]) -> Iterator[Mapping[str, Any]]:
    """The rows as the tree has them."""
    for path in sorted(tree):
        if path.startswith("_kinds/"):
            rows = parse(tree[path].text, tree[path].shown)[0].value["kinds"]
            yield from (row for row in rows if (row["apiVersion"], row["kind"]) in kinds)


def _gate(named: NamedGate) -> dict[str, Any]:
    gate = named.gate
    failure = {"message": gate.failure.message, "severity": str(gate.failure.severity)}
    return _set(
        step=named.step,
        probe=_probe(gate.probe),
        waiting=gate.waiting,
        failure=_set(**failure),
        slowAfter=_duration(gate.slow_after),
        timeout=_duration(gate.timeout),
        consecutive=gate.consecutive if gate.consecutive > 1 else None,
    )


def _probe(probe: Probe) -> dict[str, Any]:
    return {
        **_target(probe.target),
        "all": [_predicate(item) for item in probe.all],
        **_set(fails=[_predicate(item) for item in probe.fails]),
    }


def _target(target: Target) -> dict[str, Any]:
    match target:
        case ObjectTarget(ref=ref, others=others):
            return {"object": _set(**_ref(ref), otherNames=[other.name for other in others])}
        case EveryTarget():
            every = _set(
                apiVersion=target.api_version,
                kind=target.kind,
                namespace=target.namespace,
                labels=dict(target.labels),
                where=[_predicate(item) for item in target.where],
            )
            return {"every": {**every, "atLeast": target.at_least}}
        case _:
            return {"cluster": True}


def _ref(ref: Ref) -> dict[str, str]:
    return {"apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _predicate(predicate: Predicate) -> dict[str, Any]:
    match predicate:
        case ConditionPredicate():
            body = _set(type=predicate.type, status=predicate.status, reason=predicate.reason)
            return {"condition": body}
        case FieldPredicate():
            operand = _operand(predicate.operand)
            return {"field": {"path": path_name(predicate.path), str(predicate.test): operand}}
        case RulePredicate():
            return {"rule": {"name": predicate.name, **dict(predicate.arguments)}}
        case AbsentPredicate():
            return {"absent": True}
        case BuiltinPredicate():
            return {"builtin": True}


def _operand(operand: Operand) -> Any:
    match operand:
        case FieldOf(path=path, default=default):
            return _set(path=path_name(path)) | ({} if default is None else {"default": default})
        case Captured(name=name):
            return {"captured": name}
        case _:
            value = operand.value
            return list(value) if isinstance(value, tuple) else value


def _duration(seconds: int | None) -> str | None:
    return None if seconds is None else f"{seconds}s"


def _set(**entries: Any) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value not in (None, "", [], {}, ())}
