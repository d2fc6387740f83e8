"""What templates, declarations and inputs of bad will may do: end with a problem that says where, in a bounded time.

Each case is a file below `tests/hostile`. What is next to an attack and must go on working is a `good-` case.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from reconcile.cluster.kubeconfig import find_access
from reconcile.status.attempt import RETRY, attempt_of
from reconcile.status.times import duration_of
from renderer.catalog.template_tree import Template
from renderer.context.scope import Scope
from renderer.errors import Problem, Problems
from renderer.files.code import CodeCache
from renderer.files.decode import documents_of
from renderer.patterns import PatternError, matches
from renderer.redaction.packaged_list import packaged_redactor
from renderer.templating import Templates
from renderer.templating.limits import ALL_STEPS, STEPS
from renderer.versions import parse_version
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
    with pytest.raises(Problems, match=r"t\.j2:2: takes more memory than is available"):
        Templates(tree).render_text("t.j2", {"name": name})


@pytest.mark.slow
def test_all_templates_of_a_rendering_together_are_bounded() -> None:
    templates = Templates({"t.j2": Template(text=HALF_A_BUDGET, shown="t.j2", packaged=False)})

    def render_often() -> None:
        for _ in range(2 * ALL_STEPS // STEPS + 1):
            templates.render_text("t.j2", CONTEXT)

    with pytest.raises(Problems, match="the limit of a template"):
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
    with pytest.raises(Problems, match=r"f\.yaml:1: contains too many nodes"):
        parse("- a\n" * 20, "f.yaml", Allowance(20))
    assert len(parse("- a\n" * 19, "f.yaml", Allowance(20))[0].value) == 19


def test_values_of_json_are_counted_before_they_are_read() -> None:
    allowance = Allowance(20)
    with pytest.raises(Problems, match="contains too many nodes"):
        documents_of(f"[{','.join(['[]'] * 2**20)}]", "f.json", allowance)


# -------------------------------------------------------------------------------------------------------- surroundings


def run(*command: str, **environment: str) -> tuple[int, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COMP_")}
    program = [sys.executable, "-m", "renderer.cli", *command]
    done = subprocess.run(program, env={**clean, **environment}, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"_UPGRADEPLAN_COMPLETE": "bash_complete"},
        {"_UPGRADEPLAN_COMPLETE": "fish_complete", "COMP_WORDS": "upgradeplan"},
        {"_UPGRADEPLAN_COMPLETE": "zsh_complete", "COMP_WORDS": "upgradeplan", "COMP_CWORD": "x"},
        {"_UPGRADEPLAN_COMPLETE": "zsh_complete", "COMP_WORDS": "upgradeplan", "COMP_CWORD": "9" * 5000},
    ],
    ids=lambda environment: " ".join(environment).replace("_UPGRADEPLAN_COMPLETE", ""),
)
def test_a_completion_that_is_asked_for_without_a_command_line(environment: Mapping[str, str]) -> None:
    status, said = run("version", **environment)
    assert (status, said.partition(", but ")[2].partition("\n")[0]) == (
        2,
        "COMP_WORDS and COMP_CWORD hold no command line",
    )


def test_compiled_templates_are_not_kept_where_nobody_knows_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> NoReturn:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    code = CodeCache()
    code["key"] = b""
    code.save()
    with pytest.raises(Problems, match=r"no kubeconfig found at ~/\.kube/config") as caught:
        find_access({})
    assert packaged_redactor().text(str(caught.value)) == str(caught.value)


@pytest.mark.parametrize("text", ["999999999999h", "9" * 5000 + "s", "8761h", "", "1e9h"])
def test_a_duration_that_is_none(text: str) -> None:
    assert duration_of(text) is None


def test_a_duration_of_a_year() -> None:
    assert duration_of("8760h") == timedelta(days=365)


@pytest.mark.parametrize("text", ["9" * 4400, "-1", "x", ""])
def test_an_attempt_that_is_no_number_is_the_first(text: str) -> None:
    assert attempt_of({"metadata": {"annotations": {RETRY: text}}}) == 0
    assert attempt_of({"metadata": {"annotations": {RETRY: "12"}}}) == 12


@pytest.mark.parametrize("text", [f"v1.{'9' * 5000}.0", f"v1.8.0-{'9' * 5000}"])
def test_a_version_of_thousands_of_digits_is_none(text: str) -> None:
    assert parse_version(text).is_development


@pytest.mark.parametrize(
    "value",
    ["x" * 5000, "x y " * 5000, '"' + "x " * 5000 + '"', "it's " + "x" * 5000],
    ids=["word", "words", "quotes", "mixed"],
)
def test_a_message_shows_the_beginning_of_a_value(value: str) -> None:
    said = str(Problems([Problem(reason="X", message=f"{value!r} is not a version", field=f"spec.{value}")]))
    assert len(said) < 800
    assert said.endswith("is not a version")
    short = Problem(reason="X", message="'a' is not a version", field="spec.version")
    assert Problems([short]).problems == (short,)


# ------------------------------------------------------------------------------------------------------------ patterns


EXPONENTIAL = (
    *("(a+)+$", "(a|aa)+$", "(a*)*b", "(a?){25}", "((a{1,9})b?)*c", "(?:a+?){20}$", "(x+x+)+y", "(a{1,12}){1,12}$"),
    *(r"(\w+\d)+$", r"(\w+\s?)+$", r"(.*\.)+$", r"(\s*,\s*)+$", "(a|b|ab)+$", "((a|b)+c?)+$", "(?i)([a-c]+K)+$"),
    *("([^a]+[^b])+$", "(é+[ü])+$", "(|a)+b", "(?:(a?|b?)c)+x", "(?=a+)+b", r"(?:(a)\1?)+b"),
)
POLYNOMIAL = ("a*a*a*a*b", "((a*b){2}){2}$", r"(((\s?|é)|.?){2,3}){2,3}$", "a{0,9}b{0,9}c{0,9}")


@pytest.mark.parametrize("pattern", [*EXPONENTIAL, *POLYNOMIAL, "[", "(" * 3000])
def test_a_pattern_that_could_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        matches(pattern, "a" * 30)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\S", r"^v1\.\d+\.\d+$", "^(foo|bar)-?x", "v[0-9]{1,3}", "(ab)+", "a{3}", r"rke2r\d+ .*x"),
        *(r"^([a-z0-9]+\.)+[a-z]+$", r"^(\d+,)*\d+$", r"([0-9]{1,3}\.){3}[0-9]{1,3}", "(ab|cd)+x", "(?i:(a|b)+)"),
        *(
            r"^(?:[a-z]+=[^,]*,)+$",
            r"^v1\.\d+(-rc\d+)?$",
            "(a{2,3}b)*",
            "(a{2}|b)+",
            r"(^\d\b,)+",
            "([^,]+,)*",
            r"(\D\d)+",
        ),
    ],
)
def test_a_pattern_of_the_usual_form_is_tried(pattern: str) -> None:
    assert matches(pattern, "v1.7.1") == (re.search(pattern, "v1.7.1") is not None)


def test_a_pattern_with_repeats_is_not_tried_on_long_text() -> None:
    with pytest.raises(PatternError, match="is not tried on 101 characters; at most 100 are"):
        matches("a*b*c*d", "a" * 101)
    with pytest.raises(PatternError, match="is not tried on 60 characters; at most 59 are"):
        matches("(a*b?){3}c", "a" * 60)
    assert matches("c", "a" * 10000 + "c")
