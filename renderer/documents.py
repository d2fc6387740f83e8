"""Tells the documents of one run apart by what they are: plan, release, facts, the cluster's objects.

The one `UpgradePlan` is the plan; a mapping with `harvester` and no `kind` is the release; `kind: Facts` of ours is a
facts document; every other object is the cluster's. Nothing is read from disk here, and whether a document is
well-formed is not judged here: `input_rules` does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from pathlib import PurePath
from typing import Any

from renderer.deprecated import current
from renderer.errors import Problem, problem
from renderer.frozen import frozen
from renderer.model.document_type import ANSWERS, FACTS, FILES, RENDERED_PLAN, TEMPLATES
from renderer.model.path import Path, path_name
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref, ref_of
from renderer.yaml_io import Document

PLAN_KIND = "UpgradePlan"

_AGENT_FILES = {"kustomization.yaml", "kustomization.yml", "fleet.yaml", "fleet.yml", "Chart.yaml"}
_RELEASE_KEYS = {"harvesterChart", "os", "kubernetes", "rancher", "monitoringChart", "minUpgradableVersion"}


@frozen
class Source:
    """One plan, release, facts document or object, and the place where it was read.

    `path` is its place in the document; it is not empty for an item of a List. All scalars of a release are text.
    """

    body: Body
    document: Document = field(repr=False, compare=False)
    path: Path = ()

    @property
    def file(self) -> str:
        return self.document.file

    def line_of(self, path: Path = ()) -> int | None:
        """The line of the deepest part of `path` that exists; None where lines are not known."""
        return self.document.line_of((*self.path, *path)) or None

    @property
    def place(self) -> str:
        line = self.line_of()
        return f"{self.file}:{line}" if line else self.file

    def problem(self, reason: str, message: str, path: Path = (), *, remedy: str | None = None) -> Problem:
        """A problem at `path` of this source."""
        return Problem(
            reason=reason,
            message=message,
            file=self.file,
            line=self.line_of(path),
            field=path_name(path) or None,
            remedy=remedy,
        )


@frozen
class Inputs:
    """What one run was given. `facts` has the sections `kubelet`, `certificates` and `imageLists` of all documents;
    `warnings` name what is deprecated."""

    plan: Source | None = None
    release: Source | None = None
    objects: tuple[Source, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    facts_sources: tuple[Source, ...] = ()
    warnings: tuple[Problem, ...] = ()


class _Role(Enum):
    PLAN = "UpgradePlan"
    RELEASE = "release"
    FACTS = "facts"
    OBJECT = "object of the cluster"


@frozen
class _Piece:
    role: _Role
    source: Source
    warnings: tuple[Problem, ...] = ()


def without_lines(value: Any, file: str) -> Document:
    """A document that was not read by the YAML door: its lines are not known."""
    return Document(file=file, line=0, value=value, _node=None)


def tell_apart(
    found: Sequence[Document],
    *,
    plan: Sequence[Document] | None = None,
    release: Sequence[Document] | None = None,
    cluster: Sequence[Document] | None = None,
) -> tuple[Inputs, tuple[Problem, ...]]:
    """The inputs, as far as they can be told apart, and everything that is wrong.

    What is named explicitly (not None) replaces what was found of that sort: with `cluster`, no found object counts.
    Facts add up, and those named with the cluster win. Everything else in an explicitly named file counts as found.
    """
    named = {_Role.PLAN: plan, _Role.RELEASE: release, _Role.OBJECT: cluster}
    problems: list[Problem] = []
    pieces = {role: _sorted(documents or (), problems, role) for role, documents in named.items()}
    other = _sorted(found, problems, None)

    everywhere = [*(piece for part in pieces.values() for piece in part), *other]

    def chosen(role: _Role) -> list[Source]:
        return [
            piece.source
            for piece in (pieces[role] if named.get(role) is not None else everywhere)
            if piece.role is role
        ]

    for role, documents in named.items():
        if documents and not any(piece.role is role for piece in pieces[role]):
            problems.append(_holds_none(role, documents[0]))
    facts = chosen(_Role.FACTS)
    strong = {id(piece.source) for piece in pieces[_Role.OBJECT]}
    inputs = Inputs(
        plan=_only("TwoPlans", "UpgradePlan", "--plan", chosen(_Role.PLAN), problems),
        release=_only("TwoReleases", "release", "--release", chosen(_Role.RELEASE), problems),
        objects=tuple(_distinct(chosen(_Role.OBJECT), problems)),
        facts=_merged(sorted(facts, key=lambda source: id(source) not in strong), strong, problems),
        facts_sources=tuple(facts),
        warnings=tuple(dict.fromkeys(warning for piece in everywhere for warning in piece.warnings)),
    )
    return inputs, tuple(problems)


def plan_of(inputs: Inputs) -> Source:
    """The plan. Raises `Problems` if there is none."""
    if inputs.plan is None:
        raise problem(
            "NoUpgradePlan",
            f"no UpgradePlan among the inputs; expected one document of {PLAN_API_VERSION}",
            remedy="name the file or folder that holds it, or use --plan FILE",
        )
    return inputs.plan


def _sorted(documents: Iterable[Document], problems: list[Problem], named: _Role | None) -> list[_Piece]:
    pieces: list[_Piece] = []
    for document in documents:
        for piece in _pieces(document, named):
            (pieces if isinstance(piece, _Piece) else problems).append(piece)  # type: ignore[arg-type]
    return pieces


def _pieces(document: Document, named: _Role | None) -> Iterator[_Piece | Problem]:
    value = document.value
    whole = Source(body=value, document=document)
    if not isinstance(value, Mapping):
        yield whole.problem("UnknownDocument", "is not a mapping, so it is not a Kubernetes object", remedy=_WANTED)
    elif _is_for_an_agent(document):
        return
    elif FACTS.is_type_of(value) or set(value) == {"facts"}:
        facts = current(document, FACTS)
        source = Source(body=facts.document.value, document=document)
        yield _Piece(role=_Role.FACTS, source=source, warnings=facts.warnings)
    elif _is_release(value) or (named is _Role.RELEASE and not {"kind", "apiVersion"} & set(value)):
        yield _Piece(role=_Role.RELEASE, source=Source(body=_release_body(document), document=document))
    else:
        yield from _objects(whole)


def _is_for_an_agent(document: Document) -> bool:
    """Files beside manifests that are not inputs: our own index, and those of kustomize, Fleet and Helm."""
    kind, api_version = document.value.get("kind"), str(document.value.get("apiVersion", ""))
    if kind is None:
        return PurePath(document.file).name in _AGENT_FILES
    return kind == RENDERED_PLAN.kind or (
        kind == "Kustomization" and api_version.startswith("kustomize.config.k8s.io/")
    )


def _is_release(value: Mapping[str, Any]) -> bool:
    """By its key `harvester`, or by two other keys, so that a missing `harvester` is reported."""
    return "kind" not in value and ("harvester" in value or len(_RELEASE_KEYS & set(value)) > 1)


def _release_body(document: Document) -> Body:
    """Every scalar as text; a top-level null as the empty text, so that it counts as missing."""
    text = document.text
    if text is None:
        return dict(document.value)
    return {key: "" if document.value.get(key) is None else item for key, item in text.items()}


_WANTED = "a release has the key harvester; every other document needs apiVersion and kind"


def _objects(source: Source) -> Iterator[_Piece | Problem]:
    body = source.body
    if message := _no_object(body):
        yield source.problem("UnknownDocument", f"{message}, so it is not a Kubernetes object", remedy=_WANTED)
        return
    if body["apiVersion"] in (TEMPLATES, FILES, ANSWERS):
        message, remedy = f"a {body['kind']} of {body['apiVersion']} is not an input", "leave the document out"
        yield source.problem("UnknownDocument", message, remedy=remedy)
        return
    if body["kind"].endswith("List") and "items" in body:
        yield from _items(source)
    elif body["kind"] != PLAN_KIND:
        yield _Piece(role=_Role.OBJECT, source=source)
    elif body["apiVersion"] == PLAN_API_VERSION:
        yield _Piece(role=_Role.PLAN, source=source)
    else:
        message = f"{body['apiVersion']} is not the API version of an UpgradePlan that this program knows"
        remedy = f"write apiVersion: {PLAN_API_VERSION}"
        yield source.problem("WrongAPIVersion", message, ("apiVersion",), remedy=remedy)


def _no_object(body: Body) -> str | None:
    """What an object lacks; None if it has an API version and a kind."""
    missing = [key for key in ("apiVersion", "kind") if body.get(key) in (None, "")]
    if missing:
        return "has neither apiVersion nor kind" if len(missing) == 2 else f"has no {missing[0]}"
    wrong = [key for key in ("apiVersion", "kind") if not isinstance(body[key], str)]
    return f"{wrong[0]} is not a string" if wrong else None


def _items(source: Source) -> Iterator[_Piece | Problem]:
    """The items of a List. Those of a typed list (`NodeList`) inherit its API version and kind, as kubectl's do."""
    kind, items = source.body["kind"], source.body["items"]
    inherited = {} if kind == "List" else {"apiVersion": source.body["apiVersion"], "kind": kind.removesuffix("List")}
    if items is not None and not isinstance(items, (list, tuple)):
        yield source.problem("InvalidList", f"items of {kind} is not a list", ("items",), remedy="write it as a list")
        return
    for index, item in enumerate(items or ()):
        path: Path = ("items", index)
        if isinstance(item, Mapping):
            body = {**inherited, **item}
            yield from _objects(Source(body=body, document=source.document, path=(*source.path, *path)))
        else:
            yield source.problem(
                "InvalidList", "an item is not a mapping, so it is not an object", path, remedy=_WANTED
            )


def _holds_none(role: _Role, document: Document) -> Problem:
    reason = {_Role.PLAN: "NoUpgradePlan", _Role.RELEASE: "NoRelease", _Role.OBJECT: "NoObjects"}[role]
    option = {_Role.PLAN: "--plan", _Role.RELEASE: "--release", _Role.OBJECT: "--cluster"}[role]
    remedy = f"name another file with {option}, or leave {option} out"
    return Problem(reason=reason, message=f"holds no {role.value}", file=document.file, remedy=remedy)


def _only(reason: str, what: str, option: str, sources: list[Source], problems: list[Problem]) -> Source | None:
    for extra in sources[1:]:
        message = f"duplicate {what}; the first one is in {sources[0].place}"
        problems.append(extra.problem(reason, message, remedy=f"keep one, or name one with {option} FILE"))
    return sources[0] if sources else None


def _distinct(sources: list[Source], problems: list[Problem]) -> Iterator[Source]:
    """Each object once; two that differ are a problem."""
    known: dict[Ref, Source] = {}
    for source in sources:
        ref = _identity(source.body)
        first = known.setdefault(ref, source) if ref else source
        if first is source:
            yield source
        elif first.body != source.body:
            message = f"{ref} is also in {first.place}, with other content"
            problems.append(source.problem("ObjectConflict", message, remedy="keep the one that is right"))


def _identity(body: Body) -> Ref | None:
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return None
    return ref_of(body)


def _merged(sources: list[Source], strong: set[int], problems: list[Problem]) -> dict[str, dict[str, Any]]:
    """Facts of all documents, entry by entry; the strong sources come first and win."""
    merged: dict[str, dict[str, Any]] = {}
    known: dict[tuple[str, str], Source] = {}
    for source in sources:
        for path, entry in _entries(source.body.get("facts")):  # that it is missing has been reported
            section, key = path
            first = known.setdefault(path, source)
            if first is source:
                merged.setdefault(section, {})[key] = entry
            elif merged[section][key] != entry and (id(first) not in strong or id(source) in strong):
                message = f"differs from what {first.place} says"
                problems.append(source.problem("FactsConflict", message, ("facts", *path), remedy="keep one of them"))
    return merged


def _entries(facts: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    for section, entries in facts.items() if isinstance(facts, Mapping) else ():
        for key, entry in entries.items() if isinstance(entries, Mapping) else ():
            yield (section, key), entry
