"""The table of pages: file name to what writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from support.reference.api import annotation_table, conditions, events, node_states, reason_catalogue, upgrade_plan
from support.reference.causes import cause_table
from support.reference.checks import check_table
from support.reference.languages import documents, install_values, phase_language, probe_language, template_context
from support.reference.markdown import page
from support.reference.metrics import metrics
from support.reference.program import answers, commands, exit_codes


def overview() -> str:
    return page("Reference", *("\n".join([f"**{title}**", "", *rows]) for title, rows in _OVERVIEW.items()))


_OVERVIEW: Mapping[str, tuple[str, ...]] = {
    "Running an upgrade": (
        "- [UpgradePlan](upgradeplan.md): every field of spec and status",
        "- [Annotations and labels](annotations.md): what you may set, and what is read and written",
        "- [Conditions](conditions.md), [events](events.md), [node states](node-states.md)",
        "- [Pre-flight checks](checks.md): what is checked, when, and what accepts it",
        "- [Known causes](causes.md): what `explain` and `diagnose` look for, and what to do",
        "- [Reasons](reasons.md): every reason, its effect on the upgrade, and what to do",
        "- [Metrics](metrics.md) for Prometheus",
        "- [Commands](commands.md), [exit codes](exit-codes.md), [JSON output](json.md)",
        "- [Documents](documents.md): release, facts, rendered plan, journal, log lines, files of a template tree",
        "- [Values of an installation](install-values.md)",
    ),
    "Writing templates": (
        "- [Phase language](phase-language.md): `phase.yaml`",
        "- [Probe language](probe-language.md): probes, gates, rules, readiness of kinds",
        "- [Template context](template-context.md): names, functions and filters",
    ),
}

PAGES: Mapping[str, Callable[[], str]] = {
    "README.md": overview,
    "annotations.md": annotation_table,
    "causes.md": cause_table,
    "checks.md": check_table,
    "commands.md": commands,
    "conditions.md": conditions,
    "documents.md": documents,
    "events.md": events,
    "exit-codes.md": exit_codes,
    "install-values.md": install_values,
    "json.md": answers,
    "metrics.md": metrics,
    "node-states.md": node_states,
    "phase-language.md": phase_language,
    "probe-language.md": probe_language,
    "reasons.md": reason_catalogue,
    "template-context.md": template_context,
    "upgradeplan.md": upgrade_plan,
}
