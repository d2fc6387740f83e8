"""Every value of an example replaced by another one, or left out: a yes or a no, or a refusal that says where.

A slice of all changes is made each time, the rest in `make test-full`. What is accepted is rendered; of that a sample
is rehearsed. No change may end in a fault of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any
from xml.etree import ElementTree

import pytest
from support.rehearsals import ROOT, START, prepared, template_set

from reconcile.preflight.check_context import checks_of
from reconcile.preflight.machines import machine_table
from reconcile.preflight.on_inputs import check_inputs, given_in
from reconcile.report.preflight_report import junit_lines, preflight_blocks, preflight_lines, preflight_model
from renderer.cluster_rules import begin_problems, cluster_problems, rehearsal_problems
from renderer.context.build import context_of
from renderer.context.facts import Facts
from renderer.documents import Inputs, plan_of, recognize
from renderer.errors import Problem, Problems
from renderer.files.decode import documents_of
from renderer.frozen import frozen
from renderer.input_rules import as_stored, input_problems, input_warnings
from renderer.markdown.limited_page import page
from renderer.model.check import CheckTime
from renderer.model.path import Path
from renderer.render.last_rendering import LastRendering
from renderer.render.plan import render
from renderer.render.refusals import refusals
from renderer.render.step_cache import StepCache
from renderer.yaml_io import Document

EXAMPLE = ROOT / "examples" / "single-node"
TEXTS = {file.name: file.read_text(encoding="utf-8") for file in sorted(EXAMPLE.glob("*.yaml"))}
DATE = "2020-01-01"
"""Stands for a date without quotes."""
VALUES: tuple[Any, ...] = (None, 7, -1, 1.5, 2**70, True, "", "x", "a\u0001b", "A" * 70_000, DATE, [], {}, [[[[1]]]])
MISSING = object()
SLICES = 127
"""A prime number, so that each slice has each value."""
REHEARSED = 1511
"""One of so many changes is rehearsed."""
CHECKED = 607
"""The checks are carried out on one of so many."""
LONGEST = 2_000
KEPT = LastRendering(StepCache(limit=300))


@frozen
class Change:
    """One value of one document, and what is there instead."""

    file: str
    document: int
    path: Path
    value: Any

    def __str__(self) -> str:
        value = "missing" if self.value is MISSING else repr(self.value)[:20]
        return f"{self.file}[{self.document}] {'.'.join(map(str, self.path))} = {value}"


@cache
def unchanged(file: str) -> tuple[Document, ...]:
    return documents_of(TEXTS[file], file)


@cache
def changes() -> tuple[Change, ...]:
    return tuple(
        Change(file=file, document=number, path=path, value=value)
        for file in TEXTS
        for number, document in enumerate(unchanged(file))
        for path, there in places(document.value)
        for value in (*VALUES, MISSING)
        if value is MISSING or (type(value), value) != (type(there), there)
    )


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*path, key), inner
        yield from places(inner, (*path, key))


def changed(value: Any, path: Path, new: Any) -> Any:
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    key: Any = path[0]
    if len(path) > 1:
        copied[key] = changed(value[key], path[1:], new)
    elif new is MISSING:
        del copied[key]
    else:
        copied[key] = new
    return copied


def inputs_of(change: Change) -> tuple[Inputs, list[Problem]]:
    """As `validate` reads them: from text, so that each value has its line."""
    bodies = [document.value for document in unchanged(change.file)]
    bodies[change.document] = changed(bodies[change.document], change.path, change.value)
    text = "\n---\n".join(json.dumps(body, indent=1) for body in bodies).replace(f'"{DATE}"', DATE)
    read = {file: unchanged(file) for file in TEXTS} | {change.file: documents_of(text, change.file)}
    inputs, unrecognized = recognize([document for documents in read.values() for document in documents])
    inputs = as_stored(inputs)
    return inputs, [*unrecognized, *input_problems(inputs)]


def accepted(change: Change) -> Inputs | None:
    """Reads, warns, renders and asks what would be refused, as `validate` does. None where the inputs are refused,
    which every problem says with its place."""
    try:
        inputs = asked(change)
    except Problems as error:
        for problem in error.problems:
            assert problem.remedy, problem
            assert len(str(problem)) < LONGEST, problem
            assert (problem.file and problem.line) or problem.reason in ("MissingInput", "NoUpgradePlan"), problem
        return None
    return inputs


def asked(change: Change) -> Inputs:
    inputs, problems = inputs_of(change)
    if problems := problems or cluster_problems(inputs):
        raise Problems(problems)
    catalog = template_set().catalog
    texts = [str(problem) for problem in input_warnings(inputs)]
    texts += map(str, begin_problems(inputs, str(catalog.values["oldestServerVersion"])))
    rendered = render(catalog, template_set().templates, context_of(facts(inputs)), kept=KEPT)
    texts += [refusal.message for refusal in refusals(rendered)]
    assert max(map(len, texts), default=0) < LONGEST
    return inputs


def facts(inputs: Inputs) -> Facts:
    return Facts(
        plan=plan_of(inputs).body,
        release=inputs.release.body if inputs.release else None,
        objects=tuple(source.body for source in inputs.objects),
        image_lists=inputs.facts.get("imageLists"),
        values=template_set().catalog.values,
        spec_fields=template_set().spec_fields,
    )


def judge(some: tuple[Change, ...]) -> None:
    failed = []
    for change in some:
        try:
            accepted(change)
        except Exception as error:
            failed.append(f"{change}: {type(error).__name__}: {str(error)[:300]}")
    assert failed == []


@pytest.mark.slow
def test_a_changed_value_is_accepted_or_refused_with_its_place() -> None:
    judge(changes()[::SLICES])


@pytest.mark.full("all changes take a quarter of an hour; a part of them stands for them")
@pytest.mark.parametrize("number", range(1, SLICES))
def test_so_is_each_other_one(number: int) -> None:
    judge(changes()[number::SLICES])


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.full("each takes seconds; one stands for them") if number else ())
        for number in range(0, REHEARSED, 30)
    ],
)
@pytest.mark.slow
def test_what_is_accepted_can_be_rehearsed(number: int) -> None:
    """A rehearsal ends with a yes or a no."""
    for change in changes()[number::REHEARSED]:
        inputs = accepted(change)
        if inputs is not None and not rehearsal_problems(inputs):
            prepared(inputs).play(lambda _: None)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.full("each takes seconds; one stands for them") if number else ())
        for number in range(0, CHECKED, 31)
    ],
)
@pytest.mark.slow
def test_checks_answer_whatever_is_accepted(number: int) -> None:
    """In words, and as each of the files that others read."""
    failed = []
    for change in changes()[number::CHECKED]:
        try:
            answer(change)
        except Exception as error:
            failed.append(f"{change}: {type(error).__name__}: {str(error)[:300]}")
    assert failed == []


def answer(change: Change) -> None:
    try:
        inputs, problems = inputs_of(change)
    except Problems:
        return
    if problems:
        return
    given, checks = given_in(inputs, template_set().catalog.kinds), checks_of(template_set().catalog)
    report = check_inputs(inputs, given, template_set(), checks, tuple(CheckTime), START)
    machines = machine_table(given, inputs.plan.body if inputs.plan else {})
    model = preflight_model(report, machines, plan="upgrade", at=START, live=False)
    ElementTree.fromstring("\n".join(junit_lines(model)))
    lines = [*preflight_lines(model, everything=True), *page(preflight_blocks(model, everything=True))]
    assert not [line for line in lines if "\n" in line]
