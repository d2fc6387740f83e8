"""Units of delivery: a bundle, an Application, a Kustomization, with the folder that it pulls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from renderer.delivery.options import Repository
from renderer.frozen import frozen
from renderer.layout.manifests import Tree
from renderer.model.ref import Body, Ref, ref_of
from renderer.names import shortened_name
from renderer.yaml_io import dump

LONGEST_NAME = 53
"""Helm's limit for a release, and so Fleet's for a bundle."""

KUSTOMIZATION = "kustomization.yaml"


@frozen
class Unit:
    """`folder` is its place in the tree; `files` has the objects of each file, by the file's name."""

    name: str
    folder: str
    files: Mapping[str, tuple[Body, ...]]

    @property
    def objects(self) -> tuple[Body, ...]:
        return tuple(body for bodies in self.files.values() for body in bodies)

    def tree(self) -> Tree:
        """Its manifests and the kustomization that lists them."""
        texts = {name: "---\n".join(map(dump, bodies)) for name, bodies in self.files.items()}
        return {
            **{f"{self.folder}/{name}": text for name, text in texts.items()},
            f"{self.folder}/{KUSTOMIZATION}": dump(kustomization(texts)),
        }

    def context(self, repository: Repository) -> dict[str, Any]:
        """The names that templates see of it."""
        return {"name": self.name, "folder": self.folder, "path": repository.below(self.folder)}


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


def refs_of(units: Iterable[Unit]) -> tuple[Ref, ...]:
    return tuple(ref_of(body) for unit in units for body in unit.objects)
