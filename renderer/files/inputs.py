"""Reads all inputs of a run and checks their form: one call, and one exception with all problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from renderer.documents import Inputs, collected_kind, recognize
from renderer.errors import Problems
from renderer.files.arguments import read_documents
from renderer.files.decode import documents_of, text_of
from renderer.files.fetch import fetch, is_address
from renderer.files.filesystem import FilesRead
from renderer.files.iso import is_iso, read_iso
from renderer.input_rules import as_stored, input_problems, is_plan_name
from renderer.redaction import bare_address
from renderer.source_document import Piece, Role, SourceDocument, is_plan_or_release, pieces_of
from renderer.yaml_io import Document


def read_inputs(
    arguments: Iterable[str] = (),
    *,
    plan: str | None = None,
    name: str | None = None,
    release: str | None = None,
    cluster: Iterable[str] = (),
    stdin: BinaryIO | None = None,
    shared: Sequence[Document] = (),
) -> Inputs:
    """The inputs of one run. Raises `Problems` with all that is wrong with any of them.

    `arguments`, `plan` and `cluster` are files, folders or `-`; `release` is also an http(s) address or an ISO image.
    `name` chooses among several plans; a `plan` that is not a file is such a name. `shared` are documents that were
    read already: of plans and releases they count only where the arguments hold none. What an option names wins over
    what the arguments hold. That there is no plan at all is for the caller to refuse (`documents.plan_of`).
    """
    clusters = tuple(cluster)
    found = read_documents(arguments, stdin)
    found.documents += _not_overridden(shared, found.documents)
    if plan and is_name(plan):
        plan, name = None, plan
    plans = read_documents([plan], stdin) if plan else None
    objects = read_documents(clusters, stdin) if clusters else None
    releases = read_release(release, _previous(found, plans, objects), stdin) if release else None
    inputs, unrecognized = recognize(
        found.documents,
        plan=_documents(plans),
        release=_documents(releases),
        cluster=_documents(objects),
        name=name,
    )
    inputs = as_stored(_with_plans_there(inputs, found, objects))
    unread = [problem for part in (found, plans, releases, objects) if part for problem in part.problems]
    if problems := [*unread, *unrecognized, *input_problems(inputs)]:
        raise Problems(problems, warnings=inputs.warnings)
    return inputs


def _with_plans_there(inputs: Inputs, *readings: FilesRead | None) -> Inputs:
    """With the plans that support bundles hold, none of which is meant."""
    documents = [document for reading in readings if reading for document in reading.plans]
    pieces = [piece for document in documents for piece in pieces_of(document, None) if isinstance(piece, Piece)]
    plans = tuple(piece.source for piece in pieces if piece.role is Role.PLAN)
    empty = tuple(collected_kind(piece.source) for piece in pieces if piece.role is Role.EMPTY)
    if not pieces:
        return inputs
    return replace(inputs, other_plans=(*inputs.other_plans, *plans), collected=(*inputs.collected, *empty))


def _not_overridden(shared: Sequence[Document], own: Sequence[Document]) -> list[Document]:
    if not shared:
        return []
    there = {role for document in own if (role := is_plan_or_release(document))}
    return [document for document in shared if is_plan_or_release(document) not in there]


def is_name(text: str) -> bool:
    """True if an argument names a plan rather than its file."""
    return is_plan_name(text) and not Path(text).exists()


def _documents(reading: FilesRead | None) -> list[Document] | None:
    return None if reading is None else reading.documents


def read_release(name: str, previous: str | None = None, stdin: BinaryIO | None = None) -> FilesRead:
    """The release of a file, an address or an ISO image; `previous` is the version whose image list is wanted too."""
    if is_address(name):
        return _attempt(lambda: _fetched(name))
    if is_iso(Path(name)):
        return _attempt(lambda: read_iso(Path(name), previous))
    return read_documents([name], stdin)


def _fetched(url: str) -> tuple[Document, ...]:
    shown = bare_address(url)
    return documents_of(text_of(fetch(url), shown), shown)


def _attempt(read: Callable[[], tuple[Document, ...]]) -> FilesRead:
    try:
        return FilesRead(documents=list(read()))
    except Problems as error:
        return FilesRead(problems=list(error.problems))


def _previous(found: FilesRead, plans: FilesRead | None, objects: FilesRead | None) -> str | None:
    """The version that runs now, as the plan's status or the cluster's Setting `server-version` says."""
    inputs, _ = recognize(found.documents, plan=_documents(plans), cluster=_documents(objects), release=())
    status = inputs.plan.body.get("status") if inputs.plan else None
    recorded = status.get("previousVersion") if isinstance(status, Mapping) else None
    settings = [source.body for source in inputs.objects if _is_server_version(source)]
    versions = (recorded, *(body.get(key) for body in settings for key in ("value", "default")))
    return next((version for version in versions if version and isinstance(version, str)), None)


def _is_server_version(source: SourceDocument) -> bool:
    metadata = source.body.get("metadata")
    is_setting = source.body["kind"] == "Setting" and str(source.body["apiVersion"]).startswith("harvesterhci.io/")
    return is_setting and isinstance(metadata, Mapping) and metadata.get("name") == "server-version"
