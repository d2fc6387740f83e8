"""Holds rendered manifests of Kubernetes' own kinds against its schemas, as the API server will.

For overlays: what the packaged templates render is proven by the tests, and need not be asked each time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.path import Path, path_name
from renderer.model.rendered import Manifest
from renderer.validation import load, schema_problems

_SCHEMAS = "kubernetes/v1.35.json"


def form_problems(manifests: Iterable[Manifest], templates: Collection[str]) -> Iterator[Problem]:
    """Fields that are unknown or have the wrong type, in what these `templates` render."""
    for manifest in manifests:
        if manifest.template in templates:
            yield from _form_problems(manifest)


def _form_problems(manifest: Manifest) -> Iterator[Problem]:
    schemas = load(_SCHEMAS)
    reference = schemas["kinds"].get(f"{manifest.ref.api_version} {manifest.ref.kind}")
    if reference is None:
        return
    schema = {"$ref": reference, "$defs": schemas["$defs"]}
    run_time = {path_name(path) for path in manifest.run_time}
    for problem in schema_problems(_Rendered(manifest=manifest), schema):
        is_partial = manifest.borrowed and problem.reason == "MissingField"
        if not is_partial and problem.field not in run_time:
            yield replace(problem, message=f"{manifest.ref}: {problem.message}")


@frozen
class _Rendered:
    """Its lines are not those of the template."""

    manifest: Manifest

    @property
    def body(self) -> Any:
        return self.manifest.body

    @property
    def file(self) -> str:
        return self.manifest.template

    def line_of(self, path: Path = ()) -> int | None:
        return None
