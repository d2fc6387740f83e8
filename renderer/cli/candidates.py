"""Completes words for a shell: names of phases, and names where a file may stand as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from renderer.cli.input_options import InputOptions, catalog_of
from renderer.errors import Problems

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

Names = Callable[[Any, Any, str], list[str]]


def phase_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The names that complete a word; none if the templates cannot be read."""
    try:
        phases = catalog_of(InputOptions(templates=tuple(ctx.params.get("templates") or ()))).phases
    except Problems:
        return []
    return [item.phase.name for item in phases if item.phase.name.startswith(incomplete)]


def or_files(names: Names) -> Callable[[Any, Any, str], list[CompletionItem[str]]]:
    """The names and, where none fits, files. The word for files comes first: bash forgets what was before it."""

    def completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file"), *map(CompletionItem, names(ctx, param, incomplete))]

    return completed
