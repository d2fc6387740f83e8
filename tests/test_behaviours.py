"""What the upgrade must do is listed in behaviours.yaml, and each line names a test that is there.

Whoever takes such a test away, or gives it another name, hears of it here.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
from support.source_code import modules_of_tests

from renderer.yaml_io import parse

pytestmark = pytest.mark.lane("our own code")

TESTS = Path(__file__).parent
BEHAVIOURS = parse((TESTS / "behaviours.yaml").read_text(encoding="utf-8"), "behaviours.yaml")[0].value


@functools.cache
def names_in(file: str) -> frozenset[str]:
    tree = modules_of_tests()[f"tests/{file}"]
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("place", [item["shown by"] for item in BEHAVIOURS])
def test_it_is_shown(place: str) -> None:
    file, _, name = place.partition("::")
    assert (TESTS / file).is_file()
    assert not name or name in names_in(file)


def test_each_behaviour_is_a_sentence_of_its_own() -> None:
    facts = [item["fact"] for item in BEHAVIOURS]
    assert len(facts) == len(set(facts)) > 100
    assert [
        fact for fact in facts if not (fact[0].isupper() or fact.startswith("node-")) or not fact.endswith(".")
    ] == []
