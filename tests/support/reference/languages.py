"""The pages for those who write templates: phases, probes, what a template may use, the other documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from renderer.catalog.probes import predicate_from
from renderer.catalog.rules import RULES, RuleSpec
from renderer.cli.context import context_model
from renderer.cli.input_options import InputOptions
from renderer.describe import describe_predicate
from support.reference.markdown import code, codes, page, section, table
from support.reference.schema_tables import sections
from support.reference.sources import kinds, phases, schema

_PROBES = ("probe", "predicate", "every", "operand", "target", "ref", "labels")
_OF_PROBES = dict.fromkeys(_PROBES, "probe-language.md")


def phase_language() -> str:
    whole = schema("phase")
    return page(
        "Phase language",
        "A phase is a folder `templates/NN-name/` with a `phase.yaml` and one Jinja template for each object."
        " The number"
        " gives the order. This page lists every key of `phase.yaml`; [the probe language](probe-language.md) describes"
        " probes, gates and triggers, [the template context](template-context.md) what templates and expressions"
        " may use.",
        section("Packaged phases", table(("Folder", "Phase", "Active", "Completed", "Deletion"), _packaged())),
        sections(whole, root="phase", elsewhere=_OF_PROBES),
    )


def _packaged() -> Iterator[tuple[str, ...]]:
    for folder, phase in phases():
        status = phase["status"]
        yield code(folder), phase["name"], code(status["active"]), code(status["completed"]), phase["deletion"]


def probe_language() -> str:
    whole = schema("phase")
    others = {name: "phase-language.md" for name in whole["$defs"] if name not in _PROBES}
    return page(
        "Probe language",
        "A probe looks at objects and answers with one of four outcomes: `passed`, `waiting`, `failed`, or `unknown` if"
        " it could not read them. Gates, triggers, `skipUnless` and the readiness rules of kinds are probes. A status"
        " that describes an older generation of the object is `waiting`.",
        sections(whole, elsewhere=others),
        section("Rules", _RULES, table(("Rule", "Passes if", "About", "Arguments"), map(_rule, RULES, RULES.values()))),
        section("Kinds", _KINDS, table(("Kind", "API version", "Ready if", "Failed if"), _kinds())),
    )


_RULES = (
    "A rule covers what needs arithmetic or several objects: `{rule: {name: podReady}}`. Arguments stand beside the"
    " name. An argument in parentheses is optional."
)
_KINDS = (
    "`{builtin: true}` means the readiness rule of the object's kind, from `_kinds/` of the template tree. A"
    " kind without"
    " a rule cannot be used with it: that is an error when the templates are loaded."
)


def _rule(name: str, rule: RuleSpec) -> tuple[str, ...]:
    about = " and ".join(rule.kinds) or "the cluster"
    arguments = [code(argument) for argument in rule.required] + [f"({code(name)})" for name in rule.optional]
    return code(name), rule.words, about, ", ".join(arguments)


def _kinds() -> Iterator[tuple[str, ...]]:
    for _, row in kinds():
        ready = row.get("ready") or {}
        yield row["kind"], code(row["apiVersion"]), _said(ready.get("all", ())), _said(ready.get("fails", ()), " or ")


def _said(predicates: Iterable[Mapping[str, Any]], joint: str = " and ") -> str:
    return joint.join(describe_predicate(predicate_from(item)) for item in predicates)


def template_context() -> str:
    return page(
        "Template context",
        _CONTEXT,
        section("Names", table(("Name", "Type", "Comes from"), _names())),
        section("Per phase", _PER_PHASE, table(("Phase", "Names"), _own_names())),
        section("Functions", table(("Function", "Answers"), _functions())),
        section("Filters", f"{codes(_models()[0]['filters'])}.", _FILTERS),
    )


_CONTEXT = (
    "What a template, an expression of `when` or `skipWhen`, and a `{{ ... }}` in `phase.yaml` may use. An"
    " unknown name is"
    " an error. `upgradeplan phases NAME --context` prints the same for one phase, with the values of your"
    " inputs if they"
    " are given."
)
_PER_PHASE = "These exist only in some phases: `captured` and `fetched` values of their steps."
_FILTERS = (
    "`quote` writes a value so that every YAML reader takes it as it is; use it for every text in a manifest. Other"
    " filters, and everything that reaches outside the template, are refused."
)


@cache
def _models() -> list[Mapping[str, Any]]:
    return [context_model(phase["name"], InputOptions()) for _, phase in phases()]


def _names() -> Iterator[tuple[str, ...]]:
    in_all = set.intersection(*({item["name"] for item in model["names"]} for model in _models()))
    for model in _models()[-2:-1]:  # the one with nodes has them all
        for item in model["names"]:
            if item["name"] in in_all or item["name"].startswith("node."):
                yield code(item["name"]), item["type"], item["givenBy"].removeprefix("give ")


def _own_names() -> Iterator[tuple[str, ...]]:
    for model in _models():
        own = [item["name"] for item in model["names"] if item["name"].startswith(("captured.", "fetched."))]
        yield model["phase"], codes(own)


def _functions() -> Iterator[tuple[str, ...]]:
    for item in _models()[0]["functions"]:
        yield code(item["name"] + item["signature"]), item["description"]


def documents() -> str:
    """What is read beside the plan, and what the templates' other files hold."""
    return page(
        "Documents",
        _DOCUMENTS,
        *map(_document, _OTHERS),
    )


_OTHERS = (
    *("release", "facts", "cluster-values", "waves", "rendered-plan", "rendered-clusters"),
    *("resolved-gate", "journal", "log-line", "log-record", "values"),
    *("kinds", "node-states", "diff-rules", "redaction-rules"),
    *("checks", "causes", "built-in-upgrade", "release-notes", "delivery-rules"),
)
_DOCUMENTS = (
    "Documents that upgradeplan reads and writes, beside the [UpgradePlan](upgradeplan.md) and objects of the cluster"
    " as `kubectl get -o yaml` prints them."
)


def install_values() -> str:
    """The values that `install` and the chart take."""
    return page(
        "Values of an installation", _VALUES, sections(schema("install-values"), root="values", prefix="values.")
    )


_VALUES = (
    "Keys of a file for `upgradeplan install --values` or for helm, each of which may be left out. "
    "[templates/install/values.yaml](../../templates/install/values.yaml) has the defaults; how to use them is in "
    "[install](../install.md#values)."
)


def _document(name: str) -> str:
    whole = schema(name)
    return section(whole["title"], sections(whole, root=name, prefix=f"{name}.", level=3))
