"""`waves.yaml` as values: which clusters are upgraded when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.document_type import WAVES
from renderer.model.path import path_name
from renderer.validation import document_problems
from renderer.yaml_io import Document

MANUAL = "manual"
"""A pause that ends when somebody releases the wave."""
_CHOICES = ("clusters", "selector", "percentage", "rest")


@frozen
class Requirement:
    """One requirement of a label selector, as Kubernetes has it. `matchLabels` are requirements with one value."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@frozen
class Wave:
    """One wave. Of `clusters`, `selector`, `percentage` and `rest` one says which clusters it has; `pause` comes before
    it. `line` is where it stands."""

    name: str
    clusters: tuple[str, ...] = ()
    selector: tuple[Requirement, ...] = ()
    percentage: int | None = None
    rest: bool = False
    pause: str | None = None
    line: int | None = None


@frozen
class Waves:
    """All waves, in their order; `file` is where they stand."""

    name: str
    waves: tuple[Wave, ...]
    file: str


def waves_from(document: Document) -> tuple[Waves | None, list[Problem]]:
    """The waves, or None and everything that is wrong with the document."""
    if problems := document_problems(document, WAVES):
        return None, problems
    body = document.value
    problems = [*_choice_problems(document), *_selector_problems(document), *_duplicates(document)]
    waves = tuple(_wave(raw, document.line_of(("waves", index))) for index, raw in enumerate(body["waves"]))
    return (None, problems) if problems else (Waves(name=body["name"], waves=waves, file=document.file), [])


def _wave(raw: Mapping[str, Any], line: int) -> Wave:
    return Wave(
        name=raw["name"],
        clusters=tuple(raw.get("clusters", ())),
        selector=tuple(_requirements(raw.get("selector", {}))),
        percentage=raw.get("percentage"),
        rest=raw.get("rest", False),
        pause=raw.get("pause"),
        line=line,
    )


def _requirements(selector: Mapping[str, Any]) -> Iterator[Requirement]:
    for key, value in selector.get("matchLabels", {}).items():
        yield Requirement(key=key, operator="In", values=(value,))
    for raw in selector.get("matchExpressions", ()):
        yield Requirement(key=raw["key"], operator=raw["operator"], values=tuple(raw.get("values", ())))


def _choice_problems(document: Document) -> Iterator[Problem]:
    for index, raw in enumerate(document.value["waves"]):
        found = [key for key in _CHOICES if key in raw]
        if len(found) != 1:
            says = f"has {' and '.join(found)}" if found else f"has none of {', '.join(_CHOICES)}"
            message = f"wave {raw['name']!r} {says}; exactly one of them says which clusters it has"
            yield _problem(document, ("waves", index, *found[1:2]), message, "keep one of them, or make two waves")
    rests = [index for index, raw in enumerate(document.value["waves"]) if "rest" in raw]
    for index in rests[1:]:
        message = "a second wave has the rest of the clusters, so it is always empty"
        yield _problem(document, ("waves", index, "rest"), message, "keep one wave with rest")


def _selector_problems(document: Document) -> Iterator[Problem]:
    for index, raw in enumerate(document.value["waves"]):
        for place, item in enumerate(raw.get("selector", {}).get("matchExpressions", ())):
            needs = item["operator"] in ("In", "NotIn")
            if needs != bool(item.get("values")):
                message = f"{item['operator']} takes {'at least one value' if needs else 'no values'}"
                path = ("waves", index, "selector", "matchExpressions", place)
                yield _problem(document, path, message, "write it as a label selector of Kubernetes")


def _duplicates(document: Document) -> Iterator[Problem]:
    names = [raw["name"] for raw in document.value["waves"]]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield _problem(document, ("waves", index, "name"), f"duplicate wave {name!r}", "give it another name")


def _problem(document: Document, path: tuple[str | int, ...], message: str, remedy: str) -> Problem:
    return Problem(
        reason="InvalidWaves",
        message=message,
        file=document.file,
        line=document.line_of(path),
        field=path_name(path),
        remedy=remedy,
    )
