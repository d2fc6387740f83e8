"""How a whole process ends: Ctrl-C, a reader that went away, a full disk, closed streams; what a terminal shows."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.rendered_plans import ROOT
from support.unreachable import KUBECONFIG

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-m", "renderer.cli"]
SINGLE_NODE = str(ROOT / "examples" / "single-node")
OVERLAY = str(ROOT / "examples" / "pre-check-overlay" / "templates")


def ended(*words: str, stdout: int, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A process that has ended by itself."""
    return subprocess.run(
        [*PROGRAM, *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
    )


def kubeconfig_for(server: socket.socket, folder: Path) -> str:
    file, port = folder / "kubeconfig", server.getsockname()[1]
    named = {"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}, "context": {"cluster": "x"}}
    file.write_text(json.dumps({"current-context": "x", "clusters": [named], "contexts": [named]}))
    return str(file)


def test_ctrl_c_is_a_plain_line(tmp_path: Path) -> None:
    """The program waits for an answer that nobody gives, so it is known to be at work and not at its end."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(
            [*PROGRAM, "status", "--kubeconfig", kubeconfig_for(server, tmp_path)],
            stderr=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        ) as process,
        server.accept()[0],
    ):
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == "interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_reason_for_words(unbuffered: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = ended("render", SINGLE_NODE, stdout=write_end, PYTHONUNBUFFERED=unbuffered)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [("render", SINGLE_NODE), ("render", SINGLE_NODE, "-o", "json"), ("version",), ("--help",)]
)
def test_a_full_disk_behind_stdout_is_told(words: Sequence[str], unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = ended(*words, stdout=full.fileno(), PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert done.stderr == (
        b"<stdout>: cannot be written: No space left on device\n    remedy: free disk space, or redirect the output\n"
    )


def test_a_refusal_that_cannot_be_written_is_still_a_refusal() -> None:
    with Path("/dev/full").open("wb") as full:
        done = ended("render", "nothing", "-o", "json", stdout=full.fileno(), PYTHONUNBUFFERED="")
    assert (done.returncode, done.stderr) == (2, b"")


def test_closed_streams_are_no_bug() -> None:
    def close_both() -> None:
        os.close(1)
        os.close(2)

    for words, status in (("version",), 0), (("render", "nothing"), 2):
        done = subprocess.run([*PROGRAM, *words], preexec_fn=close_both, cwd=ROOT, check=False)
        assert done.returncode == status


def test_text_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    plan = tmp_path / "plän.yaml"
    body = "apiVersion: management.harvesterhci.io/v1beta1\nkind: UpgradePlan\nmetadata: {name: up}\nspec: {größe: 1}\n"
    plan.write_text(body, encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = ended("validate", str(plan), stdout=subprocess.PIPE, **ascii_only)
    assert done.returncode == 2
    assert "plän.yaml:4: spec.größe: unknown field 'größe'" in done.stderr.decode("utf-8").replace(
        '["größe"]', ".größe"
    )


def test_colour_is_for_terminals_that_want_it() -> None:
    for term, unwanted, coloured in (("xterm", "", True), ("xterm", "1", False), ("dumb", "", False)):
        status, text = _on_a_terminal("compare", SINGLE_NODE, "--to-templates", OVERLAY, TERM=term, NO_COLOR=unwanted)
        assert (status, "\x1b[" in text) == (1, coloured)


def test_progress_is_one_view_on_a_terminal_and_lines_elsewhere() -> None:
    """A rehearsal shows some dozen scenes; the last one stays and the report follows it."""
    status, text = _on_a_terminal("rehearse", SINGLE_NODE, TERM="xterm", COLUMNS="200", LINES="60")
    last = text.rpartition("\x1b[2K")[2]
    assert status == 0
    assert text.count("\x1b[2K") > 100  # a line of the view before is wiped
    assert last.count("NodeUpgrade ") == 1
    assert "node alfa-1-tink-system: ImageCleaned" in last
    soon = ("rehearse", SINGLE_NODE, "--fail", "image-import")
    for plain in (_on_a_terminal(*soon, TERM="dumb")[1], _piped(*soon)):
        assert "\x1b" not in plain
        assert len([line for line in plain.splitlines() if line.lstrip()[:1].isdigit()]) > 2


@pytest.mark.parametrize(
    ("key", "status", "last"),
    [
        ("\x03", 130, "nothing was changed\r\ninterrupted\r\n"),
        (
            "\x04",
            1,
            "nothing was changed\r\nthe input ended before there was an answer\r\n    remedy: answer the "
            "question, or give the option that answers it\r\n",
        ),
    ],
    ids=["Ctrl-C", "Ctrl-D"],
)
def test_who_ends_the_question_has_changed_nothing(tmp_path: Path, key: str, status: int, last: str) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG, encoding="utf-8")
    ended, text = _typed('Type "dead" to continue: ', key, "apply", SINGLE_NODE, "--kubeconfig", str(config))
    assert (ended, text.partition(" to continue: ")[2].lstrip("^CD\b\r\n")) == (status, last)


def test_a_new_plan_is_made_of_answers() -> None:
    """What is asked goes to stderr, so that the plan alone is written to a file."""
    ended, text = _typed("such as v1.8.0: ", "v1.8.1\nhttps://example.com/h.iso\ny\n", "new")
    assert ended == 0
    assert "isoURL: https://example.com/h.iso\r\n" in text
    assert text.endswith("  name: to-v1-8-1\r\nspec:\r\n  version: v1.8.1\r\n  restoreVM: true\r\n")


def _typed(question: str, key: str, *words: str) -> tuple[int, str]:
    """On a terminal of its own, so that its keys are the program's. The key is pressed as long as the program is silent
    after the question: Python takes no notice of a Ctrl-C in the moment before it reads, until the next key. A program
    that asks nothing is left after a minute."""
    pid, ours = pty.fork()
    if not pid:
        os.chdir(ROOT)
        os.execv(PROGRAM[0], [*PROGRAM, *words])
    text, pressed, silent = b"", 0, 0
    while pressed < 50 and silent < 120:
        if select.select([ours], [], [], 0.5)[0]:
            if not (data := _read(ours)):
                break
            text += data
            silent = 0
            continue
        silent += 1
        if (asked := text.partition(question.encode()))[1] and b"\n" not in asked[2]:
            os.write(ours, key.encode())
            pressed += 1
    os.close(ours)  # which ends it, if nothing else has
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode("utf-8")


def _piped(*words: str) -> str:
    return subprocess.run([*PROGRAM, *words], stderr=subprocess.PIPE, cwd=ROOT, text=True, check=False).stderr


def _on_a_terminal(*words: str, **environment: str) -> tuple[int, str]:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, *words], stdout=theirs, stderr=theirs, cwd=ROOT, env={**os.environ, **environment}
    ) as process:
        os.close(theirs)
        text = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return process.returncode, text.decode("utf-8")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
