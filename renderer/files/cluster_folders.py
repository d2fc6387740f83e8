"""Reads a folder that has one sub-folder a cluster: which clusters there are, their waves, and what all of them share.

The inputs of a cluster itself are read when it is rendered.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from renderer.clusters.cluster_values import ClusterValues, cluster_values_from
from renderer.clusters.plan_template import PLAN_TEMPLATE
from renderer.clusters.waves import Waves, waves_from
from renderer.errors import Problem, Problems
from renderer.files.arguments import EXTENSIONS, read_documents
from renderer.files.decode import documents_of, text_of
from renderer.files.filesystem import is_device, is_folder, link_outside, read_bytes, unreadable
from renderer.frozen import frozen
from renderer.names import is_dns_label
from renderer.source_document import CLUSTER_FILE, WAVES_FILE
from renderer.yaml_io import Document


@frozen
class ClusterFolder:
    """A cluster's name and the folder of its inputs. `values` are from its `cluster.yaml`."""

    name: str
    path: str
    values: ClusterValues = ClusterValues()


@dataclass(slots=True)
class ClustersRead:
    """All that the folder says, and what is wrong with it. `shared` are documents for every cluster; `template` is the
    text of the plan's template and its file."""

    clusters: list[ClusterFolder] = field(default_factory=list)
    waves: Waves | None = None
    shared: list[Document] = field(default_factory=list)
    template: tuple[str, str] | None = None
    problems: list[Problem] = field(default_factory=list)


def read_clusters(folder: Path) -> ClustersRead:
    """Raises `Problems` if it is not a folder, or has no cluster."""
    found = ClustersRead()
    names = _names(folder)
    folders = [name for name in names if is_folder(folder / name)]
    if not folders:
        message, remedy = "contains no folder of a cluster", "name the folder that has one sub-folder a cluster"
        raise Problems([Problem(reason="EmptyFolder", message=message, file=str(folder), remedy=remedy)])
    found.clusters = [cluster for name in folders for cluster in _cluster(folder, name, found.problems)]
    _read_shared(folder, [name for name in names if name not in folders], found)
    return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise Problems([unreadable(str(folder), error)]) from error


def _cluster(folder: Path, name: str, problems: list[Problem]) -> Iterator[ClusterFolder]:
    path = folder / name
    if wrong := link_outside(path, folder) or _name_problem(name, path):
        problems.append(wrong)
        return
    values = ClusterValues()
    if os.path.lexists(path / CLUSTER_FILE):
        for document in _documents(path / CLUSTER_FILE, path, problems):
            values, wrongs = cluster_values_from(document)
            problems += wrongs
    yield ClusterFolder(name=name, path=str(path), values=values)


def _name_problem(name: str, path: Path) -> Problem | None:
    if is_dns_label(name):
        return None
    message = f"{name!r} is not the name of a cluster: lower-case letters, digits and -, at most 40"
    return Problem(reason="InvalidName", message=message, file=str(path), remedy="rename the folder, or move it away")


def _read_shared(folder: Path, names: list[str], found: ClustersRead) -> None:
    """The files beside the clusters' folders."""
    files = [folder / name for name in names if name.endswith(EXTENSIONS) or name == PLAN_TEMPLATE]
    for path in (path for path in files if is_device(path)):
        message, remedy = "is a device, a pipe or a socket; a file is expected", "put a file in its place"
        found.problems.append(Problem(reason="NotText", message=message, file=str(path), remedy=remedy))
    files = [path for path in files if not is_device(path)]
    for path in files:
        if path.name == WAVES_FILE:
            for document in _documents(path, folder, found.problems):
                found.waves, wrongs = waves_from(document)
                found.problems += wrongs
        elif path.name == PLAN_TEMPLATE:
            found.template = _text(path, folder, found.problems)
    own = (WAVES_FILE, PLAN_TEMPLATE)
    outside = {path: wrong for path in files if path.name not in own and (wrong := link_outside(path, folder))}
    found.problems += outside.values()
    reading = read_documents(str(path) for path in files if path.name not in own and path not in outside)
    found.shared += reading.documents
    found.problems += reading.problems


def _documents(path: Path, folder: Path, problems: list[Problem]) -> tuple[Document, ...]:
    """The one document of a file; None if it is invalid."""
    text = _text(path, folder, problems)
    try:
        documents = documents_of(text[0], text[1]) if text else ()
    except Problems as error:
        problems += error.problems
        return ()
    if len(documents) > 1:
        message, remedy = f"holds {len(documents)} documents, expected one", "keep one"
        problems.append(Problem(reason="InvalidYAML", message=message, file=str(path), remedy=remedy))
        return ()
    return documents


def _text(path: Path, folder: Path, problems: list[Problem]) -> tuple[str, str] | None:
    """Text and file."""
    if wrong := link_outside(path, folder):
        problems.append(wrong)
        return None
    try:
        return text_of(read_bytes(path), str(path)), str(path)
    except Problems as error:
        problems += error.problems
        return None
