"""Shows what is known about the two releases of an upgrade: components, and notes with what looks for each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from renderer.catalog.upgrade_notes import UpgradeNotes
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell, codes

Model = dict[str, Any]


def upgrade_model(upgrade: UpgradeNotes, *, after: bool = False) -> Model:
    """All notes, or those of which somebody has to know `after` the upgrade."""
    return {
        "from": upgrade.current,
        "to": upgrade.target,
        "components": [{"name": item.name, "from": item.before, "to": item.after} for item in upgrade.components],
        "notes": [
            {"id": note.id, "kind": note.kind.value, "text": note.text, "remedy": note.remedy, "checks": [*note.checks]}
            for note in upgrade.notes
            if note.afterwards or not after
        ],
    }


def upgrade_lines(upgrade: Model, content: Collection[str]) -> Iterator[str]:
    """The components, and the notes of which somebody has to know: `content` are the checks that stand for theirs."""
    changes = [f"{item['name']} {_change(item)}" for item in upgrade["components"]]
    yield f"upgrade from {upgrade['from']} to {upgrade['to']}{': ' if changes else ''}{', '.join(changes)}"
    for note in _notes(upgrade, content):
        by = f", looked for by {', '.join(note['checks'])}" if note["checks"] else ""
        yield f"{note['kind']}: {note['id']}{by}: {note['text']}"
        yield f"  remedy: {note['remedy']}"


def upgrade_blocks(upgrade: Model, content: Collection[str]) -> Iterator[Block]:
    """The same for a pull request."""
    yield f"#### From {cell(upgrade['from'])} to {cell(upgrade['to'])}"
    components = [
        tuple(map(cell, (item["name"], item["from"] or "?", item["to"] or "?"))) for item in upgrade["components"]
    ]
    yield Table(heading=("component", "from", "to"), rows=components, noun=("component", "components"))
    notes = [
        (cell(note["kind"]), f"{cell(note['text'])} Remedy: {cell(note['remedy'])}", codes(note["checks"]))
        for note in _notes(upgrade, content)
    ]
    yield Table(heading=("note", "what", "looked for by"), rows=notes, noun=("note", "notes"))


def _change(component: Model) -> str:
    before, after = component["from"] or "?", component["to"] or "?"
    return before if before == after else f"{before} -> {after}"


def _notes(upgrade: Model, content: Collection[str]) -> Iterator[Model]:
    for note in upgrade["notes"]:
        if not note["checks"] or not set(note["checks"]).issubset(content):
            yield note
