"""The strategy of the embedded cluster for built-in kinds. Data: `go_types`, `builtin_defaults`, `builtin_rules`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver.builtin_rules import BuiltinRules, at, fixed_causes
from reconcile.simulator.apiserver.cel_rules import UncheckedRule
from reconcile.simulator.apiserver.field_set import FieldSet
from reconcile.simulator.apiserver.go_types import GoTypes
from reconcile.simulator.apiserver.metadata_rules import builtin_finalizers, invalid_metadata
from reconcile.simulator.apiserver.schema_files import builtin_schemas
from reconcile.simulator.apiserver.served_kinds import STATUS, counted, replaced
from reconcile.simulator.apiserver.shape import Schema
from reconcile.simulator.apiserver.strict import Strict
from reconcile.simulator.apiserver.walk import same
from renderer.model.ref import Body, Kind
from renderer.model.sharing import ByIdentity


@dataclass(frozen=True, slots=True)
class Decoders:
    """The decoders that all kinds of one set of definitions share."""

    definitions: Mapping[str, Schema]
    types: GoTypes
    strict: Strict


@lru_cache(maxsize=1)
def decoders() -> Decoders:
    """Of the packaged definitions; what they work out is the same for every cluster."""
    definitions, _ = builtin_schemas()
    return Decoders(definitions, GoTypes(definitions), Strict(definitions))


class BuiltinStrategy:
    """A built-in kind."""

    def __init__(self, kind: Kind, definition: str, decoders: Decoders, rules: BuiltinRules) -> None:
        self._kind = kind
        self._definition = definition
        self._definitions = decoders.definitions
        self._types = decoders.types
        self._strict = decoders.strict
        self._rules = rules
        self._complete = ByIdentity[bool]()

    def blank(self) -> Body:
        return {"apiVersion": self._kind.api_version, "kind": self._kind.kind, **self._types.blank(self._definition)}

    def refused(self, body: Body, before: Body | None = None) -> tuple[StatusCause, ...]:
        return tuple(self._strict.refused(self._definition, body))

    def read(self, body: Body, before: Body | None = None) -> dict[str, Any]:
        return self._types.read(self._definition, body)

    def merged(self, body: Body) -> dict[str, Any]:
        return self.read(body)

    def stored(self, body: Body) -> dict[str, Any]:
        return self._types.read(self._definition, body, empty_is_null=True)

    def prepared(self, new: dict[str, Any], old: Body | None, subresource: str) -> dict[str, Any]:
        if old is None:
            return self._created(new)
        if subresource == STATUS:
            for path in self._rules.status_ignores:
                new = replaced(new, old, path)
            return new
        kept = replaced(new, old, (STATUS,)) if self._rules.status else new
        if self._rules.carry_over:
            kept = self._rules.carry_over(kept, old)
        if all(same(at(kept, path), at(old, path)) for path in self._rules.counted):
            return kept
        return counted(kept, int(old["metadata"].get("generation", 0)) + 1)

    def invalid(self, new: Body, old: Body | None, subresource: str) -> tuple[StatusCause, ...]:
        if subresource == STATUS:
            return ()
        causes = [*invalid_metadata(self._kind, new), *builtin_finalizers(new), *self._empty_texts(new)]
        if self._rules.check:
            causes += self._rules.check(new)
        if old is not None:
            causes += fixed_causes(self._rules, old, new)
        return tuple({(cause.field, cause.reason): cause for cause in causes}.values())

    def unchecked(self, new: Body, old: Body | None) -> tuple[UncheckedRule, ...]:
        """Built-in kinds have no CEL rules."""
        return ()

    def ignored(self, subresource: str) -> FieldSet:
        if subresource == STATUS:
            return frozenset(tuple(f"f:{part}" for part in path) for path in self._rules.status_ignores)
        return frozenset([("f:status",)]) if self._rules.status else frozenset()

    def _created(self, new: dict[str, Any]) -> dict[str, Any]:
        if self._rules.status and not self._rules.keeps_status:
            new = {**new, STATUS: dict(self.blank().get(STATUS) or {})}
        if self._rules.counted:
            new = counted(new, 1)
        return self._rules.set_up(new) if self._rules.set_up else new

    def _empty_texts(self, new: Body) -> Iterator[StatusCause]:
        """Required text that is empty in the desired state; the server does not ask what a status lacks."""
        expected = {name: value for name, value in new.items() if name not in ("metadata", STATUS)}
        return self._missing({"$ref": f"#/{self._definition}"}, expected, "")

    def _resolved(self, schema: Schema) -> Schema:
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        return self._definitions[name] if name else schema

    def _missing(self, schema: Schema, value: Any, path: str) -> Iterator[StatusCause]:
        """Text that the schema requires and that is empty. What else is required, decoding has filled with its zero."""
        schema = self._resolved(schema)
        if isinstance(value, dict):
            for name, below in (schema.get("properties") or {}).items():
                here = f"{path}.{name}" if path else name
                if name in schema.get("required", ()) and "string" in str(below.get("type")) and not value.get(name):
                    yield StatusCause(field=here, message="Required value", reason="FieldValueRequired")
                if name in value and not (path == "" and self._complete.get(value[name], id(below))):
                    causes = tuple(self._missing(below, value[name], here))
                    if not path and not causes and isinstance(value[name], dict):
                        self._complete.put(value[name], found=True, purpose=id(below))
                    yield from causes
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._missing(schema.get("items") or {}, item, f"{path}[{index}]")
