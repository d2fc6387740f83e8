"""Completes names from the cluster for a shell: plans, nodes and contexts; nothing if it does not answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from threading import Thread
from typing import TYPE_CHECKING

from reconcile.cli.connect import Target
from renderer.errors import Problems

if TYPE_CHECKING:
    import click

    from reconcile.probes.look import Group

_PATIENCE = 2.0
"""Seconds that somebody who has pressed Tab waits."""


def plan_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from reconcile.loop.plan_round import PLANS

    return _named(ctx, PLANS, incomplete)


def node_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from reconcile.probes.look import Group

    return _named(ctx, Group(api_version="v1", kind="Node"), incomplete)


def context_names(ctx: click.Context, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig files; no cluster is asked."""
    from reconcile.cluster.kubeconfig import contexts_of

    return _unless_refused(lambda: contexts_of(os.environ, ctx.params.get("kubeconfig") or ""), incomplete)


def _named(ctx: click.Context, group: Group, incomplete: str) -> list[str]:
    target = Target(
        kubeconfig=ctx.params.get("kubeconfig") or "",
        context=ctx.params.get("context") or "",
        templates=tuple(ctx.params.get("templates") or ()),
    )
    found: list[str] = []

    def ask() -> None:
        found.extend(_unless_refused(lambda: _names(target, group), incomplete))

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return list(found)


def _names(target: Target, group: Group) -> list[str]:
    from reconcile.cli.parts import parts_of
    from reconcile.probes.look import ReadFailure

    bodies = parts_of(target).source.list(group)
    return [] if isinstance(bodies, ReadFailure) else [str(body["metadata"]["name"]) for body in bodies]


def _unless_refused(ask: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    try:
        return sorted(name for name in ask() if name.startswith(incomplete))
    except Problems:
        return []
