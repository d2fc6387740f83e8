"""The kinds that are served: the built-in ones, those of CustomResourceDefinitions, and open ones for a user's own.

It reads schemas; objects are the store's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconcile.cluster.errors import NoSuchKind
from reconcile.simulator.apiserver.builtin_rules import RULES
from reconcile.simulator.apiserver.builtin_strategy import BuiltinStrategy, decoders
from reconcile.simulator.apiserver.custom_strategy import OPEN, CustomStrategy
from reconcile.simulator.apiserver.schema_files import builtin_schemas
from reconcile.simulator.apiserver.served_kinds import STATUS, Origin, ServedKind
from reconcile.simulator.apiserver.shape import PRESERVE, Schema, Shapes
from reconcile.simulator.apiserver.store import KindKey, key_of
from renderer.model.ref import Body, Kind

DEFINITION = Kind(
    api_version="apiextensions.k8s.io/v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)


class Registry:
    """The kinds by apiVersion and kind."""

    def __init__(self) -> None:
        definitions, kinds = builtin_schemas()
        self._shapes = Shapes(definitions)
        self._decoders = decoders()
        self._served: dict[KindKey, ServedKind] = {}
        self._schemas: dict[KindKey, Schema] = {}
        for kind, definition in kinds.items():
            rules = RULES[str(kind)]
            strategy = BuiltinStrategy(kind, definition, self._decoders, rules)
            shape = self._shapes.of_definition(definition)
            self._serve(
                ServedKind(
                    kind=kind,
                    shape=shape,
                    strategy=strategy,
                    status=rules.status,
                    counts=bool(rules.counted),
                    origin=Origin.BUILTIN,
                )
            )

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(tuple(self._served.values()))

    def find(self, api_version: str, kind: str) -> ServedKind | None:
        return self._served.get((api_version, kind))

    def served(self, kind: Kind) -> ServedKind:
        """Raises NoSuchKind, also where the kind is served under another plural."""
        found = self._served.get(key_of(kind))
        if found is None or (found.kind.plural != kind.plural and found.origin is not Origin.GUESSED):
            raise NoSuchKind(kind)
        return found

    def schema_of(self, kind: Kind) -> Schema:
        """The schema of a custom kind; empty for any other. Raises NoSuchKind."""
        return self._schemas.get(key_of(self.served(kind).kind), {})

    def learn(self, definition: Body) -> tuple[Kind, ...]:
        """Serves the kind of a CustomResourceDefinition, in each of its served versions."""
        return tuple(
            self._learn(definition["spec"], version) for version in definition["spec"]["versions"] if version["served"]
        )

    def open(self, kind: Kind) -> ServedKind:
        """Serves a kind whose definition is not known: any field is taken, and it has a status subresource."""
        return self._serve_custom(kind, OPEN, status=True, origin=Origin.GUESSED)

    def relax(self, kind: Kind) -> ServedKind:
        """Takes and keeps fields that our definition of the kind lacks, since a user's cluster has them."""
        served, schema = self._served[key_of(kind)], self._schemas[key_of(kind)]
        strategy = CustomStrategy(kind, schema, self._decoders, status=served.status, relaxed=True)
        shape = self._shapes.of_schema({**schema, PRESERVE: True})
        return self._serve(replace(served, strategy=strategy, shape=shape))

    def forget(self, definition: Body) -> tuple[Kind, ...]:
        spec = definition["spec"]
        versions = [f"{spec['group']}/{version['name']}" for version in spec["versions"]]
        gone = [self._served.pop((version, spec["names"]["kind"]), None) for version in versions]
        return tuple(served.kind for served in gone if served)

    def _learn(self, spec: Mapping[str, Any], version: Mapping[str, Any]) -> Kind:
        kind = Kind(
            api_version=f"{spec['group']}/{version['name']}",
            kind=spec["names"]["kind"],
            plural=spec["names"]["plural"],
            namespaced=spec["scope"] == "Namespaced",
        )
        schema: Schema = version["schema"]["openAPIV3Schema"]
        selectable = tuple(item["jsonPath"].lstrip(".") for item in version.get("selectableFields") or ())
        status = STATUS in (version.get("subresources") or {})
        self._serve_custom(kind, schema, status=status, selectable=selectable)
        return kind

    def _serve_custom(
        self,
        kind: Kind,
        schema: Schema,
        *,
        status: bool,
        selectable: tuple[str, ...] = (),
        origin: Origin = Origin.DEFINED,
    ) -> ServedKind:
        self._schemas[key_of(kind)] = schema
        strategy = CustomStrategy(kind, schema, self._decoders, status=status)
        shape = self._shapes.of_schema(schema)
        return self._serve(
            ServedKind(kind=kind, shape=shape, strategy=strategy, status=status, selectable=selectable, origin=origin)
        )

    def _serve(self, served: ServedKind) -> ServedKind:
        self._served[key_of(served.kind)] = served
        return served
