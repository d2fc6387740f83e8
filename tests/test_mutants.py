"""The changes of the mutation run are changes, and they are where they say."""

from __future__ import annotations

import ast

import pytest
from mutation.__main__ import CORE, ROOT
from mutation.mutants import mutants_of


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x = a == b", ["x = a != b"]),
        ("x = a < b", ["x = a <= b"]),
        ("x = a and b", ["x = a or b"]),
        ("x = True", ["x = False"]),
        ("x = 1", ["x = 2"]),
        ("x = b if a else c", ["x = b if not a else c"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("x = 'a'", []),
    ],
)
def test_each_change_is_made_once(text: str, changed: list[str]) -> None:
    assert [mutant.source for mutant in mutants_of("m", text)] == changed


def test_only_the_named_line_differs() -> None:
    text = "a = 1\nb = c < d\n"
    assert [(mutant.line, mutant.source) for mutant in mutants_of("m", text)] == [
        (1, "a = 2\nb = c < d"),
        (2, "a = 1\nb = c <= d"),
    ]


@pytest.mark.parametrize("module", CORE)
def test_the_core_and_its_tests_are_there(module: str) -> None:
    ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    assert [name for name in CORE[module] if not (ROOT / "tests" / name).exists()] == []
