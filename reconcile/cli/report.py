"""`report`: how an upgrade went, or would go, as a page, as Markdown or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.connect import Target, cluster_options, connect_to, template_set_of, wall_clock
from reconcile.cli.log_collection import collected_logs
from reconcile.cli.stored_logs import namespace_option, refuse_namespace_unless
from reconcile.cli.subjects import is_file
from renderer.cli.answer import Model, json_text, pass_on, redactor
from renderer.cli.candidates import or_files
from renderer.cli.input_options import FOLDER
from renderer.errors import ExitCode, Problems, problem
from renderer.model.document_type import REHEARSAL_REPORT, RUN_REPORT

if TYPE_CHECKING:
    from reconcile.pod_logs.folder import LogFolder
    from reconcile.pod_logs.log_record import LogRecords
    from reconcile.report_page.recorded_run import RecordedRun
    from renderer.assemble import TemplateSet
    from renderer.model.ref import Body
    from renderer.yaml_io import Document

    Kept = Callable[[str], LogFolder | LogRecords]

FORMATS = ("html", "markdown", "json")
_ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
_EXPECTED = "name a journal, an UpgradePlan, or a file that rehearse --report has written"


@click.command
@click.argument("subject", required=False, metavar="[PLAN|FILE]", shell_complete=or_files(plan_names))
@click.option("--plan", metavar="NAME", help="The plan, where a journal has several.")
@click.option(
    "--logs",
    type=FOLDER,
    metavar="FOLDER",
    help="Take the last lines of what failed from FOLDER, where `run --logs` has collected them.",
)
@click.option(
    "--stored-logs",
    is_flag=True,
    help="Take them from the volume of the value logs.storage, by a pod that reads it.",
)
@namespace_option
@cluster_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="markdown",
    show_default=True,
    help="Output format. The schema of the JSON output is schemas/report.json.",
)
def report(
    subject: str | None,
    plan: str | None,
    logs: str | None,
    stored_logs: bool,
    namespace: str,
    target: Target,
    output: str,
) -> ExitCode:
    """Write a report on the run of a plan.

    \b
    Examples:
      upgradeplan report -o html > upgrade.html
      upgradeplan report hvst-upgrade-864fh --stored-logs -o html > upgrade.html
      upgradeplan report journal.jsonl --logs logs -o html > upgrade.html
      upgradeplan rehearse examples/three-node --report run.json; upgradeplan report run.json

    FILE is a journal of --journal, which knows all waits; a report that was written as JSON, as `rehearse --report`
    does; or an UpgradePlan. Otherwise the cluster is asked. The page is one self-contained file.
    Secrets are hidden. Exits 0 however the upgrade went.
    """
    refuse_namespace_unless(stored_logs, "--stored-logs")
    if stored_logs and logs is not None:
        raise click.UsageError("--logs and --stored-logs name the logs in two ways")
    template_set = template_set_of(target.templates)
    kept = (
        _kept_in(Path(logs)) if logs is not None else _stored(target, namespace, template_set) if stored_logs else None
    )
    model = _of_file(Path(subject), plan, kept, template_set) if subject and is_file(subject) else None
    if model is None:
        model = _of_cluster(subject or plan, kept, target, template_set)
    pass_on([report_text(model, output, template_set)], end="")
    return ExitCode.YES


def _kept_in(folder: Path) -> Kept:
    found = collected_logs(folder)
    return lambda plan: found


def _stored(target: Target, namespace: str, template_set: TemplateSet) -> Kept:
    from reconcile.cli.stored_logs import stored_logs
    from reconcile.observe.source import DirectSource
    from reconcile.pod_logs.excerpts import LINES

    cluster = connect_to(target).cluster
    source = DirectSource(cluster, template_set.catalog.kinds)
    return lambda plan: stored_logs(cluster, source, namespace, [f"--tail={LINES}", plan])


def report_text(model: Model, output: str, template_set: TemplateSet) -> str:
    """The report in this format, without what is secret."""
    from reconcile.report_page.markdown import run_blocks
    from reconcile.report_page.page import PAGE, page_view
    from renderer.markdown.limited_page import page

    shown: Model = redactor().value(model)
    if output == "json":
        return f"{json_text(RUN_REPORT, shown)}\n"
    if output == "html":
        return template_set.templates.page(PAGE, page_view(shown))
    return "".join(f"{line}\n" for line in page(run_blocks(shown)))


def format_of(file: str) -> str:
    """The format that a file's name asks for; a page where it says nothing."""
    return _ENDINGS.get(Path(file).suffix.lower(), "html")


def model_of(run: RecordedRun, template_set: TemplateSet) -> Model:
    from reconcile.report_page.model import run_report

    return run_report(run, [item.phase for item in template_set.catalog.phases], redactor())


def report_in(path: Path) -> Model:
    """The model in a file that `rehearse --report` has written as JSON. Raises `Problems`."""
    return _report_in(_only_document(path))


def _of_file(path: Path, plan: str | None, kept: Kept | None, template_set: TemplateSet) -> Model:
    from reconcile.report_page.journal_run import run_in_journal
    from reconcile.report_page.plan_run import run_of_plan
    from renderer.files.filesystem import require_file

    require_file(path)
    if not _is_one_document(path):
        return model_of(_with_logs(run_in_journal(path, plan), kept), template_set)
    document = _only_document(path)
    if document.value.get("kind") == "UpgradePlan":
        return model_of(_with_logs(run_of_plan(document.value, str(path), wall_clock()), kept), template_set)
    if kept is not None:
        raise click.UsageError("--logs and --stored-logs are for a plan or a journal: a report has its logs already")
    return _report_in(document)


def _with_logs(run: RecordedRun, kept: Kept | None) -> RecordedRun:
    from reconcile.pod_logs.excerpts import excerpts_in
    from reconcile.report_page.plan_run import with_excerpts

    return run if kept is None else with_excerpts(run, partial(excerpts_in, kept(run.name), run.name))


def _only_document(path: Path) -> Document:
    """The one UpgradePlan of a file, or the one document. Raises `Problems`."""
    from renderer.files.decode import documents_of, text_of
    from renderer.files.filesystem import read_bytes

    found = [
        document
        for document in documents_of(text_of(read_bytes(path), str(path)), str(path))
        if isinstance(document.value, dict)
    ]
    plans = [document for document in found if document.value.get("kind") == "UpgradePlan"]
    if len(plans or found) != 1:
        raise problem(
            "NotAReport", f"has {len(plans or found)} documents, and one is expected", file=str(path), remedy=_EXPECTED
        )
    return (plans or found)[0]


def _is_one_document(path: Path) -> bool:
    """False for a file whose first line is a whole JSON object, as a journal's is."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            first = json.loads(stream.readline())
    except (OSError, ValueError):
        return True
    return not (isinstance(first, dict) and "decision" in first)


def _report_in(document: Document) -> Model:
    """The model of a report that was written as JSON. Raises `Problems` for any other document."""
    from renderer.validation import document_problems

    if REHEARSAL_REPORT.is_type_of(document.value):
        message = "is what `rehearse -o json` prints, which has no waits"
        raise problem("NotAReport", message, file=document.file, remedy="use rehearse --report run.json")
    if not RUN_REPORT.is_type_of(document.value):
        raise problem(
            "NotAReport", "is neither a run of a plan nor a report on one", file=document.file, remedy=_EXPECTED
        )
    if found := document_problems(document, RUN_REPORT):
        raise Problems(found)
    return {key: value for key, value in document.value.items() if key not in ("apiVersion", "kind")}


def _of_cluster(name: str | None, kept: Kept | None, target: Target, template_set: TemplateSet) -> Model:
    from reconcile.cli.parts import parts_on, plan_named
    from reconcile.loop.reconciler import Reconciler
    from reconcile.pod_logs.excerpts import excerpts_of
    from reconcile.report.explain import explanation_of
    from reconcile.report_page.plan_run import run_of_plan, with_cluster
    from reconcile.report_page.recorded_run import waits_of

    connection = connect_to(target)
    parts = parts_on(connection, template_set)
    done = Reconciler(parts).look(plan_named(parts, name))
    now, plan = wall_clock(), done.plan or {}
    waits = waits_of(done.decision.waits) if done.decision and not done.is_at_its_end else ()
    causes = () if done.is_at_its_end and not _failed(plan) else explanation_of(done, parts, now)["causes"]
    run = run_of_plan(plan, connection.context, now, waits)
    excerpts = partial(excerpts_of, parts.cluster, parts.source, plan)
    return model_of(_with_logs(with_cluster(run, parts.source, causes, excerpts), kept), template_set)


def _failed(plan: Body) -> bool:
    from reconcile.status.plan import FAILED

    return bool((plan.get("status") or {}).get("currentPhase") == FAILED)
