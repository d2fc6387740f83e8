"""Puts a diagnosis into one model (schemas/diagnose.json), and that into text and Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from reconcile.diagnosis.diagnosing import Diagnosis
from reconcile.diagnosis.of_status import UpgradeSubject
from reconcile.report.causes_found import cause_lines, cause_model
from reconcile.report.progress import Model, age_of
from reconcile.status.times import time_text
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell, code, legible
from renderer.model.ref import ref_of

_LONGEST = 2_000
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


def diagnosis_blocks(model: Model) -> Iterator[Block]:
    """The same for an issue."""
    upgrade = model["upgrade"]
    yield from ("## Diagnosis", "")
    if upgrade:
        yield f"- {cell(upgrade['object'] + _to(upgrade))}: **{cell(upgrade['state'] or 'not begun')}**{_step(upgrade)}"
        yield from (f"- works: {code(name)}" for name in upgrade["works"])
        if upgrade["restart"]:
            yield f"- it {_RESTART[upgrade['restart']]}: {cell(upgrade['how'])}"
    else:
        yield "- no UpgradePlan and no Upgrade found; only the cluster was looked at"
    yield f"- at {model['at']}"
    nodes = upgrade["nodes"] if upgrade else ()
    rows = [(cell(node["name"]), cell(node["state"]), cell(node["message"])) for node in nodes]
    yield Table(heading=("Node", "State", "Message"), rows=rows, noun=("node", "nodes"))
    for cause in model["causes"]:
        yield from (f"### {cell(cause['title'] or cause['object'])}", "")
        where = f" (node {cell(cause['node'])})" if cause["node"] else ""
        what = cell(cause["what"], _LONGEST)
        yield f"**{cell(cause['object'])}**{where} {what}{age_of(cause['since'], model['at'])}"
        yield from ("", "```", legible(cause["remedy"]).replace("```", "'''"), "```")
        if words := _BY_CAUSE.get(cause["restart"]):
            yield from ("", words)
        if cause["docs"]:
            yield from ("", f"<{cause['docs']}>")
    if not model["causes"]:
        yield from ("", "No known cause was found.")
    if model["unread"]:
        yield from ("", "Not read:", "", *(f"- {cell(text)}" for text in model["unread"]))


def _to(upgrade: Model) -> str:
    return f" to {upgrade['version']}" if upgrade["version"] else ""


def _step(upgrade: Model) -> str:
    return f" (phase {upgrade['step']})" if upgrade["step"] else ""
