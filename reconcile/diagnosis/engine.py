"""Looks for all known causes in a situation. Pure; causes that resolve themselves come last.

A cause is data: its sign is a pattern, a named search, a pre-flight check or an answer of the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconcile.diagnosis.cause_context import blamed, names_of
from reconcile.diagnosis.chain import DiagnosisInput, matches_of
from reconcile.diagnosis.searches.table import SEARCHERS
from reconcile.diagnosis.situation import Cause, Situation
from reconcile.preflight.check_context import CheckContext
from reconcile.preflight.check_result import CheckFinding
from reconcile.preflight.checking import run_check
from reconcile.probes.look import ProbeContext, ReadFailure
from renderer.catalog.causes import DeclaredCause
from renderer.catalog.checks import DeclaredCheck
from renderer.model.known_cause import Answered, CauseMoment, FoundByCheck, KnownCause, Pattern, Search
from renderer.patterns import compiled
from renderer.templating import Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """All that is known about trouble: causes, and the checks that some of them mean.
    `check_context` is all that checks and texts see of plan, release and nodes."""

    causes: tuple[DeclaredCause, ...]
    checks: Mapping[str, DeclaredCheck]
    check_context: CheckContext

    @property
    def templates(self) -> Templates:
        return self.check_context.templates

    @property
    def probes(self) -> ProbeContext:
        return self.check_context.probes


def causes_of(knowledge: Knowledge, situation: Situation, given: DiagnosisInput) -> tuple[Cause, ...]:
    """All causes, each once. Those that resolve themselves come last. Raises `Problems` for a text that cannot be
    filled in."""
    names, found = names_of(situation), _Found()
    for declared in knowledge.causes:
        if _is_looked_for(declared.cause, situation):
            knowledge.templates.begin()
            for cause in _CauseSearch(declared, knowledge, situation, given, names).causes():
                found.add(cause, declared.cause.unless)
    return tuple(sorted(found.causes, key=lambda cause: cause.patient))


class _Found:
    """The causes so far; no object is named twice for the same reason, or if a cause excludes it."""

    def __init__(self) -> None:
        self.causes: dict[Cause, None] = {}
        self._named: dict[tuple[str, str], None] = {}

    def add(self, cause: Cause, unless: Iterable[str]) -> None:
        if not any((name, cause.about) in self._named for name in unless):
            self.causes[cause] = None
            self._named[cause.id, cause.about] = None


def _is_looked_for(cause: KnownCause, situation: Situation) -> bool:
    moment = CauseMoment.DELETING if situation.leaving else CauseMoment.WAITING
    fits = not (cause.phases and situation.phases) or bool(set(cause.phases).intersection(situation.phases))
    return cause.off is None and moment in cause.moments and fits


class _CauseSearch:
    """One known cause in one situation."""

    def __init__(
        self,
        declared: DeclaredCause,
        knowledge: Knowledge,
        situation: Situation,
        given: DiagnosisInput,
        names: Mapping[str, Any],
    ) -> None:
        self._cause = declared.cause
        self._document = declared.document
        self._knowledge = knowledge
        self._situation = situation
        self._sight = given
        self._names = names

    def causes(self) -> Iterator[Cause]:
        for found in self._signs():
            yield replace(
                found,
                id=self._cause.id,
                title=self._cause.title,
                docs=self._cause.docs,
                restart=self._cause.restart.value,
            )

    def _signs(self) -> Iterator[Cause]:
        match self._cause.sign:
            case Pattern() as pattern:
                for known in matches_of(pattern, self._cause.chain, self._sight):
                    yield from self._told(known)
            case Search() as search:
                yield from self._searched(search)
            case FoundByCheck(check=check):
                yield from self._findings(check)
            case Answered(matches=text):
                yield from self._answers(text)

    def _told(self, known: Mapping[str, Any]) -> Iterator[Cause]:
        """The cause of a match, if its condition holds."""
        names = {**self._names, **known}
        if self._fits(names):
            bare = Cause(object=blamed(known[self._cause.object_of]), what="", remedy="")
            yield self._worded(bare, names)

    def _searched(self, search: Search) -> Iterator[Cause]:
        """The finds of a search, if its words match."""
        for found in SEARCHERS[search.name](self._situation):
            groups: Mapping[str, str] = {}
            if search.says is not None:
                pattern, longest = compiled(search.says)
                if (match := pattern.search(found.what[:longest])) is None:
                    continue
                groups = match.groupdict(default="")
            yield self._worded(found, {"found": {**groups, "what": found.what, "node": found.node}})

    def _findings(self, check: str) -> Iterator[Cause]:
        declared, context = self._knowledge.checks.get(check), self._knowledge.check_context
        if declared is None or not self._fits(self._names):
            return
        result = run_check(declared, self._sight.look, context, declared.check.when)
        for found in filter(self._is_measured, result.findings):
            bare = Cause(object=found.offender or "cluster", what=found.says, remedy=found.remedy, node=found.node)
            yield self._worded(bare, self._names)

    def _is_measured(self, found: CheckFinding) -> bool:
        """True unless the object does not exist at all, which does not explain why an upgrade waits."""
        body = self._sight.look.get(found.ref) if found.ref else None
        return bool(found.proof) or (body is not None and not isinstance(body, ReadFailure))

    def _answers(self, text: str) -> Iterator[Cause]:
        pattern, longest = compiled(text)
        if found := pattern.search(self._situation.refused[:longest]):
            refusal = {**found.groupdict(default=""), "text": self._situation.refused}
            yield self._worded(
                Cause(object=f"UpgradePlan {self._situation.plan}", what="", remedy=""),
                {**self._names, "refusal": refusal},
            )

    def _worded(self, found: Cause, known: Mapping[str, Any]) -> Cause:
        """With the words of the file where it has any."""
        names = {**self._names, **known}
        cause = self._cause
        patient = found.patient or (cause.patience is not None and self._holds(cause.patience, names))
        remedy = cause.wait if patient and cause.wait else cause.remedy
        return replace(
            found,
            about=found.object,
            object=self._message(cause.offender, names) or found.object,
            node=self._message(cause.node, names) or found.node,
            what=self._message(cause.what, names) or found.what,
            since=self._message(cause.since, names) or found.since,
            remedy=self._message(remedy, names) or found.remedy,
            patient=patient,
        )

    def _fits(self, names: Mapping[str, Any]) -> bool:
        """True if the cause's condition holds."""
        return self._cause.condition is None or self._holds(self._cause.condition, names)

    def _holds(self, expression: str, names: Mapping[str, Any]) -> bool:
        return self._knowledge.templates.holds(expression, names, of=self._document)

    def _message(self, text: str | None, names: Mapping[str, Any]) -> str:
        if text is None:
            return ""
        return " ".join(self._knowledge.templates.render_message(text, names, of=self._document).split())
