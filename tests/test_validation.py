"""The schema door: the answer of the API server and of jsonschema, in our words, and without loading jsonschema."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.built_schemas import translated
from support.examples import examples
from support.structural import from_definition

from renderer.model.document_type import COMMON, FACTS
from renderer.source_document import SourceDocument, without_lines
from renderer.validation import document_problems, explained, load, problems, schema_problems, validate
from renderer.validation.fit import fits, is_known, regex
from renderer.validation.nulls import without_nulls
from renderer.yaml_io import parse
from schemas import served

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "schemas"
OBJECTS = Path(__file__).parent / "schemas"
INPUTS = Path(__file__).parent / "data" / "inputs"
JSON_SCHEMAS = sorted(path.name for path in SCHEMAS.glob("*.json"))
DEFINITIONS = {path.name: translated(path) for path in sorted((SCHEMAS / "crds").rglob("*.yaml"))}
PLAN = "built/upgradeplan.json"


def sources(file: Path) -> Iterator[SourceDocument]:
    for document in parse(file.read_text(encoding="utf-8"), file.name):
        yield SourceDocument(body=document.value, document=document)


def by_text(text: str, schema: dict[str, Any]) -> list[str]:
    """What is said of a document by a schema, a line each, as `line field: message -> remedy`."""
    (document,) = parse(text, "f")
    found = explained(SourceDocument(body=document.value, document=document), schema)
    return [f"{p.line} {p.field or ''}: {p.message} -> {p.remedy}" for p in found]


# ------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", JSON_SCHEMAS)
def test_a_schema_of_ours_is_sound_and_quick(name: str) -> None:
    schema = load(name)
    Draft202012Validator.check_schema(schema)
    assert is_known(schema), "fits() does not know all its words, so jsonschema is loaded for each document"


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_definition_is_translated(name: str) -> None:
    Draft202012Validator.check_schema(DEFINITIONS[name])
    assert is_known(DEFINITIONS[name])


def definition_of(body: Mapping[str, Any]) -> dict[str, Any]:
    group = body["apiVersion"].rpartition("/")[0]
    found = [schema for schema in DEFINITIONS.values() if schema["properties"]["kind"] == {"const": body["kind"]}]
    return next(schema for schema in found if schema["properties"]["apiVersion"]["const"].startswith(f"{group}/"))


@pytest.mark.parametrize("file", sorted((OBJECTS / "good").glob("*.yaml")), ids=lambda file: file.stem)
def test_good_objects_fit(file: Path) -> None:
    assert [
        problem for source in sources(file) for problem in schema_problems(source, definition_of(source.body))
    ] == []


@pytest.mark.parametrize("file", sorted((OBJECTS / "bad").glob("*.yaml")), ids=lambda file: file.stem)
def test_bad_objects_are_refused_for_the_fields_that_the_api_server_names(file: Path) -> None:
    (source,) = sources(file)
    lines = file.read_text(encoding="utf-8").splitlines()
    refused = {line.removeprefix("# refused: ") for line in lines if line.startswith("# refused: ")}
    assert {problem.field for problem in schema_problems(source, definition_of(source.body))} == refused


(RULES,) = parse((OBJECTS / "rules.yaml").read_text(encoding="utf-8"), "rules.yaml")


@pytest.mark.parametrize("case", [case for case in RULES.value if "old" not in case], ids=lambda case: case["what"])
def test_rules_say_what_they_say_on_creation(case: dict[str, Any]) -> None:
    assert [problem.message for problem in problems(plan({"spec": case["new"]}), PLAN)] == case["messages"]


def plan(parts: dict[str, Any]) -> SourceDocument:
    body = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "p"},
        **parts,
    }
    return SourceDocument(body=body, document=without_lines(body, "plan.yaml"))


# ------------------------------------------------------------------------------------------- asked of the API server

POOL: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1,
    1.0,
    1.5,
    "",
    "a",
    "node-a",
    "2026-11-28T09:30:00Z",
    "2026-11-28",
    "True",
]
POOL += [
    "sha256:" + "0" * 64,
    "0" * 12,
    "Started",
    "/spec/x",
    "2026-11-28T09:30:00Z 3s",
    [],
    ["a"],
    ["a", "a"],
    [None],
    {},
]


def like(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that nearly always fit: the right keys, and now and then a wrong value or a stranger."""
    rightly = st.sampled_from([value for value in POOL if fits(value, schema, schema)] or POOL)
    if "properties" in schema:
        parts = {name: like(part) for name, part in schema["properties"].items()}
        required = {name: parts.pop(name) for name in schema.get("required", ())}
        rightly = st.fixed_dictionaries(required, optional=parts)
    elif isinstance(schema.get("additionalProperties"), dict):
        rightly = st.dictionaries(st.sampled_from(["a", "b"]), like(schema["additionalProperties"]), max_size=2)
    elif "items" in schema:
        rightly = st.lists(like(schema["items"]), max_size=2)
    wrongly = st.sampled_from(POOL)
    return st.integers(0, 60).flatmap(lambda dice: wrongly if dice == 60 else rightly)


PARTS = load(PLAN)["properties"]
PLANS = st.fixed_dictionaries({"spec": like(PARTS["spec"])}, optional={"status": like(PARTS["status"])})


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(parts=PLANS)
def test_the_api_server_and_we_refuse_the_same_plans(clean_control_plane: ControlPlane, parts: dict[str, Any]) -> None:
    source = plan(without_nulls(parts, load(PLAN)))
    refused = list(served.refusals(clean_control_plane.api, plan(parts).body))
    assert bool(problems(source, PLAN)) == bool(refused), refused


# -------------------------------------------------------------------------------------------------- fits, or not


def _keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {}) if isinstance(schema.get("properties"), dict) else ()
        for part in schema.values():
            yield from _keys(part)


ALL = {name: load(name) for name in [*JSON_SCHEMAS, PLAN]}
VALIDATORS = {name: Draft202012Validator(schema) for name, schema in ALL.items()}
NAMES = sorted({key for schema in ALL.values() for key in _keys(schema)})
JSON = st.recursive(
    st.sampled_from(POOL) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(ALL)), st.data())
def test_fits_answers_as_jsonschema_does(name: str, data: st.DataObject) -> None:
    schema = ALL[name]
    value = data.draw(JSON | (like(schema["properties"]["status"]) if name == PLAN else JSON))
    assert fits(value, schema, schema) == VALIDATORS[name].is_valid(value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"not": {"type": "string"}}, [1, None], ["a"]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 5}}, ["ab", 5], ["a", 4]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, ["ab", 1], ["a"]),
        ({"oneOf": [{"minimum": 1}, {"type": "number"}]}, [0.5, "x"], [2]),
        ({"enum": [1, "a", None]}, [1, 1.0, "a", None], [True, "b", 0]),
        ({"const": True}, [True], [1, "true"]),
        ({"type": "integer"}, [1, 1.0], [1.5, True, "1"]),
        ({"uniqueItems": True}, [[1, True], [{"a": 1}, {"a": 2}]], [[1, 1.0], [{"a": [1]}, {"a": [1]}]]),
        ({"uniqueItems": False}, [[1, 1]], []),
        ({"propertyNames": {"pattern": "^a"}}, [{"ab": 1}], [{"b": 1}]),
        ({"dependentRequired": {"a": ["b"]}}, [{"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"minProperties": 1, "maxProperties": 2}, [{"a": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
        ({"minItems": 1, "maxItems": 2}, [[1]], [[], [1, 2, 3]]),
        ({"minLength": 1, "maxLength": 2}, ["a", "\U0001f680\U0001f680"], ["", "abc"]),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, [None], [1]),
        (
            {"x-kubernetes-list-map-keys": ["type"]},
            [[{"type": 1}, {"type": 2}], [1]],
            [[{"type": 1, "a": 1}, {"type": 1}]],
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_word_means_what_it_means_in_json_schema(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    assert is_known(schema)
    assert [fits(value, schema, schema) for value in (*good, *bad)] == [True] * len(good) + [False] * len(bad)
    said = [
        explained(SourceDocument(body=value, document=without_lines(value, "f")), schema) for value in (*good, *bad)
    ]
    assert [found == [] for found in said] == [True] * len(good) + [False] * len(bad)


def test_an_unknown_word_is_left_to_jsonschema() -> None:
    assert not is_known({"properties": {"a": {"items": {"multipleOf": 2}}}})
    assert by_text("a: [2, 3]\n", {"properties": {"a": {"items": {"multipleOf": 2}}}}) == [
        "1 a[1]: 3 breaks the rule multipleOf: 2 -> correct the value"
    ]


def test_a_pattern_means_what_it_means_to_go() -> None:
    assert regex("^a$").search("a")
    assert not regex("^a$").search("a\n")
    assert not regex(r"^\d$").search("١")
    assert regex(r"^(a$|\$)").search("$")


# --------------------------------------------------------------------------------------------------- translation


def definition(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing"},
            "versions": [
                {"name": "v0", "storage": False},
                {
                    "name": "v1",
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
                },
            ],
        }
    }


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"type": "string", "nullable": True, "enum": ["a"]}, ["a", None], ["b"]),
        ({"x-kubernetes-int-or-string": True}, [1, "1"], [1.5, None, True]),
        ({"type": "object"}, [{}], [{"a": 1}, None]),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [{"a": 1}], [[]]),
        ({"type": "object", "additionalProperties": {"type": "string"}}, [{"a": "b"}], [{"a": 1}]),
        ({"type": "object", "additionalProperties": True}, [{"a": 1}], ["a"]),
        ({"nullable": True, "x-kubernetes-preserve-unknown-fields": True}, [1, None, {"a": []}], []),
        ({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}, [["a"]], [["a", "a"]]),
        ({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}}, [["a", "a"]], [[1]]),
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "properties": {"type": {"type": "string"}}},
            },
            [[{"type": "a"}, {"type": "b"}]],
            [[{"type": "a"}, {"type": "a"}]],
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}],
            [{}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"nome": "a"}}],
        ),
        ({"type": "string", "format": "date-time"}, ["2026-11-28T09:30:00Z"], ["2026-11-28", "now"]),
        ({"type": "integer", "format": "int64"}, [2**40], ["1"]),
        ({"type": "string", "description": "x", "default": "a", "pattern": "^a"}, ["a"], ["b"]),
    ],
    ids=str,
)
def test_a_structural_schema_is_translated(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    translated = from_definition(definition({"x": schema}))
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    answers = [fits({**thing, "x": value}, translated, translated) for value in (*good, *bad)]
    assert answers == [True] * len(good) + [False] * len(bad)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "patternProperties": {}},
        {"type": "object", "x-kubernetes-validations": [{"rule": "self.a > 1", "message": "x"}]},
        {"type": "object", "x-kubernetes-validations": [{"rule": "has(self.a) && has(self.b)", "message": "x"}]},
    ],
    ids=str,
)
def test_what_cannot_be_translated_is_not_ignored(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is not translated"):
        from_definition(definition({"x": schema}))


def test_a_key_without_value_counts_as_left_out() -> None:
    given_parts = {
        "spec": {"version": None, "image": "a", "stranger": None},
        "status": {"borrowed": [{"value": None}, None]},
    }
    assert without_nulls(given_parts, load(PLAN)) == {
        "spec": {"image": "a", "stranger": None},
        "status": {"borrowed": [{"value": None}, None]},
    }


# ------------------------------------------------------------------------------------------------------- messages

STEP: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z]", "x-remedy": "write it UpperCamelCase"},
        "when": {"oneOf": [{"required": ["object"]}, {"required": ["manifest"]}]},
        "gate": {"anyOf": [{"type": "string"}, {"required": ["path"], "properties": {"path": {"type": "string"}}}]},
        "kind": {"const": "Job"},
        "is": {"oneOf": [{"type": "integer"}, {"enum": [1, 2]}]},
        "labels": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "maxProperties": 1},
        "count": {"type": "integer", "maximum": 3},
        "mark": {"not": {"const": "x"}, "x-message": "x is taken"},
    },
    "dependentRequired": {"count": ["kind"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", ["1 name: is missing -> add 'name'"]),
        ("\nnme: A", ["2 nme: unknown field 'nme'; did you mean 'name'? -> correct the name; known fields: name, "
                      "when, gate, kind, is, labels, count, mark"]),
        ("name: step", ["1 name: 'step' does not match ^[A-Z] -> write it UpperCamelCase"]),
        ("name: A\nwhen: {}", ["2 when: one of 'object', 'manifest' is missing -> add one of 'object', 'manifest'"]),
        ("name: A\nwhen: {object: 1, manifest: 2}",
         ["2 when: only one of 'object', 'manifest' may be given -> keep one of them"]),
        ("name: A\ngate: {}", ["2 gate.path: is missing -> add 'path'"]),
        ("name: A\ngate: {path: 1}",
         ["2 gate.path: 1 is not a string -> put the value in quotes; YAML read it as a number"]),
        ("name: A\nkind: Jobs", ["2 kind: 'Jobs' is not Job; did you mean 'Job'? -> write Job"]),
        ("name: A\nis: 1", ["2 is: 1 matches more than one of the allowed forms -> use one form"]),
        ("name: A\nlabels: {B: 1}", ["2 labels.B: 'B' does not match ^[a-z]+$ -> correct the value"]),
        ("name: A\nlabels: {a: 1, b: 1}", ["2 labels: has 2 keys, expected at most 1 -> make it shorter"]),
        ("name: A\ncount: 4", ["1 kind: is missing; 'count' requires it -> add 'kind', or remove 'count'",
                               "2 count: 4 is more than 3 -> write a number of at most 3"]),
        ("name: A\nmark: x", ["2 mark: x is taken -> correct the value"]),
        ("name: [A]\nlabels: []", ["1 name: a list is not a string -> write one plain value",
                                   "2 labels: a list is not a mapping -> write it as key: value lines"]),
        ("name: true", ["1 name: true is not a string -> put the value in quotes; YAML read it as true"]),
        (f"name: {'a' * 70}", [f"1 name: '{'a' * 60}…' does not match ^[A-Z] -> write it UpperCamelCase"]),
        ("- a", ["1 : a list is not a mapping -> write it as key: value lines"]),
    ],
)  # fmt: skip
def test_messages_say_found_and_expected_and_the_remedy(text: str, said: list[str]) -> None:
    assert by_text(text, STEP) == said


def test_a_document_of_ours_is_judged_by_the_schema_of_that_name() -> None:
    head = "apiVersion: upgradeplan/v1\nkind: Facts\n"
    (document,) = parse(f"{head}facts:\n  kublet: {{}}\n", "facts.yaml")
    found = document_problems(document, FACTS)
    assert [(problem.file, problem.line, problem.field) for problem in found] == [("facts.yaml", 4, "facts.kublet")]
    assert document_problems(parse(f"{head}facts: {{}}\n", "facts.yaml")[0], FACTS) == []


def test_schemas_may_refer_to_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"items": {{"$ref": "{COMMON}#/$defs/x"}}, "$defs": {{"own": true}}}}')
    (tmp_path / "common.json").write_text('{"$defs": {"x": {"$ref": "#/$defs/z"}, "z": {"type": "null"}}}')
    (tmp_path / "c.json").write_text(f'{{"items": {{"$ref": "{COMMON}#/$defs/x"}}, "$defs": {{"z": false}}}}')
    monkeypatch.setattr(validate, "packaged", lambda _: tmp_path)
    load.cache_clear()
    try:
        assert load("a.json")["items"] == {"$ref": "#/$defs/x"}
        assert fits([None], load("a.json"), load("a.json"))
        assert not fits([1], load("a.json"), load("a.json"))
        with pytest.raises(ValueError, match="something else in urn:upgradeplan:"):
            load("c.json")
    finally:
        load.cache_clear()


def test_jsonschema_is_loaded_only_to_explain() -> None:
    code = """
import sys
from renderer.files.inputs import read_inputs
from renderer.errors import Problems
read_inputs([sys.argv[1]])
dear = {"jsonschema", "difflib", "urllib.request", "ssl", "pycdlib", "importlib.resources", "kubernetes"}
print(sorted(dear & set(sys.modules)))
try:
    read_inputs([sys.argv[2]])
except Problems:
    print("jsonschema" in sys.modules)
"""
    folders = [str(INPUTS / "good/one-folder"), str(INPUTS / "bad/version-is-a-float")]
    run = subprocess.run([sys.executable, "-c", code, *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\nTrue\n"
