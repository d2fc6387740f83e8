"""What templates, declarations and inputs of bad will may do: end with a problem that says where, in a bounded time.

Each case is a file below `tests/hostile`. What is next to an attack and must go on working is a `good-` case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from renderer.catalog.template_tree import Template
from renderer.context.scope import Scope
from renderer.errors import Problems
from renderer.files.decode import documents_of
from renderer.templating import Templates
from renderer.templating.limits import ALL_STEPS, STEPS
from renderer.yaml_io import Allowance, parse

CASES = Path(__file__).parent / "hostile"
HALF_A_BUDGET = "{% set items = range(100000) | list %}"
CONTEXT: Mapping[str, Any] = {"plan": Scope("plan", {"list": ["a", "b"]}), "name": lambda *parts: "-".join(parts)}


def files(folder: str, pattern: str) -> list[str]:
    found = sorted(path.name for path in (CASES / folder).glob(pattern))
    assert found
    return found


def case(folder: str, name: str) -> tuple[str, str]:
    """The first line, and the rest."""
    first, _, rest = (CASES / folder / name).read_text(encoding="utf-8").partition("\n")
    return first, rest.removesuffix("\n")


# ----------------------------------------------------------------------------------------------------------- templates


def rendered(text: str) -> str:
    tree = {path: Template(text=item, shown=path, packaged=False) for path, item in {"t.j2": text, "m.j2": ""}.items()}
    return Templates(tree).render_text("t.j2", CONTEXT)


@pytest.mark.parametrize("name", files("templates", "[!g]*.j2"))
def test_a_template_ends_with_a_problem_at_its_line(name: str) -> None:
    expected, text = case("templates", name)
    line, reason, message = expected.split(" ", 2)
    with pytest.raises(Problems) as caught:
        rendered(text)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert len(problem.message) < 300
    assert (problem.reason, problem.file) == (reason, "t.j2")
    assert str(problem.line or "-") == line
    assert problem.remedy


@pytest.mark.parametrize("name", files("templates", "good-*.j2"))
def test_a_template_that_does_little_is_rendered(name: str) -> None:
    expected, text = case("templates", name)
    assert rendered(text) == expected


def test_a_template_for_which_there_is_no_memory() -> None:
    def name() -> None:
        raise MemoryError

    tree = {"t.j2": Template(text="\n{{ name() }}", shown="t.j2", packaged=False)}
    with pytest.raises(Problems, match=r"t\.j2:2: takes more memory than there is"):
        Templates(tree).render_text("t.j2", {"name": name})


def test_all_templates_of_a_rendering_together_are_bounded() -> None:
    templates = Templates({"t.j2": Template(text=HALF_A_BUDGET, shown="t.j2", packaged=False)})

    def render_often() -> None:
        for _ in range(2 * ALL_STEPS // STEPS + 1):
            templates.render_text("t.j2", CONTEXT)

    with pytest.raises(Problems, match="does too much"):
        render_often()
    templates.begin()
    assert templates.render_text("t.j2", CONTEXT) == ""


# ---------------------------------------------------------------------------------------------------------------- YAML


@pytest.mark.parametrize("name", files("yaml", "[!g]*.yaml"))
def test_yaml_that_is_not_read(name: str) -> None:
    expected, text = case("yaml", name)
    line, message = expected.split(" ", 1)
    with pytest.raises(Problems) as caught:
        parse(text, "f.yaml")
    (problem,) = caught.value.problems
    assert problem.message.startswith(message)
    assert len(problem.message) < 300
    assert (problem.reason, problem.file, str(problem.line)) == ("InvalidYAML", "f.yaml", line)


@pytest.mark.parametrize("name", files("yaml", "good-*.yaml"))
def test_yaml_that_is_read_as_go_reads_it(name: str) -> None:
    expected, text = case("yaml", name)
    (document,) = parse(text, "f.yaml")
    assert json.dumps(document.value, sort_keys=True) == json.dumps(json.loads(expected), sort_keys=True)


def test_nodes_are_counted_while_they_are_read() -> None:
    with pytest.raises(Problems, match=r"f\.yaml:1: contains too much: more nodes than are read"):
        parse("- a\n" * 20, "f.yaml", Allowance(20))
    assert len(parse("- a\n" * 19, "f.yaml", Allowance(20))[0].value) == 19


def test_values_of_json_are_counted_before_they_are_read() -> None:
    allowance = Allowance(20)
    with pytest.raises(Problems, match="contains too much"):
        documents_of(f"[{','.join(['[]'] * 2**20)}]", "f.json", allowance)
