"""Rules for known causes that a schema cannot express: kinds, names of the chain, and what would do nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from renderer.catalog.kinds import Kinds
from renderer.catalog.named_kinds import named_in_probe, wrong_kind
from renderer.catalog.rules import misused
from renderer.catalog.searches import SEARCHES
from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.known_cause import FoundByCheck, KnownCause, Link, LogLink, Pattern, Search, Take
from renderer.model.probe import Captured, FieldPredicate, Predicate, Probe, RulePredicate, Target
from renderer.suggest import did_you_mean

if TYPE_CHECKING:
    from renderer.catalog.causes import DeclaredCause

_TAKEN = ("found", "node", "reason", "refusal", "upgrade")
"""The names that nothing of a chain may have."""
FUNCTIONS = ("condition", "kubectl", "lastReplicas", "ours", "ref", "since")
"""The functions that a cause's texts may call."""


@frozen
class CauseWorld:
    """The names that a cause may mention: kinds, phases, ids of checks."""

    kinds: Kinds
    phases: tuple[str, ...]
    checks: tuple[str, ...]


def wrong_with(declared: DeclaredCause, world: CauseWorld) -> Iterator[Problem]:
    """Everything that is wrong with one cause."""
    cause = declared.cause
    for phase in cause.phases:
        if phase not in world.phases:
            message = f"cause {cause.id}: phase {phase!r} not found{did_you_mean(phase, world.phases)}"
            yield declared.problem("UnknownPhase", message, "`upgradeplan phases` lists the phases", "phases")
    yield from _sign(declared, world)
    yield from _chain(declared, world)
    yield from _says_nothing(declared)


def names_of_texts(cause: KnownCause) -> tuple[str, ...]:
    """The names that the texts of a cause see: what it found, the upgrade, functions."""
    match cause.sign:
        case Pattern():
            found = ("object", *(link.name for link in cause.chain))
        case Search():
            found = ("found",)
        case FoundByCheck():
            found = ()
        case _:
            found = ("refusal",)
    return (*found, "upgrade", *FUNCTIONS)


def unknown_ids(declared: DeclaredCause, known: Collection[str]) -> Iterator[Problem]:
    """The ids in `unless` that no cause has, and its own."""
    cause = declared.cause
    for name in cause.unless:
        if name not in known:
            message = f"cause {cause.id}: unless names {name!r}, which is not a cause{did_you_mean(name, known)}"
            yield declared.problem("UnknownCause", message, "correct the id, or remove it", "unless")
        elif name == cause.id:
            message = f"cause {cause.id}: unless names itself, so it would never be found"
            yield declared.problem("UnknownCause", message, "remove it", "unless")


def _sign(declared: DeclaredCause, world: CauseWorld) -> Iterator[Problem]:
    cause = declared.cause
    match cause.sign:
        case Pattern(target=target, all=predicates):
            yield from _looks(declared, target, predicates, world.kinds, "pattern")
            if not predicates and not cause.chain and cause.condition is None and not getattr(target, "where", ()):
                message = f"cause {cause.id} matches every object: it has no condition"
                yield declared.problem("NoPattern", message, "add all, follow or if", "pattern")
        case Search(name=name) if name not in SEARCHES:
            message = f"cause {cause.id}: search {name!r} not found{did_you_mean(name, SEARCHES)}"
            yield declared.problem(
                "InvalidSearch", message, "the reference lists the searches of the program", "search"
            )
        case FoundByCheck(check=check) if check not in world.checks:
            message = f"cause {cause.id}: check {check!r} not found{did_you_mean(check, world.checks)}"
            yield declared.problem("UnknownCheck", message, "`upgradeplan preflight --all` lists the checks", "check")


def _chain(declared: DeclaredCause, world: CauseWorld) -> Iterator[Problem]:
    cause = declared.cause
    known = ["object"] if isinstance(cause.sign, (Pattern, FoundByCheck)) else []
    if cause.chain and not known:
        message = f"cause {cause.id}: a chain begins with an object, and this one has none"
        yield declared.problem("InvalidChain", message, "begin with pattern", "follow")
        return
    for link in cause.chain:
        if link.start not in known:
            message = f"cause {cause.id}: nothing is called {link.start!r} before {link.name}"
            yield declared.problem("InvalidChain", message + did_you_mean(link.start, known), "correct from", "follow")
        if link.name in (*known, *_TAKEN):
            message = f"cause {cause.id}: two things are called {link.name!r}"
            yield declared.problem("InvalidChain", message, "give each link a name of its own", "follow")
        if isinstance(link, Link):
            yield from _looks(declared, link.target, link.all, world.kinds, "follow")
        if isinstance(link, LogLink) or link.take not in (Take.NONE, Take.LIST):
            known.append(link.name)
    if cause.object_of not in known and known:
        message = f"cause {cause.id}: nothing is called {cause.object_of!r}{did_you_mean(cause.object_of, known)}"
        yield declared.problem("InvalidChain", message, "name an object of the chain", "blame")


def _says_nothing(declared: DeclaredCause) -> Iterator[Problem]:
    """A search and a check have words of their own."""
    cause = declared.cause
    own_words = isinstance(cause.sign, (Search, FoundByCheck))
    for key, text in (("what", cause.what), ("remedy", cause.remedy)):
        if not own_words and not (text or "").strip():
            message = f"cause {cause.id} has no {key}"
            yield declared.problem("NoRemedy" if key == "remedy" else "NoWords", message, "say it", key)


def _looks(
    declared: DeclaredCause, target: Target, predicates: Iterable[Predicate], kinds: Kinds, key: str
) -> Iterator[Problem]:
    asked = tuple(predicates)
    named = named_in_probe(Probe(target=target, all=asked))
    if named and (found := wrong_kind(named, kinds)):
        yield declared.problem(found.reason, f"cause {declared.id}: {found.message}", found.remedy, key)
    for predicate in (*asked, *getattr(target, "where", ())):
        if isinstance(predicate, RulePredicate):
            wrong = misused(predicate.name, dict(predicate.arguments), named.kind if named else "")
            if wrong:
                remedy = "correct the rule's name or arguments"
                yield declared.problem("InvalidRule", f"cause {declared.id}: {wrong}", remedy, key)
        elif isinstance(predicate, FieldPredicate) and isinstance(predicate.operand, Captured):
            message = f"cause {declared.id}: compares with a captured value, and a cause captures none"
            yield declared.problem("UnknownCapture", message, "compare with a field", key)
