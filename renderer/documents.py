"""Recognizes the documents of one run: plan, release, facts, the cluster's objects.

The one `UpgradePlan` is the plan; a mapping with `harvester` and no `kind` is the release; `kind: Facts` of ours is a
facts document; every other object is the cluster's. Nothing is read from disk here, and whether a document is
well-formed is not judged here: `input_rules` does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from renderer.errors import Problem, problem
from renderer.frozen import frozen
from renderer.model.collected import CollectedKind
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref, ref_of
from renderer.plan_choice import choose
from renderer.source_document import Piece, Role, SourceDocument, pieces_of
from renderer.yaml_io import Document


@frozen
class Inputs:
    """The inputs of one run. `facts` has the sections `kubelet`, `certificates` and `imageLists` of all documents;
    `warnings` name what is deprecated or left out. `generated`: the plan has a generateName alone, and the name that it
    has here stands for the one that the API server will make. `other_plans` are those that are not meant; `collected`
    the kinds that were read completely, of some of which there may be no object."""

    plan: SourceDocument | None = None
    release: SourceDocument | None = None
    objects: tuple[SourceDocument, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    facts_sources: tuple[SourceDocument, ...] = ()
    warnings: tuple[Problem, ...] = ()
    generated: bool = False
    other_plans: tuple[SourceDocument, ...] = ()
    collected: tuple[CollectedKind, ...] = ()


def recognize(
    found: Sequence[Document],
    *,
    plan: Sequence[Document] | None = None,
    release: Sequence[Document] | None = None,
    cluster: Sequence[Document] | None = None,
    name: str | None = None,
) -> tuple[Inputs, tuple[Problem, ...]]:
    """The inputs, as far as they can be distinguished, and everything that is wrong.

    What is named explicitly (not None) replaces what was found of that sort: with `cluster`, no found object counts.
    Facts add up, and those named with the cluster win. Everything else in an explicitly named file counts as found.
    Of several plans that of the `name` is taken, or the one that has not ended.
    """
    named = {Role.PLAN: plan, Role.RELEASE: release, Role.OBJECT: cluster}
    problems: list[Problem] = []
    pieces = {role: _sorted(documents or (), problems, role) for role, documents in named.items()}
    other = _sorted(found, problems, None)

    everywhere = [*(piece for part in pieces.values() for piece in part), *other]

    def chosen(role: Role) -> list[SourceDocument]:
        source = Role.OBJECT if role is Role.EMPTY else role
        return [
            piece.source
            for piece in (pieces[source] if named.get(source) is not None else everywhere)
            if piece.role is role
        ]

    for role, documents in named.items():
        if documents and not any(piece.role in (role, Role.EMPTY) for piece in pieces[role]):
            problems.append(_holds_none(role, documents[0]))
    facts = chosen(Role.FACTS)
    strong = {id(piece.source) for piece in pieces[Role.OBJECT]}
    choice = choose(chosen(Role.PLAN), name)
    problems += choice.problems
    warnings = [*(warning for piece in everywhere for warning in piece.warnings), *choice.warnings]
    inputs = Inputs(
        plan=choice.plan,
        release=_only(chosen(Role.RELEASE), problems),
        objects=tuple(_distinct(chosen(Role.OBJECT), problems)),
        facts=_merged(sorted(facts, key=lambda source: id(source) not in strong), strong, problems),
        facts_sources=tuple(facts),
        warnings=tuple(dict.fromkeys(warnings)),
        other_plans=tuple(source for source in chosen(Role.PLAN) if source is not choice.plan),
        collected=tuple(dict.fromkeys(_collected(facts, chosen(Role.EMPTY)))),
    )
    return inputs, tuple(problems)


def plan_of(inputs: Inputs) -> SourceDocument:
    """The plan. Raises `Problems` if there is none."""
    if inputs.plan is None:
        raise problem(
            "NoUpgradePlan",
            f"no UpgradePlan among the inputs; expected one document of {PLAN_API_VERSION}",
            remedy="name the file or folder that holds it, or use --plan FILE",
        )
    return inputs.plan


def _sorted(documents: Iterable[Document], problems: list[Problem], named: Role | None) -> list[Piece]:
    pieces: list[Piece] = []
    for document in documents:
        for piece in pieces_of(document, named):
            (pieces if isinstance(piece, Piece) else problems).append(piece)  # type: ignore[arg-type]
    return pieces


def _holds_none(role: Role, document: Document) -> Problem:
    reason = {Role.PLAN: "NoUpgradePlan", Role.RELEASE: "NoRelease", Role.OBJECT: "NoObjects"}[role]
    option = {Role.PLAN: "--plan", Role.RELEASE: "--release", Role.OBJECT: "--cluster"}[role]
    remedy = f"name another file with {option}, or leave {option} out"
    return Problem(reason=reason, message=f"holds no {role.value}", file=document.file, remedy=remedy)


def _only(sources: list[SourceDocument], problems: list[Problem]) -> SourceDocument | None:
    for extra in sources[1:]:
        message = f"duplicate release; the first one is in {sources[0].place}"
        problems.append(extra.problem("TwoReleases", message, remedy="keep one, or name one with --release FILE"))
    return sources[0] if sources else None


def _distinct(sources: list[SourceDocument], problems: list[Problem]) -> Iterator[SourceDocument]:
    """Each object once; two that differ are a problem."""
    known: dict[Ref, SourceDocument] = {}
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


def _merged(sources: list[SourceDocument], strong: set[int], problems: list[Problem]) -> dict[str, dict[str, Any]]:
    """Facts of all documents, entry by entry; the strong sources come first and win."""
    merged: dict[str, dict[str, Any]] = {}
    known: dict[tuple[str, str], SourceDocument] = {}
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


def _collected(facts: Iterable[SourceDocument], empty: Iterable[SourceDocument]) -> Iterator[CollectedKind]:
    """The kinds that facts documents hold completely, and those of empty lists."""
    for source in facts:
        named_kinds = source.body.get("collected")
        for item in named_kinds if isinstance(named_kinds, list) else ():  # what is no list has been reported
            if isinstance(item, Mapping) and {"apiVersion", "kind"} <= set(item):
                named = {key: str(item.get(key) or "") for key in ("namespace", "name")}
                yield CollectedKind(api_version=str(item["apiVersion"]), kind=str(item["kind"]), **named)
    yield from map(collected_kind, empty)


def collected_kind(empty: SourceDocument) -> CollectedKind:
    """The kind of which an empty list says that there is no object."""
    return CollectedKind(api_version=str(empty.body["apiVersion"]), kind=str(empty.body["kind"]).removesuffix("List"))


def _entries(facts: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    for section, entries in facts.items() if isinstance(facts, Mapping) else ():
        for key, entry in entries.items() if isinstance(entries, Mapping) else ():
            yield (section, key), entry
