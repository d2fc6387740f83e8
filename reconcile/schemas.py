"""Reads from the schemas what comparing needs of a place in an object: which lists are keyed, which are sets, and which
values are quantities.

Built-in kinds come from `schemas/kubernetes/`, others from their CustomResourceDefinitions. A kind or field that no
schema knows has atomic lists only, as the API server treats it, and no quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reconcile.values import IsQuantity
from renderer.model.path import Path
from renderer.model.ref import Body
from renderer.resources import packaged
from renderer.validation import load
from renderer.yaml_io import parse

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_OBJECT_META = "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY = "#/$defs/io.k8s.apimachinery.pkg.api.resource.Quantity"
_QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The pattern that controller-gen writes into a CustomResourceDefinition for a field of type resource.Quantity."""

KEY_DEFAULTS: Mapping[str, Any] = {"protocol": "TCP"}
"""Of ContainerPort and ServicePort: the only keys of built-in lists that the server fills in."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place in a kind: its schema, and the definitions that `$ref`s lead to."""

    schema: Mapping[str, Any]
    definitions: Mapping[str, Any]

    def at(self, name: str) -> Place:
        """The place of a field, declared or not."""
        properties = self.schema.get("properties") or {}
        found = properties.get(name, self.schema.get("additionalProperties"))
        return self._below(found)

    def item(self) -> Place:
        """The place of a list's items."""
        return self._below(self.schema.get("items"))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a list's items; none for an atomic list and for a set."""
        return tuple(self.schema.get("x-kubernetes-list-map-keys") or ())

    @property
    def is_set(self) -> bool:
        return self.schema.get("x-kubernetes-list-type") == "set"

    def is_quantity(self, path: Path = ()) -> bool:
        """True if the API declares a quantity here, or at a path below."""
        place = self
        for step in path:
            place = place.item() if isinstance(step, int) else place.at(step)
        return place.schema.get("$ref") == _QUANTITY or place.schema.get("pattern") == _QUANTITY_PATTERN

    def _below(self, schema: Any) -> Place:
        if not isinstance(schema, Mapping):
            return UNKNOWN
        ref = str(schema.get("$ref") or "")
        if not ref or ref == _QUANTITY:
            return Place(schema, self.definitions)
        return Place(self.definitions.get(ref.rpartition("/")[2]) or {}, self.definitions)


UNKNOWN = Place({}, {})


class Schemas:
    """The schemas of every kind; definitions of custom kinds are asked for when the first of them is met."""

    def __init__(self, kubernetes: Mapping[str, Any], definitions: Callable[[], Iterable[Body]]) -> None:
        self._kinds: Mapping[str, str] = kubernetes["kinds"]
        self._builtin = Place({}, kubernetes["$defs"])
        self._definitions = definitions
        self._custom: Mapping[str, Place] | None = None

    def of(self, body: Body) -> Place:
        """The place where an object of this kind begins."""
        name = f"{body.get('apiVersion')} {body.get('kind')}"
        if name in self._kinds:
            return self._builtin._below({"$ref": self._kinds[name]})
        if self._custom is None:
            self._custom = dict(self._versions())
        return self._custom.get(name, UNKNOWN)

    def quantities_of(self, body: Body) -> IsQuantity:
        """Finds the fields of an object of this kind that are quantities. No schema is read before it is asked."""
        return lambda path: self.of(body).is_quantity(path)

    def _versions(self) -> Iterable[tuple[str, Place]]:
        for definition in self._definitions():
            spec = definition["spec"]
            for version in spec["versions"]:
                schema = version.get("schema", {}).get("openAPIV3Schema") or {}
                properties = {**(schema.get("properties") or {}), "metadata": {"$ref": _OBJECT_META}}
                name = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
                yield name, Place({**schema, "properties": properties}, self._builtin.definitions)


def packaged_schemas() -> Schemas:
    """Of Kubernetes' own kinds, and (read when the first of them is met) of UpgradePlan and the third-party kinds."""
    return Schemas(load("kubernetes/v1.35.json"), lambda: _packaged_definitions(packaged("schemas") / "crds"))


def _packaged_definitions(folder: Traversable) -> Iterator[Body]:
    for file in folder.iterdir():
        if file.is_dir():
            yield from _packaged_definitions(file)
        elif file.name.endswith(".yaml"):
            yield from (document.value for document in parse(file.read_text(encoding="utf-8"), file.name))
