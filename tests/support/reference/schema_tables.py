"""A JSON schema as tables: one section for each definition that is an object, one row for each of its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from renderer.model.document_type import COMMON, COMPARISON_REPORT, KINDS, PHASE, RENDERED_CLUSTERS, RENDERED_PLAN
from support.reference.markdown import code, codes, link, section, table
from support.reference.sources import schema

Schema = Mapping[str, Any]

_HEAD = ("Key", "Type", "Required", "Meaning")


def sections(
    schema: Schema,
    *,
    root: str = "",
    prefix: str = "",
    level: int = 2,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The schema itself under the name `root`, then its definitions in the order of the file. `prefix` tells them from
    those of another schema on the page; `elsewhere` are definitions that another page has, by name."""
    whole = _Tables(schema, prefix, elsewhere)
    named = [(root, schema)] if root and "$ref" not in schema else []
    named += [(f"{prefix}{name}", found) for name, found in schema.get("$defs", {}).items() if whole.has(name)]
    return "\n\n".join(filter(None, (whole.section(name, found, level) for name, found in named)))


def _is_object(schema: Schema) -> bool:
    """Whether there are keys to tell; of a map to plain values its type says all."""
    other = schema.get("additionalProperties")
    return bool(schema.get("properties") or (isinstance(other, Mapping) and any(map(_is_told, _forms(other)))))


def _is_told(schema: Schema) -> bool:
    return _is_object(schema) or isinstance(schema.get("items"), Mapping) or "description" in schema


class _Tables:
    def __init__(self, schema: Schema, prefix: str, elsewhere: Mapping[str, str]) -> None:
        self._definitions: Mapping[str, Schema] = schema.get("$defs", {})
        self._prefix = prefix
        self._elsewhere = elsewhere

    def has(self, name: str) -> bool:
        """Whether the definition has a section here."""
        return name not in self._elsewhere and not self.is_inline(name)

    def is_inline(self, name: str) -> bool:
        """Whether the definition is said in a word where it is used."""
        found = self._definitions.get(name)
        return found is not None and not any(map(_is_object, _forms(found)))

    def section(self, name: str, schema: Schema, level: int) -> str:
        forms = [form for form in _forms(schema) if _is_object(form)]
        rows = [row for form in forms for row in self._rows("", form)]
        also = [self.type(form) for form in _forms(schema) if not _is_object(form) and "$ref" not in form]
        alone = f"Or, in short: {', '.join(also)}." if also and rows else ""
        described = str(schema.get("description", ""))
        return section(name, described, alone, table(_HEAD, rows), level=level) if rows else ""

    def _rows(self, prefix: str, schema: Schema) -> Iterator[tuple[str, str, str, str]]:
        required = schema.get("required", ())
        for key, found in schema.get("properties", {}).items():
            path = f"{prefix}{key}"
            yield code(path), self.type(found), "yes" if key in required else "", self._meaning(found)
            yield from self._below(path, found)
        other = schema.get("additionalProperties")
        if isinstance(other, Mapping):
            path = f"{prefix}<name>"
            if _is_object(other) or self._meaning(other):
                yield code(path), self.type(other), "", self._meaning(other)
            yield from self._below(path, other)

    def _below(self, path: str, schema: Schema | bool) -> Iterator[tuple[str, str, str, str]]:
        """The keys of an object that is declared in place, of a list's items, of each form that a value may have."""
        for form in _forms(schema):
            if "$ref" in form:
                continue
            if _is_object(form):
                yield from self._rows(f"{path}.", form)
            elif isinstance(form.get("items"), Mapping):
                yield from self._below(f"{path}[]", form["items"])

    def type(self, schema: Schema | bool) -> str:
        if not isinstance(schema, Mapping):
            return "any value"
        if ref := schema.get("$ref"):
            return self._referred(str(ref))
        if "const" in schema:
            return code(json.dumps(schema["const"]))
        if "enum" in schema:
            return codes(schema["enum"])
        if forms := [form for form in _forms(schema) if form is not schema and (set(form) - {"required"})]:
            return " or ".join(dict.fromkeys(map(self.type, forms)))
        if isinstance(schema.get("items"), Mapping):
            return f"list of {self.type(schema['items'])}"
        if isinstance(schema.get("additionalProperties"), Mapping):
            return f"map to {self.type(schema['additionalProperties'])}"
        return self._plain(schema)

    def _referred(self, ref: str) -> str:
        file, _, name = ref.partition("#/$defs/")
        if file:
            return _other(file)._referred(f"#/$defs/{name}")
        if self.is_inline(name):
            return self.type(self._definitions[name])
        other = self._elsewhere.get(name)
        return link(name, f"{self._prefix}{name}", file=other or "")

    def _plain(self, schema: Schema) -> str:
        if "properties" in schema:
            return "object"
        types = schema.get("type", "any value")
        return " or ".join([types] if isinstance(types, str) else types)

    def _meaning(self, schema: Schema | bool) -> str:
        if not isinstance(schema, Mapping):
            return ""
        own = str(schema.get("description", ""))
        if not own and (ref := str(schema.get("$ref", ""))).startswith("#/$defs/"):
            own = str(self._definitions[ref.removeprefix("#/$defs/")].get("description", ""))
        return " ".join(filter(None, (own, *self._limits(schema))))

    def _limits(self, schema: Schema) -> Iterator[str]:
        if "default" in schema:
            yield f"Default: {code(json.dumps(schema['default']))}."
        if "minimum" in schema or "maximum" in schema:
            low, high = schema.get("minimum"), schema.get("maximum")
            yield f"At least {low}." if high is None else f"At most {high}." if low is None else f"{low} to {high}."
        if "pattern" in schema:
            yield f"Form: {code(schema['pattern'])}."


OTHER_SCHEMAS = {
    PHASE.schema_id: ("phase", "probe-language.md", ""),
    KINDS.schema_id: ("kinds", "documents.md", "kinds."),
    COMMON: ("common", "json.md", "common."),
    RENDERED_CLUSTERS.schema_id: ("rendered-clusters", "documents.md", "rendered-clusters."),
    RENDERED_PLAN.schema_id: ("rendered-plan", "documents.md", "rendered-plan."),
    COMPARISON_REPORT.schema_id: ("compare", "json.md", "compare."),
}
"""Schemas of which others use definitions, by `$id`: the file, the page that has them, how their names begin there."""


def _other(schema_id: str) -> _Tables:
    file, page, prefix = OTHER_SCHEMAS[schema_id]
    whole = schema(file)
    return _Tables(whole, prefix, dict.fromkeys(whole["$defs"], page))


def _forms(schema: Schema | bool) -> list[Schema]:
    """The alternatives of a value; itself where there are none; nothing of `true`, which takes any."""
    if not isinstance(schema, Mapping):
        return []
    for word in ("oneOf", "anyOf"):
        forms = schema.get(word, ())
        if any(set(form) - {"required"} for form in forms):
            return [form for form in forms if isinstance(form, Mapping)]
    return [schema]
