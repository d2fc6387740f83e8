"""A folder of logs whose size is bounded: a file for each container, the one before it, and an index of all.

`index.json` says how far each log was read, and what was lost. A collector that starts again goes on where a log ends,
whatever was written of the index before the other one was killed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from reconcile.observe.container_log import LogLine, is_time

LARGEST_FILE = 4 * 2**20
INDEX = "index.json"
_END = 2**16
"""Bytes at the end of a file in which its last whole line is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One container's log. `last` is the time of the last line that was kept, `lost` says what was not; `restarts`: how
    often the container had been started again by then; `ended`: there is nothing more to come."""

    plan: str
    namespace: str
    pod: str
    container: str
    component: str = ""
    node: str = ""
    last: str = ""
    size: int = 0
    restarts: int = 0
    ended: bool = False
    lost: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its file's. Names in Kubernetes have no underscore."""
        return f"{self.namespace}_{self.pod}_{self.container}.log"

    def without(self, *lost: str) -> LogEntry:
        """The entry with these words on what was lost, each once."""
        return replace(self, lost=tuple(dict.fromkeys((*self.lost, *lost))))


@dataclass
class LogFolder:
    """Files below `path`, together at most `limit` bytes: where there are more, the oldest is removed first.

    Methods raise `OSError` where the disk does.
    """

    path: Path
    limit: int
    largest_file: int = LARGEST_FILE
    entries: dict[str, LogEntry] = field(default_factory=dict)
    _resumed: set[str] = field(default_factory=set)
    _written: str = ""

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

    def known(self, new: LogEntry) -> LogEntry:
        """The entry of this name, or the new one, as far as its file goes: the index may be older than the file, or
        newer after a node has crashed."""
        entry = self.entries.get(new.name, new)
        if entry.name in self._resumed:
            return entry
        self._resumed.add(entry.name)
        newest = self.path / entry.name
        _cut(newest)
        ends = (_last_time(file) for file in (newest, self.path / f"{entry.name}.1") if file.exists())
        return replace(entry, last=next((time for time in ends if time), entry.last))

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
        text = json.dumps(document, ensure_ascii=False, indent=1)
        if text != self._written:
            beside = self.path / f".{INDEX}"
            beside.write_text(text, encoding="utf-8")
            beside.replace(self.path / INDEX)
            self._written = text

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
        return entry.without(f"the first {lost} bytes: the log is too long") if lost else entry

    def _shrink(self) -> None:
        files = sorted(self.path.glob("*.log*"), key=lambda f: (f.stat().st_mtime_ns, f.name))
        size = sum(file.stat().st_size for file in files)
        if size <= self.limit:
            return
        while size > self.limit:
            file = files.pop(0)
            size -= file.stat().st_size
            file.unlink()
            if entry := self.entries.get(file.name.removesuffix(".1")):
                self.keep(entry.without(f"{file.name}: the folder is full"))
        self._forget({file.name.removesuffix(".1") for file in files})

    def _forget(self, left: set[str]) -> None:
        """A plan of which no file is left is not named for ever, unless it still prints."""
        plans = {entry.plan for entry in self.entries.values() if entry.name in left or not entry.ended}
        self.entries = {name: entry for name, entry in self.entries.items() if entry.plan in plans}


def _cut(file: Path) -> None:
    """Removes a last line that was not written to its end."""
    if not file.exists():
        return
    start = max(0, file.stat().st_size - _END)
    with file.open("r+b") as stream:
        stream.seek(start)
        end = stream.read().rfind(b"\n") + 1
        if end or not start:
            stream.truncate(start + end)


def _last_time(file: Path) -> str:
    """The time of the last line that has one; empty if there is none near the end."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _END))
        lines = stream.read().decode(errors="replace").splitlines()
    return next((time for time in (line.partition(" ")[0] for line in reversed(lines)) if is_time(time)), "")


def _entry(raw: Mapping[str, Any]) -> LogEntry:
    return LogEntry(**{**raw, "lost": tuple(raw.get("lost", ()))})
