"""Prints answers: one model, as text for people, as Markdown for a pull request, or as JSON for machines, and problems
likewise.

Text never steers the terminal: what came from files has its control characters written out. Nothing secret is printed:
all but manifests, which must stay as they are, passes the redactor.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from renderer.errors import Problem, Problems
from renderer.model.document_type import PROBLEM_LIST, DocumentType

if TYPE_CHECKING:
    from renderer.markdown.limited_page import Block
    from renderer.model.rendered import RenderedPlan
    from renderer.redaction import RedactionRules, Redactor

Model = dict[str, Any]
_REDACTOR = f"{__name__}.redactor"
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def output_option_of(*formats: str) -> Callable[[_Command], _Command]:
    """The option of a command that has these output formats; the first one is the default."""
    return click.option(
        "-o",
        "--output",
        "output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Output format. The schemas of the JSON output are in schemas/.",
    )


output_option = output_option_of("text", "json")
review_output_option = output_option_of("text", "json", "markdown")
"""For what is shown in a pull request."""


def answer(
    of: DocumentType,
    model: Model,
    output: str,
    text: Callable[[Model], Iterable[str]],
    markdown: Callable[[Model], Iterable[Block]] | None = None,
) -> None:
    """Prints the model as a document of this type, or as what `text` or `markdown` makes of it."""
    shown: Model = redactor().value(model)
    if output == "json":
        pass_on([json_text(of, shown)])
    elif output == "markdown" and markdown:
        say_page(markdown(shown))
    else:
        say(text(shown))


def say_page(blocks: Iterable[Block]) -> None:
    """Prints Markdown, no longer than a comment may be."""
    from renderer.markdown.limited_page import page

    say(page(blocks))


def answer_with_files(of: DocumentType, model: Model, files: Mapping[str, str]) -> None:
    """Prints the model and rendered files as JSON. The files are what would be applied, and stay as they are."""
    pass_on([json_text(of, {**redactor().value(model), "files": files})])


def warn(warnings: Iterable[Problem]) -> None:
    """Prints each warning of a command once on stderr; `-o json` has them under `warnings` as well."""
    known = warned()
    for warning in warnings:
        if warning not in known:
            known.append(warning)
            pass_on([f"warning: {_plain(redacted(warning))}"], sys.stderr)


def warned() -> list[Problem]:
    """The warnings of the command that runs."""
    context = click.get_current_context(silent=True)
    found: list[Problem] = context.meta.setdefault(__name__, []) if context else []
    return found


def redact_by(rules: RedactionRules) -> None:
    """The list that the command's template tree has: it holds for all that the command prints from now on."""
    from renderer.redaction import Redactor, packaged_rules

    context = click.get_current_context(silent=True)
    if context and rules is not packaged_rules():
        context.meta[_REDACTOR] = Redactor(rules)


def redactor() -> Redactor:
    """The redactor of what the command that runs prints."""
    from renderer.redaction import packaged_redactor

    context = click.get_current_context(silent=True)
    found: Redactor | None = context.meta.get(_REDACTOR) if context else None
    return found or packaged_redactor()


def redacted(problem: Problem) -> Problem:
    """The problem part by part: its field is a path, and no name of a value."""
    hide = redactor().text
    return replace(
        problem,
        message=hide(redactor().message(problem.message, problem.field or "")),
        file=problem.file and hide(problem.file),
        remedy=problem.remedy and hide(problem.remedy),
    )


def json_text(of: DocumentType, model: Model) -> str:
    """A model that is redacted already, as a document of this type."""
    warnings = [*model.get("warnings", ()), *problem_models(warned())]
    body = {**model, "warnings": warnings} if warnings else model
    return json.dumps(of.document(body), indent=2, ensure_ascii=False)


def say(lines: Iterable[str], stream: TextIO | None = None, *, end: str = "\n") -> None:
    """All lines in one write, so that a reader that goes away is met once; without what is secret."""
    pass_on(map(redactor().text, lines), stream, end=end)


def pass_on(lines: Iterable[str], stream: TextIO | None = None, *, end: str = "\n") -> None:
    """The same for lines that stay as they are: manifests, and what has been redacted."""
    (stream or sys.stdout).write("".join(f"{line}{end}" for line in lines))


def pending_models(plan: RenderedPlan) -> list[Model]:
    """The inputs that are missing anywhere in the plan, and how to give it."""
    from renderer.layout.index import pending_of

    return [{"input": name, "remedy": remedy} for name, remedy in pending_of(plan).items()]


def pending_lines(pending: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """The same in words."""
    yield from (f"pending: {item['input']}; {item['remedy']}" for item in pending)


def again(*, add: str = "", leave_out: str = "") -> str:
    """The command line that is running, a little changed: for a `next` line that can be copied."""
    context = click.get_current_context()
    words = [redactor().argument(word) for word in context.find_root().obj if word != leave_out]
    return shlex.join([*context.find_root().command_path.split(), *words, *([add] if add else [])])


def show_problems(refusal: Problems, output: str) -> None:
    """All problems by place: as text on stderr with a count, or as JSON on stdout; and as Markdown there, since a pull
    request shows nothing else."""
    found = sorted(map(redacted, refusal.problems), key=_place)
    if output == "markdown":
        from renderer.markdown.problem_blocks import problem_blocks

        say_page(problem_blocks(found))
    if output == "json":
        model = {"problems": problem_models(found)}
        warnings = {"warnings": problem_models(refusal.warnings)} if refusal.warnings else {}
        pass_on([json_text(PROBLEM_LIST, {**model, **warnings})])
        return
    sys.stdout.flush()
    count = [f"{len(found)} problems"] if len(found) > 1 else []
    pass_on([*(str(_plain(problem)) for problem in found), *count], sys.stderr)


def problem_models(problems: Iterable[Problem]) -> list[Model]:
    """Problems as `schemas/problems.json` has them: what is not known is left out."""
    found = (asdict(redacted(problem)) for problem in problems)
    return [{key: value for key, value in problem.items() if value is not None} for problem in found]


def wanted_output(argv: Sequence[str]) -> str:
    """The output that was asked for, by the bare words: the command line itself may be what is wrong."""
    for word, following in pairwise([*argv, ""]):
        if word in ("-o", "--output"):
            return following
        for start in ("-o", "--output="):
            if word.startswith(start) and word != start:
                return word.removeprefix(start)
    return "text"


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as lines with aligned columns; the first row is the heading."""
    from renderer.columns import aligned

    return list(aligned([tuple(map(plain, row)) for row in rows]))


def plain(text: str) -> str:
    """Text on one line: a control character as its escape."""
    if text.isprintable():
        return text
    return re.sub(_CONTROL, lambda match: match[0].encode("unicode_escape").decode(), text)


def painted(text: str, colour: str) -> str:
    """In colour where a terminal shows it and nobody asked for none (no-color.org)."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return click.style(text, fg=colour) if coloured else text


def _plain(problem: Problem) -> Problem:
    parts: Model = {name: plain(value) for name, value in asdict(problem).items() if isinstance(value, str)}
    return replace(problem, **parts)


def _place(problem: Problem) -> tuple[str, int, str, str]:
    return (problem.file or "", problem.line or 0, problem.field or "", problem.message)
