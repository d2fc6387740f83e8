"""`completion`: the script that makes a shell complete our commands, and the same candidates for kubectl."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class, shell_complete

from renderer.cli.names import COMPLETE_VARIABLE, PROGRAM
from renderer.errors import ExitCode, problem

_NO_FILES = 4
_FILES = 0
_FOLDERS = 16
"""kubectl's directives (`ShellCompDirective` of cobra): what the shell adds to the candidates of its own."""


@click.command
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> ExitCode:
    """Print a shell completion script.

    \b
    Examples:
      source <(upgradeplan completion bash)
      source <(upgradeplan completion zsh)
      upgradeplan completion fish | source

    `kubectl upgradeplan` needs only kubectl's own completion, which calls kubectl_complete-upgradeplan.
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"completion for {shell} is not supported")
    click.echo(_completer(made).source(), nl=False)
    return ExitCode.YES


def answer_shell(program_name: str, instruction: str) -> int:
    """Answers the printed scripts, which ask through `COMPLETE_VARIABLE`: `bash_complete`."""
    from renderer.cli.commands import program

    if not _has_a_line(instruction):
        message = f"{COMPLETE_VARIABLE} is set, but COMP_WORDS and COMP_CWORD hold no command line"
        raise problem("Usage", message, remedy=f"unset {COMPLETE_VARIABLE}; only the completion of a shell sets it")
    return shell_complete(program, {}, program_name, COMPLETE_VARIABLE, instruction)


def _has_a_line(instruction: str) -> bool:
    """True if what `..._complete` needs is there: the words, and which one is to be completed."""
    shell, _, action = instruction.partition("_")
    words, word = os.environ.get("COMP_WORDS"), os.environ.get("COMP_CWORD")
    if action != "complete":
        return True
    return words is not None and word is not None and (shell == "fish" or (word.isdecimal() and len(word) < 10))


def kubectl_candidates(words: Sequence[str]) -> str:
    """The output of a `kubectl_complete-` program: candidates, described behind a tab, then `:` and a directive."""
    *before, unfinished = words or [""]
    found = _completer(ShellComplete).get_completions(list(before), unfinished)
    lines = [_line(item) for item in found if item.type == "plain"]
    kinds = {item.type for item in found}
    directive = _FOLDERS if kinds == {"dir"} else _FILES if "file" in kinds else _NO_FILES
    return "".join(f"{line}\n" for line in (*lines, f":{directive}"))


def _line(item: CompletionItem[str]) -> str:
    return f"{item.value}\t{item.help}" if item.help else str(item.value)


def _completer(kind: type[ShellComplete]) -> ShellComplete:
    from renderer.cli.commands import program

    return kind(program, {}, PROGRAM, COMPLETE_VARIABLE)
