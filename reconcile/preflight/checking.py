"""Carries out checks on what a `Look` shows. All offenders of all checks are returned, each by its usual name.

What could not be looked at is unknown, never passed and never found; what is not known about plan or release likewise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconcile.preflight.accepting import acceptance_of
from reconcile.preflight.check_context import CheckContext
from reconcile.preflight.check_result import (
    FOUND,
    CheckFinding,
    CheckOutcome,
    CheckReport,
    CheckResult,
    finding_text,
)
from reconcile.preflight.noting import NotingFailures
from reconcile.probes.evaluate import evaluate
from reconcile.probes.field_predicate import shown_at
from reconcile.probes.look import Group, Look, ReadFailure
from reconcile.probes.verdict import ProbeResult, Verdict
from renderer.catalog.checks import DeclaredCheck
from renderer.catalog.probes import probe_from
from renderer.catalog.upgrade_notes import upgrade_notes
from renderer.context.checks import LATE_INPUT, MISSING_INPUT, missing_input
from renderer.errors import Problems
from renderer.model.check import CheckTime
from renderer.model.probe import FieldPredicate, Probe
from renderer.model.ref import Body, Ref
from renderer.render.declaration import DeclarationFiller

_FOUND = "<found>"


def run_checks(
    checks: Iterable[DeclaredCheck],
    look: Look,
    context: CheckContext,
    when: Collection[CheckTime],
    node: str | None = None,
) -> CheckReport:
    """The answers of all checks of these times. One that speaks of `node` runs for that node, or for each.

    Raises `Problems` for a declaration that cannot be carried out.
    """
    chosen = [declared for declared in checks if set(declared.check.when).intersection(when)]
    return report_of([run_check(item, look, context, when, node) for item in chosen], context)


def report_of(results: Iterable[CheckResult], context: CheckContext) -> CheckReport:
    """The answers of all checks, and what is known about the upgrade."""
    return CheckReport(results=tuple(results), upgrade=upgrade_notes(context.names.given, context.releases))


def run_check(
    declared: DeclaredCheck, look: Look, context: CheckContext, when: Collection[CheckTime], node: str | None = None
) -> CheckResult:
    """The answer of one check."""
    return _Run(declared, look, context, node).result(when)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The answer for one node, or for the cluster. `applies` is empty where the check does, else the reason."""

    applies: str = ""
    reason: str = ""
    findings: tuple[CheckFinding, ...] = ()
    read_failures: tuple[ReadFailure, ...] = ()
    undecided: tuple[Ref, ...] = ()
    notes: tuple[str, ...] = ()


class _Run:
    """One check on one cluster."""

    def __init__(self, declared: DeclaredCheck, look: Look, context: CheckContext, node: str | None) -> None:
        self._declared = declared
        self._check = declared.check
        self._look = look
        self._context = context
        self._node = node
        self._field = next((item for item in declared.check.probe.all if isinstance(item, FieldPredicate)), None)
        self._filler = DeclarationFiller(templates=context.templates)
        context.templates.begin()

    def result(self, when: Collection[CheckTime]) -> CheckResult:
        check = self._check
        if check.off is not None:
            return CheckResult(check=check, outcome=CheckOutcome.NOT_APPLICABLE, reason=f"switched off: {check.off}")
        result = self._merged(list(self._parts()))
        if result.outcome in (CheckOutcome.PASSED, CheckOutcome.NOT_APPLICABLE):
            return result
        accepted = acceptance_of(check, self._context.plan, when)
        return replace(result, outcome=CheckOutcome.ACCEPTED, accepted=accepted) if accepted else result

    def _merged(self, parts: list[_Part]) -> CheckResult:
        """The check's answer for all nodes: a finding counts before what could not be seen."""
        judged = [part for part in parts if not part.applies]
        findings = tuple(finding for part in judged for finding in part.findings)
        failures = tuple(dict.fromkeys(item for part in judged for item in part.read_failures))
        if findings:
            outcome, reason = FOUND[self._check.severity], findings[0].text
        elif failures:
            outcome, reason = CheckOutcome.UNKNOWN, "; ".join(dict.fromkeys(item.why for item in failures))
        elif judged:
            outcome, reason = CheckOutcome.PASSED, judged[0].reason if len(judged) == 1 else self._check.title
        else:
            outcome, reason = CheckOutcome.NOT_APPLICABLE, parts[0].applies if parts else "there is no node"
        notes = tuple(dict.fromkeys(note for part in judged for note in part.notes))
        return CheckResult(
            check=self._check,
            outcome=outcome,
            reason=reason,
            findings=findings,
            read_failures=failures,
            undecided=tuple(dict.fromkeys(ref for part in judged for ref in part.undecided)),
            notes=notes,
        )

    def _parts(self) -> Iterator[_Part]:
        try:
            nodes = self._nodes() if self._check.per_node else (None,)
        except Problems as error:
            yield _missing_input(error)
            return
        for node in nodes:
            try:
                yield self._part(node)
            except Problems as error:
                yield _missing_input(error)

    def _nodes(self) -> tuple[Mapping[str, Any], ...]:
        nodes = tuple(self._context.names.names["cluster"]["nodes"])
        return tuple(node for node in nodes if self._node in (None, node["name"]))

    def _part(self, node: Mapping[str, Any] | None) -> _Part:
        """Raises `Problems`, those for an input that was not given among them."""
        look = NotingFailures(self._look)
        names = {**self._context.names.names, "installed": _installed(look), **({"node": node} if node else {})}
        applies, document = self._check.applies, self._declared.document
        if applies and not self._context.templates.evaluate(applies.expr, names, of=document):
            return _Part(applies=applies.reason)
        verdict = evaluate(self._probe(names), look, self._context.probes)
        name = node["name"] if node else ""
        found = [item for item in verdict.singles if item.outcome is not ProbeResult.UNKNOWN]
        unknown = [item for item in verdict.singles if item.outcome is ProbeResult.UNKNOWN]
        passes = self._check.passes_when
        if found and passes and self._context.templates.evaluate(passes.expr, names, of=document):
            notes = tuple(self._finding(item, look, names, name, passes.says).text for item in found)
            found, verdict = [], replace(verdict, reason=notes[0], warnings=(*verdict.warnings, *notes))
        return _Part(
            reason=verdict.reason,
            findings=tuple(self._finding(item, look, names, name, self._check.says) for item in found),
            read_failures=tuple(_read_failures(unknown, look)),
            undecided=tuple(ref for item in unknown for ref in item.offenders),
            notes=verdict.warnings,
        )

    def _probe(self, names: Mapping[str, Any]) -> Probe:
        raw = self._declared.raw["probe"]
        filled = self._filler.fill(raw, names, self._declared.document)
        return self._check.probe if filled is raw else probe_from(filled)

    def _finding(
        self, verdict: Verdict, look: Look, names: Mapping[str, Any], node: str, says: str | None
    ) -> CheckFinding:
        """`says` are the check's words for what is wrong with an object."""
        ref = verdict.offenders[0] if verdict.offenders else None
        reason = " ".join(verdict.reason.split())
        body = _body(ref, look) if ref else {}
        words = {**self._context.names.given, "object": body, "reason": _bare(reason, ref)}
        if "node" in names:
            words["node"] = names["node"]
        offender = (self._message(self._check.offender, words) if ref and self._check.offender else "") or _called(ref)
        said = self._says(says, body, words) if ref and says and body.get("metadata") else _bare(reason, ref)
        return CheckFinding(
            ref=ref,
            offender=offender,
            says=said,
            text=finding_text(offender, said, node),
            remedy=self._message(self._check.remedy, words),
            node=node,
            proof=reason if verdict.outcome is ProbeResult.FAILED else "",
        )

    def _says(self, says: str, body: Body, words: Mapping[str, Any]) -> str:
        text = self._message(says, words)
        return (
            text.replace(_FOUND, shown_at(body, self._field.path, self._context.probes.redactor))
            if self._field and _FOUND in text
            else text
        )

    def _message(self, text: str, words: Mapping[str, Any]) -> str:
        return " ".join(self._context.templates.render_message(text, words, of=self._declared.document).split())


def _called(ref: Ref | None) -> str:
    return " ".join(str(ref).split()) if ref else ""


def _bare(reason: str, ref: Ref | None) -> str:
    """The reason without the name of the object, which stands before it."""
    name = _called(ref)
    return reason.removeprefix(f"{name}: ").removeprefix(f"{name} ") if name else reason


def _body(ref: Ref, look: Look) -> Body:
    """The object; without more than its ref where it is not there."""
    found = look.get(ref)
    if found is not None and not isinstance(found, ReadFailure):
        return found
    return {"apiVersion": ref.api_version, "kind": ref.kind}


def _installed(look: Look) -> Any:
    def installed(api_version: str, kind: str) -> bool:
        """True if there is any object of the kind."""
        found = look.list(Group(api_version=api_version, kind=kind))
        if isinstance(found, ReadFailure):
            raise missing_input(found.why, found.remedy or "")
        return bool(found)

    return installed


def _read_failures(unknown: Iterable[Verdict], look: NotingFailures) -> Iterator[ReadFailure]:
    """The reads that failed; where none did, what the verdicts say."""
    verdicts = list(unknown)
    if not verdicts:
        return
    if not look.failures:
        yield from (ReadFailure(why=" ".join(verdict.reason.split())) for verdict in verdicts)
    yield from look.failures


def _missing_input(error: Problems) -> _Part:
    """An input that was not given, or is not there yet. Raises what is anything else."""
    if any(problem.reason not in (MISSING_INPUT, LATE_INPUT) for problem in error.problems):
        raise error
    failures = (
        ReadFailure(why=item.message, remedy=item.remedy, out_of_reach=item.reason == LATE_INPUT)
        for item in error.problems
    )
    return _Part(read_failures=tuple(failures))
