"""Reads the volume of collected logs, by a pod that is made for it and removed again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from renderer.cli.answer import say
from renderer.errors import ExitCode, problem

if TYPE_CHECKING:
    from reconcile.cluster.protocol import Cluster
    from reconcile.observe.source import Source
    from reconcile.pod_logs.log_record import LogRecords
    from renderer.model.ref import Body, Ref

_EVERY = 1.0
_PATIENCE = 180
"""Seconds for the volume to be attached, the image to be pulled, and the logs to be read."""

namespace_option = click.option(
    "--namespace",
    default="harvester-system",
    show_default=True,
    metavar="NAME",
    help="The namespace of the manager, where the volume of collected logs is.",
)


def refuse_namespace_unless(stored: bool, option: str) -> None:
    """Refuses `--namespace` where nothing is read from the volume. Raises `click.UsageError`."""
    source = click.get_current_context().get_parameter_source("namespace")
    if source is ParameterSource.COMMANDLINE and not stored:
        raise click.UsageError(f"--namespace is where the volume of collected logs is, and needs {option}")


def stored_logs(cluster: Cluster, source: Source, namespace: str, words: Sequence[str]) -> LogRecords:
    """The logs on the volume that `upgradeplan logs` with these words has there. Raises `Problems` where there is no
    volume, or it cannot be read."""
    from reconcile.pod_logs.collector_pods import reader_of
    from reconcile.pod_logs.log_record import records_of

    with _pod(cluster, reader_of(_collector(source, namespace), words)) as ref:
        say([f"{ref} reads the volume"], sys.stderr)
        ended = _ended(cluster, ref)["status"]
        if ended["phase"] == "Failed":
            said = ended.get("message") or _said(_log_of(cluster, ref).decode(errors="replace")) or "it says nothing"
            raise problem("NoLogs", f"{ref} could not read the volume: {said}", exit_code=ExitCode.CLUSTER)
        text = _log_of(cluster, ref)
    found = records_of(text)
    if found.missing:
        remedy = "ask for less with --phase, --node, --since or --tail"
        say([f"lost: {found.missing}: a node keeps the end of what a pod prints; {remedy}"], sys.stderr)
    return found


def _collector(source: Source, namespace: str) -> Body:
    from reconcile.pod_logs.collector_pods import collectors_in
    from reconcile.probes.look import ReadFailure

    found = collectors_in(source, namespace)
    if isinstance(found, ReadFailure):
        message = f"Deployments in {namespace} cannot be listed: {found.why}"
        raise problem("Forbidden", message, remedy=found.remedy, exit_code=ExitCode.CLUSTER)
    if not found:
        remedy = "install it with the value logs.storage.enable, or name the manager's namespace with --namespace"
        raise problem("NoLogs", f"no collector of logs is installed in namespace {namespace}", remedy=remedy)
    return found[0]


@contextmanager
def _pod(cluster: Cluster, body: Body) -> Iterator[Ref]:
    """The pod, which is removed whatever happens."""
    from reconcile.cluster.errors import ClusterError
    from reconcile.observe.container_log import POD
    from renderer.model.ref import ref_of

    made = cluster.create(POD, body).body
    try:
        yield ref_of(made)
    finally:
        with suppress(ClusterError):
            cluster.delete(POD, ref_of(made), uid=str(made["metadata"]["uid"]))


def _ended(cluster: Cluster, ref: Ref) -> Body:
    """The pod once it has ended. Raises `Problems` where it takes too long."""
    from reconcile.observe.container_log import POD
    from reconcile.pod_logs.collector_pods import is_ended, waits_for

    until = time.monotonic() + _PATIENCE
    while not is_ended(pod := cluster.get(POD, ref).body):
        if time.monotonic() >= until:
            message = f"{ref} has not read the volume in {_PATIENCE} seconds: {waits_for(pod)}"
            remedy = f"see `kubectl -n {ref.namespace} get persistentvolumeclaims,pods` and try again"
            raise problem("NoLogs", message, remedy=remedy, exit_code=ExitCode.CLUSTER)
        time.sleep(_EVERY)
    return pod


def _log_of(cluster: Cluster, ref: Ref) -> bytes:
    from reconcile.observe.container_log import POD

    return cluster.read(POD, ref, "log", {"container": "reader"})


def _said(text: str) -> str:
    """The messages of the problems that the reader has printed as JSON, or the text itself."""
    try:
        return "; ".join(item["message"] for item in json.loads(text)["problems"])
    except (ValueError, KeyError, TypeError):
        return text.strip()
