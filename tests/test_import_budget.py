"""What a command loads is what a user waits for: dear libraries stay out of commands that do not need them.

Each command runs whole, in a process of its own, and says at its end which modules it has loaded.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Sequence

import pytest
from support.rendered_plans import ROOT

NEVER = ("kubernetes", "deepdiff", "requests", "urllib3", "jsonschema", "reconcile", "pycdlib", "http", "rich")
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
import sys
from renderer.cli import main
sys.argv = ["upgradeplan", *sys.argv[1:]]
status = main()
sys.stdout.flush()
sys.stderr.write("\\n".join(sorted(sys.modules)))
sys.exit(status)
"""


@functools.cache
def loaded(command: str) -> frozenset[str]:
    """The modules that a command has loaded when it ends."""
    arguments = [sys.executable, "-c", _RUN, *COMMANDS[command]]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return frozenset(done.stderr.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_no_dear_library(command: str) -> None:
    table = {"reconcile", "reconcile.cli"} if command == "help" else set()  # the names of its commands and no more
    assert {module for module in loaded(command) if module.partition(".")[0] in NEVER} == table


@pytest.mark.parametrize("command", ["help", "help of render", "version"])
def test_help_renders_nothing(command: str) -> None:
    assert loaded(command) & {"jinja2", "yaml", "renderer.render", "renderer.templating", "renderer.catalog"} == set()


def test_rendering_is_seen_to_load_what_it_needs() -> None:
    """Else the list of what it does not load would prove nothing."""
    assert {"jinja2", "yaml", "click", "renderer.templating", "renderer.yaml_io"} <= loaded("render")


def test_the_whole_renderer_stands_without_the_loop_and_without_commands() -> None:
    """Whoever imports it as a library gets no command line and no client of a cluster."""
    code = "import sys, renderer.assemble, renderer.layout.trees, renderer.files.inputs; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & {*NEVER, "click"} == set()
