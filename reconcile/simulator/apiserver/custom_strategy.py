"""The strategy of the embedded cluster for custom resources, by one version of their CustomResourceDefinition."""

from __future__ import annotations

from typing import Any

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver.builtin_strategy import Decoders
from reconcile.simulator.apiserver.cel_rules import CelRules, UncheckedRule
from reconcile.simulator.apiserver.field_set import FieldSet
from reconcile.simulator.apiserver.metadata_rules import invalid_metadata
from reconcile.simulator.apiserver.served_kinds import STATUS, counted, replaced
from reconcile.simulator.apiserver.shape import OBJECT_META, PRESERVE, Schema
from reconcile.simulator.apiserver.structural import defaulted, invalid, pruned, unknown_fields
from reconcile.simulator.apiserver.walk import ABSENT, same
from renderer.model.ref import Body, Kind
from renderer.validation.nulls import without_nulls

OPEN: Schema = {"type": "object", PRESERVE: True}
"""The schema of a kind without a definition."""

_STATUS_WRITES_NOT: FieldSet = frozenset([("f:spec",)])  # metadata is not in it, though it is not written either


class CustomStrategy:
    """A custom kind."""

    def __init__(self, kind: Kind, schema: Schema, decoders: Decoders, *, status: bool, relaxed: bool = False) -> None:
        """`relaxed`: the schema is known to lack fields that the cluster has, so undeclared ones are taken and kept."""
        self._kind = kind
        self._types = decoders.types
        self._strict = decoders.strict
        self._schema = schema
        self._status = status
        self._relaxed = relaxed
        self._rules = CelRules(kind.kind, schema)

    def blank(self) -> Body:
        return {"apiVersion": self._kind.api_version, "kind": self._kind.kind}

    def refused(self, body: Body, before: Body | None = None) -> tuple[StatusCause, ...]:
        undeclared = () if self._relaxed else unknown_fields(self._schema, body, before)
        causes = (StatusCause(field=path, message="unknown field") for path in undeclared)
        return (*causes, *self._strict.refused(OBJECT_META, body.get("metadata") or {}, ("metadata",)))

    def read(self, body: Body, before: Body | None = None) -> dict[str, Any]:
        """Metadata is read as every object's is; the rest is pruned and defaulted by the schema."""
        kept = body if self._relaxed else pruned(self._schema, body, before)
        return self.merged(without_nulls(kept, self._schema, before=before), before)

    def merged(self, body: Body, before: Body | None = None) -> dict[str, Any]:
        made: dict[str, Any] = defaulted(self._schema, body, before)
        return {**made, "metadata": self._types.read(OBJECT_META, body.get("metadata") or {})}

    def stored(self, body: Body) -> dict[str, Any]:
        return dict(body)

    def prepared(self, new: dict[str, Any], old: Body | None, subresource: str) -> dict[str, Any]:
        if old is None:
            return counted(replaced(new, {}, (STATUS,)) if self._status else new, 1)
        if subresource == STATUS:
            return self._with_status_of(new, old)
        kept = replaced(new, old, (STATUS,)) if self._status else new
        if same(self._counted_part(kept), self._counted_part(old)):
            return kept
        return counted(kept, int(old["metadata"].get("generation", 0)) + 1)

    def invalid(self, new: Body, old: Body | None, subresource: str) -> tuple[StatusCause, ...]:
        metadata = () if subresource == STATUS else invalid_metadata(self._kind, new)
        causes = (*metadata, *invalid(self._schema, new, old if old is not None else ABSENT))
        return causes or tuple(self._rules.broken(new, old))

    def unchecked(self, new: Body, old: Body | None) -> tuple[UncheckedRule, ...]:
        return tuple(self._rules.unchecked(new, old))

    def ignored(self, subresource: str) -> FieldSet:
        if subresource == STATUS:
            return _STATUS_WRITES_NOT
        return frozenset([("f:status",)]) if self._status else frozenset()

    def _with_status_of(self, new: Body, old: Body) -> dict[str, Any]:
        """Through the status subresource only the status, and the claims on it, change."""
        entries = (new.get("metadata") or {}).get("managedFields")
        metadata = {**old["metadata"], "managedFields": entries} if entries else old["metadata"]
        return replaced({**old, "metadata": metadata}, new, (STATUS,))

    def _counted_part(self, body: Body) -> dict[str, Any]:
        left = ("metadata", STATUS) if self._status else ("metadata",)
        return {name: value for name, value in body.items() if name not in left}
