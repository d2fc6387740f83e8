"""Compares the Jobs of a tree with those of the earlier rendering: a Job that was delivered is not changed.

An API server refuses another pod template, and an agent that replaces the Job runs it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.delivery.phase_units import PHASES
from renderer.errors import Problem, Problems
from renderer.model.ref import Ref, ref_of
from renderer.yaml_io import parse

_REMEDY = "render a new plan, or --retry with another number; if nothing was delivered yet, remove the folder"

Job = tuple[str, Any]
"""File and body."""


def changed_jobs(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Problem]:
    """A problem for each Job of phases that both trees have under one name, with another content."""
    known = _jobs(before)
    for ref, (file, body) in _jobs(after).items():
        if ref in known and known[ref][1] != body:
            yield Problem(
                reason="DeliveredJobChanges",
                message=f"{ref} was delivered with another content, and a Job cannot be changed",
                file=file,
                remedy=_REMEDY,
            )


def _jobs(tree: Mapping[str, str]) -> Mapping[Ref, Job]:
    found: dict[Ref, Job] = {}
    for path, text in tree.items():
        if path.startswith(f"{PHASES}/"):
            for body in _bodies(path, text):
                if body.get("kind") == "Job":
                    found[ref_of(body)] = (path, body)
    return found


def _bodies(path: str, text: str) -> Iterator[Mapping[str, Any]]:
    """None for a file that cannot be read: writing the tree replaces it."""
    try:
        yield from (document.value for document in parse(text, path) if isinstance(document.value, Mapping))
    except Problems:
        return
