"""What the reference is made from, read once: schemas, the CRD, the catalogues beside them, templates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from renderer.yaml_io import parse
from support.rendered_plans import ROOT

SCHEMAS = ROOT / "schemas"
TEMPLATES = ROOT / "templates"


@cache
def schema(name: str) -> Mapping[str, Any]:
    """A JSON schema below schemas/, without the suffix."""
    found: Mapping[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@cache
def document(path: str) -> Any:
    """The one YAML document of a file of the tree."""
    return parse((ROOT / path).read_text(encoding="utf-8"), path)[0].value


def reasons() -> list[Mapping[str, Any]]:
    return list(document("schemas/reference/reasons.yaml")["reasons"])


def known_annotations() -> list[Mapping[str, Any]]:
    return list(document("schemas/reference/annotations.yaml")["annotations"])


@cache
def plan_schema() -> Mapping[str, Any]:
    """The schema of an UpgradePlan in its CustomResourceDefinition."""
    version = document("schemas/crds/upgradeplan.yaml")["spec"]["versions"][0]
    found: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def phases() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Folder and declaration of each packaged phase, in order."""
    for path in sorted(TEMPLATES.glob("[0-9]*/phase.yaml")):
        yield path.parent.name, document(path.relative_to(ROOT).as_posix())


def kinds() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """File and row of each kind that has rules."""
    for path in sorted((TEMPLATES / "_kinds").glob("*.yaml")):
        found = document(path.relative_to(ROOT).as_posix())
        rows = found if isinstance(found, (list, tuple)) else found["kinds"]
        yield from ((path.name, row) for row in rows)
