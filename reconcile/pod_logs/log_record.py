"""Lines of logs as records for machines (`schemas/log-record.json`), and a folder of logs as such records.

A reader in a pod prints them, and whoever has asked it reads them: the last record says how many lines there were.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from reconcile.observe.container_log import is_time
from reconcile.pod_logs.folder import LogEntry, LogFolder

Takes = Callable[[LogEntry], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """A line of a container's log, or what was `lost` of it. `time` is empty where that of the line is not known."""

    plan: str
    namespace: str
    pod: str
    container: str
    component: str = ""
    node: str = ""
    time: str = ""
    text: str = ""
    lost: str = ""

    @property
    def where(self) -> str:
        return f"[{self.namespace}/{self.pod}/{self.container}]"

    def model(self) -> dict[str, str]:
        """Leaves out what is not known, and the text of what was lost."""
        found = {key: value for key, value in asdict(self).items() if value}
        return found if self.lost else {**found, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecords:
    """All that a reader has printed. `expected` is how many lines it had; None where its end did not arrive."""

    records: tuple[LogRecord, ...] = ()
    expected: int | None = None
    entries: Mapping[str, LogEntry] = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """The words on lines that did not arrive; empty if all did."""
        arrived = sum(not record.lost for record in self.records)
        if self.expected == arrived:
            return ""
        return f"{arrived} of {'an unknown number of' if self.expected is None else self.expected} lines arrived"

    def lines(self, entry: LogEntry) -> Iterator[str]:
        """As a folder's."""
        for record in self.records:
            if (record.namespace, record.pod, record.container) == (entry.namespace, entry.pod, entry.container):
                yield from [] if record.lost else [f"{record.time} {record.text}".lstrip()]


def records_in(folder: LogFolder, takes: Takes, *, since: str = "", tail: int | None = None) -> Iterator[LogRecord]:
    """The records of a folder, log by log; `since` is the first second, `tail` how many lines of each."""
    for entry in sorted(folder.entries.values(), key=lambda entry: (entry.plan, entry.name)):
        if takes(entry):
            of_log = _record(entry)
            lines = (line for line in folder.lines(entry) if line[:19] >= since)
            for line in lines if tail is None else deque(lines, maxlen=tail):
                time, _, text = line.partition(" ")
                yield replace(of_log, time=time, text=text) if is_time(time) else replace(of_log, text=line)
            yield from (replace(of_log, lost=text) for text in entry.lost)


def _record(entry: LogEntry) -> LogRecord:
    return LogRecord(
        plan=entry.plan,
        namespace=entry.namespace,
        pod=entry.pod,
        container=entry.container,
        component=entry.component,
        node=entry.node,
    )


def records_of(printed: bytes) -> LogRecords:
    """The records that a reader has printed; what is none, such as a warning, is left out."""
    models = [model for model in map(_parsed, printed.decode(errors="replace").splitlines()) if model]
    expected = next((model["lines"] for model in reversed(models) if "lines" in model), None)
    records = tuple(LogRecord(**model) for model in models if "lines" not in model)
    entries = (
        LogEntry(plan=record.plan, namespace=record.namespace, pod=record.pod, container=record.container)
        for record in records
    )
    return LogRecords(records=records, expected=expected, entries={entry.name: entry for entry in entries})


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        model = json.loads(line)
    except ValueError:
        return None
    known = isinstance(model, dict) and ("lines" in model or model.keys() >= {"plan", "namespace", "pod", "container"})
    return model if known and model.keys() <= {*LogRecord.__slots__, "lines"} else None


def printed(records: Iterable[LogRecord]) -> Iterator[dict[str, Any]]:
    """The models of the records, and that of their end."""
    count = 0
    for record in records:
        count += not record.lost
        yield record.model()
    yield {"lines": count}
