"""Environment variables of `run` that override values of the templates, as those of the Harvester Upgrade Manager do.

They change what is rendered, so they are part of its digests. No other command reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

from renderer.errors import Problem, Problems
from renderer.names import is_subdomain

VARIABLES: Mapping[str, str] = {
    "UPGRADE_JOB_SERVICE_ACCOUNT": "jobServiceAccount",
    "UPGRADE_PLAN_SERVICE_ACCOUNT": "planServiceAccount",
}
"""Each variable, and the value that it overrides."""

Overrides = Mapping[str, str]
"""Name of a value to what stands in its place."""


def overrides_of(environ: Mapping[str, str]) -> Overrides:
    """Those that are set and not empty. Raises `Problems` for what cannot be the name of a ServiceAccount."""
    given = {variable: environ[variable] for variable in VARIABLES if environ.get(variable)}
    problems = [_invalid(variable, text) for variable, text in given.items() if not is_subdomain(text)]
    if problems:
        raise Problems(problems)
    return {VARIABLES[variable]: text for variable, text in given.items()}


def named(overrides: Overrides, text: object) -> str:
    """The variables that give this text, for the end of a message; empty if none does."""
    found = [variable for variable, value in VARIABLES.items() if overrides.get(value) == text]
    return f" (set by the environment variable {' or '.join(found)})" if found else ""


def _invalid(variable: str, text: str) -> Problem:
    message = f"environment variable {variable}: {text!r} is not a name that a ServiceAccount can have"
    remedy = "use the name that kubectl get serviceaccounts shows, or unset the variable"
    return Problem(reason="InvalidName", message=message, remedy=remedy)
