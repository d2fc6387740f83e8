"""Records what each round saw, decided and did, so that the decision can be replayed: one JSON line a round.

A body is written once a file and meant by its digest after that. Secrets are replaced by marks, the same one for the
same value. What is rendered from marks has another digest than the object that was meant: `digests` leads from the one
to the other, so that no decision is made with the digest of a redacted text. The file is bounded: at its limit it
becomes FILE.1 and a new one begins. A journal that cannot be written never holds up an upgrade.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from reconcile.decide.decision import Decision
from reconcile.decide.observation import Observation, OtherUpgrades
from reconcile.loop.decision_body import Line, action_name, decision_body, plain, plain_ref, redacted_digest
from reconcile.loop.executor import ExecutedAction
from reconcile.loop.overrides import Overrides
from reconcile.objects import FIELD_MANAGER
from reconcile.observe.collect import without_managed_fields
from reconcile.observe.snapshot import Snapshot
from reconcile.probes.look import Answer, ReadFailure
from reconcile.status.plan_body import status_body
from renderer.digest import digest_of
from renderer.model.document_type import JOURNAL_ENTRY
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan
from renderer.redaction import RedactionRules, Redactor, numbered, packaged_rules

LIMIT = 64 * 2**20
FORMAT = 8


class Attended:
    """Records the questions to a clock that leaves outages out, and its answers, the same throughout a round."""

    def __init__(self, attended: Callable[[datetime], float]) -> None:
        self._attended = attended
        self.asked: dict[datetime, float] = {}

    def __call__(self, since: datetime) -> float:
        found = self.asked.get(since)
        if found is None:
            found = self.asked[since] = self._attended(since)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """`objects` and `fetched` are what the rendering was made from, `observation` what the decision is made from;
    `snapshot` and `attended` are what the observation looks at."""

    observation: Observation
    snapshot: Snapshot
    objects: tuple[Body, ...]
    fetched: Mapping[str, Any]
    attended: Attended
    overrides: Overrides = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One round. `results` is empty if the cluster became unavailable while it was carried out."""

    seen: Seen
    decision: Decision
    results: tuple[ExecutedAction, ...] = ()


def keep_nothing(entry: JournalEntry) -> None:
    """Drops the entry, if no journal is wanted."""


class Journal:
    """Appends to a file. `failed` is called once with the reason why it cannot be written; then it stops."""

    def __init__(
        self, path: Path, failed: Callable[[str], None], rules: RedactionRules | None = None, limit: int = LIMIT
    ) -> None:
        self._path = path
        self._redactor = Redactor(rules or packaged_rules(), numbered)
        self._failed = failed
        self._limit = limit
        self._known: set[str] = set()
        self._waits: dict[str, list[str]] = {}
        self._begun = False
        self._broken = False

    def __call__(self, entry: JournalEntry) -> None:
        """Writes a round that decided something, or that waits for something else than the one before."""
        if self._broken or not self._is_news(entry):
            return
        try:
            self._append(entry)
        except (OSError, TypeError, ValueError) as error:
            self._broken = True
            self._failed(f"the journal {self._path} cannot be written: {error}")

    def _is_news(self, entry: JournalEntry) -> bool:
        plan, decision = str(entry.seen.observation.plan["metadata"]["name"]), entry.decision
        waits = [wait.text for wait in decision.waits]
        changed = self._waits.get(plan) != waits
        self._waits[plan] = waits
        before = entry.seen.observation.plan.get("status") or {}
        return changed or bool(decision.actions or decision.events) or status_body(decision.status) != before

    def _append(self, entry: JournalEntry) -> None:
        if self._path.exists() and self._path.stat().st_size >= self._limit:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._known.clear()
        line, bodies = line_of(entry, self._redactor)
        line["bodies"] = {digest: body for digest, body in bodies.items() if digest not in self._known}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=dict)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(f"{self._gap()}{text}\n")
        self._known |= set(bodies)

    def _gap(self) -> str:
        """A line that an earlier process could not finish is ended first."""
        first, self._begun = not self._begun, True
        if not first or not self._path.exists() or not self._path.stat().st_size:
            return ""
        with self._path.open("rb") as stream:
            stream.seek(-1, 2)
            return "" if stream.read(1) == b"\n" else "\n"


def line_of(entry: JournalEntry, redactor: Redactor) -> tuple[Line, dict[str, Any]]:
    """The line, and the bodies to which it refers by digest."""
    bodies: dict[str, Any] = {}

    def keep(value: Any) -> str:
        digest = digest_of(value)
        bodies[digest] = value
        return digest

    def kept(body: Body | ReadFailure | None) -> Any:
        if isinstance(body, ReadFailure):
            return _read_failure(body, redactor)
        return None if body is None else keep(_with_our_claims(redactor.body(without_managed_fields(body)), body))

    seen, observation = entry.seen, entry.seen.observation
    line = {
        "format": FORMAT,
        "time": observation.now.isoformat(),
        "plan": keep(redactor.body(without_managed_fields(observation.plan))),
        "facts": [kept(body) for body in seen.objects],
        "fetched": {name: keep(redactor.value(value)) for name, value in seen.fetched.items()},
        "read": _snapshot(seen.snapshot, kept, redactor),
        "memory": redactor.value(_memory(seen)),
        "others": redactor.value(_others(observation.others)),
        "templates": keep(_templates(observation)),
        "digests": dict(true_digests(observation.rendered, redactor)),
        "decision": decision_body(entry.decision, redactor),
        "results": [
            {"action": action_name(r.action), "problem": r.problem and redactor.text(r.problem), "created": r.created}
            for r in entry.results
        ],
    }
    return JOURNAL_ENTRY.document(line), bodies


def _with_our_claims(kept: Body, body: Body) -> Body:
    """Adds which fields of the object are ours: decisions depend on them."""
    entries = (body.get("metadata") or {}).get("managedFields") or ()
    ours = [entry for entry in entries if entry.get("manager") == FIELD_MANAGER]
    return {**kept, "metadata": {**kept["metadata"], "managedFields": ours}} if ours else kept


def _templates(observation: Observation) -> Any:
    found = observation.templates
    return None if found is None else {"files": dict(found.files), "digest": found.digest}


def _memory(seen: Seen) -> Line:
    observation = seen.observation
    return {
        "passes": [[step, place, count] for (step, place), count in observation.passes.items()],
        "fetched": sorted(observation.fetched),
        "fetchFailures": {name: [item.why, item.absent] for name, item in observation.fetch_failures.items()},
        "errors": list(observation.errors),
        "causes": list(observation.causes),
        "attended": {since.isoformat(): seconds for since, seconds in seen.attended.asked.items()},
        "overrides": dict(seen.overrides),
        "sealed": dict(observation.sealed),
        "unapproved": {name: list(texts) for name, texts in observation.unapproved.items()},
        "checked": observation.preflight is not None,
    }


def true_digests(rendered: RenderedPlan, redactor: Redactor) -> Iterator[tuple[str, str]]:
    """For each manifest with a secret: the digest by which a replay knows it, and its own."""
    for phase in rendered.phases:
        for step in phase.steps:
            for manifest in (*step.manifests, *(step.undo.manifests if step.undo else ())):
                if any(redactor.found(manifest.body)):
                    yield redacted_digest(manifest.body, redactor), manifest.digest


def _others(others: OtherUpgrades) -> Line:
    lent = [[item.plan, item.active, item.loan.to_status()] for item in others.lent]
    return {
        "blocker": others.blocker,
        "beside": others.beside,
        "lookupError": others.lookup_error,
        "rival": others.rival,
        "lent": lent,
    }


def _snapshot(snapshot: Snapshot, kept: Callable[[Body | ReadFailure | None], Any], redactor: Redactor) -> Line:
    return {
        "objects": [[plain_ref(ref), kept(body)] for ref, body in snapshot.objects.items()],
        "groups": [[plain(group), _items(found, kept, redactor)] for group, found in snapshot.groups.items()],
        "readings": {
            reading: {name: _answer(answer, redactor) for name, answer in answers.items()}
            for reading, answers in snapshot.readings.items()
        },
    }


def _items(
    found: Iterable[Body] | ReadFailure, kept: Callable[[Body | ReadFailure | None], Any], redactor: Redactor
) -> Any:
    return _read_failure(found, redactor) if isinstance(found, ReadFailure) else [kept(body) for body in found]


def _answer(answer: Answer, redactor: Redactor) -> Any:
    return _read_failure(answer, redactor) if isinstance(answer, ReadFailure) else redactor.value(answer)


def _read_failure(failure: ReadFailure, redactor: Redactor) -> Line:
    remedy = {"remedy": redactor.text(failure.remedy)} if failure.remedy else {}
    return {
        "readFailure": redactor.text(failure.why),
        **remedy,
        **({"outOfReach": True} if failure.out_of_reach else {}),
    }
