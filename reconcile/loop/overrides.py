"""Environment variables of `run` that override values of the templates, as those of the Harvester Upgrade Manager do.

They change what is rendered, so they are part of its digests, but for those that no reviewer can know. No other
command reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from renderer.errors import Problem, Problems
from renderer.names import is_subdomain

_IMAGE = "UPGRADEPLAN_IMAGE"
VARIABLES: Mapping[str, str] = {
    "UPGRADE_JOB_SERVICE_ACCOUNT": "jobServiceAccount",
    "UPGRADE_PLAN_SERVICE_ACCOUNT": "planServiceAccount",
    _IMAGE: "managerImage",
}
"""Each variable, and the value that it overrides."""

_OF_THE_INSTALLATION = ("managerImage",)
"""Every installation sets it to what it runs, and no reviewer knows that: a plan that was approved from a laptop would
be held on each cluster."""

Overrides = Mapping[str, str]
"""Name of a value to what stands in its place."""


def overrides_of(environ: Mapping[str, str]) -> Overrides:
    """Those that are set and not empty. Raises `Problems` for what no value can be."""
    given = {variable: environ[variable] for variable in VARIABLES if environ.get(variable)}
    problems = [_invalid(variable, text) for variable, text in given.items() if not _is_valid(variable, text)]
    if problems:
        raise Problems(problems)
    return {VARIABLES[variable]: text for variable, text in given.items()}


def reviewed(overrides: Overrides) -> Overrides:
    """Those that are part of what is approved."""
    return {value: text for value, text in overrides.items() if value not in _OF_THE_INSTALLATION}


def named(overrides: Overrides, text: object) -> str:
    """The variables that give this text, for the end of a message; empty if none does."""
    found = [variable for variable, value in VARIABLES.items() if overrides.get(value) == text]
    return f" (set by the environment variable {' or '.join(found)})" if found else ""


def _is_valid(variable: str, text: str) -> bool:
    return not re.search(r"\s", text) if variable == _IMAGE else is_subdomain(text)


def _invalid(variable: str, text: str) -> Problem:
    if variable == _IMAGE:
        what, remedy = "an image", "use the image of the manager's Deployment, such as registry.example/upgradeplan:v1"
    else:
        what = "a name that a ServiceAccount can have"
        remedy = "use the name that kubectl get serviceaccounts shows"
    message = f"environment variable {variable}: {text!r} is not {what}"
    return Problem(reason="InvalidName", message=message, remedy=f"{remedy}, or unset the variable")
