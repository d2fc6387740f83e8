"""Reports where a journal's decisions would differ today: schemas/replay.json. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from reconcile.borrow.loan import Loan
from reconcile.decide.observation import BorrowedElsewhere, FetchFailure, Observation, OtherUpgrades
from reconcile.decide.plan import decide
from reconcile.diagnosis.situation import Cause
from reconcile.loop.decision_body import Line, decision_body, redacted_digest
from reconcile.loop.journal import FORMAT
from reconcile.loop.rendering import Rendering
from reconcile.loop.sealing import approved_of, approved_templates_of
from reconcile.observe.readings import READERS
from reconcile.observe.snapshot import NotReadError, Snapshot
from reconcile.probes.look import Group, ReadFailure
from reconcile.report.causes_found import cause_lines, cause_model
from reconcile.report.causes_then import causes_then
from reconcile.report.progress import Model
from reconcile.schemas import Schemas, packaged_schemas
from reconcile.status.plan_body import status_of
from renderer.assemble import TemplateSet
from renderer.catalog.template_digests import TemplateDigests
from renderer.digest import digest_of
from renderer.errors import Problems, problem
from renderer.model.ref import Body, Ref
from renderer.redaction import Redactor, numbered, without_numbers

_LONGEST = 200


def replay_of(journal: str, lines: Iterable[Replayed]) -> Model:
    """`same` is False also where a line could not be replayed, or none was there."""
    found = list(lines)
    return {
        "journal": journal,
        "replayed": sum(1 for line in found if line.problem is None),
        "same": bool(found) and not any(line.differs or line.problem for line in found),
        "lines": [_line(line) for line in found if line.differs or line.problem],
        "last": [_last(line) for line in {line.plan: line for line in found if line.causes}.values()],
    }


def replay_lines(model: Model) -> Iterator[str]:
    for line in model["lines"]:
        where = " ".join(part for part in (f"{model['journal']}:{line['line']}:", line["time"], line["plan"]) if part)
        yield f"{where} {line['problem'] or 'differs'}"
        for part in line["differs"]:
            yield f"  {part['part']}: was {_short(part['was'])}"
            yield f"  {' ' * len(part['part'])}  now {_short(part['now'])}"
    for last in model["last"]:
        if last["causes"]:
            yield f"{last['plan']} waited at {last['at']}:"
            yield from cause_lines(last)
    differing = sum(1 for line in model["lines"] if line["differs"])
    yield f"{model['replayed']} decisions replayed, {differing} differ"


def _line(line: Replayed) -> Model:
    return {
        "line": line.line,
        "time": line.time,
        "plan": line.plan,
        "problem": line.problem or "",
        "differs": [
            {"part": place, "was": before, "now": after}
            for part, was, now in line.differs
            for place, before, after in _pairs(part, was, now)
        ],
    }


def _last(line: Replayed) -> Model:
    """The causes of what the plan waited for at the end of its journal, by what was read then."""
    causes = line.causes() if line.causes else ()
    return {"plan": line.plan, "at": line.time, "causes": [cause_model(cause) for cause in causes]}


def _pairs(part: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parts of a mapping that differ, one level down; else the whole."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        yield part, was, now
        return
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            yield f"{part}.{key}", was.get(key), now.get(key)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_KEYS = ("status", "actions", "events", "waits", "recheck", "again", "passes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One line of a journal. `differs` has what came out otherwise: (part, recorded, now); `problem` is why the line
    could not be replayed; `causes` looks for why the plan waited."""

    line: int
    time: str = ""
    plan: str = ""
    differs: tuple[tuple[str, Any, Any], ...] = ()
    problem: str | None = None
    causes: Callable[[], tuple[Cause, ...]] | None = field(default=None, repr=False, compare=False)


NO_LINE = "is not a journal line"


class TrueDigests:
    """Digests of manifests that are rendered from redacted inputs: those of the objects that they stand for."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: Mapping[str, str] = {}

    def use(self, known: Mapping[str, str]) -> bool:
        """Sets those that one line has. Whether they are other ones than before."""
        changed = known != self._known
        self._known = known
        return changed

    def __call__(self, body: Body) -> str:
        return (self._known and self._known.get(redacted_digest(body, self._redactor))) or digest_of(body)


def replay(path: Path, template_set: TemplateSet, plan: str | None = None) -> Iterator[Replayed]:
    """Each line of the journal in turn, of one plan or of all. Raises `Problems` where the file cannot be read."""
    bodies: dict[str, Any] = {}
    replayer = _Replayer(template_set)
    for number, text in enumerate(journal_lines(path), start=1):
        try:
            line = json.loads(text)
            bodies |= line.get("bodies", {})
            found = replayer.replayed(number, line, bodies)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield Replayed(line=number, problem=f"{NO_LINE}: {error}")
            continue
        if plan is None or found.plan == plan:
            yield found


def journal_lines(path: Path) -> Iterator[str]:
    """The lines of a journal that are not empty. Raises `Problems` where the file cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            yield from (line for line in stream if line.strip())
    except OSError as error:
        remedy = "name the file that was given as --journal"
        raise problem("Unreadable", f"cannot be read: {error.strerror}", file=str(path), remedy=remedy) from error


class _Replayer:
    """Decides again what lines have recorded."""

    def __init__(self, template_set: TemplateSet) -> None:
        catalog = template_set.catalog
        self._redactor = Redactor(catalog.redaction, numbered)
        self._digests = TrueDigests(self._redactor)
        self._rendering = Rendering(catalog, template_set.templates, template_set.spec_fields, digest=self._digests)
        self._schemas = packaged_schemas()

    def replayed(self, number: int, line: Line, bodies: Mapping[str, Any]) -> Replayed:
        if line["format"] != FORMAT:
            return Replayed(line=number, problem=f"has format {line['format']}, and this program reads {FORMAT}")
        name = str(bodies[line["plan"]]["metadata"]["name"])
        self._rendering = self._rendering.overridden(line["memory"].get("overrides") or {})
        if self._digests.use(line["digests"]):
            self._rendering.forget(name)
        try:
            world = world_from(line, bodies, self._rendering, self._schemas)
            decision = decide(world)
        except Problems as error:
            return Replayed(line=number, time=line["time"], plan=name, problem=f"cannot be rendered: {error}")
        except NotReadError as error:
            why = f"the decision looks at {error} today, which was not read then"
            return Replayed(line=number, time=line["time"], plan=name, problem=why)
        again, was = without_numbers(decision_body(decision, self._redactor)), without_numbers(line["decision"])
        differs = tuple((key, was.get(key), again[key]) for key in _KEYS if was.get(key) != again[key])
        causes = partial(causes_then, world, decision, self._rendering)
        return Replayed(line=number, time=line["time"], plan=name, differs=differs, causes=causes)


def world_from(line: Line, bodies: Mapping[str, Any], rendering: Rendering, schemas: Schemas) -> Observation:
    """All that the decision was made from. Raises `Problems` where today's templates cannot render it."""
    plan, memory = bodies[line["plan"]], line["memory"]
    templates = bodies[line["templates"]]
    now = datetime.fromisoformat(line["time"])
    objects = tuple(bodies[digest] for digest in line["facts"])
    fetched = {name: bodies[digest] for name, digest in line["fetched"].items()}
    attended = {datetime.fromisoformat(since): seconds for since, seconds in memory["attended"].items()}
    return Observation(
        plan=plan,
        rendered=rendering.of(plan, status_of(plan), objects, fetched),
        kinds=rendering.catalog.kinds,
        schemas=schemas,
        look=_snapshot(line["read"], bodies),
        now=now,
        attended=lambda since: attended.get(since, (now - since).total_seconds()),
        others=_others(line["others"]),
        fetched=frozenset(memory["fetched"]),
        fetch_failures={
            name: FetchFailure(why=why, absent=absent) for name, (why, absent) in memory["fetchFailures"].items()
        },
        passes={(step, place): count for step, place, count in memory["passes"]},
        errors=tuple(memory["errors"]),
        causes=tuple(memory.get("causes", ())),
        templates=None if templates is None else TemplateDigests(**templates),
        approved_templates=approved_templates_of(plan),
        approved=approved_of(plan),
        sealed=memory["sealed"],
        unapproved={name: tuple(texts) for name, texts in memory["unapproved"].items()},
        preflight=partial(rendering.preflight, plan, objects, fetched, schemas) if memory["checked"] else None,
        redactor=rendering.redactor,
    )


def _others(kept: Line) -> OtherUpgrades:
    lent = tuple(
        BorrowedElsewhere(plan=name, active=active, loan=Loan.from_status(item)) for name, active, item in kept["lent"]
    )
    return OtherUpgrades(
        blocker=kept["blocker"],
        beside=kept["beside"],
        lookup_error=kept["lookupError"],
        rival=kept.get("rival"),
        lent=lent,
    )


def _snapshot(read: Line, bodies: Mapping[str, Any]) -> Snapshot:
    def body(kept: Any) -> Any:
        if isinstance(kept, dict):
            return _failure(kept)
        return None if kept is None else bodies[kept]

    snapshot = Snapshot()
    for (api_version, kind, namespace, name), kept in read["objects"]:
        snapshot.put({Ref(api_version=api_version, kind=kind, namespace=namespace, name=name): body(kept)})
    for group, found in read["groups"]:
        items = _failure(found) if isinstance(found, dict) else tuple(body(kept) for kept in found)
        snapshot.groups[_group(group)] = items
    for reading, answers in read["readings"].items():
        snapshot.readings[reading] = {
            name: _failure(kept) if "readFailure" in kept else kept for name, kept in answers.items()
        }
    snapshot.read.update(reading for reading in READERS if reading.name in snapshot.readings)
    return snapshot


def _failure(kept: Line) -> ReadFailure:
    return ReadFailure(why=kept["readFailure"], remedy=kept.get("remedy"), out_of_reach=kept.get("outOfReach", False))


def _group(raw: Line) -> Group:
    return Group(**{**raw, "labels": tuple((key, value) for key, value in raw["labels"])})
