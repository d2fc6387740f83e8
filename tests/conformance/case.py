"""Cases as files: a list of steps, each one call of the cluster Protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reconcile.simulator.apiserver.registry import Registry
from reconcile.simulator.apiserver.schema_files import packaged_definitions
from renderer.model.ref import Kind, Ref

CASES = Path(__file__).with_name("cases")
ANSWERS = Path(__file__).with_name("answers")
DEFINITIONS = Path(__file__).with_name("definitions")
NAMESPACE = "case-ns"
"""What stands in a case for the namespace, and in the names of cluster-scoped objects; each run has its own."""

VERBS = (
    "create",
    "apply",
    "get",
    "patch",
    "jsonPatch",
    "delete",
    "list",
    "watch",
    "review",
    "settle",
    "put",
    "read",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`steps` as in the file; `text` is its whole text, in which the namespace is replaced before a run."""

    name: str
    about: str
    text: str

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(yaml.load(self.text, Loader=yaml.CSafeLoader)["steps"])

    def in_namespace(self, namespace: str) -> Case:
        return Case(name=self.name, about=self.about, text=self.text.replace(NAMESPACE, namespace))

    @property
    def answers(self) -> Path:
        return ANSWERS / f"{self.name}.yaml"


def cases() -> Iterator[Case]:
    for file in sorted(CASES.glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        yield Case(name=file.stem, about=yaml.load(text, Loader=yaml.CSafeLoader)["about"], text=text)


def definitions() -> tuple[Mapping[str, Any], ...]:
    """The CustomResourceDefinitions of the cases' own kinds."""
    files = sorted(DEFINITIONS.glob("*.yaml"))
    return tuple(
        body for file in files for body in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    )


def verb_of(step: Mapping[str, Any]) -> str:
    (verb,) = [word for word in VERBS if word in step]
    return verb


class KindWords:
    """Kinds by their name in a case: `ConfigMap`, or `longhorn.io/v1beta2 Setting` where one word is not enough."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        registry = Registry()
        for definition in packaged_definitions():
            registry.learn(definition)
        for kind in (*(served.kind for served in registry), *_HERE):
            self._kinds.setdefault(kind.kind, kind)
            self._kinds[str(kind)] = kind

    def __getitem__(self, word: str) -> Kind:
        return self._kinds[word]

    def of(self, body: Mapping[str, Any]) -> Kind:
        return self._kinds[f"{body['apiVersion']} {body['kind']}"]

    def ref(self, text: str, namespace: str) -> tuple[Kind, Ref]:
        """`ConfigMap name` in the case's namespace, or `ConfigMap namespace/name`."""
        *word, place = text.split()
        kind = self._kinds[" ".join(word)]
        space, _, name = place.rpartition("/")
        where = (space or namespace) if kind.namespaced else ""
        return kind, Ref(api_version=kind.api_version, kind=kind.kind, namespace=where, name=name)


def _kind(api_version: str, kind: str, plural: str, *, namespaced: bool) -> Kind:
    return Kind(api_version=api_version, kind=kind, plural=plural, namespaced=namespaced)


_HERE = (
    _kind("conformance.example.org/v1", "Widget", "widgets", namespaced=True),
    _kind("conformance.example.org/v1", "Gadget", "gadgets", namespaced=True),
    _kind("conformance.example.org/v1", "Nothing", "nothings", namespaced=True),
)
