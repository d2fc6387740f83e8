"""A run as recorded in a journal. What the journal hides stays hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from reconcile.loop.journal import FORMAT
from reconcile.report.replay import journal_lines
from reconcile.report_page.recorded_run import EventSeen, RecordedRun, RunMoment, RunSource, is_sighted, sighting_of
from renderer.errors import problem
from renderer.model.document_type import JOURNAL_ENTRY
from renderer.model.ref import Body, Ref, ref_of

Line = Mapping[str, Any]


def run_in_journal(path: Path, name: str | None) -> RecordedRun:
    """The run of the plan of that name, or of the only one. The part that was put aside as FILE.1 comes first.

    Raises `Problems` where the file is no journal, or it is not clear which plan is meant.
    """
    moments: dict[str, list[RunMoment]] = {}
    plans: dict[str, Body] = {}
    unreadable = 0
    for line, bodies in _lines(path):
        try:
            plan = bodies[line["plan"]]
            found = str(plan["metadata"]["name"])
            if name is None or found == name:
                moments.setdefault(found, []).append(_moment(line, bodies, found))
                plans[found] = plan
        except (KeyError, TypeError, ValueError, AttributeError):
            unreadable += 1
    chosen = _chosen(path, sorted(plans), name)
    return RecordedRun(
        name=chosen,
        source=RunSource.JOURNAL,
        origin=str(path),
        plan=plans[chosen],
        moments=tuple(moments[chosen]),
        unread=(f"{unreadable} lines of the journal",) if unreadable else (),
    )


def _chosen(path: Path, plans: list[str], name: str | None) -> str:
    if not plans:
        message = f"contains no decision of UpgradePlan {name}" if name else "contains no decision of a plan"
        remedy = "name the file that was given as --journal, and the plan as it stands in it"
        raise problem("NoJournal", message, file=str(path), remedy=remedy)
    if len(plans) > 1:
        message = f"contains {len(plans)} plans: {', '.join(plans)}"
        raise problem("WhichPlan", message, file=str(path), remedy="name one with --plan")
    return plans[0]


def _lines(path: Path) -> Iterator[tuple[Line, Mapping[str, Any]]]:
    """Each line with the bodies that it may name; those of an earlier file are not known in the next. A line that its
    process did not finish is left out."""
    earlier = path.with_name(f"{path.name}.1")
    for file in (earlier, path) if earlier.exists() else (path,):
        bodies: dict[str, Any] = {}
        for text in journal_lines(file):
            try:
                line = json.loads(text)
                bodies |= line.get("bodies", {})
            except (ValueError, AttributeError, TypeError):
                continue
            if JOURNAL_ENTRY.is_type_of(line):
                _require_format(file, line)
                yield line, bodies


def _require_format(file: Path, line: Line) -> None:
    if line.get("format") != FORMAT:
        message = f"has format {line.get('format')}, and this program reads {FORMAT}"
        raise problem("NoJournal", message, file=str(file), remedy="use the version of upgradeplan that wrote it")


def _moment(line: Line, bodies: Mapping[str, Any], name: str) -> RunMoment:
    time, decision = datetime.fromisoformat(line["time"]), line["decision"]
    return RunMoment(
        time=time,
        status=decision["status"],
        waits=tuple(decision["waits"]),
        events=tuple(
            EventSeen(time=time, type=str(event[0]), reason=str(event[1]), message=str(event[2]))
            for event in decision["events"]
        ),
        sighting=sighting_of(name, _sighted(line, bodies, name)),
    )


def _sighted(line: Line, bodies: Mapping[str, Any], name: str) -> Iterator[Body]:
    for (api_version, kind, namespace, object_name), kept in line["read"]["objects"]:
        ref = Ref(api_version=api_version, kind=kind, namespace=namespace, name=object_name)
        if isinstance(kept, str) and is_sighted(ref, name):
            yield bodies[kept]
    groups = (kept for _, kept in line["read"]["groups"] if not isinstance(kept, dict))
    for digest in (*(digest for kept in groups for digest in kept), *line["facts"]):
        if isinstance(digest, str) and is_sighted(ref_of(bodies[digest]), name):
            yield bodies[digest]
