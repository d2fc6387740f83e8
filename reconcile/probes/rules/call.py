"""The input of a named rule, readers of its arguments and of what it looks at, and the verdict on many objects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reconcile.probes.look import Group, Look, ProbeContext, ReadFailure
from reconcile.probes.verdict import Verdict, passed, together, unknown
from renderer.errors import problem
from renderer.model.ref import Body, Ref

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCall:
    """`body` is empty and `ref` None for a rule about the cluster as a whole."""

    arguments: Mapping[str, Any]
    look: Look
    scope: ProbeContext
    ref: Ref | None = None
    body: Body

    @property
    def now(self) -> datetime:
        return self.scope.now

    @property
    def object(self) -> Ref:
        """The object that the rule is about. Raises `Problems` where it is used on the cluster as a whole."""
        if self.ref is None:
            raise problem(
                "InvalidProbe",
                "the rule is about an object, and the probe is not",
                remedy="name the object it is about",
            )
        return self.ref

    def number(self, name: str, default: int = 0) -> int:
        """An argument as a whole number. Raises `Problems` if it is none."""
        value = self.arguments.get(name, default)
        number = parse_integer(str(value))
        if number is None:
            raise problem(
                "InvalidRule", f"{name} is {value!r}, not a whole number", remedy="correct the rule's argument"
            )
        return number

    def text(self, name: str) -> str:
        value = self.arguments.get(name)
        return "" if value is None else str(value)


Rule = Callable[[RuleCall], Verdict]
"""A rule written in Python. Pure: it looks at its object and, through `look`, at others."""


def listed(call: RuleCall, *groups: Group) -> tuple[tuple[Body, ...], ...] | Verdict:
    """The objects of each group; unknown, with what is missing of all of them, where one could not be read."""
    found = [call.look.list(group) for group in groups]
    failures = [
        f"{group.kind} objects could not be read: {bodies.text}"
        for group, bodies in zip(groups, found, strict=True)
        if isinstance(bodies, ReadFailure)
    ]
    if failures:
        return unknown("; ".join(failures))
    return tuple(bodies for bodies in found if not isinstance(bodies, ReadFailure))


def all_of(verdicts: Iterable[Verdict], noun: str) -> Verdict:
    """One verdict of those on many objects, the first offender of each being its object; none at all are none to
    complain of."""
    found = list(verdicts)
    bad = [verdict for verdict in found if not verdict.passed]
    if not bad:
        return passed(f"{len(found)} {noun} pass")
    return together([replace(verdict, reason=f"{verdict.offenders[0]}: {verdict.reason}") for verdict in bad], "; ")


def parse_json(text: str) -> Any:
    """The value that a setting or an annotation holds as JSON; None for a text that is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_bool(text: str) -> bool | None:
    """As Go's strconv.ParseBool; None where that is an error."""
    return True if text in _TRUE else False if text in _FALSE else None


def parse_integer(text: str) -> int | None:
    """As Go's strconv.Atoi; None where that is an error."""
    number = int(text) if _INTEGER.fullmatch(text) and len(text) <= 20 else None
    return number if number is not None and -_LARGEST - 1 <= number <= _LARGEST else None
