"""`approve`: seals what was reviewed, so that nothing else runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.change_to_commit import change_to_commit, delivery_of
from reconcile.cli.connect import Target, cluster_options, connect_to, template_set_of
from reconcile.cli.one_plan import must_go_on, patch_plan, plan_of
from renderer.cli.answer import Model, answer, output_option
from renderer.cli.candidates import or_files
from renderer.cli.input_options import InputOptions
from renderer.errors import ExitCode, Problems, problem
from renderer.model.document_type import APPROVAL_REPORT

if TYPE_CHECKING:
    from reconcile.loop.approval import Approval
    from reconcile.loop.deps import ReconcilerDeps
    from renderer.documents import Inputs


@click.command
@click.argument("words", nargs=-1, metavar="[PLAN] [FILE|FOLDER]...", shell_complete=or_files(plan_names))
@click.option("--digest", metavar="DIGEST", help="Approve only if this digest, found in index.yaml, is what would run.")
@output_option
@cluster_options
def approve(words: tuple[str, ...], digest: str | None, output: str, target: Target) -> ExitCode:
    """Seal a reviewed rendering: nothing else may run.

    \b
    Examples:
      upgradeplan approve hvst-upgrade-864fh
      upgradeplan approve upgradeplan.yaml harvester-release.yaml facts --digest sha256:0123...

    The manager does not start a phase whose rendering differs from the approved one. Without FILES this is what the
    cluster renders now; phases whose inputs the upgrade reads later are not sealed then. FILES are those that the
    review was rendered from, with the release and what is known about the cluster: then the digest of the review is
    approved for all phases. Refused if the cluster would render anything else. For a plan that an agent delivers
    from Git, the change to commit is printed as well.
    """
    from reconcile.cli.parts import parts_on
    from reconcile.loop.approval import approval_now, approval_of_review
    from reconcile.loop.sealing import seal

    template_set = template_set_of(target.templates)
    parts = parts_on(connect_to(target), template_set)
    name, files = _named(parts, words)
    inputs = _inputs_of(files, name)
    plan, body = plan_of(parts, name or _name_in(inputs))
    must_go_on(plan, body)
    approval = approval_of_review(parts, template_set, body, inputs) if inputs else approval_now(parts, body)
    if digest is not None and digest != approval.rendered.digest:
        raise _other_digest(approval, digest, plan, of_files=inputs is not None)
    change = {"metadata": {"annotations": seal(approval.rendered, parts.rendering.templates)}}
    patch_plan(parts, body, change)
    lines = [*_approved(plan, approval, of_files=inputs is not None), *change_to_commit(target, body, change)]
    answer(APPROVAL_REPORT, _model(plan, approval) | delivery_of(target, body, change), output, lambda _: lines)
    return ExitCode.YES


def _model(plan: str, approval: Approval) -> Model:
    return {
        "plan": plan,
        "digest": approval.rendered.digest,
        "phases": [_phase(phase.phase.name, approval) for phase in approval.rendered.phases],
    }


def _phase(name: str, approval: Approval) -> Model:
    if name in approval.pending:
        return {"name": name, "approval": "pending", "inputs": list(approval.pending[name])}
    if name in approval.later:
        return {"name": name, "approval": "later", "inputs": list(approval.later[name])}
    return {"name": name, "approval": "sealed"}


def _named(parts: ReconcilerDeps, words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The plan that is named, and the files. A plan that is there is meant before a file of that name."""
    from reconcile.cli.parts import plan_there
    from renderer.files.inputs import is_name
    from renderer.input_rules import is_plan_name

    names_plan = words and (is_name(words[0]) or (is_plan_name(words[0]) and plan_there(parts, words[0]) is not None))
    return (words[0], words[1:]) if names_plan else (None, words)


def _inputs_of(files: tuple[str, ...], name: str | None) -> Inputs | None:
    from renderer.cli.input_options import read

    return read(InputOptions(files=files, name=name))[0] if files else None


def _name_in(inputs: Inputs | None) -> str | None:
    from renderer.documents import plan_of as plan_in

    return str(plan_in(inputs).body["metadata"]["name"]) if inputs else None


def _other_digest(approval: Approval, digest: str, plan: str, *, of_files: bool) -> Problems:
    found, missing = approval.rendered.digest, _phase_list(approval.pending)
    if of_files:
        message = f"these files render the digest {found}, not {digest}"
        remedy = "give the files that the review was rendered from, or review what these render"
    elif missing:
        message = (
            f"the digest {digest} cannot be compared with the cluster alone, which cannot render all phases yet: "
            f"{missing}"
        )
        command = shlex.join(["upgradeplan", "approve", plan, "FILES", "--digest", digest])
        remedy = f"give the files that the review was rendered from, with release and facts: {command}"
    else:
        message = f"the plan's digest is {found}, not {digest}"
        remedy = "render again and review it"
    return problem("DigestDiffers", message, remedy=remedy, exit_code=ExitCode.NO)


def _approved(plan: str, approval: Approval, *, of_files: bool) -> Iterator[str]:
    sealed, later, pending = approval.sealed, approval.later, approval.pending
    count = len(sealed) + len(later)
    digest = approval.rendered.digest
    yield f"{plan}: approved {count} of {count + len(pending)} phases, digest {digest}"
    yield f"sealed now: {', '.join(sealed) or 'none'}"
    if later:
        yield f"approved too, and compared when the cluster knows their inputs: {_phase_list(later)}"
    if pending:
        yield f"not sealed, and may change (inputs are not known yet): {_phase_list(pending)}"
        if not of_files:
            yield f"to seal them as well, give the files of the review: upgradeplan approve {plan} FILES"


def _phase_list(phases: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{name} ({', '.join(missing)})" for name, missing in phases.items())
