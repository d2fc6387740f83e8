"""Selects checks by the ids and the node that somebody names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from renderer.catalog.checks import DeclaredCheck
from renderer.errors import Problem, Problems, problem
from renderer.model.check import Check, CheckTime
from renderer.suggest import did_you_mean


def checks_named(checks: Sequence[DeclaredCheck], ids: Collection[str]) -> tuple[DeclaredCheck, ...]:
    """The checks of these ids, all where none is named. Raises `Problems` with all that are not known."""
    known = {declared.check.id: declared for declared in checks}
    wrong = [
        Problem(
            reason="UnknownCheck",
            message=f"check {name!r} not found{did_you_mean(name, known)}",
            remedy="`upgradeplan preflight --all` lists the checks",
        )
        for name in ids
        if name not in known
    ]
    if wrong:
        raise Problems(wrong)
    return tuple(known[name] for name in dict.fromkeys(ids)) if ids else tuple(checks)


def checks_at(
    checks: Sequence[DeclaredCheck], ids: Collection[str], when: Collection[CheckTime]
) -> tuple[DeclaredCheck, ...]:
    """The same of some times. Raises `Problems` for a check that is named and has none of them: that it was not carried
    out must not look like an answer."""
    chosen = checks_named(checks, ids)
    wrong = [
        Problem(
            reason="NoSuchTime",
            message=f"check {check.id} is carried out at {', '.join(check.when)}, not at {', '.join(when)}",
            remedy=f"`upgradeplan preflight --check {check.id} --when {check.when[0]}` carries it out",
        )
        for check in (declared.check for declared in chosen)
        if ids and not set(check.when).intersection(when)
    ]
    if wrong:
        raise Problems(wrong)
    return chosen


def acceptable(checks: Sequence[DeclaredCheck], ids: Collection[str]) -> tuple[Check, ...]:
    """The same, of which each can be accepted. Raises `Problems`."""
    chosen = tuple(declared.check for declared in checks_named(checks, ids))
    wrong = [
        Problem(
            reason="RiskNotAcceptable",
            message=f"check {check.id} cannot be accepted: without it ({check.title}) the upgrade cannot run",
            remedy=f"`upgradeplan preflight --check {check.id}` says what it finds and what to do",
        )
        for check in chosen
        if not check.acceptable
    ]
    if wrong:
        raise Problems(wrong)
    return chosen


def require_node(node: str | None, nodes: Sequence[Mapping[str, Any]]) -> None:
    """Raises `Problems` for a node that is not among those that are upgraded."""
    names = [str(item["name"]) for item in nodes]
    if node is not None and node not in names:
        message = f"Node {node} is not among those that are upgraded{did_you_mean(node, names)}"
        remedy = f"choose one of: {', '.join(names)}" if names else "give the cluster's Node objects"
        raise problem("NoSuchNode", message, remedy=remedy)
