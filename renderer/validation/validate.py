"""Validates a document by one of the files in `schemas/`, or a part of it by a part of a schema.

jsonschema is imported only when a document does not fit, to explain why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model import document_type
from renderer.model.document_type import COMMON, DocumentType
from renderer.model.path import ABSENT, Path, look_up, path_name
from renderer.redaction import packaged_redactor
from renderer.resources import packaged
from renderer.validation.fit import fits, is_known, map_key, regex, repeated
from renderer.validation.messages import Finding, explain, found
from renderer.validation.nulls import Schema
from renderer.yaml_io import Document

_OTHER = re.compile(r'"\$ref":\s*"(urn:[^"#]+)#')
_FILES = {COMMON: "common.json", **{item.schema_id: f"{item.schema}.json" for item in document_type.ALL}}
"""The file of each schema that another one may refer to, by its `$id`."""


class Located(Protocol):
    """A value, and where its parts stand."""

    @property
    def body(self) -> Any: ...
    @property
    def file(self) -> str: ...
    def line_of(self, path: Path = ()) -> int | None: ...


def problems(source: Located, schema_name: str) -> list[Problem]:
    """All that is wrong with one document, by line. Empty if it fits.

    `schema_name` is the path of a JSON Schema below `schemas/`: `facts.json`, `built/upgradeplan.json`.
    """
    schema = load(schema_name)
    return schema_problems(source, schema) if _is_known(schema_name) else explained(source, schema)


def part_problems(source: Located, schema_name: str, part: str) -> list[Problem]:
    """The same for a part of a document, by one of the `$defs` of a schema."""
    schema = load(schema_name)
    return schema_problems(source, {"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]})


def schema_problems(source: Located, schema: Schema) -> list[Problem]:
    """The same by a schema itself, which has only words that `fits` knows."""
    return [] if fits(source.body, schema, schema) else explained(source, schema)


def explained(source: Located, schema: Schema) -> list[Problem]:
    """The errors that jsonschema finds, in our words and by line."""
    errors = _validator_class()(schema).iter_errors(source.body)
    findings = dict.fromkeys(finding for error in errors for finding in explain(error))
    found = [
        Problem(
            reason=finding.reason,
            message=_message(finding, source.body),
            file=source.file,
            line=source.line_of(finding.path),
            field=path_name(finding.path) or None,
            remedy=finding.remedy,
        )
        for finding in findings
    ]
    return sorted(found, key=lambda problem: (problem.line or 0, problem.field or "", problem.message))


def _message(finding: Finding, body: Any) -> str:
    """The message without a value that is secret where it stands."""
    value = look_up(body, finding.path)
    if value is ABSENT or not isinstance(body, Mapping):
        return finding.message
    shown = packaged_redactor().field(str(body.get("apiVersion")), str(body.get("kind")), finding.path, value)
    return finding.message if shown == value else finding.message.replace(found(value), "the value")


def document_problems(document: Document, of: DocumentType) -> list[Problem]:
    """The same for a whole document of our own."""
    return whole_problems(document, f"{of.schema}.json")


def whole_problems(document: Document, schema_name: str) -> list[Problem]:
    """The same for a whole document, which need not say what it is."""
    return problems(_Whole(document=document), schema_name)


@frozen
class _Whole:
    document: Document

    @property
    def body(self) -> Any:
        return self.document.value

    @property
    def file(self) -> str:
        return self.document.file

    def line_of(self, path: Path = ()) -> int | None:
        return self.document.line_of(path) or None


@lru_cache
def load(schema_name: str) -> Schema:
    """A schema, read once."""
    return _bundled(packaged("schemas").joinpath(schema_name).read_text(encoding="utf-8"))


def _bundled(text: str) -> Schema:
    """A schema that refers to a part of another one, by its `$id`, is given the other's `$defs` as its own."""
    others = sorted(set(_OTHER.findall(text)))
    schema: Schema = json.loads(_OTHER.sub('"$ref": "#', text))
    for other in others:
        own, borrowed = schema.get("$defs", {}), load(_FILES[other])["$defs"]
        if clash := [name for name in own if name in borrowed and own[name] != borrowed[name]]:
            raise ValueError(f"$defs {clash} mean something else in {other}")
        schema["$defs"] = {**borrowed, **own}
    return schema


@lru_cache
def _is_known(schema_name: str) -> bool:
    return is_known(load(schema_name))


@lru_cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator, ValidationError, validators

    def pattern(_: Any, expected: str, value: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(value, str) and not regex(expected).search(value):
            yield ValidationError("pattern")

    def list_map_keys(_: Any, names: list[str], value: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(value, list) and repeated(value, map_key(names)) is not None:
            yield ValidationError("list map keys")

    rules = {"pattern": pattern, "x-kubernetes-list-map-keys": list_map_keys}
    return validators.extend(Draft202012Validator, rules)  # type: ignore[no-untyped-call]
