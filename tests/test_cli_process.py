"""How a whole process ends: Ctrl-C, a reader that went away, a full disk, closed streams; what a terminal shows."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from rendering import ROOT

PROGRAM = [sys.executable, "-m", "renderer.cli"]
THREE_NODE = str(ROOT / "examples" / "three-node")
OVERLAY = str(ROOT / "examples" / "pre-check-overlay" / "templates")


def test_ctrl_c_is_a_plain_line(tmp_path: Path) -> None:
    """The program opens a pipe that nobody writes to, so it is known to be at work and not at its end."""
    pipe = tmp_path / "plan.yaml"
    os.mkfifo(pipe)
    with (
        subprocess.Popen([*PROGRAM, "render", str(pipe)], stderr=subprocess.PIPE, cwd=ROOT, text=True) as process,
        pipe.open("w"),  # returns when the other end is open
    ):
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == "interrupted\n"
    assert process.returncode == 130


def test_a_reader_that_goes_away_is_no_reason_for_words() -> None:
    for unbuffered in ("", "1"):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(
            [*PROGRAM, "render", THREE_NODE],
            stdout=write_end,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
        os.close(write_end)
        assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_behind_stdout_is_told_and_not_dropped() -> None:
    for words in (("render", THREE_NODE), ("version",), ("--help",), ("render", "nothing", "-o", "json")):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run([*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, cwd=ROOT, check=False)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr
        if words[0] != "render" or words[1] == THREE_NODE:
            assert done.stderr.startswith(b"<stdout>: cannot be written: No space left on device\n")


def test_closed_streams_are_no_bug() -> None:
    def close_both() -> None:
        os.close(1)
        os.close(2)

    for words, status in (("version",), 0), (("render", "nothing"), 2):
        done = subprocess.run([*PROGRAM, *words], preexec_fn=close_both, cwd=ROOT, check=False)
        assert done.returncode == status


def test_text_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    plan = tmp_path / "plän.yaml"
    plan.write_text("kind: Ω\n", encoding="utf-8")
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    done = subprocess.run(
        [*PROGRAM, "validate", str(plan)], capture_output=True, cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == 2
    assert "plän.yaml" in done.stderr.decode("utf-8")


def test_colour_is_for_terminals_that_want_it() -> None:
    assert "\x1b[32m+" in _on_a_terminal(TERM="xterm", NO_COLOR="")
    assert "\x1b[" not in _on_a_terminal(TERM="xterm", NO_COLOR="1")
    assert "\x1b[" not in _on_a_terminal(TERM="dumb", NO_COLOR="")


def _on_a_terminal(**environment: str) -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "compare", THREE_NODE, "--to-templates", OVERLAY],
        stdout=theirs,
        cwd=ROOT,
        env={**os.environ, **environment},
    ) as process:
        os.close(theirs)
        text = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert process.returncode == 1
    return text.decode("utf-8")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
