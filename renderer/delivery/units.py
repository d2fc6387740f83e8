"""Units of delivery: a bundle, an Application, a Kustomization, with the folder that it pulls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from renderer.delivery.options import Repository
from renderer.frozen import frozen
from renderer.layout.manifests import Tree
from renderer.model.ref import Body, Ref, ref_of
from renderer.names import label_value, shortened_name
from renderer.yaml_io import dump

LONGEST_NAME = 53
"""Helm's limit for a release, and so Fleet's for a bundle."""

KUSTOMIZATION = "kustomization.yaml"


@frozen
class Unit:
    """`folder` is its place in the tree; `files` has the objects of each file, by the file's name. `timeout` is
    seconds; a `manual` one is begun by somebody; `previous` are name and label of the unit before."""

    name: str
    folder: str
    files: Mapping[str, tuple[Body, ...]]
    number: int = 0
    timeout: int = 0
    manual: bool = False
    previous: tuple[str, str] | None = None

    @property
    def objects(self) -> tuple[Body, ...]:
        return tuple(body for bodies in self.files.values() for body in bodies)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(map(ref_of, self.objects))

    @property
    def label(self) -> str:
        """Its folder's name, as the value of a label."""
        return label_value(self.folder.rpartition("/")[2])

    def tree(self) -> Tree:
        """Its manifests and the kustomization that lists them."""
        return {f"{self.folder}/{name}": text for name, text in self.texts().items()}

    def texts(self) -> Tree:
        """The same by their names in the folder."""
        texts = {name: "---\n".join(map(dump, bodies)) for name, bodies in self.files.items()}
        return {**texts, KUSTOMIZATION: dump(kustomization(texts))}

    def context(self, repository: Repository) -> dict[str, Any]:
        """The names that templates see of it."""
        name, label = self.previous or ("", "")
        return {
            "name": self.name,
            "label": self.label,
            "number": self.number,
            "timeout": self.timeout,
            "manual": self.manual,
            "folder": self.folder,
            "path": repository.below(self.folder),
            "previous": {"name": name, "label": label} if self.previous else None,
            "jobs": [{"name": ref.name, "namespace": ref.namespace} for ref in self.refs if ref.kind == "Job"],
        }


def kustomization(resources: Iterable[str]) -> dict[str, Any]:
    """A kustomization that lists these, and nothing else."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(resources),
    }


def unit_name(*parts: str) -> str:
    """A name that all agents take, the same for the same plan and phase and no others."""
    return shortened_name(LONGEST_NAME, *parts)


def in_a_row(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """The same, each after the one before it."""
    found = tuple(units)
    before = (None, *((unit.name, unit.label) for unit in found))
    return tuple(replace(unit, previous=previous) for unit, previous in zip(found, before, strict=False))


def refs_of(units: Iterable[Unit]) -> tuple[Ref, ...]:
    return tuple(ref for unit in units for ref in unit.refs)
