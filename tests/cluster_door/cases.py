"""Case files: how a YAML case names a call, and how an error's fields are written in one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import yaml

from cluster_door import kinds
from reconcile.cluster.errors import ClusterError
from reconcile.cluster.protocol import Permission
from reconcile.cluster.refusal import ApiCall
from renderer.model.ref import Ref

_FOLDER = Path(__file__).resolve().parent


def case_files(folder: str) -> list[Path]:
    return sorted((_FOLDER / folder).glob("*.yaml"))


def read_case(file: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")))


def call_of(text: str) -> ApiCall:
    """`VERB KIND NAMESPACE NAME [SUBRESOURCE]`, with `-` for none."""
    verb, kind_name, namespace, name, *subresource = ("" if word == "-" else word for word in text.split())
    kind = kinds.BY_NAME[kind_name]
    return ApiCall(verb=verb, kind=kind, ref=kinds.ref(kind, name, namespace), subresource="".join(subresource))


def fields_of(error: ClusterError) -> dict[str, Any]:
    """All that an error carries beside its text, as plain values; a permission as the rule that grants it."""
    of_all = ("problems", "exit_code", "message", "warnings")
    carried = {key: value for key, value in vars(error).items() if key not in of_all}
    return {key: _plain(value) for key, value in carried.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Permission):
        return {"namespace": value.namespace, "rule": value.rule()}
    if isinstance(value, tuple) and not isinstance(value, Ref):
        return [dataclasses.asdict(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)
