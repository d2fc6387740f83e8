"""Puts a diagnosis into one model (schemas/diagnose.json), and that into text and Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from reconcile.diagnosis.diagnosing import Diagnosis
from reconcile.diagnosis.of_status import UpgradeSubject
from reconcile.report.causes_found import cause_lines, cause_model
from reconcile.report.progress import Model, age_of
from reconcile.status.times import time_text
from renderer.model.ref import ref_of

_RESTART = {
    "allowed": "may be started again",
    "afterSupportBundle": "may be started again once a support bundle is taken",
    "notAllowed": "must not be started again",
}
_BY_CAUSE = {
    "notNeeded": "the upgrade continues automatically once this is repaired",
    "allowed": "the upgrade may be started again for this",
    "notAllowed": "do not start the upgrade again for this",
}

_COLUMNS = ("name", "state", "message")


def diagnosis_model(
    subject: UpgradeSubject | None, works: tuple[str, ...], found: Diagnosis, *, at: datetime, live: bool
) -> Model:
    """`subject` is None where no upgrade can be seen."""
    acted = [cause for cause in found.causes if not cause.patient] or list(found.causes)
    return {
        "upgrade": _upgrade(subject, works) if subject else None,
        "at": time_text(at),
        "live": live,
        "causes": [cause_model(cause) for cause in found.causes],
        "unread": list(found.unread),
        "next": acted[0].remedy if acted else "",
    }


def _upgrade(subject: UpgradeSubject, works: tuple[str, ...]) -> Model:
    return {
        "object": str(ref_of(subject.body)),
        "version": subject.version,
        "state": subject.state,
        "phase": subject.phases[0].name if subject.phases else "",
        "step": subject.step,
        "works": list(works),
        "nodes": [
            {"name": name, "state": state, "message": message} for name, (state, message) in subject.shown.items()
        ],
        "restart": subject.restart,
        "how": subject.how,
    }


def diagnosis_lines(model: Model) -> Iterator[str]:
    """The upgrade and where it is, its causes, what could not be read, and what to do first."""
    upgrade = model["upgrade"]
    if upgrade is None:
        yield "no UpgradePlan and no Upgrade found; only the cluster was looked at"
    else:
        yield f"{upgrade['object']}{_to(upgrade)}: {upgrade['state'] or 'not begun'}{_step(upgrade)}"
        yield from (f"  works: {name}" for name in upgrade["works"])
        for node in upgrade["nodes"]:
            said = f": {node['message']}" if node["message"] else ""
            yield f"  node {node['name']}: {node['state']}{said}"
    yield from cause_lines(model)
    yield from (f"  not read: {text}" for text in model["unread"])
    if not model["causes"]:
        yield "  no known cause was found"
    if upgrade and upgrade["restart"]:
        yield f"  restart: it {_RESTART[upgrade['restart']]}; {upgrade['how']}"
    if model["next"]:
        yield f"  next: {model['next']}"


def diagnosis_markdown(model: Model) -> Iterator[str]:
    """The same for an issue."""
    upgrade = model["upgrade"]
    yield "## Diagnosis"
    yield ""
    if upgrade:
        yield f"- {upgrade['object']}{_to(upgrade)}: **{upgrade['state'] or 'not begun'}**{_step(upgrade)}"
        yield from (f"- works: `{_code(name)}`" for name in upgrade["works"])
        if upgrade["restart"]:
            yield f"- it {_RESTART[upgrade['restart']]}: {_plain(upgrade['how'])}"
    else:
        yield "- no UpgradePlan and no Upgrade found; only the cluster was looked at"
    yield f"- at {model['at']}"
    if upgrade and upgrade["nodes"]:
        yield from ("", "| Node | State | Message |", "| --- | --- | --- |")
        yield from (
            f"| {_plain(n['name'])} | {_plain(n['state'])} | {_plain(n['message'])} |" for n in upgrade["nodes"]
        )
    for cause in model["causes"]:
        yield from ("", f"### {_plain(cause['title'] or cause['object'])}", "")
        where = f" (node {_plain(cause['node'])})" if cause["node"] else ""
        yield f"**{_plain(cause['object'])}**{where} {_plain(cause['what'])}{age_of(cause['since'], model['at'])}"
        yield from ("", "```", cause["remedy"].replace("```", "'''"), "```")
        if words := _BY_CAUSE.get(cause["restart"]):
            yield from ("", words)
        if cause["docs"]:
            yield from ("", f"<{cause['docs']}>")
    if not model["causes"]:
        yield from ("", "No known cause was found.")
    if model["unread"]:
        yield from ("", "Not read:", "", *(f"- {_plain(text)}" for text in model["unread"]))


def _to(upgrade: Model) -> str:
    return f" to {upgrade['version']}" if upgrade["version"] else ""


def _step(upgrade: Model) -> str:
    return f" (phase {upgrade['step']})" if upgrade["step"] else ""


def _plain(text: str) -> str:
    """Text of a cluster, of which nothing is markup."""
    for mark in "\\`*_<>[]|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _code(text: str) -> str:
    return text.replace("`", "'")
