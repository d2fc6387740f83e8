"""The YAML door: scalars as Go reads them, what is refused and where, and text that no reader can retype."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from support.examples import examples

from renderer.errors import Problems
from renderer.model.path import path_name, walk
from renderer.source_document import without_lines
from renderer.yaml_io import Document, dump, parse

# What sigs.k8s.io/yaml 1.6 answers, with which the API server and kubectl read; run side by side when this was written.
GO_SCALARS: list[tuple[str, Any]] = [
    ("1.10", 1.1),
    ("v1.10", "v1.10"),
    ("1.10.0", "1.10.0"),
    ("no", False),
    ("NO", False),
    ("nO", "nO"),
    ("y", True),
    ("Y", True),
    ("on", True),
    ("Off", False),
    ("true", True),
    ("tRUE", "tRUE"),
    ("~", None),
    ("null", None),
    ("nULL", "nULL"),
    ("", None),
    ("=", "="),
    ("0x10", 16),
    ("0X1f", 31),
    ("+0x1F", 31),
    ("-0b11", -3),
    ("0b11", 3),
    ("0b2", "0b2"),
    ("0o17", 15),
    ("0O17", 15),
    ("017", 15),
    ("08", 8.0),
    ("09.5", 9.5),
    ("00", 0),
    ("-0", 0),
    ("1e3", 1000.0),
    ("1E5", 100000.0),
    ("1e", "1e"),
    ("1e+", "1e+"),
    ("5319e7", 53190000000.0),
    ("1.", 1.0),
    (".5", 0.5),
    ("+.5", 0.5),
    (".5_0", 0.5),
    ("._5", "._5"),
    (".", "."),
    ("-.", "-."),
    ("1_000", 1000),
    ("1__0", 10),
    ("_1", "_1"),
    ("0x_f", 15),
    ("12:30:00", "12:30:00"),
    ("1:2", "1:2"),
    ("2001-01-01", "2001-01-01"),
    ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
    ("1,000", "1,000"),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616.0),
    ("+9223372036854775808", 9223372036854775808.0),
    ("-9223372036854775808", -9223372036854775808),
    ("-9223372036854775809", -9223372036854775809.0),
    ("0xffffffffffffffff", 18446744073709551615),
    ("0x10000000000000000", "0x10000000000000000"),
    ("-0x8000000000000001", "-0x8000000000000001"),
    ("0b" + "1" * 65, "0b" + "1" * 65),
    ("0o" + "7" * 30, "0o" + "7" * 30),
    ("0" + "7" * 24, 7.777777777777778e23),
    ("9" * 5000 + "x", "9" * 5000 + "x"),
    ("١", "١"),
    ("'1.10'", "1.10"),
    ('"no"', "no"),
    ("!!str 1.10", "1.10"),
    ("!!int '5'", 5),
    ("!!float 3", 3),
]

REFUSED: list[tuple[str, str, int | None, str]] = [
    ("key twice", "a: 1\nb:\n  c: 1\n  c: 2\n", 4, "duplicate key 'c'"),
    ("key twice after conversion", "true: 1\n'true': 2\n", 2, "duplicate key 'true'"),
    ("key is a fraction", "a: 1\n1.10: x\n", 2, "a key is the number 1.10, not a string"),
    ("key is null", "~: x\n", 1, "a key is null, not a string"),
    ("key is a list", "? [a]\n: 1\n", 1, "a key must be a scalar"),
    ("infinity", "a:\n  b: -.inf\n", 2, "-.inf is not a number in JSON"),
    ("not a number", "a: .NaN\n", 1, ".NaN is not a number in JSON"),
    ("too large a float", "a: 1e400\n", 1, "1e400 is not a number in JSON"),
    ("thousands of digits", f"a: {'9' * 5000}\n", 1, f"{'9' * 60}… is not a number in JSON"),
    ("unknown tag", "a: !vault x\n", 1, "the tag '!vault' is not supported"),
    ("the tag that is our own mark", "a: !<plain> x\n", 1, "the tag 'plain' is not supported"),
    ("our own mark on a mapping as a key", "? !<plain> {a: b}\n: 1\n", 1, "a key must be a scalar"),
    (
        "our own mark and a character",
        'a: !<plain> "x\\0y"\n',
        1,
        "contains NUL or half of a surrogate pair",
    ),
    ("too deep", "[" * 101 + "1" + "]" * 101, 1, "nested deeper than 100 levels"),
    ("binary", "a: 1\nb: !!binary aGk=\n", 2, "the tag 'tag:yaml.org,2002:binary' is not supported"),
    ("tag on a mapping", "a: !!set {x}\n", 1, "the tag 'tag:yaml.org,2002:set' is not supported"),
    ("tag that does not fit", "a: !!int x\n", 1, "'x' does not fit the tag 'tag:yaml.org,2002:int'"),
    ("alias to nothing", "a: 1\nb: *x\n", 2, "found undefined alias"),
    ("alias to itself", "a: &x [*x]\n", 1, "an alias expands too much or contains itself"),
    ("merge of a scalar", "a: 1\nb: {<<: 5}\n", 2, "'<<' requires a mapping or a list of mappings"),
    ("tab", "a:\n\tb: 1\n", 2, "while scanning for the next token; found character that cannot start any token"),
    ("control character", "ä: ö\nb: \x01\n", 2, "character U+0001 is not allowed in YAML"),
    ("escaped null", 'a: "\\0"\n', 1, "contains NUL or half of a surrogate pair"),
    (
        "escaped surrogate",
        'a: "\\ud800"\n',
        1,
        "while parsing a quoted scalar; found invalid Unicode character escape code",
    ),
    ("unclosed", "a: 'x\n", 2, "while scanning a quoted scalar; found unexpected end of stream"),
    ("second document", "a: 1\n---\nb: [\n", 4, "while parsing a flow node; did not find expected node content"),
    ("deep", "[" * 120 + "]" * 120, 1, "nested deeper than 100 levels"),
    ("deeper than libyaml goes", "[" * 90000, 1, "while increasing flow level; exceeded maximum nesting depth"),
]


@pytest.mark.parametrize(("text", "value"), GO_SCALARS, ids=[text[:20] for text, _ in GO_SCALARS])
def test_a_scalar_is_read_as_go_reads_it(text: str, value: Any) -> None:
    (document,) = parse(f"a: {text}\n", "f.yaml")
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value) or text.startswith("!!float")


@pytest.mark.parametrize(("text", "line", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_the_api_server_would_not_take_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(Problems) as caught:
        parse(text, "f.yaml")
    (found,) = caught.value.problems
    assert (found.reason, found.file, found.line, found.message) == ("InvalidYAML", "f.yaml", line, message)


def test_an_alias_bomb_ends_in_a_problem() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(Problems, match="an alias expands too much"):
        parse("\n".join(rows), "bomb.yaml")


def test_aliases_and_merges_are_read_as_what_they_stand_for() -> None:
    (document,) = parse("base: &b {x: 1, z: 2}\nall:\n- *b\n- {<<: *b, z: 3}\n- {<<: [{x: 9}, *b]}\n", "f")
    assert document.value["all"] == [{"x": 1, "z": 2}, {"x": 1, "z": 3}, {"x": 9, "z": 2}]


def test_text_is_the_same_tree_as_it_stands_in_the_file() -> None:
    (document,) = parse("a: 1.10\nb: no\nc:\nd: [0x10, 1e3]\ne: 'x'\n1.5.0: ~\n", "f")
    assert document.text == {"a": "1.10", "b": "no", "c": "", "d": ["0x10", "1e3"], "e": "x", "1.5.0": "~"}


def test_documents_know_their_lines_and_empty_ones_are_left_out() -> None:
    first, second = parse("\ufeff# note\na: 1\n---\n---\n# only a comment\n---\nb:\n- c: 1\n- c: 2\n", "f")
    assert (first.line, second.line) == (2, 7)
    assert second.line_of(("b", 1, "c")) == 9
    assert second.line_of(("b", 1, "missing", "deeper")) == 9
    assert second.line_of(("missing",)) == 7


def test_a_text_is_found_where_it_first_stands() -> None:
    (document,) = parse("# x\na: [y, 1.10]\nx: y\nlong: |\n  of\n  lines\n", "f")
    found = {text: document.line_with(text) for text in ("x", "y", "1.10", "of\nlines\n", "z")}
    assert found == {"x": 3, "y": 2, "1.10": 2, "of\nlines\n": 4, "z": None}
    assert without_lines({"x": "y"}, "f").line_with("x") is None


def test_a_path_is_written_as_people_write_it() -> None:
    assert path_name(("spec", "nodes", 2, "name")) == "spec.nodes[2].name"
    assert path_name(("metadata", "labels", "a/b.c")) == 'metadata.labels["a/b.c"]'
    assert path_name(()) == ""


def test_walk_gives_every_scalar_with_its_path() -> None:
    assert list(walk({"a": [1, {"b": None}], "c": "x", "d": {}})) == [
        (("a", 0), 1),
        (("a", 1, "b"), None),
        (("c",), "x"),
    ]


# ------------------------------------------------------------------------------------------------------------ writing

RETYPED = [
    "1.10", "no", "NO", "y", "n", "on", "Off", "true", "~", "null", "nil", "None", "", "=", "<<", "0x10", "0b1", "0o17",
    "017", "08", "1e3", "5319e7", "1_000", "12:30:00", "2001-01-01", "2001-01-01T00:00:00Z", ".5", "+.5", ".inf",
    "-.INF", ".nan", "1.", "+1", "-", "-1", "1,000", ".e1", "1e", "_1", "0x", "e3", "1 000",
    "-_", "._", "+._", "._e+5",
]  # fmt: skip


@pytest.mark.parametrize("text", RETYPED)
def test_what_a_reader_could_retype_stands_in_quotes(text: str) -> None:
    quoted = f'"{text}"' if text != "-" else "'-'"
    assert dump({"a": text}) == f"a: {quoted}\n"
    assert dump({text: "a"}) == f"{quoted}: a\n"
    assert dump([text]) == f"- {quoted}\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.5, True, None]}, "b: 1\na:\n- 1.5\n- true\n- null\n"),
        ({"a": "two\nlines"}, "a: |-\n  two\n  lines\n"),
        ({"a": "two\nlines\n"}, "a: |\n  two\n  lines\n"),
        ({"a": "trailing \nblank"}, 'a: "trailing \\nblank"\n'),
        ({"a": "a\u2028b"}, 'a: "a\\Lb"\n'),
        ({"a": "é " * 200}, "a: '" + "é " * 200 + "'\n"),
        ({"a": 2.0, "b": -0.0, "c": 1e22}, "a: 2\nb: 0\nc: 1.0e+22\n"),
        ({"a": {}, "b": []}, "a: {}\nb: []\n"),
    ],
)
def test_one_way_to_write_each_value(value: Any, text: str) -> None:
    assert dump(value) == text


def test_nothing_is_written_as_an_alias() -> None:
    shared = {"x": [1]}
    assert dump({"a": shared, "b": shared}) == "a:\n  x:\n  - 1\nb:\n  x:\n  - 1\n"


@pytest.mark.parametrize(
    "value",
    [b"x", date(2020, 1, 1), {1, 2}, object(), {1: "x"}, {None: "x"}, float("inf"), [float("nan")]],
    ids=lambda value: repr(value).partition(" at ")[0],
)
def test_what_json_does_not_have_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError):
        dump(value)


# A second opinion on Go's rules, in the pure Python reader: written from its source, not from the door's.
class GoLoader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - the name is PyYAML's


for tag, rule in {
    "null": r"~|null|Null|NULL|",
    "bool": r"(?i:y|yes|n|no|true|false|on|off)",
    "int": r"[-+]?([0-9][0-9_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[bB]_*[01][01_]*|0[oO]_*[0-7][0-7_]*)",
    "float": r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9][0-9_]*)?|[-+]?\.(?i:inf)|\.(?i:nan)",
    "merge": r"<<",
}.items():
    GoLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{rule})\Z"), None)

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NASTY = st.sampled_from(
    [*RETYPED, "\u2028", "\u0085", "\ufeff", "\U0001f680", "a: b", "- a", "# a", "{{ x }}", "---", "&"]
)
LIKE_NUMBERS = st.text("0123456789abcdefoxXOBeE+-._:~ynNulTrue=<Z, ", max_size=12)
TEXT = st.one_of(ANY_TEXT, NASTY, LIKE_NUMBERS, st.builds(lambda a, b: a + b, NASTY, ANY_TEXT))


@settings(max_examples=examples(400), deadline=None)
@given(TEXT)
@example("\u0085x\u2028y\u2029")
@example("\ufeff")
@example("\x7f\x80\ufffe\uffff")
@example("a\r\nb")
@example("x" * 1500)
def test_any_text_survives_every_position_and_every_reader(text: str) -> None:
    value = {"value": text, text: ["key", {"deep": {text: text}}], "list": [text, [text]]}
    written = dump(value)
    assert "\r" not in written
    assert parse(written, "f")[0].value == value
    assert yaml.load(written, Loader=GoLoader) == value
    assert yaml.safe_load(written) == value
    assert YAML(typ="safe", pure=True).load(written) == value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=examples(300), deadline=None)
@given(JSON)
def test_any_json_value_is_read_back(value: Any) -> None:
    documents = parse(dump(value), "f")
    assert (documents[0].value if documents else None) == value


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=60) | st.text("[]{}:,-#&*!|>'\"%@` \n\t?a1", max_size=60))
def test_any_text_at_all_is_read_or_refused(text: str) -> None:
    documents: tuple[Document, ...] = ()
    with suppress(Problems):
        documents = parse(text, "f")
    for document in documents:
        assert 1 <= document.line <= len(text) + 1
        dump(document.value)
