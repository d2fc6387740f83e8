"""Distinguishes the name of a plan from files, for commands that accept both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

_ENDINGS = (".html", ".htm", ".md", ".json", ".jsonl", ".yaml", ".yml", ".zip", ".iso")


def is_file(subject: str) -> bool:
    """True for what is there or is spelled like a file: no plan is called so."""
    return "/" in subject or subject == "-" or subject.endswith(_ENDINGS) or Path(subject).exists()


def split_subjects(subjects: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    """The name of the plan, None where none is named, and the files. Raises `click.UsageError` for two names."""
    given = tuple(subjects)
    names = [subject for subject in given if not is_file(subject)]
    if len(names) > 1:
        raise click.UsageError(f"one plan is verified at a time, and {len(names)} are named: {', '.join(names)}")
    return names[0] if names else None, tuple(subject for subject in given if is_file(subject))
