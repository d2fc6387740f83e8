"""The arguments that name inputs, the same for all commands, and what is made of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, MutableMapping
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from renderer.cli.answer import redact_by, warn
from renderer.errors import ExitCode, Problem, Problems
from renderer.frozen import frozen

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from renderer.assemble import Assembly
    from renderer.catalog.load import Catalog
    from renderer.catalog.template_tree import TemplateTree
    from renderer.documents import Inputs
    from renderer.model.rendered import RenderedPlan


@frozen
class InputOptions:
    """The command line's words about inputs; nothing is read yet. `plan` is a file or a name, `name` a name only."""

    files: tuple[str, ...] = ()
    plan: str | None = None
    name: str | None = None
    release: str | None = None
    cluster: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    retry: int = 0

    @property
    def names_inputs(self) -> bool:
        return bool(self.files or self.plan or self.release or self.cluster)


@frozen
class RenderedInputs:
    """A rendered plan, with what it was made from."""

    inputs: Inputs
    assembly: Assembly
    plan: RenderedPlan


class PathArgument(click.ParamType[str]):
    """A file, folder or address. Whether it is there, the room that opens it says; here it only completes words."""

    def __init__(self, completes: str) -> None:
        self.name = completes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """An empty one comes of a shell's variable that is not set, and would count as left out."""
        if not value:
            self.fail("an empty name is given", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.name)]


FILE = PathArgument("file")
FOLDER = PathArgument("dir")
_OPTIONS = (
    click.option(
        "--plan",
        type=FILE,
        metavar="FILE|NAME",
        help="The file of the UpgradePlan, which overrides FILES, or its name if FILES contain several.",
    ),
    click.option(
        "--release",
        type=FILE,
        metavar="FILE|URL|ISO",
        help="The release's harvester-release.yaml, its URL, or the ISO image that contains it. Overrides FILES.",
    ),
    click.option(
        "--cluster",
        type=FILE,
        metavar="FILE|FOLDER",
        multiple=True,
        help="Objects of the cluster: the output of `kubectl get -o yaml` or a support bundle. Overrides FILES.",
    ),
    click.option(
        "--templates",
        type=FOLDER,
        metavar="FOLDER",
        multiple=True,
        help="An overlay: its files replace packaged templates of the same path, and a new folder adds a phase.",
    ),
    click.option(
        "--retry",
        type=click.IntRange(min=0),
        metavar="N",
        default=0,
        help="Render the Nth retry of a failed upgrade: run-once objects get new names.",
    ),
)

T = TypeVar("T")
Command = Callable[..., ExitCode]


def input_options(command: Command, completed_by: Callable[..., Any] | None = None) -> Command:
    """Adds the arguments that name inputs; the command gets them as one, `given`. `completed_by` completes words that
    may be more than files."""

    @wraps(command)
    def with_given(
        files: tuple[str, ...],
        plan: str | None,
        release: str | None,
        cluster: tuple[str, ...],
        templates: tuple[str, ...],
        retry: int,
        **others: Any,
    ) -> ExitCode:
        given = InputOptions(files=files, plan=plan, release=release, cluster=cluster, templates=templates, retry=retry)
        return command(given=given, **others)

    for option in reversed(_OPTIONS):
        with_given = option(with_given)
    metavar = "[FILE|FOLDER]..."
    return click.argument("files", nargs=-1, type=FILE, metavar=metavar, shell_complete=completed_by)(with_given)


def rendering_of(given: InputOptions) -> RenderedInputs:
    """Reads and renders everything. Raises `Problems` with all that is wrong."""
    inputs, tree = read(given)
    return rendering_from(inputs, tree, retry=given.retry)


def rendering_from(inputs: Inputs, tree: TemplateTree, *, retry: int) -> RenderedInputs:
    """The same for what has been read."""
    from renderer.assemble import assemble
    from renderer.files.code import CodeCache
    from renderer.layout.credentials import redacted_problems

    code = CodeCache()
    problems = _syntax_problems(tree, code)
    assembly = _attempt(lambda: assemble(inputs, tree, retry=retry, code=code), problems)
    plan = _attempt(assembly.render, problems) if assembly else None
    problems += [*form_problems_of(plan, tree), *redacted_problems(plan)] if plan else ()
    if assembly:
        redact_by(assembly.catalog.redaction)
        warn(assembly.catalog.warnings)
    if assembly is None or plan is None or problems:
        raise Problems(problems)
    code.save()
    warn(skip_warnings(inputs, plan))
    return RenderedInputs(inputs=inputs, assembly=assembly, plan=plan)


def skip_warnings(inputs: Inputs, plan: RenderedPlan) -> Iterator[Problem]:
    """Reports what steps that are skipped let pass, or leave undone."""
    from renderer.documents import plan_of

    source = plan_of(inputs)
    for step in (step for phase in plan.phases for step in phase.steps if step.skipped):
        for text in step.step.skip_warnings(step.skipped or ""):
            yield Problem(reason="StepWarning", message=text, file=source.file, line=source.line_of(("spec",)))


def read(given: InputOptions) -> tuple[Inputs, TemplateTree]:
    """Inputs and templates. Raises `Problems` with all that is wrong with either of them."""
    inputs, tree = read_form(given)
    if problems := cluster_problems_of(inputs):
        raise Problems(problems)
    return inputs, tree


def read_form(given: InputOptions) -> tuple[Inputs, TemplateTree]:
    """The same, without a word about the state of the cluster."""
    problems: list[Problem] = []
    inputs = _attempt(lambda: _inputs_of(given), problems)
    tree = _attempt(lambda: tree_of(given), problems)
    if inputs is None and tree is not None:
        problems += [*_declaration_problems(tree), *_syntax_problems(tree, {})]
    warn(warnings_of(inputs) if inputs else ())
    if inputs is None or tree is None or problems:
        raise Problems(problems)
    return inputs, tree


def cluster_problems_of(inputs: Inputs) -> list[Problem]:
    from renderer.cluster_rules import cluster_problems

    return cluster_problems(inputs)


def warnings_of(inputs: Inputs) -> list[Problem]:
    from renderer.input_rules import input_warnings

    return [*inputs.warnings, *input_warnings(inputs)]


def catalog_of(given: InputOptions) -> Catalog:
    """The declarations of the templates; no input is needed. Raises `Problems`."""
    from renderer.catalog.load import load_catalog
    from renderer.validation import document_problems

    catalog = load_catalog(tree_of(given), document_problems)
    redact_by(catalog.redaction)
    warn(catalog.warnings)
    return catalog


def tree_of(given: InputOptions) -> TemplateTree:
    """The templates, overlays laid over them. Raises `Problems`. From now on nothing is shown that they call secret, of
    the inputs either."""
    from renderer.files.templates import read_templates

    tree = read_templates([Path(folder) for folder in given.templates])
    if any(path.startswith("_redaction/") and not file.packaged for path, file in tree.items()):
        from renderer.catalog.load import redaction_of
        from renderer.validation import document_problems

        redact_by(redaction_of(tree, document_problems))
    return tree


def _inputs_of(given: InputOptions) -> Inputs:
    from renderer.files.inputs import read_inputs

    return read_inputs(
        given.files,
        plan=given.plan,
        name=given.name,
        release=given.release,
        cluster=given.cluster,
        stdin=getattr(sys.stdin, "buffer", None),
    )


def _declaration_problems(tree: TemplateTree) -> list[Problem]:
    from renderer.assemble import open_template_set

    problems: list[Problem] = []
    found = _attempt(lambda: open_template_set(tree), problems)
    warn(found.catalog.warnings if found else ())
    return problems


def _syntax_problems(tree: TemplateTree, code: MutableMapping[str, bytes]) -> list[Problem]:
    """Of templates that are not packaged, those that this plan does not reach included."""
    from renderer.templating import Templates

    problems: list[Problem] = []
    templates = Templates(tree, code)
    for path in (path for path, file in tree.items() if path.endswith(".j2") and not file.packaged):
        _attempt(partial(templates.check_syntax, path), problems)
    return problems


def form_problems_of(plan: RenderedPlan, tree: TemplateTree) -> list[Problem]:
    """Of the manifests that overlays render."""
    from renderer.built_in import form_problems

    own = {file.shown for file in tree.values() if not file.packaged}
    return list(form_problems(plan.manifests(), own)) if own else []


def _attempt(read: Callable[[], T], problems: list[Problem]) -> T | None:
    try:
        return read()
    except Problems as error:
        warn(error.warnings)
        problems += error.problems
        return None
