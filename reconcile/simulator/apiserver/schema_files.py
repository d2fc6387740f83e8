"""The schemas that the product carries, read once: built-in kinds, and the definitions of custom ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from reconcile.simulator.apiserver.shape import Schema
from renderer.model.ref import Body, Kind
from renderer.yaml_io import parse

_CLUSTER_SCOPED = {
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "StorageClass",
    "Namespace",
    "Node",
}


@lru_cache(maxsize=1)
def builtin_schemas() -> tuple[Mapping[str, Schema], Mapping[Kind, str]]:
    """The built-in definitions by name, and the name of each kind's."""
    found = json.loads((_schemas() / "kubernetes" / "v1.35.json").read_text(encoding="utf-8"))
    kinds = {_builtin(*name.split()): ref.rpartition("/")[2] for name, ref in found["kinds"].items()}
    return found["$defs"], kinds


@lru_cache(maxsize=1)
def packaged_definitions() -> tuple[Body, ...]:
    """The CustomResourceDefinitions of UpgradePlan and of the third-party kinds that the product touches."""
    return tuple(
        document.value
        for file in _yaml_files(_schemas() / "crds")
        for document in parse(file.read_text(encoding="utf-8"), file.name)
        if document.value
    )


def guess(api_version: str, kind: str, *, namespaced: bool) -> Kind:
    """A Kind for an object without a known definition; the plural follows the usual spelling."""
    word = kind.lower()
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        plural = word[:-1] + "ies"
    else:
        plural = word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")
    return Kind(api_version=api_version, kind=kind, plural=plural, namespaced=namespaced)


def _builtin(api_version: str, kind: str) -> Kind:
    return guess(api_version, kind, namespaced=kind not in _CLUSTER_SCOPED)


def _schemas() -> Traversable:
    """In a wheel the folder lies in the package, in a source tree beside it."""
    package = files("renderer")
    inside = package / "schemas"
    return inside if inside.is_dir() else files("reconcile") / ".." / "schemas"


def _yaml_files(folder: Traversable) -> Iterable[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _yaml_files(entry)
        elif entry.name.endswith(".yaml"):
            yield entry
