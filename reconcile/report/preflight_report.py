"""Puts the answers of checks into one model (schemas/preflight.json), and that into text, JUnit's XML and Markdown.

Pure. People are shown what is not passed, and how many are; machines get everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from reconcile.preflight.accepting import how_to_accept
from reconcile.preflight.check_result import CheckFinding, CheckOutcome, CheckReport, CheckResult
from reconcile.preflight.machines import MachineTable
from reconcile.probes.look import ReadFailure
from reconcile.report.machine_report import machine_blocks, machine_lines, machines_model
from reconcile.report.release_report import upgrade_blocks, upgrade_lines, upgrade_model
from renderer.columns import aligned
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell, cell_lines, codes, legible

Model = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWords:
    """The words around the answers: `title` of a page, `suite` for JUnit, and what is said of the whole where something
    blocks and where nothing does. `after`: of the notes on the releases only those for the time after an upgrade."""

    title: str
    suite: str
    blocked: str
    clear: str
    after: bool = False


BEFORE_AN_UPGRADE = CheckWords(title="Pre-flight", suite="preflight", blocked="blocked", clear="nothing blocks")
AFTER_AN_UPGRADE = CheckWords(
    title="Verification", suite="verify", blocked="not as expected", clear="as expected", after=True
)

_HEADING = ("OUTCOME", "CHECK", "FINDING")
_ORDER = tuple(outcome.value for outcome in CheckOutcome)
"""From what is gravest."""
_LOOKED_IN_PART = (CheckOutcome.UNKNOWN, CheckOutcome.WARNED, CheckOutcome.ADVISED)
_QUIET = (CheckOutcome.PASSED, CheckOutcome.NOT_APPLICABLE)
_SAID: Mapping[str, str] = {"notApplicable": "not applicable"}


def preflight_model(
    report: CheckReport,
    machines: MachineTable | None,
    *,
    plan: str,
    at: datetime,
    live: bool,
    words: CheckWords = BEFORE_AN_UPGRADE,
    notes: bool = True,
) -> Model:
    """`plan` is empty where none was given, `machines` None where they are not shown. `notes`: so are those on the
    releases."""
    return {
        "plan": plan,
        "at": at.replace(microsecond=0).isoformat().replace("+00:00", "Z"),
        "live": live,
        "blocked": report.counts[CheckOutcome.BLOCKED] > 0,
        "counts": {outcome.value: count for outcome, count in report.counts.items()},
        "checks": [_check(result) for result in report.results],
        **({"machines": machines_model(machines)} if machines else {}),
        **({"upgrade": upgrade_model(report.upgrade, after=words.after)} if notes and report.upgrade else {}),
    }


def _check(result: CheckResult) -> Model:
    check = result.check
    return {
        "id": check.id,
        "title": check.title,
        "severity": check.severity.value,
        "when": [time.value for time in check.when],
        "outcome": result.outcome.value,
        "reason": result.reason,
        "findings": [_finding(item) for item in result.findings],
        "readFailures": [_failure(item) for item in result.read_failures],
        "notes": list(result.notes),
        "accept": how_to_accept(check),
        "accepted": {"by": result.accepted.by, "value": result.accepted.value} if result.accepted else None,
    }


def _failure(failure: ReadFailure) -> Model:
    return {"why": failure.why, "remedy": failure.remedy or "", "outOfReach": failure.out_of_reach}


def _finding(item: CheckFinding) -> Model:
    ref = item.ref
    return {
        "object": {"apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
        if ref
        else None,
        "offender": item.offender,
        "says": item.says,
        "text": item.text,
        "remedy": item.remedy,
        "node": item.node,
    }


def preflight_lines(model: Model, *, everything: bool = False) -> Iterator[str]:
    """A table of what is not passed, or of everything; what files can never say; the virtual machines; how many checks
    came to each outcome."""
    checks = model["checks"]
    shown = [check for check in checks if everything or (_is_loud(check) and not is_out_of_reach(check))]
    rows = [row for group in _groups(shown) for row in _rows(group)]
    if rows:
        yield from aligned([_HEADING, *rows])
    for check in checks:
        yield from (f"note: {check['id']}: {note}" for note in check["notes"])
    never = [check["id"] for check in checks if is_out_of_reach(check)]
    if never and not everything:
        whys = dict.fromkeys(
            item["why"] for check in checks if is_out_of_reach(check) for item in check["readFailures"]
        )
        yield f"not looked at, {'; '.join(whys)}: {', '.join(never)}"
    if "upgrade" in model:
        yield from upgrade_lines(model["upgrade"], _content(model, everything))
    machines = list(machine_lines(model["machines"], everything=everything)) if "machines" in model else []
    if machines:
        yield from ("", *machines, "")
    yield count_line(model)


def _content(model: Model, everything: bool) -> frozenset[str]:
    """The checks that found nothing, for whom nobody needs to read a note; none where everything is shown."""
    return frozenset(check["id"] for check in model["checks"] if not everything and not _is_loud(check))


def count_line(model: Model) -> str:
    """`4 checks: 1 blocked, 3 passed`."""
    counts = [f"{count} {_SAID.get(name, name)}" for name, count in model["counts"].items() if count]
    total = len(model["checks"])
    return f"{total} check{'' if total == 1 else 's'}: {', '.join(counts) or 'none was carried out'}"


def is_out_of_reach(check: Model) -> bool:
    """True if no input of this sort could have answered."""
    return check["outcome"] == CheckOutcome.UNKNOWN and all(item["outOfReach"] for item in check["readFailures"])


def could_not_look(model: Model) -> bool:
    """True if something that this sort of input could have answered did not, be it a part of what a check asks."""
    judged = (check for check in model["checks"] if check["outcome"] in _LOOKED_IN_PART)
    return any(not item["outOfReach"] for check in judged for item in check["readFailures"])


def _is_loud(check: Model) -> bool:
    return check["outcome"] not in _QUIET


def _groups(checks: Sequence[Model]) -> list[list[Model]]:
    """The checks, the gravest first; those that lack the same input stand together."""
    found: dict[str, list[Model]] = {}
    for check in sorted(checks, key=lambda check: _ORDER.index(check["outcome"])):
        lacks = check["outcome"] == CheckOutcome.UNKNOWN and repr(check["readFailures"])
        found.setdefault(lacks or check["id"], []).append(check)
    return list(found.values())


def _rows(checks: Sequence[Model]) -> Iterator[tuple[str, str, str]]:
    """The lines of a check, or of several that say the same; only the first line names it."""
    check, *others = checks
    lines = list(_texts(check)) or [check["reason"]]
    lines += [f"  needed as well by: {', '.join(other['id'] for other in others)}"] if others else []
    yield _SAID.get(check["outcome"], check["outcome"]), check["id"], lines[0]
    yield from (("", "", line) for line in lines[1:])


def _texts(check: Model) -> Iterator[str]:
    for remedy, findings in _by_remedy(check["findings"]):
        yield from (finding["text"] for finding in findings)
        if not check["accepted"]:
            yield f"  remedy: {remedy}"
    for item in check["readFailures"]:
        yield item["why"]
        if item["remedy"]:
            yield f"  give it: {item['remedy']}"
    if check["accepted"]:
        yield f"  accepted by {check['accepted']['by']}: {check['accepted']['value']}"
    elif check["outcome"] == CheckOutcome.BLOCKED and check["accept"]:
        yield f"  accept the risk: {check['accept']}"


def _by_remedy(findings: Iterable[Model]) -> Iterator[tuple[str, Sequence[Model]]]:
    """The findings that share a remedy, in the order of the first of each."""
    found: dict[str, list[Model]] = {}
    for finding in findings:
        found.setdefault(finding["remedy"], []).append(finding)
    yield from found.items()


# --------------------------------------------------------------------------------------------- for other programs


def junit_lines(model: Model, *, words: CheckWords = BEFORE_AN_UPGRADE) -> Iterator[str]:
    """A test suite: what blocks has failed, what could not be looked at is an error, what does not count is skipped."""
    checks = model["checks"]
    blocked, unknown = model["counts"]["blocked"], sum(_is_error(check) for check in checks)
    skipped = sum(_is_skipped(check) for check in checks)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield "<testsuites>"
    yield (
        f'  <testsuite name="{words.suite}" tests="{len(checks)}" failures="{blocked}" errors="{unknown}" '
        f'skipped="{skipped}" timestamp="{model["at"].removesuffix("Z")}">'
    )
    for check in checks:
        yield from _test_case(check)
    yield "  </testsuite>"
    yield "</testsuites>"


def _is_error(check: Model) -> bool:
    return check["outcome"] == CheckOutcome.UNKNOWN and not is_out_of_reach(check)


def _is_skipped(check: Model) -> bool:
    return is_out_of_reach(check) or check["outcome"] in (CheckOutcome.NOT_APPLICABLE, CheckOutcome.ACCEPTED)


def _test_case(check: Model) -> Iterator[str]:
    head = f"    <testcase classname={_quoted(check['severity'])} name={_quoted(check['id'])}"
    element = (
        "failure"
        if check["outcome"] == CheckOutcome.BLOCKED
        else "error"
        if _is_error(check)
        else "skipped"
        if _is_skipped(check)
        else "system-out"
        if _is_loud(check)
        else ""
    )
    if not element:
        yield f"{head}/>"
        return
    message = "" if element == "system-out" else f" message={_quoted(check['reason'])}"
    yield f"{head}>"
    yield f"      <{element}{message}>{escape(legible(chr(10).join(_texts(check)) or check['reason']))}</{element}>"
    yield "    </testcase>"


def _quoted(text: str) -> str:
    return quoteattr(legible(text))


# ---------------------------------------------------------------------------------------------- for a pull request


def preflight_blocks(
    model: Model, *, words: CheckWords = BEFORE_AN_UPGRADE, everything: bool = False
) -> Iterator[Block]:
    """For a pull request or a ticket: the checks that have not passed, or all, the gravest first; what is known about
    the releases; every virtual machine."""
    of = f" of {cell(model['plan'])}" if model["plan"] else ""
    yield f"### {words.title}{of}: {words.blocked if model['blocked'] else words.clear}"
    yield from ("", f"**{count_line(model)}**")
    shown = [check for check in model["checks"] if everything or (_is_loud(check) and not is_out_of_reach(check))]
    shown.sort(key=lambda check: _ORDER.index(check["outcome"]))
    rows = [tuple(_markdown_row(check)) for check in shown]
    yield Table(heading=("outcome", "check", "finding"), rows=rows, noun=("check", "checks"))
    never = [check["id"] for check in model["checks"] if is_out_of_reach(check)]
    if never and not everything:
        yield from ("", f"Not looked at, since no input of this sort can answer: {codes(never)}")
    if "upgrade" in model:
        yield from upgrade_blocks(model["upgrade"], _content(model, everything))
    if "machines" in model:
        yield from machine_blocks(model["machines"])


def _markdown_row(check: Model) -> Iterator[str]:
    yield _SAID.get(check["outcome"], check["outcome"])
    yield f"`{check['id']}`: {cell(check['title'])}"
    yield cell_lines(_texts(check)) or cell(check["reason"])
