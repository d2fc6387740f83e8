"""The CEL rules of a structural schema (`x-kubernetes-validations`): what they refuse, and which cannot be evaluated.

A rule is not evaluated where our part of CEL lacks what it uses, or inside lists and maps. Such a rule never counts as
satisfied in silence: `unchecked` names it for each write to which it would have applied.
Source: the Kubernetes documentation of CustomResourceDefinitions, "Validation rules" and "Validation ratcheting".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver import cel
from reconcile.simulator.apiserver.shape import Schema
from renderer.model.ref import Body

Path = tuple[str, ...]

_EACH = "*"
"""Every item of a list, or every value of a map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncheckedRule:
    """A rule that was not evaluated. `path` is empty for a rule of the whole object."""

    kind: str
    path: str
    rule: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    path: Path
    text: str
    message: str

    @property
    def is_transition(self) -> bool:
        return cel.is_transition(self.text)


class CelRules:
    """The rules of one version of one kind."""

    def __init__(self, kind: str, schema: Schema) -> None:
        self._kind = kind
        self._evaluated: list[tuple[_Rule, cel.Rule]] = []
        self._unchecked: list[tuple[_Rule, str]] = []
        for rule in _rules(schema, ()):
            self._add(rule)

    def _add(self, rule: _Rule) -> None:
        if _EACH in rule.path:
            self._unchecked.append((rule, "rules inside lists and maps are not evaluated"))
            return
        try:
            self._evaluated.append((rule, cel.parse(rule.text)))
        except cel.UnsupportedRuleError as error:
            self._unchecked.append((rule, str(error)))

    def broken(self, new: Body, old: Body | None) -> Iterator[StatusCause]:
        for rule, evaluate in self._evaluated:
            value, before = _at(new, rule.path), _at(old or {}, rule.path)
            if value is None or (rule.is_transition and before is None):
                continue
            if not cel.holds(evaluate, {"self": value, "oldSelf": before}):
                message = f'Invalid value: "object": {rule.message}'
                yield StatusCause(field=".".join(rule.path), message=message, reason="FieldValueInvalid")

    def unchecked(self, new: Body, old: Body | None) -> Iterator[UncheckedRule]:
        """The rules that an API server would have evaluated for this write. It ignores a value that does not change."""
        for rule, because in self._unchecked:
            values, before = _all_at(new, rule.path), _all_at(old or {}, rule.path)
            if values and values != before and (before or not rule.is_transition):
                yield UncheckedRule(kind=self._kind, path=_path_name(rule.path), rule=rule.text, because=because)


def _rules(schema: Schema, path: Path) -> Iterator[_Rule]:
    for item in schema.get("x-kubernetes-validations") or ():
        text = str(item["rule"])
        yield _Rule(path=path, text=text, message=str(item.get("message") or f"failed rule: {text}"))
    for name, member in (schema.get("properties") or {}).items():
        yield from _rules(member, (*path, name))
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            yield from _rules(schema[word], (*path, _EACH))


def _at(body: Body, path: Path) -> Any:
    return next(iter(_all_at(body, path)), None)


def _all_at(value: Any, path: Path) -> list[Any]:
    """The values at the path that are not null."""
    if not path:
        return [] if value is None else [value]
    head, *rest = path
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts = list(value.values()) if head == _EACH else [value.get(head)]
    elif isinstance(value, list) and head == _EACH:
        parts = value
    return [found for part in parts for found in _all_at(part, tuple(rest))]


def _path_name(path: Path) -> str:
    """`spec.nodes[*].name`."""
    return ".".join(path).replace(f".{_EACH}", "[*]")
