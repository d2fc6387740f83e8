"""Builds `schemas/built` from the definitions of the kinds: to read them at each run would take longer than to render.

`upgradeplan.json` has all that the API server holds a plan to. `shapes.json` has the types of other kinds, and little
else. Kubernetes' own kinds are described by its published schema, others by their CustomResourceDefinitions in
`schemas/crds`. Which fields there are differs from release to release, and nothing must be there that a person who
writes an object down may leave out; but an item of a list has what tells it apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from renderer.validation.messages import TIME
from renderer.validation.nulls import Schema
from renderer.yaml_io import parse
from support.rendered_plans import ROOT
from support.structural import OBJECT_META, from_definition

FOLDER = ROOT / "schemas" / "built"
_COMMENT = "made from kubernetes/v1.35.json and crds by `make reference`; do not edit"
_BUILT_IN = ROOT / "schemas" / "kubernetes" / "v1.35.json"
_THIRD_PARTY = ROOT / "schemas" / "crds" / "third-party"
_CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "Namespace",
    "Node",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
"""Of Kubernetes' kinds that the schema describes."""
_METADATA: Schema = {"$ref": "#/$defs/metadata"}
_SECRET: Schema = {"type": "object", "additionalProperties": {"type": "string", "writeOnly": True}}
_ALTERNATIVES: Mapping[str, Schema] = {
    "Quantity": {"type": ["string", "number"]},
    "IntOrString": {"type": ["string", "integer"]},
}
"""Definitions that have alternatives in place of a type."""
_INTEGERS: Mapping[str, Schema] = {
    name: {"type": "integer", "minimum": -(2 ** (bits - 1)), "maximum": 2 ** (bits - 1) - 1}
    for name, bits in (("int32", 32), ("int64", 64))
}
"""The API server has room for no other ones."""


def built() -> dict[str, str]:
    """The text of each file."""
    plan = translated(ROOT / "schemas" / "crds" / "upgradeplan.yaml")
    return {"shapes.json": _text(_shapes(), levels=2), "upgradeplan.json": _text(plan, levels=4)}


def translated(file: Path) -> Schema:
    """A CustomResourceDefinition as JSON Schema."""
    return from_definition(parse(file.read_text(encoding="utf-8"), file.name)[0].value)


def _text(model: Schema, levels: int) -> str:
    return _lines({"$comment": _COMMENT, **model}, levels) + "\n"


def _lines(value: Any, levels: int, indent: str = "") -> str:
    """JSON with a line for each key of the first levels, and all below it in that line."""
    if not levels or not isinstance(value, dict) or not value:
        return json.dumps(value)
    lines = (f"{indent} {json.dumps(key)}: {_lines(item, levels - 1, indent + ' ')}" for key, item in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _shapes() -> Schema:
    """`custom` names the version that stands for each that a custom kind may have had."""
    defs: Mapping[str, Any] = json.loads(_BUILT_IN.read_text(encoding="utf-8"))
    kinds, custom = {}, {}
    for name, definition in defs["kinds"].items():
        kinds[name] = _kind(defs["$defs"][definition.rpartition("/")[2]], defs, _is_namespaced(name))
    kinds["v1 Secret"]["properties"] |= {"data": _SECRET, "stringData": _SECRET}
    for spec in definitions():
        group, kind = spec["group"], spec["names"]["kind"]
        custom[f"{group} {kind}"] = f"{group}/{spec['versions'][0]['name']} {kind}"
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            kinds[f"{group}/{version['name']} {kind}"] = _custom_kind(schema, defs, spec["scope"] == "Namespaced")
    named = {name: _types(defs["$defs"][name], defs) for name in defs["$defs"]}
    shared = {"metadata": _types(OBJECT_META, defs), **_INTEGERS, **_reached(kinds, named)}
    return {"kinds": kinds, "custom": custom, "$defs": dict(sorted(shared.items()))}


def _is_namespaced(name: str) -> bool:
    return name.rpartition(" ")[2] not in _CLUSTER_SCOPED


def definitions() -> Iterator[Mapping[str, Any]]:
    for file in sorted(_THIRD_PARTY.iterdir()):
        yield parse(file.read_text(encoding="utf-8"), file.name)[0].value["spec"]


def _kind(schema: Mapping[str, Any], defs: Mapping[str, Any], namespaced: bool) -> Schema:
    properties = {**_types(schema, defs).get("properties", {}), "metadata": _METADATA}
    return {"namespaced": namespaced, "properties": properties}


def _custom_kind(schema: Mapping[str, Any], defs: Mapping[str, Any], namespaced: bool) -> Schema:
    return {**_kind(schema, defs, namespaced), **_required(schema, defs)}


def _types(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    """The types that a schema declares."""
    if "$ref" in schema:
        return _ALTERNATIVES.get(schema["$ref"].rpartition(".")[2]) or {"$ref": schema["$ref"]}
    if schema.get("x-kubernetes-int-or-string"):
        return _ALTERNATIVES["IntOrString"]
    if _type(schema) == "integer":
        return {"$ref": f"#/$defs/{'int32' if schema.get('format') == 'int32' else 'int64'}"}
    kept: Schema = {"type": _type(schema)} if "type" in schema else {}
    if schema.get("format") == "date-time" or schema.get("pattern") == TIME:
        kept["pattern"] = TIME
    if "items" in schema:
        kept["items"] = {**_types(schema["items"], defs), **_required(schema["items"], defs)}
    if isinstance(schema.get("additionalProperties"), Mapping):
        kept["additionalProperties"] = _types(schema["additionalProperties"], defs)
    if "properties" in schema:
        kept["properties"] = {name: _types(below, defs) for name, below in schema["properties"].items()}
    return kept


def _required(item: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    whole = defs["$defs"][item["$ref"].rpartition("/")[2]] if "$ref" in item else item
    return {"required": whole["required"]} if whole.get("required") else {}


def _type(schema: Mapping[str, Any]) -> Any:
    """Kubernetes' own schema allows null everywhere, and reads it as a field that is left out; only the `nullable` of a
    CustomResourceDefinition means a null that is stored."""
    named = schema.get("type", ())
    plain = named if isinstance(named, str) else next((each for each in named if each != "null"), None)
    return [plain, "null"] if schema.get("nullable") else plain


def _reached(part: Any, named: Mapping[str, Schema]) -> dict[str, Schema]:
    """The definitions that are referred to, by others as well."""
    found: dict[str, Schema] = {}
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name in named and name not in found:
                found[name] = named[name]
                waiting.append(named[name])
            waiting += part.values()
    return found
