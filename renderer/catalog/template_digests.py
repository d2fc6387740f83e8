"""Digests of the files that phases are rendered from: two managers with the same ones render the same of a plan."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from renderer.catalog.load import Catalog
from renderer.catalog.places import VALUES_FILE
from renderer.digest import digest_of, short_digest
from renderer.frozen import frozen

_SHARED = ("_macros/", "_kinds/", "_node-states/")


@frozen
class TemplateDigests:
    """`files` has the path below the template tree, and the first 12 hexadecimal digits of the SHA-256 of the file's
    text; each value has an entry of its own, `values.yaml: NAME`. `digest` is of all together."""

    files: Mapping[str, str]
    digest: str


def template_digests(catalog: Catalog, overrides: Mapping[str, Any] | None = None) -> TemplateDigests:
    """Of the phases' files and of those that all phases share, and of values as they are with the installation's
    `overrides`. What only checks, diffs or an installation read is left out."""
    folders = tuple(f"{declared.phase.folder}/" for declared in catalog.phases)
    files = {path: _short(file.text) for path, file in catalog.tree.items() if path.startswith((*folders, *_SHARED))}
    values = {**catalog.values, **(overrides or {})}
    files |= {f"{VALUES_FILE}: {name}": short_digest(digest_of(value)) for name, value in values.items()}
    ordered = dict(sorted(files.items()))
    return TemplateDigests(files=ordered, digest=digest_of(ordered))


def _short(text: str) -> str:
    return short_digest(hashlib.sha256(text.encode()).hexdigest())
