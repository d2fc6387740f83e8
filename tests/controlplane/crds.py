"""Installs the definitions of custom resources and waits until the server serves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from controlplane import waiting
from controlplane.api import APPLY, Api, ApiError

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REFUSALS = (("NamesAccepted", "False"), ("NonStructuralSchema", "True"))


class CrdError(Exception):
    """All definitions that the server refused or will not serve, with its reasons."""


def install(api: Api, folder: Path) -> None:
    """Every definition in the folder and below. Raises CrdError."""
    refused: list[str] = []
    names: list[str] = []
    for file in sorted(folder.rglob("*.yaml")):
        try:
            names += [_apply(api, document) for document in _documents(file)]
        except ApiError as error:
            refused.append(f"{file}: {error.status.get('message', error)}")
    for name in names:
        refused += waiting.until(f"{name} Established", partial(_verdict, api, name))
    if any(refused):
        raise CrdError("\n".join(filter(None, refused)))


def _documents(file: Path) -> Iterator[Mapping[str, Any]]:
    with file.open("rb") as text:
        yield from (document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document)


def _apply(api: Api, document: Mapping[str, Any]) -> str:
    name: str = document["metadata"]["name"]
    api.patch(f"{PATH}/{name}?fieldManager=test-setup&fieldValidation=Strict&force=true", document, APPLY)
    return name


def _verdict(api: Api, name: str) -> list[str]:
    """Empty while undecided; else a single text: the reason for a refusal, or nothing."""
    conditions = api.get(f"{PATH}/{name}").get("status", {}).get("conditions") or ()
    refusals = [f"{name}: {c['message']}" for c in conditions if (c["type"], c["status"]) in REFUSALS]
    established = any((c["type"], c["status"]) == ("Established", "True") for c in conditions)
    return refusals or ([""] if established else [])
