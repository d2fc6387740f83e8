"""The checks of a plan that runs, as a decision carries them out: what it has, and how it looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconcile.preflight.check_context import CheckContext
from reconcile.probes.look import Answer, Group, Look, ReadFailure, Reading
from renderer.catalog.checks import DeclaredCheck
from renderer.model.ref import Body, Ref

MINUTES = 10
"""Checks judge by a time that is so many minutes old at most: messages about a certificate stay valid for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePreflight:
    """`checks` are read when the first of them is due, and `context` is made then, for a time. `inputs` is all that the
    context is made from, to be compared."""

    checks: Callable[[], tuple[DeclaredCheck, ...]]
    context: Callable[[datetime], CheckContext]
    inputs: tuple[object, ...]


def judged_at(now: datetime) -> datetime:
    """The time by which checks judge now."""
    return now.replace(minute=now.minute - now.minute % MINUTES, second=0, microsecond=0)


@dataclass(slots=True)
class SeldomLook:
    """A `Look` for checks: what they look at need not be watched for that. It remembers all that it was asked for, and
    the answers."""

    look: Look
    seen: dict[Group | Ref | tuple[Reading, str], object] = field(default_factory=dict)

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """From a list of it if there was one."""
        if any(isinstance(need, Group) and need.holds(ref) and not _failed(found) for need, found in self.seen.items()):
            return self.look.get(ref)
        group = Group(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace, name=ref.name)
        found = self.list(group)
        return found if isinstance(found, ReadFailure) else next(iter(found), None)

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        seldom = replace(group, seldom=True)
        found = self.seen[seldom] = self.look.list(seldom)
        return found

    def reading(self, reading: Reading, name: str) -> Answer:
        found = self.seen[reading, name] = self.look.reading(reading, name)
        return found

    def answers_as_before(self) -> bool:
        """True if everything that was asked for is answered the same today."""
        return all(_is_same(self._again(need), then) for need, then in self.seen.items())

    def on(self, look: Look) -> SeldomLook:
        """The same questions to another round."""
        return SeldomLook(look=look, seen=self.seen)

    def _again(self, need: Group | Ref | tuple[Reading, str]) -> object:
        if isinstance(need, tuple):
            return self.look.reading(*need)
        return self.look.list(need) if isinstance(need, Group) else self.look.get(need)


def _failed(found: object) -> bool:
    return isinstance(found, ReadFailure)


def _is_same(found: object, then: object) -> bool:
    """A narrower group is made again each time, of the same bodies."""
    return found is then or found == then
