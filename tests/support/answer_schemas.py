"""Validators of the documents that commands print and write, as anybody would make them: schemas find each other by
`$id`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from renderer.model.document_type import DocumentType
from support.rendered_plans import ROOT

SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "schemas").glob("*.json")}
_REGISTRY: Any = Registry().with_resources(
    [(schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()]
)


@cache
def validator(schema: str) -> Draft202012Validator:
    """By the name of a file of `schemas/`, without its ending."""
    body = SCHEMAS[schema]
    Draft202012Validator.check_schema(body)
    return Draft202012Validator(body, registry=_REGISTRY)


def validate(of: DocumentType, model: Any) -> None:
    """A model as the document that `-o json` makes of it. Raises `ValidationError`."""
    validator(of.schema).validate(json.loads(json.dumps(of.document(model))))
