"""The table of all metrics: names by Prometheus' conventions, and labels whose values are limited.

A label is a plan, a phase, a step, a kind or a word of a closed set. Nodes are a label only while they are out of
service, of which there are few at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MetricType(StrEnum):
    """Prometheus' types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A row. `buckets` are the upper bounds of a histogram."""

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A value; `labels` are the values of the metric's labels, in their order."""

    metric: Metric
    labels: tuple[str, ...] = ()
    value: float


_LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def _gauge(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name=f"upgradeplan_{name}", type=MetricType.GAUGE, help=help_, labels=labels)


def _counter(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name=f"upgradeplan_{name}", type=MetricType.COUNTER, help=help_, labels=labels)


def _latency(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name=f"upgradeplan_{name}", type=MetricType.HISTOGRAM, help=help_, labels=labels, buckets=_LATENCY)


# ---------------------------------------------------------------------------------------- plans, of the one that leads

RUNNING = _gauge("running", "1 while the plan is under way, 0 once it has ended or before it has begun.", "plan")
PHASE_INFO = _gauge("phase_info", "1 for the phase that the plan is in.", "plan", "version", "phase")
PHASE_SECONDS = _gauge("phase_seconds", "Seconds that the plan has been in each phase so far.", "plan", "phase")
STEP_INFO = _gauge(
    "step_info", "1 for each step that has begun and not ended, or has failed.", "plan", "phase", "step", "state"
)
STEP_SECONDS = _gauge(
    "step_seconds", "Seconds since the step began; the longest of all nodes.", "plan", "phase", "step"
)
LAST_PROGRESS = _gauge("last_progress_timestamp_seconds", "Time when a phase or a step last began or ended.", "plan")
CONDITION = _gauge("condition", "1 for the status of each condition of the plan.", "plan", "type", "status", "reason")
NODES = _gauge("nodes", "Nodes of the upgrade by state; NotStarted before the first.", "plan", "state")
NODE_SECONDS = _gauge(
    "node_out_of_service_seconds",
    "Seconds since a node that is out of service entered its state; for at most 20 nodes.",
    *("plan", "node", "state"),
)
WAITS = _gauge("waits", "What the plan waits for, by step and reason.", "plan", "step", "reason")
WAIT_SECONDS = _gauge("wait_seconds", "Seconds that the oldest of these waits has lasted.", "plan", "step", "reason")
GATES = _gauge(
    "gates", "Gates of the steps of the phase by their last verdict, for each node.", "plan", "step", "verdict"
)
BLOCKING_CHECKS = _gauge(
    "blocking_check", "1 for each pre-flight check that keeps a step from beginning.", *("plan", "check")
)
BORROWED = _gauge("borrowed_fields", "Fields of other objects that have been borrowed and not returned.", "plan")

# ------------------------------------------------------------------------------------------------------------- the loop

ROUNDS = _counter("rounds_total", "Rounds by result.", "result")
ROUND_SECONDS = _latency("round_duration_seconds", "Seconds that a round took.")
QUEUE_DEPTH = _gauge("queue_depth", "Plans that are due for a round.")
LEADER = _gauge("leader", "1 for the manager that holds the Lease, 0 for a standby.")
LEASE_TRANSITIONS = _gauge("lease_transitions", "Times that the Lease has changed its holder, as last seen.")
WATCH_RESTARTS = _counter("watch_restarts_total", "Watches that were interrupted and began again.", "kind")
OUTAGE_SECONDS = _counter("api_outage_seconds_total", "Seconds in which the API server did not answer.")
API_CALLS = _counter(
    "api_requests_total", "Requests to the API server; the code <error> means no answer.", "verb", "kind", "code"
)
API_SECONDS = _latency(
    "api_request_duration_seconds", "Seconds until the API server's answer began, without watches.", "verb"
)

# -------------------------------------------------------------------------------------------------------------- webhook

WEBHOOK_REQUESTS = _counter("webhook_requests_total", "Admission reviews by answer.", "operation", "result")
WEBHOOK_SECONDS = _latency("webhook_request_duration_seconds", "Seconds that the answer to a review took.")
CERTIFICATE_EXPIRY = _gauge(
    "certificate_expiry_timestamp_seconds", "Time when a serving certificate of this manager expires.", "certificate"
)
BUILD_INFO = _gauge("build_info", "1, with the version of the manager.", "version")

METRICS = (
    *(RUNNING, PHASE_INFO, PHASE_SECONDS, STEP_INFO, STEP_SECONDS, LAST_PROGRESS, CONDITION),
    *(NODES, NODE_SECONDS, WAITS, WAIT_SECONDS, GATES, BLOCKING_CHECKS, BORROWED),
    *(ROUNDS, ROUND_SECONDS, QUEUE_DEPTH, LEADER, LEASE_TRANSITIONS, WATCH_RESTARTS, OUTAGE_SECONDS),
    *(API_CALLS, API_SECONDS, WEBHOOK_REQUESTS, WEBHOOK_SECONDS, CERTIFICATE_EXPIRY, BUILD_INFO),
)
