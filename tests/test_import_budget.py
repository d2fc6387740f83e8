"""A command takes as long as what it loads, reads and compiles; so these are counted.

Each command runs whole, in a process of its own, and lists at its end what it has done.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from support.rendered_plans import ROOT

pytestmark = pytest.mark.slow

NEVER = (
    "kubernetes",
    "deepdiff",
    "requests",
    "urllib3",
    "jsonschema",
    "reconcile",
    "pycdlib",
    "prometheus_client",
    "http",
    "logging",
    "concurrent",
    "rich",
)
"""Of a command on good input that asks no cluster. jsonschema explains what does not fit, and here all does."""

COMMANDS: dict[str, Sequence[str]] = {
    "help": ("--help",),
    "help of render": ("render", "--help"),
    "version": ("version",),
    "render": ("render", "examples/three-node"),
    "validate": ("validate", "examples/three-node"),
    "phases": ("phases",),
}

_RUN = """
import gc, json, re._compiler, sys
patterns, opened = [], []
compiler = re._compiler.compile

def compiled(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"].partition(".")[0] in ("re", "functools"):
        frame = frame.f_back
    patterns.append(frame.f_globals["__name__"])
    return compiler(pattern, flags)

re._compiler.compile = compiled
sys.addaudithook(lambda event, about: opened.append(str(about[0])) if event == "open" else None)
from renderer.cli import main
sys.argv = ["upgradeplan", *sys.argv[1:]]
status = main()
sys.stdout.flush()
kept = {"modules": [*sys.modules], "patterns": patterns, "opened": opened, "frozen": gc.get_freeze_count()}
sys.stderr.write(json.dumps(kept))
sys.exit(status)
"""


@functools.cache
def counted(command: str) -> dict[str, Any]:
    """What a command has loaded, compiled and opened when it ends."""
    arguments = [sys.executable, "-c", _RUN, *COMMANDS[command]]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stderr)
    return found


def loaded(command: str) -> frozenset[str]:
    return frozenset(counted(command)["modules"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_no_dear_library(command: str) -> None:
    """`validate` carries out checks, and no more of the loop than that; `--help` names its commands."""
    dear = {module for module in loaded(command) if module.partition(".")[0] in NEVER}
    if command == "validate":
        ours = ("cli", "objects", "observe", "preflight", "probes", "schemas", "status", "values")
        dear -= {"reconcile", *(f"reconcile.{room}" for room in ours)}
        dear = {module for module in dear if not module.startswith(tuple(f"reconcile.{room}." for room in ours))}
    table = {"reconcile", "reconcile.cli"} if command == "help" else set()
    assert dear == table


@pytest.mark.parametrize("command", ["help", "help of render", "version"])
def test_help_renders_nothing(command: str) -> None:
    assert loaded(command) & {"jinja2", "yaml", "renderer.render", "renderer.templating", "renderer.catalog"} == set()


def test_no_definition_of_a_kind_is_read() -> None:
    """They are read when the package is made: schemas/built holds what is needed of them."""
    schemas = f"{ROOT / 'schemas'}/"
    read = {name.removeprefix(schemas) for name in counted("render")["opened"] if name.startswith(schemas)}
    assert {name.partition("/")[0] for name in read if "/" in name} == {"built"}
    assert len(read) <= 6


def test_few_patterns_are_compiled() -> None:
    """Of our own. Each takes as long as some ten objects; one that is seldom needed is compiled when it is."""
    assert 0 < sum(name.partition(".")[0] == "renderer" for name in counted("render")["patterns"]) <= 36


def test_few_modules_are_loaded() -> None:
    assert 50 < sum(name.partition(".")[0] == "renderer" for name in loaded("render")) <= 119


def test_python_looks_for_no_garbage_when_a_command_ends() -> None:
    assert counted("render")["frozen"] > 10_000


def test_rendering_is_seen_to_load_what_it_needs() -> None:
    """Else the list of what it does not load would prove nothing."""
    assert {"jinja2", "yaml", "click", "renderer.templating", "renderer.yaml_io"} <= loaded("render")


def test_the_whole_renderer_stands_without_the_loop_and_without_commands() -> None:
    """Whoever imports it as a library gets no command line and no client of a cluster."""
    code = "import sys, renderer.assemble, renderer.layout.trees, renderer.files.inputs; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & {*NEVER, "click"} == set()
