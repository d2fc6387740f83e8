"""Cuts the schemas of the built-in kinds that the product renders or probes out of the package kubernetes-validate.

`python tests/schemas/extract.py` writes `schemas/kubernetes/v1.35.json`: one JSON Schema (draft 2020-12) whose `$defs`
are everything that those kinds refer to, with what a server-side apply needs to know (list types, map keys, patch keys)
and without descriptions. `kinds` says where a kind's schema is: {"batch/v1 Job": "#/$defs/..."}. The schema of one kind
is the whole document with `"$ref": kinds[kind]` added. The file depends on nothing but the package's version, which
stands in it. It must not be edited.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

PACKAGE = "kubernetes-validate"
SCHEMA_SET = "v1.35.0-local-strict"
TARGET = Path(__file__).resolve().parents[2] / "schemas" / "kubernetes" / "v1.35.json"
POINTER = "#/$defs/"
PROPERTIES = "properties"  # below it, a key is the name of a field and not a keyword

KINDS = (
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "apps/v1 DaemonSet",
    "apps/v1 Deployment",
    "apps/v1 ReplicaSet",
    "apps/v1 StatefulSet",
    "batch/v1 Job",
    "coordination.k8s.io/v1 Lease",
    "discovery.k8s.io/v1 EndpointSlice",
    "events.k8s.io/v1 Event",
    "policy/v1 PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    "rbac.authorization.k8s.io/v1 Role",
    "rbac.authorization.k8s.io/v1 RoleBinding",
    "storage.k8s.io/v1 StorageClass",
    "v1 ConfigMap",
    "v1 Event",
    "v1 Namespace",
    "v1 Node",
    "v1 PersistentVolumeClaim",
    "v1 Pod",
    "v1 Secret",
    "v1 Service",
    "v1 ServiceAccount",
)


def extract() -> str:
    """The text of the file."""
    definitions = _definitions()
    names = _names_by_kind(definitions)
    kinds = {kind: POINTER + names[kind] for kind in KINDS}
    closure = _closure(definitions, [names[kind] for kind in KINDS])
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"made by tests/schemas/extract.py from {PACKAGE} {version(PACKAGE)}, {SCHEMA_SET}; do not edit",
        "kinds": kinds,
    }
    return _one_line_each(head, {name: _without_descriptions(definitions[name]) for name in sorted(closure)})


def _definitions() -> dict[str, Any]:
    source = files("kubernetes_validate") / "kubernetes-json-schema" / SCHEMA_SET / "_definitions.json"
    found: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))["$defs"]
    return found


def _names_by_kind(definitions: dict[str, Any]) -> dict[str, str]:
    """{"batch/v1 Job": "io.k8s.api.batch.v1.Job"}; option kinds that belong to many groups are left out."""
    found = {}
    for name, schema in definitions.items():
        match schema.get("x-kubernetes-group-version-kind"):
            case [{"group": group, "version": api_version, "kind": kind}]:
                found[f"{group}/{api_version} {kind}".lstrip("/")] = name
    return found


def _closure(definitions: dict[str, Any], names: list[str]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += _referred(definitions[name])
    return found


def _referred(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(POINTER)
        for value in node.values():
            yield from _referred(value)
    elif isinstance(node, list):
        for value in node:
            yield from _referred(value)


def _without_descriptions(node: Any, *, names: bool = False) -> Any:
    """`names` says that the keys of this mapping are names of fields, one of which may well be "description"."""
    if isinstance(node, dict):
        return {
            key: _without_descriptions(value, names=key == PROPERTIES and not names)
            for key, value in node.items()
            if names or key != "description"
        }
    if isinstance(node, list):
        return [_without_descriptions(value) for value in node]
    return node


def _one_line_each(head: dict[str, Any], definitions: dict[str, Any]) -> str:
    """JSON with a line for each kind and each definition, so that a change of the package can be read as a diff."""
    lines = [f"{json.dumps(key)}: {json.dumps(head[key])}" for key in ("$schema", "$comment")]
    lines.append(f'"kinds": {_block(head["kinds"])}')
    lines.append(f'"$defs": {_block(definitions)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _block(entries: dict[str, Any]) -> str:
    rows = (f"{json.dumps(key)}: {_compact(value)}" for key, value in entries.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=True)


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(extract(), encoding="utf-8")
