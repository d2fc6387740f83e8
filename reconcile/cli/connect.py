"""Connects a command to a cluster, with all that it needs to work on it."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from reconcile.observe.server_certificates import Dial, not_after
from reconcile.probes.look import OWN_SERVER
from renderer.cli.answer import redact_by, warn
from renderer.cli.input_options import FOLDER
from renderer.errors import Problem

if TYPE_CHECKING:
    from reconcile.cluster.client import Client
    from reconcile.cluster.meter import CallMeter
    from reconcile.observe.fetching import Read
    from renderer.assemble import TemplateSet

_DIAL_SECONDS = 2.0
_HTTPS = 443


def _context_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from reconcile.cli.candidates import context_names

    return context_names(ctx, incomplete)


_OPTIONS = (
    click.option(
        "--kubeconfig",
        type=click.Path(),
        metavar="FILE",
        default="",
        help="The kubeconfig file to use, as for kubectl.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        default="",
        shell_complete=_context_names,
        help="The kubeconfig context to use.",
    ),
    click.option(
        "--templates",
        type=FOLDER,
        metavar="FOLDER",
        multiple=True,
        help="An overlay over the packaged templates, as for render.",
    ),
)

Command = Callable[..., int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The command line's words about the cluster; nothing is read yet."""

    kubeconfig: str
    context: str
    templates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A cluster, and by which names people know it. `inside`: we are one of its pods."""

    cluster: Client
    context: str
    server: str
    inside: bool = False

    @property
    def read(self) -> Read | None:
        """The way to read the repository's documents from here; None means through the API server's proxy."""
        from reconcile.observe.fetching import from_inside

        return from_inside if self.inside else None


def cluster_options(command: Command) -> Command:
    """Adds the options that name a cluster; the command gets them as one, `target`."""

    @wraps(command)
    def with_target(kubeconfig: str, context: str, templates: tuple[str, ...], **others: Any) -> int:
        return command(target=Target(kubeconfig=kubeconfig, context=context, templates=templates), **others)

    for option in reversed(_OPTIONS):
        with_target = option(with_target)
    return with_target


def connect_to(target: Target, meter: CallMeter | None = None) -> Connection:
    """Raises `Problems` where no cluster is named. Sends nothing yet. `meter` records each request."""
    from reconcile.cluster.client import connect
    from reconcile.cluster.kubeconfig import find_access

    access = find_access(os.environ, kubeconfig=target.kubeconfig, context=target.context)
    return Connection(
        cluster=connect(access, environ=os.environ, now=wall_clock, meter=meter),
        context=access.context,
        server=access.server,
        inside=access.inside,
    )


def template_set_of(templates: tuple[str, ...], warn: Callable[[Iterable[Problem]], None] = warn) -> TemplateSet:
    """The templates, with overlays laid over them. Raises `Problems`."""
    from renderer.assemble import open_template_set
    from renderer.files.code import CodeCache
    from renderer.files.templates import read_templates

    code = CodeCache()
    template_set = open_template_set(read_templates([Path(folder) for folder in templates]), code=code)
    code.save()
    redact_by(template_set.catalog.redaction)
    warn(template_set.catalog.warnings)
    return template_set


def wall_clock() -> datetime:
    return datetime.now(UTC)


def dial_of(connection: Connection) -> Dial:
    """Returns how to ask API servers for their certificates: by address, or as this connection reaches them."""
    own = urlsplit(connection.server)

    def dial_one(address: str, port: int) -> datetime | None:
        return dial(own.hostname or "", own.port or _HTTPS) if address == OWN_SERVER else dial(address, port)

    return dial_one


def dial(address: str, port: int) -> datetime | None:
    """The time when the certificate ends that an API server presents. Nothing is sent: no token leaves for a mere
    address.

    Raises `OSError` if the address does not answer.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((address, port), timeout=_DIAL_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=address) as secure,
    ):
        presented = secure.getpeercert(binary_form=True)
    return not_after(presented) if presented else None
