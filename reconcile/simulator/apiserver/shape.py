"""The shape by which a value merges at each place of a kind: as a leaf, a map, a set, or a list of items distinguished
by keys.

Read from the schemas that the API server itself publishes: built-in definitions with `$ref`, and a CRD's structural
schema. Shapes are made when they are first asked for, since kinds refer to themselves. Source of the rules:
k8s.io/kube-openapi, package schemaconv. This room only reads schemas; it never looks at an object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

Schema = Mapping[str, Any]
Scalar = Literal["string", "numeric", "boolean", "untyped"]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_KEY_DEFAULTS = {"protocol": "TCP"}  # of ContainerPort and ServicePort, the only defaulted keys of built-in lists


@dataclass(frozen=True, slots=True, kw_only=True)
class ListShape:
    """`keys` is empty for a set of scalars; an atomic list is one leaf."""

    atomic: bool
    keys: tuple[str, ...] = ()
    element: Callable[[], Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapShape:
    """`fields` are the declared names; `other` is the shape of every other name, None when there may be none."""

    atomic: bool
    fields: Mapping[str, Callable[[], Shape]]
    other: Callable[[], Shape] | None
    _made: dict[str, Shape | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def at(self, name: str) -> Shape | None:
        """The same each time; made when it is first asked for."""
        if name not in self.fields:
            name = ""
        if name not in self._made:
            make = self.fields.get(name, self.other)
            self._made[name] = make() if make else None
        return self._made[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a value. More than one part is set where the schema leaves the type open."""

    scalar: Scalar | None = None
    list: ListShape | None = None
    map: MapShape | None = None
    defaults: Mapping[str, Any] | None = None
    parts: dict[str, Shape] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Those that values have picked so far, each made once."""

    def part(self, name: Literal["map", "list", "scalar"]) -> Shape:
        """One part alone; all of it where it has no such part."""
        found = self.parts.get(name)
        if found is None:
            value, defaults = getattr(self, name), self.defaults if name == "map" else None
            found = self.parts[name] = Shape(**{name: value}, defaults=defaults) if value else self
        return found

    def key_default(self, name: str) -> Any:
        return (self.defaults or {}).get(name)


def _untyped() -> Shape:
    return UNTYPED


def _deduced() -> Shape:
    return DEDUCED


UNTYPED = Shape(
    scalar="untyped",
    list=ListShape(atomic=True, element=_untyped),
    map=MapShape(atomic=True, fields={}, other=_untyped),
)
DEDUCED = Shape(
    scalar="untyped",
    list=ListShape(atomic=True, element=_untyped),
    map=MapShape(atomic=False, fields={}, other=_deduced),
)
_SCALARS: dict[str, Scalar] = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_PLAIN_STRINGS = ("", "byte")


class Shapes:
    """Shapes of one set of definitions; each is made once."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._made: dict[tuple[int, bool, str], tuple[Schema, Shape]] = {}  # holds the schema, so its id stays its own
        self._named = {_QUANTITY: Shape(scalar="untyped"), _INT_OR_STRING: Shape(scalar="untyped")}
        self._named[_RAW_EXTENSION] = UNTYPED

    def of_definition(self, name: str) -> Shape:
        return self._named.get(name) or self._of(self._definitions[name])

    def of_schema(self, schema: Schema) -> Shape:
        """The shape of a CRD version's `openAPIV3Schema`, its metadata typed as every object's is."""
        return self._of(_embedded(schema))

    def _of(self, schema: Schema, *, preserve: bool = False, map_type: str = "") -> Shape:
        key = (id(schema), preserve, map_type)
        if key not in self._made:
            self._made[key] = schema, self._make(schema, preserve or schema.get(PRESERVE) is True, map_type)
        return self._made[key][1]

    def _ref(self, schema: Schema, preserve: bool) -> Shape:
        name = _ref_name(schema)
        if name is None:
            return self._of(_embedded(schema) if schema.get(EMBEDDED) else schema, preserve=preserve)
        if name in self._named:
            return self._named[name]
        return self._of(self._definitions[name], map_type=schema.get("x-kubernetes-map-type", ""))

    def _make(self, schema: Schema, preserve: bool, map_type: str) -> Shape:
        kind = _type(schema)
        if kind == "object":
            return self._with_map(schema, preserve, map_type, None)
        if kind == "array":
            return Shape(list=self._list(schema, preserve))
        if kind == "":
            return self._with_map(schema, preserve, map_type, "untyped", self._list(schema, preserve))
        if kind == "string" and schema.get("format", "") in _PLAIN_STRINGS:
            return Shape(scalar="string")
        return Shape(scalar=_SCALARS.get(kind, "untyped"))

    def _with_map(
        self, schema: Schema, preserve: bool, map_type: str, scalar: Scalar | None, items: ListShape | None = None
    ) -> Shape:
        properties: Mapping[str, Schema] = schema.get("properties") or {}
        fields = {name: partial(self._ref, member, preserve) for name, member in properties.items()}
        atomic = (map_type or schema.get("x-kubernetes-map-type")) == "atomic"
        defaults = {name: member["default"] for name, member in properties.items() if "default" in member}
        if "containerPort" in properties or "targetPort" in properties:
            defaults = _KEY_DEFAULTS | defaults
        shape = MapShape(atomic=atomic, fields=fields, other=self._other(schema, preserve))
        return Shape(scalar=scalar, list=items, map=shape, defaults=defaults)

    def _other(self, schema: Schema, preserve: bool) -> Callable[[], Shape] | None:
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            return partial(self._ref, additional, preserve)
        if additional is True or (additional is None and (preserve or not schema.get("properties"))):
            return _deduced
        return None

    def _list(self, schema: Schema, preserve: bool) -> ListShape:
        items = schema.get("items")
        element = partial(self._ref, items, preserve) if items else _untyped
        atomic, keys = _relationship(schema)
        return ListShape(atomic=atomic, keys=keys, element=element)


def _relationship(schema: Schema) -> tuple[bool, tuple[str, ...]]:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type is not None:
        return list_type == "atomic", tuple(schema.get("x-kubernetes-list-map-keys") or ())
    strategy = str(schema.get("x-kubernetes-patch-strategy") or "")
    if not strategy.startswith("merge"):
        return True, ()
    merge_key = schema.get("x-kubernetes-patch-merge-key")
    return False, (merge_key,) if merge_key else ()


def _type(schema: Schema) -> str:
    found: Any = schema.get("type") or ""
    return str(found) if isinstance(found, str) else str(found[0])


def _ref_name(schema: Schema) -> str | None:
    ref = schema.get("$ref")
    parts: Any = schema.get("allOf") or ()
    if ref is None and len(parts) == 1:
        ref = parts[0].get("$ref")
    return str(ref).rpartition("/")[-1] if ref else None


def _embedded(schema: Schema) -> Schema:
    """An object within an object, or a whole custom resource: apiVersion, kind and metadata are the API's own."""
    own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": f"#/{OBJECT_META}"}}
    return {**schema, "properties": {**(schema.get("properties") or {}), **own}}
