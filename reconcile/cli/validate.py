"""`validate`: all that is wrong with inputs, templates and manifests in one run, and what is not known yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from reconcile.cli.checked_inputs import checked, unknown_lines, unknown_model
from reconcile.preflight.problems import blocking, warning
from renderer.cli.answer import Model, answer, output_option, pending_lines, pending_models, problem_models, warn
from renderer.cli.input_options import InputOptions, RenderedInputs, input_options, read, rendering_from
from renderer.documents import plan_of
from renderer.errors import ExitCode, Problem, Problems
from renderer.model.document_type import VALIDATION_REPORT

if TYPE_CHECKING:
    from reconcile.preflight.check_result import CheckReport
    from renderer.render.refusals import Refusal


@click.command
@input_options
@output_option
def validate(given: InputOptions, output: str) -> ExitCode:
    """Check a plan and its inputs.

    \b
    Examples:
      upgradeplan validate examples/three-node
      upgradeplan validate upgradeplan.yaml --release harvester-release.yaml --templates overlay/

    Reads all inputs, renders all phases, checks every manifest, carries out the pre-flight checks that the inputs can
    answer, and reports all problems at once. Exits 1 if the upgrade would be refused, for example a downgrade, or a
    check blocks it. A missing input is pending, not an error; `preflight` lists the checks that could not be evaluated.
    """
    try:
        model = _model(given)
    except Problems as error:
        if output == "json":
            answer(VALIDATION_REPORT, {"valid": False, "problems": problem_models(error.problems)}, output, _text)
            return error.exit_code
        raise
    answer(VALIDATION_REPORT, model, output, _text)
    return ExitCode.YES


def _model(given: InputOptions) -> Model:
    inputs, tree = read(given)
    rendering = rendering_from(inputs, tree, retry=given.retry)
    report = checked(inputs, rendering.assembly.template_set)
    _refuse(rendering, report)
    if report:
        warn(warning(report, inputs))
    plan = rendering.plan
    unknown = unknown_model(report, given)
    return {
        "valid": True,
        "problems": [],
        "warnings": [],
        "plan": plan.plan,
        "digest": plan.digest,
        "phases": len(plan.phases),
        "manifests": sum(1 for _ in plan.manifests()),
        "pending": pending_models(plan),
        **({"preflight": unknown} if unknown else {}),
    }


def _refuse(rendering: RenderedInputs, report: CheckReport | None) -> None:
    """All reasons at once; that `spec.force` skips a guard is reported if nothing else blocks."""
    from renderer.cluster_rules import begin_problems
    from renderer.render.refusals import refusals

    found = begin_problems(rendering.inputs, str(rendering.assembly.catalog.values["oldestServerVersion"]))
    too_old = bool(found)
    found += [_problem(item, rendering, can_be_forced=not too_old) for item in refusals(rendering.plan)]
    found += _others(blocking(report, rendering.inputs, acceptable=not too_old), found) if report else ()
    if found:
        raise Problems(found, ExitCode.NO)


def _others(blocking: Iterable[Problem], found: Sequence[Problem]) -> list[Problem]:
    """Problems that block and were not reported by the gate of a phase, which checks the same later."""
    return [problem for problem in blocking if not any(problem.message.startswith(said.message) for said in found)]


def _problem(refusal: Refusal, rendering: RenderedInputs, *, can_be_forced: bool) -> Problem:
    """At the field of the plan that names the release."""
    unless = "".join(f"; {item.reason}" for item in refusal.step.step.skip_when) if can_be_forced else ""
    plan = plan_of(rendering.inputs)
    named = next((name for name in ("image", "version") if plan.body["spec"].get(name)), "version")
    remedy = f"{refusal.step.id} refuses this{unless}"
    return plan.problem(refusal.reason, refusal.message, ("spec", named), remedy=remedy)


def _text(model: Model) -> Iterator[str]:
    yield f"{model['plan']} is valid: {model['phases']} phases, {model['manifests']} manifests"
    yield f"digest: {model['digest']}"
    yield from pending_lines(model["pending"])
    yield from unknown_lines(model.get("preflight"))
