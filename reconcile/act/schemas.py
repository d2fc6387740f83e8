"""The packaged schemas, for whoever compares objects with manifests: the only files that writing needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reconcile.diff.schemas import Schemas
from renderer.model.ref import Body
from renderer.resources import packaged
from renderer.validation import load
from renderer.yaml_io import parse

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def packaged_schemas() -> Schemas:
    """Of Kubernetes' own kinds, and (read when the first of them is met) of UpgradePlan and the third-party kinds."""
    return Schemas(load("kubernetes/v1.35.json"), lambda: _definitions(packaged("schemas") / "crds"))


def _definitions(folder: Traversable) -> Iterator[Body]:
    for file in folder.iterdir():
        if file.is_dir():
            yield from _definitions(file)
        elif file.name.endswith(".yaml"):
            yield from (document.value for document in parse(file.read_text(encoding="utf-8"), file.name))
