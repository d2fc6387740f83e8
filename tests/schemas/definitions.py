"""The CustomResourceDefinitions of `schemas/crds` as tests look at them, and the kinds that they define."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Json = Mapping[str, Any]

FILES = tuple(sorted((Path(__file__).resolve().parents[2] / "schemas" / "crds").rglob("*.yaml")))


def documents(file: Path) -> list[Any]:
    return [body for body in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) if body]


def kind(crd: Json) -> str:
    """`longhorn.io/v1beta2 Setting`."""
    return f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']} {crd['spec']['names']['kind']}"


def openapi(crd: Json) -> Json:
    schema: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def subresources(crd: Json) -> tuple[str, ...]:
    return tuple(crd["spec"]["versions"][0].get("subresources", {}))


CRDS: Mapping[str, Json] = {kind(crd): crd for file in FILES for crd in documents(file)}
PLAN = CRDS["management.harvesterhci.io/v1beta1 UpgradePlan"]


def crd_of(body: Json) -> Json:
    return CRDS[f"{body['apiVersion']} {body['kind']}"]


def plan(name: str, spec: Json) -> Json:
    metadata = {"name": name}
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": metadata,
        "spec": spec,
    }
