"""A folder of logs whose size is bounded: a file for each container, the one before it, and an index of all.

`index.json` says how far each log was read, so that a collector that starts again goes on there, and what was lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from reconcile.observe.container_log import LogLine

LARGEST_FILE = 4 * 2**20
INDEX = "index.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One container's log. `last` is the time of the last line that was kept, `lost` says what was not; `ended`: there
    is nothing more to come."""

    plan: str
    namespace: str
    pod: str
    container: str
    component: str = ""
    node: str = ""
    last: str = ""
    size: int = 0
    ended: bool = False
    lost: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its file's. Names in Kubernetes have no underscore."""
        return f"{self.namespace}_{self.pod}_{self.container}.log"


@dataclass
class LogFolder:
    """Files below `path`, together at most `limit` bytes: where there are more, the oldest is removed first.

    Methods raise `OSError` where the disk does.
    """

    path: Path
    limit: int
    largest_file: int = LARGEST_FILE
    entries: dict[str, LogEntry] = field(default_factory=dict)

    def open(self) -> None:
        """Makes the folder, and goes on with what an earlier process has kept in it."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.read()

    def read(self) -> None:
        """Reads the index. If it cannot be read, it starts empty, and the logs are read again."""
        try:
            raw = json.loads((self.path / INDEX).read_text(encoding="utf-8"))
            self.entries = {name: _entry(item) for name, item in raw["logs"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.entries = {}

    def append(self, entry: LogEntry, lines: Iterable[LogLine]) -> LogEntry:
        """Adds lines, and answers the entry as it is then."""
        found = list(lines)
        text = "".join(f"{line.time} {line.text}\n".lstrip() for line in found)
        file = self.path / entry.name
        if file.exists() and file.stat().st_size + len(text) > self.largest_file:
            entry = self._rotate(entry, file)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
        last = next((line.time for line in reversed(found) if line.time), entry.last)
        return replace(entry, last=last, size=entry.size + len(text.encode()))

    def keep(self, entry: LogEntry) -> None:
        self.entries[entry.name] = entry

    def close(self) -> None:
        """Removes what is too much, and writes the index, whole or not at all."""
        self._shrink()
        document = {"logs": {name: asdict(entry) for name, entry in sorted(self.entries.items())}}
        beside = self.path / f".{INDEX}"
        beside.write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")
        beside.replace(self.path / INDEX)

    def lines(self, entry: LogEntry) -> Iterator[str]:
        """The lines of a log that are kept, with their times."""
        for file in (self.path / f"{entry.name}.1", self.path / entry.name):
            if file.exists():
                with file.open(encoding="utf-8", errors="replace") as stream:
                    yield from (line.rstrip("\n") for line in stream)

    def _rotate(self, entry: LogEntry, file: Path) -> LogEntry:
        before = self.path / f"{entry.name}.1"
        lost = before.stat().st_size if before.exists() else 0
        file.replace(before)
        return replace(entry, lost=(*entry.lost, f"the first {lost} bytes: the log is too long")) if lost else entry

    def _shrink(self) -> None:
        files = sorted(self.path.glob("*.log*"), key=lambda f: (f.stat().st_mtime_ns, f.name))
        size = sum(file.stat().st_size for file in files)
        for file in files:
            if size <= self.limit:
                return
            size -= file.stat().st_size
            name = file.name.removesuffix(".1")
            file.unlink()
            if entry := self.entries.get(name):
                self.keep(replace(entry, lost=(*entry.lost, f"{file.name}: the folder is full")))


def _entry(raw: Mapping[str, Any]) -> LogEntry:
    return LogEntry(**{**raw, "lost": tuple(raw.get("lost", ()))})
