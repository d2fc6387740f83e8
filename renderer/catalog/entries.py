"""Reads lists of declarations that overlays add to, replace entries of and switch entries off: checks, causes.

Packaged entries are proven by the tests; those of an overlay are judged when the tree is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from renderer.catalog.file_reader import FileReader
from renderer.catalog.probes import Raw
from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.document_type import DocumentType
from renderer.model.path import Path
from renderer.suggest import did_you_mean
from renderer.yaml_io import Document


@frozen
class DeclarationPlace:
    """The place of a declaration: its document, and its path there. `raw` is the declaration, marks and all."""

    document: Document
    path: Path
    raw: Raw

    def problem(self, reason: str, message: str, remedy: str, *at: str) -> Problem:
        """A problem at a key of the declaration."""
        line = self.document.line_of((*self.path, *at))
        return Problem(reason=reason, file=self.document.file, line=line, message=message, remedy=remedy)


class Entry(Protocol):
    """A declaration that was read. Its `id` is unique among all files."""

    @property
    def id(self) -> str: ...

    @property
    def place(self) -> DeclarationPlace: ...

    def switched_off(self, why: str) -> Self:
        """The same, which nobody carries out; `why` is shown in its place."""
        ...


E = TypeVar("E", bound=Entry)


@frozen
class EntryList(Generic[E]):
    """A list of declarations in the files of a folder, without those deeper down. `key` is the list's key in a
    document, `noun` the word for an entry in messages; `listed_by` says what lists them. `taken` makes the
    problem of an id that stands there twice, from a message; `unknown` is the reason of one that nothing has.

    `read` raises `ValueError` for what its schema let pass and cannot be read; `wrong_with` says what else is wrong
    with an entry of an overlay.
    """

    folder: str
    of: DocumentType
    key: str
    noun: str
    listed_by: str
    taken: Callable[[DeclarationPlace, str], Problem]
    unknown: str
    read: Callable[[DeclarationPlace], E]
    wrong_with: Callable[[E], Iterable[Problem]]

    def entries(self, reader: FileReader) -> tuple[E, ...]:
        """All entries, in the order of their files; everything that is wrong is kept by the reader."""
        paths = [path for path in reader.files(self.folder) if path.count("/") == self.folder.count("/") + 1]
        packaged = {path: document for path in paths if (document := reader.document(path, self.of))}
        own = {path: packaged.pop(path) for path in list(packaged) if not reader.tree[path].packaged}
        known: dict[str, E] = {}
        for document in packaged.values():
            self._add(known, self._declared(document, reader), reader, replaced=())
        ids = tuple(known)
        for document in own.values():
            added = list(self._declared(document, reader))
            reader.problems += [problem for item in added for problem in self.wrong_with(item)]
            self._add(known, added, reader, replaced=ids)
        for document in own.values():
            self._switch_off(known, document, reader)
        return tuple(known.values())

    def _declared(self, document: Document, reader: FileReader) -> Iterator[E]:
        for index, raw in enumerate(document.value[self.key]):
            place = DeclarationPlace(document=document, path=(self.key, index), raw=raw)
            if "disabled" not in raw and (entry := reader.read(document, lambda at=place: self.read(at), None)):  # type: ignore[misc]
                yield entry

    def _add(self, known: dict[str, E], added: Iterable[E], reader: FileReader, *, replaced: Sequence[str]) -> None:
        """An entry takes the place of a packaged one, one of the ids in `replaced`."""
        seen = {name: item for name, item in known.items() if name not in replaced}
        for item in added:
            if item.id in seen:
                message = f"{self.noun} {item.id} is already declared in {seen[item.id].place.document.file}"
                reader.problems.append(self.taken(item.place, message))
            seen[item.id] = known[item.id] = item

    def _switch_off(self, known: dict[str, E], document: Document, reader: FileReader) -> None:
        for index, raw in enumerate(document.value[self.key]):
            if "disabled" not in raw:
                continue
            if (found := known.get(raw["id"])) is None:
                place = DeclarationPlace(document=document, path=(self.key, index), raw=raw)
                message = f"{self.noun} {raw['id']!r} not found{did_you_mean(raw['id'], known)}"
                reader.problems.append(place.problem(self.unknown, message, self.listed_by, "id"))
            else:
                known[raw["id"]] = found.switched_off(raw["reason"])


def texts_of(value: Any) -> Iterator[str]:
    """Every text of a declaration."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in texts_of(item))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in texts_of(item))
