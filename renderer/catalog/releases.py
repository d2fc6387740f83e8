"""Reads the lines of releases of a template tree, and finds what is known about an upgrade from one version to
another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.places import RELEASES
from renderer.catalog.probes import Raw
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problem, Problems
from renderer.model.document_type import RELEASE_NOTES
from renderer.model.release_line import NoteKind, ReleaseLine, ReleaseNote, UpgradePath
from renderer.suggest import did_you_mean
from renderer.versions import is_among
from renderer.yaml_io import Document


def load_releases(tree: TemplateTree, validate: Validate) -> tuple[ReleaseLine, ...]:
    """All lines, in the order of their files. Raises `Problems` with everything that is wrong."""
    reader = FileReader(tree, validate)
    found = read_releases(reader)
    if reader.problems:
        raise Problems(reader.problems, warnings=reader.warnings)
    return found


def read_releases(reader: FileReader, checks: Collection[str] | None = None) -> tuple[ReleaseLine, ...]:
    """The same; everything that is wrong is kept by the reader. A file of an overlay takes the place of the packaged
    one of its line. `checks` are the ids that its notes may name, where they are judged."""
    lines: dict[str, ReleaseLine] = {}
    for path in sorted(reader.files(RELEASES), key=lambda path: not reader.tree[path].packaged):
        document = reader.document(path, RELEASE_NOTES)
        if document is None:
            continue
        if checks is not None and not reader.tree[path].packaged:
            reader.problems += _unknown_checks(document, checks)
        lines[document.value["release"]] = release_from(document.value)
    return tuple(lines.values())


def release_from(raw: Raw) -> ReleaseLine:
    """Reads one document that has passed its schema."""
    return ReleaseLine(
        name=raw["release"],
        paths=tuple(UpgradePath(after=tuple(item["to"]), minimum=item["minimum"]) for item in raw["paths"]),
        components=raw["components"],
        notes=tuple(_note(item) for item in raw["notes"]),
    )


def _note(raw: Raw) -> ReleaseNote:
    return ReleaseNote(
        id=raw["id"],
        before=tuple(raw["from"]),
        after=tuple(raw["to"]),
        kind=NoteKind(raw["kind"]),
        text=raw["text"],
        remedy=raw["remedy"],
        checks=tuple(raw.get("checks", ())),
        afterwards=raw.get("afterwards", False),
    )


def _unknown_checks(document: Document, known: Collection[str]) -> Iterator[Problem]:
    for index, note in enumerate(document.value["notes"]):
        for check in note.get("checks", ()):
            if check not in known:
                yield Problem(
                    reason="UnknownCheck",
                    file=document.file,
                    line=document.line_of(("notes", index, "checks")),
                    message=f"note {note['id']}: check {check!r} not found{did_you_mean(check, known)}",
                    remedy="`upgradeplan preflight --all` lists the checks",
                )


def notes_between(lines: Sequence[ReleaseLine], current: str, target: str) -> tuple[ReleaseNote, ...]:
    """The notes on an upgrade from one version to another; none for development builds."""
    return tuple(
        note for line in lines for note in line.notes if is_among(current, note.before) and is_among(target, note.after)
    )


def minimum_of(lines: Sequence[ReleaseLine], target: str) -> str:
    """The oldest version that may be upgraded to a release; empty where it is not known."""
    paths = (path for line in lines for path in line.paths if is_among(target, path.after))
    return next((path.minimum for path in paths), "")


def components_of(lines: Sequence[ReleaseLine], version: str) -> Mapping[str, str]:
    """The components of the version's line; none where it is not known."""
    return next((line.components for line in lines if is_among(version, (line.name,))), {})
