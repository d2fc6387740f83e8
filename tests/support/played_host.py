"""A folder that plays the root of a node's host, and the script that looks at it, run for real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.waiting import PATIENCE

CERTIFICATES = Path(__file__).resolve().parents[1] / "host_check" / "certificates"

_DF = """#!/bin/sh
for path; do :; done
echo 'Filesystem     1024-blocks      Used Available Capacity Mounted on'
case $path in
{rows}
esac
"""


def play(root: Path, files: Mapping[str, Any]) -> None:
    """Writes the files below the root: by path a text, or what else it is."""
    root.mkdir()
    for path, what in files.items():
        if what is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            _write(root / path, {"text": what} if isinstance(what, str) else what)


def _write(file: Path, what: Mapping[str, Any]) -> None:
    match what:
        case {"folder": True}:
            file.mkdir()
        case {"pipe": True}:
            os.mkfifo(file)
        case {"link": target}:
            file.symlink_to(target)
        case {"copy": certificate, **other}:
            shutil.copy(CERTIFICATES / certificate, file)
            file.chmod(int(other.get("mode", 0o600)))
        case {"program": text}:
            file.write_text(text)
            file.chmod(0o755)
        case {"text": text, **other}:
            file.write_text(text * int(other.get("times", 1)))
            file.chmod(int(other.get("mode", 0o600)))


def play_partitions(tools: Path, root: Path, partitions: Mapping[str, Sequence[int] | None]) -> None:
    """A `df` for these file systems: their size and what is free, in KiB. Other folders are on the root's."""
    rows = {path: row for path, row in partitions.items() if row}
    lines = [
        f"'{root}{path}') echo '/dev/sda5  {size} {size - free} {free}  50% {root}{path}' ;;"
        for path, (size, free) in rows.items()
    ]
    others = ["*) echo '/dev/loop0  3000000 2000000 1000000  67% /' ;;"] if rows else ["*) exit 1 ;;"]
    tools.mkdir()
    (tools / "df").write_text(_DF.format(rows="\n".join([*lines, *others])))
    (tools / "df").chmod(0o755)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """`raw` is the pod's termination message."""

    raw: bytes
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw)
        return found


def ask(script: Path, shell: Sequence[str], root: Path, tools: Path | None, **environment: str) -> Answered:
    """Runs the script; without tools of its own it has those of this machine."""
    message = script.parent / "termination-log"
    message.touch()
    path = os.environ["PATH"] if tools is None else f"{tools}:{os.environ['PATH']}"
    done = subprocess.run(
        [*shell, str(script)],
        env={"PATH": path, "HOST_ROOT": str(root), "TERMINATION_LOG": str(message), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stdout.encode() == message.read_bytes() + b"\n"
    return Answered(raw=message.read_bytes(), stderr=done.stderr)


def as_in_a_pod() -> list[str]:
    """The beginning of a command that runs as the pod does: a root without capabilities, where this is root."""
    if os.geteuid() or not shutil.which("setpriv"):
        return []
    return ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
