"""`run --logs`: the collector beside the loop, in a thread of its own, which gates nothing; and what it has kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from renderer.errors import problem

if TYPE_CHECKING:
    from reconcile.loop.setup import ManagerConfig
    from reconcile.pod_logs.folder import LogFolder
    from reconcile.pod_logs.log_collector import LogCollector


def collector_of(config: ManagerConfig, folder: str, limit: str) -> LogCollector:
    """Raises `Problems` for a limit that is not a size."""
    from reconcile.observe.source import DirectSource
    from reconcile.pod_logs.folder import LogFolder
    from reconcile.pod_logs.log_collector import LogCollector
    from renderer.quantity import quantity_of
    from renderer.redaction import Redactor

    size = quantity_of(limit)
    if size is None or size < 1:
        raise problem("InvalidValue", f"--logs-limit: {limit!r} is not a size", remedy="write it like 256Mi")
    catalog = config.template_set.catalog
    return LogCollector(
        config.cluster,
        DirectSource(config.cluster, catalog.kinds),
        LogFolder(path=Path(folder), limit=int(size) // 2),
        Redactor(catalog.redaction),
        config.log,
    )


def collected_logs(folder: Path) -> LogFolder:
    """The logs that were collected in a folder. Raises `Problems` where there are none."""
    from reconcile.pod_logs.folder import LogFolder

    kept = LogFolder(path=folder, limit=0)
    kept.read()
    if not kept.entries:
        remedy = "name the folder that was given as run --logs"
        raise problem("NoLogs", "contains no collected logs", file=str(folder), remedy=remedy)
    return kept


def collecting(collector: LogCollector) -> Callable[[], None]:
    """Begins, and answers how to end it: after the pass that is under way."""
    thread = Thread(target=collector.run, daemon=True)
    thread.start()

    def stop() -> None:
        collector.stop()
        thread.join(timeout=5)

    return stop
