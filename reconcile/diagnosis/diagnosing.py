"""Carries out a diagnosis: what is known about trouble, the look around, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from reconcile.diagnosis.chain import DiagnosisInput, Logs
from reconcile.diagnosis.engine import Knowledge, causes_of
from reconcile.diagnosis.situation import Cause, Situation
from reconcile.preflight.check_context import CheckContext, checks_of
from reconcile.probes.look import Answer, Group, Look, ReadFailure, Reading
from renderer.catalog.built_in_upgrade import BuiltInUpgrade, load_built_in_upgrade
from renderer.catalog.cause_rules import CauseWorld
from renderer.catalog.causes import DeclaredCause, load_causes
from renderer.catalog.load import Catalog
from renderer.model.ref import Body, Ref
from renderer.model.sharing import SameObject
from renderer.validation import document_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All causes, those that resolve themselves last, and what could not be read."""

    causes: tuple[Cause, ...] = ()
    unread: tuple[str, ...] = ()


def knowledge_of(catalog: Catalog, context: CheckContext) -> Knowledge:
    """All that a template tree knows of trouble. Raises `Problems` for files that are wrong."""
    checks = {item.check.id: item for item in checks_of(catalog)}
    return Knowledge(causes=known_causes(catalog), checks=checks, check_context=context)


def known_causes(catalog: Catalog) -> tuple[DeclaredCause, ...]:
    """The causes of a template tree, read once. Raises `Problems`."""
    return _causes(SameObject(catalog))


@lru_cache(maxsize=4)
def _causes(catalog: SameObject) -> tuple[DeclaredCause, ...]:
    of = catalog.it
    world = CauseWorld(
        kinds=of.kinds,
        phases=tuple(item.phase.name for item in of.phases),
        checks=tuple(item.check.id for item in checks_of(of)),
    )
    return load_causes(of.tree, document_problems, world)


def built_in_of(catalog: Catalog) -> BuiltInUpgrade:
    """The states of the built-in upgrade that a template tree knows, read once. Raises `Problems`."""
    return _built_in(SameObject(catalog))


@lru_cache(maxsize=4)
def _built_in(catalog: SameObject) -> BuiltInUpgrade:
    return load_built_in_upgrade(catalog.it.tree, document_problems)


def no_logs(_: Ref) -> Mapping[str, str]:
    """The logs of a pod, to somebody who has none."""
    return {}


def diagnose(knowledge: Knowledge, situation: Situation, logs: Logs = no_logs) -> Diagnosis:
    """All causes in a situation."""
    look = _NotingLook(situation.look)
    given = DiagnosisInput(look=look, probes=knowledge.probes, logs=logs)
    causes = causes_of(knowledge, replace(situation, look=look), given)
    return Diagnosis(causes=causes, unread=tuple(look.unread))


class _NotingLook:
    """A `Look` that notes which kinds could not be read, each once."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.unread: dict[str, None] = {}

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        found = self._look.get(ref)
        if isinstance(found, ReadFailure):
            self.unread[f"{ref}: {found.why}"] = None
        return found

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        found = self._look.list(group)
        if isinstance(found, ReadFailure):
            self.unread[f"{group.kind} objects: {found.why}"] = None
        return found

    def reading(self, reading: Reading, name: str) -> Answer:
        return self._look.reading(reading, name)
