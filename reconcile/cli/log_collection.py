"""The collection of logs: by `run --logs` beside the loop, in threads of its own, which gate nothing; by `collect-logs`
in a process of its own; and what was kept of them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from reconcile.cli.connect import Target, cluster_options, connect_to, template_set_of, wall_clock
from renderer.cli.input_options import FOLDER
from renderer.errors import ExitCode, problem

if TYPE_CHECKING:
    from reconcile.cluster.protocol import Cluster
    from reconcile.loop.logs import Log
    from reconcile.loop.setup import ManagerConfig
    from reconcile.pod_logs.collector_scale import CollectorScale
    from reconcile.pod_logs.folder import LogFolder
    from reconcile.pod_logs.log_collector import LogCollector
    from renderer.catalog.load import Catalog

PLANS = click.Choice(["all", "annotated"])
ALL = "all"


@click.command("collect-logs")
@click.argument("folder", type=FOLDER)
@click.option(
    "--limit",
    default="5Gi",
    show_default=True,
    metavar="SIZE",
    help="Size of the volume of FOLDER. At most half of it is used, and the oldest logs go first.",
)
@click.option(
    "--plans",
    type=PLANS,
    default=ALL,
    show_default=True,
    help='All plans but those annotated with collect-logs: "false", or only those annotated with "true".',
)
@cluster_options
def collect_logs(folder: str, limit: str, plans: str, target: Target) -> ExitCode:
    """Collect the logs of the plans' pods in a folder.

    \b
    Examples:
      upgradeplan collect-logs logs

    The Deployment of the value logs.storage runs this. It reads the logs through the API server until it is stopped,
    whoever runs the plans, and continues in a folder of logs where they end. Secrets are hidden; what was lost is
    recorded. `upgradeplan logs --from FOLDER` prints the logs.
    """
    from reconcile.loop.logs import json_lines, redacted, text_lines
    from reconcile.observe.source import DirectSource
    from reconcile.pod_logs.listed_plans import ListedPlans
    from renderer.redaction import Redactor

    catalog = template_set_of(target.templates).catalog
    cluster = connect_to(target).cluster
    lines = (text_lines if sys.stderr.isatty() else json_lines)(sys.stderr, wall_clock)
    log = redacted(lines, Redactor(catalog.redaction))
    collector = _collector(cluster, catalog, log, folder, (limit, "--limit"), plans)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: collector.stop())
    is_usable = collector.run(ListedPlans(DirectSource(cluster, catalog.kinds), collector).look)
    return ExitCode.YES if is_usable else ExitCode.BAD_INPUT


def collector_of(config: ManagerConfig, folder: str, limit: str, plans: str) -> LogCollector:
    """Raises `Problems` for a limit that is not a size."""
    catalog = config.template_set.catalog
    return _collector(config.cluster, catalog, config.log, folder, (limit, "--logs-limit"), plans)


def _collector(
    cluster: Cluster, catalog: Catalog, log: Log, folder: str, limit: tuple[str, str], plans: str
) -> LogCollector:
    from reconcile.observe.source import DirectSource
    from reconcile.pod_logs.folder import LogFolder
    from reconcile.pod_logs.log_collector import LogCollector
    from renderer.quantity import quantity_of
    from renderer.redaction import Redactor

    text, option = limit
    size = quantity_of(text)
    if size is None or size < 1:
        raise problem("InvalidValue", f"{option}: {text!r} is not a size", remedy="write it like 256Mi")
    return LogCollector(
        cluster,
        DirectSource(cluster, catalog.kinds),
        LogFolder(path=Path(folder), limit=int(size) // 2),
        Redactor(catalog.redaction),
        log,
        every_plan=plans == ALL,
    )


def scale_of(config: ManagerConfig, namespace: str, name: str, plans: str) -> CollectorScale:
    from reconcile.pod_logs.collector_scale import DEPLOYMENT, CollectorScale
    from renderer.model.ref import Ref

    deployment = Ref(api_version=DEPLOYMENT.api_version, kind=DEPLOYMENT.kind, namespace=namespace, name=name)
    return CollectorScale(config.cluster, deployment, config.log, every_plan=plans == ALL)


def collected_logs(folder: Path) -> LogFolder:
    """The logs that were collected in a folder. Raises `Problems` where there are none."""
    from reconcile.pod_logs.folder import LogFolder

    kept = LogFolder(path=folder, limit=0)
    kept.read()
    if not kept.entries:
        remedy = "name the folder that was given as run --logs"
        raise problem("NoLogs", "contains no collected logs", file=str(folder), remedy=remedy)
    return kept


def beside(run: Callable[[], object], stop: Callable[[], None]) -> Callable[[], None]:
    """Begins in a thread, and answers how to end it: after what is under way."""
    thread = Thread(target=run, daemon=True)
    thread.start()

    def ended() -> None:
        stop()
        thread.join(timeout=5)

    return ended
