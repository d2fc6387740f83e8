"""The kinds table: how each kind is served, where its pods and images are, and when an object of it is ready.

The rows are data (`templates/_kinds/*.yaml`). A kind without a row cannot be read, written or waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from renderer.catalog.probes import predicate_from
from renderer.errors import Problem, problem
from renderer.frozen import frozen
from renderer.model.path import Path, parse_path
from renderer.model.probe import Predicate
from renderer.model.ref import Kind
from renderer.yaml_io import Document


@frozen
class Ready:
    """Readiness rule of a kind: ready if `all` hold, failed if one of `fails` holds."""

    all: tuple[Predicate, ...]
    fails: tuple[Predicate, ...] = ()


@frozen
class KindRow:
    """One kind under one API version.

    `image` has the paths of image and tag for kinds that name them apart. `versions` are all API versions under which a
    cluster may serve the kind, the one that is written first. `reports_generation`: a status always has an
    observedGeneration. `not_readiness` are conditions (type, status) that say nothing of it. `checked` are the paths
    that checks may read beside the usual ones, in each entry of a list on the way; None means all.
    """

    kind: Kind
    versions: tuple[str, ...]
    ready: Ready | None = None
    pod_spec: Path | None = None
    image: tuple[Path, Path] | None = None
    reports_generation: bool = False
    not_readiness: tuple[tuple[str, str], ...] = ()
    checked: tuple[Path, ...] | None = None


_OF_METADATA = ("name", "namespace", "labels", "generation", "resourceVersion", "deletionTimestamp")
_OF_OWNERS = ("apiVersion", "kind", "name", "controller")
_OF_CONDITIONS = ("type", "status", "reason", "message", "observedGeneration")
ALWAYS_CHECKED: tuple[Path, ...] = (
    *(("apiVersion",), ("kind",)),
    *(("metadata", key) for key in _OF_METADATA),
    *(("metadata", "ownerReferences", key) for key in _OF_OWNERS),
    *(("status", "conditions", key) for key in _OF_CONDITIONS),
    ("status", "observedGeneration"),
)
"""The paths that every check may read: nothing that is long and another one for each object, as annotations and times
are. `resourceVersion` tells whether a list is still what it was."""

STATUS_OF_ANOTHER = frozenset({("management.cattle.io", "ManagedChart")})
"""Groups and kinds whose status is a copy of another object's, so that its observedGeneration is not about their own
generation: Rancher copies the whole status of a chart's Bundle into the ManagedChart."""


class Kinds:
    """Look-ups over the table."""

    def __init__(self, rows: Iterable[KindRow]) -> None:
        self._rows = {(row.kind.api_version, row.kind.kind): row for row in rows}

    def __iter__(self) -> Iterator[KindRow]:
        return iter(self._rows.values())

    def served_as(self, api_version: str, kind: str) -> Iterator[Kind]:
        """The kind under each of its versions. Raises `Problems` for a kind without a row."""
        for version in self.row(api_version, kind).versions:
            yield self._rows[version, kind].kind

    def find(self, api_version: str, kind: str) -> KindRow | None:
        return self._rows.get((api_version, kind))

    def row(self, api_version: str, kind: str) -> KindRow:
        """Raises `Problems` for a kind without a row."""
        found = self.find(api_version, kind)
        if found is None:
            raise problem(
                "UnknownKind",
                f"{api_version} {kind} is not in the kinds table",
                remedy="add a row for it to a file in _kinds/ of the template tree",
            )
        return found


def rows_from(raw: Mapping[str, Any]) -> Iterator[KindRow]:
    """Rows of one `_kinds` file; it has passed `schemas/kinds.json`."""
    for item in raw["kinds"]:
        ready, image = item.get("ready"), item.get("image")
        versions = (item["apiVersion"], *item.get("laterVersions", ()))
        main = KindRow(
            kind=Kind(
                api_version=item["apiVersion"], kind=item["kind"], plural=item["plural"], namespaced=item["namespaced"]
            ),
            versions=versions,
            ready=_ready(ready) if ready else None,
            pod_spec=parse_path(item["podSpec"]) if "podSpec" in item else None,
            image=(parse_path(image["path"]), parse_path(image["tag"])) if image else None,
            reports_generation=item.get("reportsGeneration", False),
            not_readiness=tuple((each["type"], each["status"]) for each in item.get("notReadiness", ())),
            checked=tuple(map(parse_path, item["checked"])) if "checked" in item else None,
        )
        yield main
        for version in versions[1:]:
            yield replace(main, kind=replace(main.kind, api_version=version))


def duplicate_kinds(
    document: Document, rows: Iterable[KindRow], known: Mapping[tuple[str, str], Document]
) -> Iterator[Problem]:
    """A problem for each row of a file whose kind has a row already: one of the two would not count. `known` are the
    files of the rows so far."""
    seen = dict(known)
    for row in rows:
        name = (row.kind.api_version, row.kind.kind)
        if name in seen:
            yield Problem(
                reason="KindConflict",
                file=document.file,
                line=document.line_with(row.kind.kind),
                message=f"{' '.join(name)} already has a row in {seen[name].file}",
                remedy="remove one of the two rows; an overlay replaces a packaged file by one of the same path",
            )
        seen[name] = document


def _ready(raw: Mapping[str, Any]) -> Ready:
    return Ready(
        all=tuple(predicate_from(item) for item in raw["all"]),
        fails=tuple(predicate_from(item) for item in raw.get("fails", ())),
    )
