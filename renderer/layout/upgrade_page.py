"""`UPGRADE.md`: what is known about the two releases, for those who review a rendering. No digest depends on it."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.catalog.releases import load_releases
from renderer.catalog.template_tree import TemplateTree
from renderer.catalog.upgrade_notes import UpgradeNotes, upgrade_notes
from renderer.context.checks import check_names
from renderer.context.facts import Facts
from renderer.model.release_line import ReleaseLine, ReleaseNote
from renderer.validation import document_problems


def page_of(facts: Facts, tree: TemplateTree, lines: tuple[ReleaseLine, ...] | None = None) -> str:
    """The page; empty where one of the versions is not known. `lines` are those of the tree, if they were read. Raises
    `Problems` for notes that cannot be read."""
    found = notes_of(facts, tree, lines)
    return "\n".join((*_lines(found), "")) if found else ""


def notes_of(facts: Facts, tree: TemplateTree, lines: tuple[ReleaseLine, ...] | None = None) -> UpgradeNotes | None:
    """All that is known about the two releases; None where one of the versions is not. Raises `Problems`."""
    lines = load_releases(tree, document_problems) if lines is None else lines
    return upgrade_notes(check_names(facts, lines).given, lines)


def _lines(upgrade: UpgradeNotes) -> Iterator[str]:
    yield from (f"# Upgrade from {upgrade.current} to {upgrade.target}", "")
    if upgrade.components:
        yield from (f"| component | {upgrade.current} | {upgrade.target} |", "| --- | --- | --- |")
        yield from (f"| {item.name} | {item.before or '?'} | {item.after or '?'} |" for item in upgrade.components)
    for note in upgrade.notes:
        yield from ("", *_note(note))


def _note(note: ReleaseNote) -> Iterator[str]:
    yield f"- {note.kind.value}: {note.id}: {' '.join(note.text.split())}"
    yield f"  Remedy: {' '.join(note.remedy.split())}"
    if note.checks:
        yield f"  `upgradeplan preflight` looks for it: {', '.join(note.checks)}."
