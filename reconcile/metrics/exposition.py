"""Keeps counters and histograms, and writes all metrics in Prometheus' text format. The one door to its client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from reconcile.metrics.metric_table import Metric, MetricType, Sample

Source = Callable[[], Iterable[Sample]]
"""Gives samples of gauges and counters when it is asked."""


class Instruments:
    """All metrics of one process. Thread-safe. `source` is asked when metrics are read, `counted` are the counters and
    histograms that are kept here."""

    def __init__(self, counted: Iterable[Metric], source: Source) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody reads
        self._registry = CollectorRegistry(auto_describe=False)
        rows = tuple(counted)
        self._counters = {row: self._counter(row) for row in rows if row.type is MetricType.COUNTER}
        self._histograms = {row: self._histogram(row) for row in rows if row.type is MetricType.HISTOGRAM}
        self._registry.register(_Asking(source))
        ProcessCollector(registry=self._registry)

    def count(self, metric: Metric, *labels: str) -> None:
        counter = self._counters[metric]
        (counter.labels(*labels) if labels else counter).inc()

    def observe(self, metric: Metric, seconds: float, *labels: str) -> None:
        histogram = self._histograms[metric]
        (histogram.labels(*labels) if labels else histogram).observe(seconds)

    def text(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that an Accept header asks for, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def _counter(self, row: Metric) -> Counter:
        return Counter(row.name, row.help, row.labels, registry=self._registry)

    def _histogram(self, row: Metric) -> Histogram:
        return Histogram(row.name, row.help, row.labels, registry=self._registry, buckets=row.buckets)


class _Asking(Collector):
    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterator[MetricFamily]:
        families: dict[Metric, CounterMetricFamily | GaugeMetricFamily] = {}
        for sample in self._source():
            row = sample.metric
            if row not in families:
                make = CounterMetricFamily if row.type is MetricType.COUNTER else GaugeMetricFamily
                families[row] = make(row.name, row.help, labels=row.labels)
            families[row].add_metric(sample.labels, sample.value)
        yield from families.values()
