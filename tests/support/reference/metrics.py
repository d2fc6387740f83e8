"""The page of metrics, from their table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconcile.metrics.metric_table import METRICS, Metric
from reconcile.metrics.plan_samples import REASONS, VERDICTS
from support.reference.markdown import code, codes, page, section, table

_ABOUT = (
    "What `upgradeplan run --metrics-address` serves at `/metrics`. Metrics of plans are served by the manager that "
    "holds the Lease; those that stand by serve the others. Beside these there are the client's own metrics of the "
    "process: `process_resident_memory_bytes`, `process_cpu_seconds_total` and others."
)


def metrics() -> str:
    return page(
        "Metrics",
        _ABOUT,
        _rows(METRICS),
        section(
            "Reasons of waits", table(("reason", "meaning"), ((code(word), text) for word, text in REASONS.items()))
        ),
        section("Verdicts of gates", table(("verdict", "meaning"), ((code(w), text) for w, text in VERDICTS.items()))),
    )


def _rows(rows: Iterable[Metric]) -> str:
    return table(
        ("metric", "type", "labels", "meaning"),
        ((code(row.name), str(row.type), codes(row.labels), row.help) for row in rows),
    )


def _words(title: str, words: Mapping[str, str]) -> str:
    return table((title, "meaning"), ((code(word), text) for word, text in words.items()))
