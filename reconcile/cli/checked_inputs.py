"""The pre-flight checks of a run's inputs, for commands that ask for more than that: `validate` and `rehearse`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from reconcile.cli.connect import wall_clock
from renderer.cli.answer import Model, redactor
from renderer.model.check import CheckTime

if TYPE_CHECKING:
    from reconcile.preflight.check_result import CheckReport
    from renderer.assemble import TemplateSet
    from renderer.cli.input_options import InputOptions
    from renderer.documents import Inputs

BEFORE = tuple(time for time in CheckTime if time is not CheckTime.AFTER)
"""The times that lie before the end of an upgrade."""


def checked(inputs: Inputs, template_set: TemplateSet) -> CheckReport | None:
    """The answers of all checks; None for a plan that has begun, whose cluster is as upgrades make it."""
    from reconcile.preflight.check_context import checks_of
    from reconcile.preflight.on_inputs import check_inputs, given_in
    from renderer.model.path import look_up

    if inputs.plan and look_up(inputs.plan.body, ("status", "currentPhase")):
        return None
    given = given_in(inputs, template_set.catalog.kinds)
    return check_inputs(inputs, given, template_set, checks_of(template_set.catalog), BEFORE, wall_clock())


def unknown_model(report: CheckReport | None, given: InputOptions) -> Model | None:
    """The number of checks, those that could not be evaluated, and the command that says more; None where none was
    carried out."""
    from reconcile.preflight.check_result import CheckOutcome

    if report is None:
        return None
    ids = [result.check.id for result in report.results if result.outcome is CheckOutcome.UNKNOWN]
    following = _command(given) if ids else ""
    return {"checks": len(report.results), "unknown": len(ids), "ids": ids, "next": following}


def unknown_lines(model: Model | None) -> list[str]:
    """The same in two lines; none where every check could be evaluated."""
    if not model or not model["unknown"]:
        return []
    counts = f"{model['unknown']} of {model['checks']} checks could not be evaluated"
    return [f"pre-flight: {counts}; next: {model['next']}", f"  not evaluated: {', '.join(model['ids'])}"]


def _command(given: InputOptions) -> str:
    options = {"--plan": [given.plan], "--release": [given.release], "--cluster": given.cluster}
    options["--templates"] = given.templates
    words = [
        *given.files,
        *(word for key, values in options.items() for value in values if value for word in (key, value)),
    ]
    root = click.get_current_context().find_root().command_path
    return shlex.join([*root.split(), "preflight", *map(redactor().argument, words)])
