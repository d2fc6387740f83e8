"""Reads what a container has printed, line by line, with the time of each line as the kubelet has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconcile.cluster.errors import Away, ClusterError
from reconcile.cluster.protocol import Cluster
from reconcile.status.times import time_text
from renderer.model.ref import Kind, Ref

POD = Kind(api_version="v1", kind="Pod", plural="pods", namespaced=True)
LARGEST = 2**20
"""Bytes of one answer. What is longer is read in the next one."""
_LARGEST_SECOND = 2**26
"""Bytes of one answer where a single second has more than `LARGEST`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """`time` is an RFC 3339 time with nanoseconds, as the kubelet writes it; empty for a line without."""

    time: str
    text: str


class LogUnavailableError(Exception):
    """The reason why a log cannot be read now: the container has not begun, or its pod is gone."""


def read_log(
    cluster: Cluster, pod: Ref, container: str, *, since: datetime | None = None, last: int | None = None
) -> Iterator[LogLine]:
    """The lines since a time, which counts in whole seconds, or the last so many. Raises `LogUnavailableError`, and
    `Away`."""
    query = {"sinceTime": time_text(since)} if since else {}
    query |= {"tailLines": str(last)} if last is not None else {}
    yield from _lines(_read(cluster, pod, container, query, LARGEST), LARGEST)


def read_after(
    cluster: Cluster,
    pod: Ref,
    container: str,
    last: str,
    *,
    start: datetime | None = None,
    previous: bool = False,
) -> list[LogLine]:
    """The lines after the time of the last one that is known; without one, those since `start`, or all.

    `previous` reads what the container printed before it was restarted. Raises `LogUnavailableError`, and `Away`.
    """
    since = moment_of_line(last) if last else start
    query = {"sinceTime": time_text(since)} if since else {}
    query |= {"previous": "true"} if previous else {}
    limit = LARGEST
    while True:
        content = _read(cluster, pod, container, query, limit)
        lines = list(after(_lines(content, limit), last))
        if lines or len(content) < limit or limit >= _LARGEST_SECOND:
            return lines
        limit *= 4  # all of it is of the second of the last line, and known


def _read(cluster: Cluster, pod: Ref, container: str, query: Mapping[str, str], limit: int) -> bytes:
    try:
        asked = {"container": container, "timestamps": "true", "limitBytes": str(limit), **query}
        return cluster.read(POD, pod, "log", asked)
    except Away:
        raise
    except ClusterError as error:
        raise LogUnavailableError(error.message) from error


def _lines(content: bytes, limit: int) -> Iterator[LogLine]:
    """A last line that the limit has cut has no end, and is left for the next time, unless it is all there is."""
    whole = content if len(content) < limit else content[: content.rfind(b"\n") + 1] or content
    for line in whole.removesuffix(b"\n").split(b"\n") if whole else ():
        text = line.decode(errors="replace")
        time, _, rest = text.partition(" ")
        known, said = (time, rest) if is_time(time) else ("", text)
        for part in said.splitlines() or [""]:  # a progress bar is one line for the kubelet, with one time
            yield LogLine(time=known, text=part)


def is_time(text: str) -> bool:
    """True for what the kubelet writes before a line."""
    return len(text) >= 20 and text[4:5] == "-" and text[10:11] == "T" and text.endswith("Z")


def after(lines: Iterable[LogLine], last: str) -> Iterator[LogLine]:
    """Those that came after the time of the last one that is known: a server counts whole seconds, and repeats."""
    for line in lines:
        if not last or _exact(line.time) > _exact(last):
            yield line


def _exact(time: str) -> str:
    """A time that sorts as text: the kubelet leaves zeros at the end of a fraction out."""
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    return f"{seconds}.{fraction:0<9}"


def moment_of_line(time: str) -> datetime:
    """The second in which a line was printed."""
    return datetime.fromisoformat(f"{time[:19]}+00:00")
