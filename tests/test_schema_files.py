"""Each file of `schemas/` says what it is about: its `$id`, the apiVersion and kind that it requires, and every key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.rendered_plans import ROOT

from renderer.model.document_type import ALL, COMMON, DocumentType
from renderer.validation import load

FILES = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "schemas").glob("*.json")}
OTHERS = {"release.json", "kubeconfig.json", "install-values.json", "log-line.json", "log-record.json"}
"""Of documents that keep the form that others read: Harvester's, kubectl's, helm's, and those who collect logs."""


def keys(schema: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every property that is declared anywhere in a schema, with its place."""
    if isinstance(schema, list):
        for number, part in enumerate(schema):
            yield from keys(part, f"{at}[{number}]")
    if not isinstance(schema, dict):
        return
    for word, part in schema.items():
        if word == "properties" and not at.endswith((".if", ".then", ".else")):
            yield from ((f"{at}.{name}", found) for name, found in part.items())
        yield from keys(part, f"{at}.{word}")


@pytest.mark.parametrize("name", FILES)
def test_every_key_has_a_description(name: str) -> None:
    silent = [at for at, schema in keys(FILES[name]) if not isinstance(schema, dict) or not schema.get("description")]
    assert silent == []


@pytest.mark.parametrize("name", FILES)
def test_a_description_is_a_sentence(name: str) -> None:
    texts = [(at, schema["description"]) for at, schema in keys(FILES[name])]
    assert [(at, text) for at, text in texts if not (text[0].isupper() or text[0].islower()) or text[-1] != "."] == []


def test_every_key_of_the_phase_language_says_what_is_taken_where_it_is_left_out() -> None:
    """A key that may be left out has a default, or is one of several of which one is expected."""
    schema = FILES["phase.json"]
    required = {key for at, part in objects(schema) for key in part.get("required", ())}
    alternatives = {"object", "manifest", "every", "cluster", "value", "absent", "enter", "steps", "leave"}
    predicates = {
        *schema["$defs"]["predicate"]["properties"],
        *schema["$defs"]["predicate"]["properties"]["field"]["properties"],
    }
    silent = {
        at
        for at, part in keys(schema)
        if (key := at.rpartition(".")[2]) not in required | alternatives | predicates
        and "Default: " not in part["description"]
        and key != "noGate"
    }
    assert silent == set()


def objects(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, dict):
        yield "", schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def test_there_is_a_schema_for_each_type_and_none_besides() -> None:
    assert {f"{item.schema}.json" for item in ALL} | {*OTHERS, "common.json"} == set(FILES)
    assert len({(item.api_version, item.kind) for item in ALL}) == len(ALL)


def test_an_id_names_the_type() -> None:
    ids = {name: schema["$id"] for name, schema in FILES.items()}
    assert len(set(ids.values())) == len(ids)
    assert ids["common.json"] == COMMON
    assert all(
        ids[f"{item.schema}.json"] in {other.schema_id for other in ALL if other.schema == item.schema} for item in ALL
    )


@pytest.mark.parametrize("of", ALL, ids=lambda of: of.kind)
def test_a_document_must_say_its_type(of: DocumentType) -> None:
    schema = load(f"{of.schema}.json")
    documents = [part for part in [schema, *schema.get("$defs", {}).values()] if _requires(part, of)]
    assert len(documents) == 1


def _requires(schema: Any, of: DocumentType) -> bool:
    consts = {key: schema.get("properties", {}).get(key, {}).get("const") for key in ("apiVersion", "kind")}
    named = consts == {"apiVersion": of.api_version, "kind": of.kind}
    return named and {"apiVersion", "kind"} <= set(schema["required"])
