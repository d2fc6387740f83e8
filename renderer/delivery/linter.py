"""Finds what agents would refuse or misread, by the rules of `delivery/rules.yaml`: in delivered manifests, and in what
templates make for agents."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from renderer.delivery.delivery_rules import Definitions, FolderRule, LintRule, Pair
from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.path import ABSENT, look_up, parse_path
from renderer.yaml_io import dump

FLEET_FILE: Pair = ("", "fleet.yaml")
"""Stands for the kind of a document that has none."""


@frozen
class LintedDocument:
    """A document, and the file that it comes from. One that is `delivered` is a manifest, and no agent's own."""

    file: str
    body: Mapping[str, Any]
    delivered: bool

    @property
    def kind(self) -> Pair:
        body = self.body
        return (str(body["apiVersion"]), str(body["kind"])) if "kind" in body else FLEET_FILE


@frozen
class LintedFolder:
    """A folder that agents pull: its own objects, and the text of all its files by name."""

    folder: str
    bodies: tuple[Mapping[str, Any], ...]
    files: Mapping[str, str]
    manifests: frozenset[str]
    """The names of those files that are manifests."""


def lint_folders(rules: Iterable[LintRule], definitions: Definitions, folders: Iterable[LintedFolder]) -> list[Problem]:
    """A problem for each finding in a folder as a whole."""
    found = tuple(folders)
    return [
        _problem(rule, folder.folder, folder.folder, message)
        for rule in rules
        if rule.folder
        for folder in found
        for message in _of_folder(rule.folder, definitions, folder)
    ]


def _of_folder(rule: FolderRule, definitions: Definitions, folder: LintedFolder) -> Iterator[str]:
    if rule.beside is not None:
        others = sorted(folder.files.keys() - folder.manifests - {*rule.beside})
        yield from (f"has {name} beside its manifests" for name in others)
    if rule.largest is not None:
        size = len(gzip.compress("".join(folder.files.values()).encode(), mtime=0))
        if size > rule.largest:
            yield f"has {size} bytes compressed, at most {rule.largest} are allowed"
    if rule.apart:
        defined = {pair for body in folder.bodies if (pair := definitions.of(body))}
        yield from (
            f"has {body['kind']} {body['metadata']['name']} and the definition of its kind"
            for body in folder.bodies
            if group_and_kind(body) in defined
        )


def group_and_kind(body: Mapping[str, Any]) -> Pair:
    group, slash, _ = str(body["apiVersion"]).rpartition("/")
    return group if slash else "", str(body["kind"])


def lint(rules: Iterable[LintRule], documents: Iterable[LintedDocument]) -> list[Problem]:
    """A problem for each finding."""
    chosen = [rule for rule in rules if not rule.folder]
    return [
        _problem(rule, document.file, _name(document), message, field)
        for document in documents
        for rule in chosen
        if _is_for(rule, document)
        for field, message in _findings(rule, document.body)
    ]


def _problem(rule: LintRule, file: str, name: str, message: str, field: str | None = None) -> Problem:
    message = f"{name}: {message}: {rule.reason} (rule {rule.id})"
    return Problem(reason="UnfitForAgents", message=message, file=file, field=field, remedy=rule.remedy)


def _is_for(rule: LintRule, document: LintedDocument) -> bool:
    return document.kind in rule.kinds if rule.kinds else document.delivered


def _name(document: LintedDocument) -> str:
    metadata = document.body.get("metadata") or {}
    return f"{document.kind[1]} {metadata.get('name') or document.body.get('name') or ''}".strip()


def _findings(rule: LintRule, body: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    for path in rule.forbid:
        if _at(body, path) is not ABSENT:
            yield path, "is set"
    for path in rule.require:
        if _at(body, path) in (ABSENT, None, ""):
            yield path, "is missing"
    for path, allowed in rule.values.items():
        if (value := _at(body, path)) is not ABSENT and value not in allowed:
            yield path, f"is {value!r}, expected {' or '.join(map(repr, allowed))}"
    for path, most in rule.longest.items():
        if isinstance(text := _at(body, path), str) and len(text) > most:
            yield path, f"has {len(text)} characters, at most {most} are allowed"
    for path, prefixes in rule.keys:
        keys = _at(body, path)
        for key in keys if isinstance(keys, Mapping) else ():
            if key.startswith(prefixes):
                yield path, f"has {key}"
    if rule.largest is not None and (size := len(dump(dict(body)).encode())) > rule.largest:
        yield None, f"has {size} bytes, at most {rule.largest} are allowed"


def _at(body: Mapping[str, Any], path: str) -> Any:
    return look_up(body, parse_path(path))
