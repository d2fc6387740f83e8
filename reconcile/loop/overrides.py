"""Environment variables of `run` that override values of the templates, as those of the Harvester Upgrade Manager do.

They change what is rendered, so they are part of its digests, except for those that no reviewer can know. No other
command reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from renderer.errors import Problem, Problems
from renderer.image_names import is_repository, is_tag
from renderer.names import is_subdomain


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """`key` is the value that it overrides; `expected` and `remedy` say what its text must be."""

    key: str
    fits: Callable[[str], bool]
    expected: str
    remedy: str


def _are_names(text: str) -> bool:
    return all(map(is_subdomain, text.split(",")))


def _account(key: str) -> Variable:
    remedy = "use the name that kubectl get serviceaccounts shows, or unset the variable"
    return Variable(key=key, fits=is_subdomain, expected="a name that a ServiceAccount can have", remedy=remedy)


VARIABLES: Mapping[str, Variable] = {
    "UPGRADE_JOB_SERVICE_ACCOUNT": _account("jobServiceAccount"),
    "UPGRADE_PLAN_SERVICE_ACCOUNT": _account("planServiceAccount"),
    "UPGRADEPLAN_IMAGE_REGISTRY": Variable(
        key="imageRegistry",
        fits=lambda text: is_repository(f"{text}/image"),
        expected="a registry, or a path in one",
        remedy="write it without scheme and tag, such as registry.example.com/harvester, or unset the variable",
    ),
    "UPGRADEPLAN_IMAGE_PULL_SECRETS": Variable(
        key="imagePullSecrets",
        fits=_are_names,
        expected="names of Secrets, separated by commas",
        remedy="use the names that kubectl get secrets shows, or unset the variable",
    ),
    "UPGRADEPLAN_TOOLKIT_TAG": Variable(
        key="toolkitTag",
        fits=is_tag,
        expected="a tag of an image",
        remedy="write a tag of the toolkit's image, such as v1.8.0, or unset the variable",
    ),
    "UPGRADEPLAN_IMAGE": Variable(
        key="managerImage",
        fits=lambda text: not re.search(r"\s", text),
        expected="an image",
        remedy="use that of the manager's Deployment, such as registry.example/upgradeplan:v1, or unset the variable",
    ),
}

_OF_THE_INSTALLATION = ("managerImage",)
"""Every installation sets it to what it runs, and no reviewer knows that: a plan that was approved from a laptop would
be held on each cluster."""

Overrides = Mapping[str, str]
"""Name of a value to what stands in its place."""


def overrides_of(environ: Mapping[str, str]) -> Overrides:
    """Those that are set and not empty. Raises `Problems` for each that is not what is expected of it."""
    given = {variable: environ[variable] for variable in VARIABLES if environ.get(variable)}
    problems = [_invalid(variable, text) for variable, text in given.items() if not VARIABLES[variable].fits(text)]
    if problems:
        raise Problems(problems)
    return {VARIABLES[variable].key: text for variable, text in given.items()}


def reviewed(overrides: Overrides) -> Overrides:
    """Those that are part of what is approved."""
    return {value: text for value, text in overrides.items() if value not in _OF_THE_INSTALLATION}


def named(overrides: Overrides, text: object) -> str:
    """The variables that give this text, for the end of a message; empty if none does."""
    found = [variable for variable, value in VARIABLES.items() if overrides.get(value.key) == text]
    return f" (set by the environment variable {' or '.join(found)})" if found else ""


def _invalid(name: str, text: str) -> Problem:
    variable = VARIABLES[name]
    message = f"environment variable {name}: {text!r} is not {variable.expected}"
    return Problem(reason="InvalidName", message=message, remedy=variable.remedy)
