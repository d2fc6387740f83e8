"""What the manager tells Prometheus: of plans, of itself, and to whom."""

from __future__ import annotations

import http.client
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cluster_door.kinds import NODE
from cluster_door.loopback import NOW as REQUESTED
from cluster_door.loopback import access_to
from cluster_door.server import Reply, serving
from controlplane import promtool, waiting
from support.recordings import recording

from reconcile.admission.certificates import Pair, Validity, new_authority, new_serving_pair
from reconcile.cli.endpoints import MetricsOptions, serve_metrics
from reconcile.cluster.client import connect
from reconcile.cluster.errors import Away, ClusterError
from reconcile.cluster.meter import NO_ANSWER, CallMeter, MadeCall
from reconcile.cluster.protocol import Selection
from reconcile.decide.decision import BlockingCheck, Wait
from reconcile.loop.health import health_server
from reconcile.loop.manager import ManagerFigures
from reconcile.loop.outage_clock import OutageClock
from reconcile.loop.queue import WorkQueue
from reconcile.loop.round import Round, RoundResult
from reconcile.metrics import metric_table
from reconcile.metrics.manager_metrics import MOST_PLANS, LookedAt, ManagerMetrics
from reconcile.metrics.metric_table import METRICS, Metric, MetricType
from reconcile.metrics.metrics_server import PATH, ServedCertificate, metrics_server, own_pair
from reconcile.metrics.plan_samples import REASONS, plan_samples, reason_of
from reconcile.metrics.token_review import ACCESS_REVIEW, TOKEN_REVIEW, Admittance, Doorkeeper
from renderer.errors import Problems

pytestmark = pytest.mark.lane("recordings")

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
FIGURES = ManagerFigures(leads=True, transitions=3, queued=1, interruptions={"Node": 2}, away_seconds=4.5)
PROMTOOL = pytest.mark.skipif(promtool.find() is None, reason=promtool.MISSING)


def metrics_of(*rounds: Round, now: datetime = NOW, figures: ManagerFigures = FIGURES) -> ManagerMetrics:
    found = ManagerMetrics(version="0.1.0", now=lambda: now)
    found.look_at(LookedAt(figures=lambda: figures, certificates=lambda: {"webhook": NOW}))
    for done in rounds:
        found.on_round(done)
    return found


def series(metrics: ManagerMetrics) -> dict[str, float]:
    """By name with labels, as Prometheus writes them."""
    lines = metrics.text()[0].decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def at(phase: str, node_state: str = "") -> tuple[datetime, Round]:
    """The last round of the three-node example in a phase, or in which a node was in a state."""
    found = [
        (moment, done)
        for moment, done in recording("three-node")
        if done.decision and done.decision.status.phase == phase
        if not node_state or node_state in {entry["state"] for entry in done.decision.status.node_states.values()}
    ]
    return found[-1]


# ------------------------------------------------------------------------------------------------------------ the table


def test_every_row_is_in_the_table() -> None:
    rows = {name: row for name, row in vars(metric_table).items() if isinstance(row, Metric)}
    assert set(rows.values()) == set(METRICS)
    assert len({row.name for row in METRICS}) == len(METRICS)


def test_names_follow_the_conventions() -> None:
    for row in METRICS:
        assert row.name.startswith("upgradeplan_")
        assert row.name.endswith("_total") == (row.type is MetricType.COUNTER), row.name
        assert bool(row.buckets) == (row.type is MetricType.HISTOGRAM), row.name
        assert row.help.endswith(".")


def busy() -> ManagerMetrics:
    """One that has told of everything."""
    moment, done = at("NodeUpgrading", "PreDraining")
    found = metrics_of(done, now=moment)
    found.on_result(RoundResult.DONE, 0.02)
    found.on_call(MadeCall(verb="list", kind="Node", code="200", seconds=0.1))
    found.on_review("CREATE", "denied", 0.3)
    return found


@PROMTOOL
def test_promtool_finds_nothing_wrong_with_them() -> None:
    tool = promtool.find()
    assert tool is not None
    done = subprocess.run([tool, "check", "metrics"], input=busy().text()[0], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_upgrade_shows_every_metric_and_no_other() -> None:
    shown: set[str] = set()
    for moment, done in recording("three-node"):
        shown |= {sample.metric.name for sample in plan_samples(done, moment)}
    told = {line.split()[2] for line in busy().text()[0].decode().splitlines() if line.startswith("# TYPE")}
    own = {name for name in told if not name.startswith("process_")}
    assert own | shown == {row.name for row in METRICS}


# ------------------------------------------------------------------------------------------------------------- of plans


def test_a_plan_while_a_node_is_drained() -> None:
    moment, done = at("NodeUpgrading", "PreDraining")
    plan = f'plan="{done.name}"'
    found = series(metrics_of(done, now=moment + timedelta(seconds=30)))
    assert found[f"upgradeplan_running{{{plan}}}"] == 1
    assert found[f'upgradeplan_phase_info{{phase="NodeUpgrading",{plan},version="v1.8.0-rc1"}}'] == 1
    assert found[f'upgradeplan_phase_seconds{{phase="ISODownloading",{plan}}}'] == 480
    assert found[f'upgradeplan_step_info{{phase="NodeUpgrade",{plan},state="Applied",step="PreDrain"}}'] == 1
    assert found[f'upgradeplan_step_seconds{{phase="NodeUpgrade",{plan},step="PreDrain"}}'] >= 30
    states = {key: value for key, value in found.items() if key.startswith("upgradeplan_nodes{") and value}
    assert sum(states.values()) == 3
    assert states[f'upgradeplan_nodes{{{plan},state="PreDraining"}}'] == 1
    (away,) = (key for key in found if key.startswith("upgradeplan_node_out_of_service_seconds"))
    assert 'state="PreDraining"' in away
    assert found[away] >= 30
    assert found[f"upgradeplan_borrowed_fields{{{plan}}}"] == 4
    assert found[f'upgradeplan_gates{{{plan},step="NodeUpgrade/PreDrain",verdict="waiting"}}'] == 1
    assert found[f'upgradeplan_waits{{{plan},reason="InProgress",step="NodeUpgrade/PreDrain"}}'] >= 1
    condition = f'upgradeplan_condition{{{plan},reason="NodeUpgrading",status="True",type="Progressing"}}'
    assert found[condition] == 1
    progress = found[f"upgradeplan_last_progress_timestamp_seconds{{{plan}}}"]
    assert moment.timestamp() - 600 < progress <= moment.timestamp()


def test_a_plan_without_a_history_has_all_else() -> None:
    """Taken over from a manager that has written none."""
    moment, done = at("NodeUpgrading", "PreDraining")
    assert done.decision is not None
    status = replace(done.decision.status, rest={})
    found = series(metrics_of(replace(done, decision=replace(done.decision, status=status)), now=moment))
    assert found[f'upgradeplan_running{{plan="{done.name}"}}'] == 1
    assert not [key for key in found if key.startswith("upgradeplan_phase_seconds")]
    assert f'upgradeplan_nodes{{plan="{done.name}",state="PreDraining"}}' in found


def test_a_check_that_blocks_has_a_series_and_its_wait_a_reason() -> None:
    moment, done = next(
        (moment, done)
        for moment, done in recording("three-node")
        if done.decision and any(w.check for w in done.decision.waits)
    )
    found = series(metrics_of(done, now=moment))
    assert f'upgradeplan_blocking_check{{check="volume-degraded",plan="{done.name}"}}' in found
    assert f'upgradeplan_waits{{plan="{done.name}",reason="Check",step="NodeUpgrade/PreDrain"}}' in found


def test_a_plan_that_has_ended_keeps_few_series() -> None:
    moment, done = at("Succeeded")
    found = [key for key in series(metrics_of(done, now=moment + timedelta(days=1))) if f'plan="{done.name}"' in key]
    assert f'upgradeplan_running{{plan="{done.name}"}}' in found
    assert len(found) < 12


def test_a_plan_that_is_gone_has_none() -> None:
    moment, done = at("Succeeded")
    metrics = metrics_of(done, Round(name=done.name), now=moment)
    assert [key for key in series(metrics) if "plan=" in key] == []


def test_who_stands_by_tells_nothing_of_plans() -> None:
    """Another manager has moved them on since."""
    moment, done = at("NodeUpgrading")
    found = series(metrics_of(done, now=moment, figures=replace(FIGURES, leads=False)))
    assert found["upgradeplan_leader"] == 0
    assert [key for key in found if "plan=" in key] == []


def test_what_a_plan_has_is_limited() -> None:
    moment, done = at("NodeUpgrading", "PreDraining")
    named = [replace(done, name=f"plan-{number}") for number in range(MOST_PLANS + 10)]
    found = series(metrics_of(*named, now=moment))
    assert sum(key.startswith("upgradeplan_running") for key in found) == MOST_PLANS
    assert 'upgradeplan_running{plan="plan-9"}' not in found


def test_of_many_nodes_few_have_a_series() -> None:
    moment, done = at("NodeUpgrading", "PreDraining")
    assert done.decision is not None
    status = done.decision.status
    ((_, node),) = [
        place for place in status.records if place[1] and status.node_states[place[1]]["state"] == "PreDraining"
    ]
    records: Mapping[tuple[str, str | None], Any] = {
        ("NodeUpgrade", f"n{number}"): status.records["NodeUpgrade", node] for number in range(1000)
    }
    states = {f"n{number}": {"state": "PreDraining"} for number in range(1000)}
    many = replace(done, decision=replace(done.decision, status=replace(status, records=records, node_states=states)))
    found = series(metrics_of(many, now=moment))
    assert sum(key.startswith("upgradeplan_node_out_of_service_seconds") for key in found) == 20
    assert found[f'upgradeplan_nodes{{plan="{done.name}",state="PreDraining"}}'] == 1000
    assert len(found) < 150


CHECKED = BlockingCheck(id="a", title="", found=(), remedies=(), accept="")


@pytest.mark.parametrize(
    ("wait", "reason"),
    [
        (Wait(text="", check=CHECKED, slow=True), "Check"),
        (Wait(text="", unknown=True), "Unreadable"),
        (Wait(text="", slow=True), "NeedsOperator"),
        (Wait(text="", slow=True, limit=60), "TakesLong"),
        (Wait(text=""), "Held"),
        (Wait(text="", limit=60), "InProgress"),
    ],
)
def test_the_reason_of_a_wait(wait: Wait, reason: str) -> None:
    assert reason_of(wait) == reason
    assert reason in REASONS


# ------------------------------------------------------------------------------------------------------- of the manager


def test_figures_of_the_manager() -> None:
    found = series(metrics_of())
    assert found["upgradeplan_leader"] == 1
    assert found["upgradeplan_lease_transitions"] == 3
    assert found["upgradeplan_queue_depth"] == 1
    assert found["upgradeplan_api_outage_seconds_total"] == 4.5
    assert found['upgradeplan_watch_restarts_total{kind="Node"}'] == 2
    assert found['upgradeplan_certificate_expiry_timestamp_seconds{certificate="webhook"}'] == NOW.timestamp()
    assert found['upgradeplan_build_info{version="0.1.0"}'] == 1
    without = series(metrics_of(figures=replace(FIGURES, transitions=None)))
    assert "upgradeplan_lease_transitions" not in without


def test_what_is_counted_as_it_happens() -> None:
    metrics = metrics_of()
    metrics.on_result(RoundResult.AWAY, 0.02)
    metrics.on_review("CREATE", "allowed", 0.02)
    metrics.on_review("a word of a client", "error", 0.02)
    found = series(metrics)
    assert found['upgradeplan_rounds_total{result="away"}'] == 1
    assert found['upgradeplan_round_duration_seconds_bucket{le="0.025"}'] == 1
    assert found['upgradeplan_webhook_requests_total{operation="CREATE",result="allowed"}'] == 1
    assert found['upgradeplan_webhook_requests_total{operation="",result="error"}'] == 1


def test_calls_are_counted_by_what_they_were_and_how_they_were_answered() -> None:
    metrics, moments = metrics_of(), iter(range(100))
    meter = CallMeter(clock=lambda: next(moments), record=metrics.on_call)
    with serving(Reply(body={"items": []}), Reply(status=403, body={})) as server:
        client = connect(access_to(server.url), environ={}, now=lambda: REQUESTED, meter=meter)
        guarded = client.guarded(lambda: None)
        guarded.list(Selection(kind=NODE))
        with pytest.raises(ClusterError):
            client.list(Selection(kind=NODE))
    nobody = connect(access_to("http://127.0.0.1:1"), environ={}, now=lambda: REQUESTED, meter=meter)
    with pytest.raises(Away):
        nobody.list(Selection(kind=NODE))
    found = series(metrics)
    for code in ("200", "403", NO_ANSWER):
        assert found[f'upgradeplan_api_requests_total{{code="{code}",kind="Node",verb="list"}}'] == 1, code
    assert found['upgradeplan_api_request_duration_seconds_sum{verb="list"}'] == 3


def test_a_watch_is_counted_and_not_timed() -> None:
    metrics = metrics_of()
    metrics.on_call(MadeCall(verb="watch", kind="Node", code="200", seconds=290))
    found = series(metrics)
    assert found['upgradeplan_api_requests_total{code="200",kind="Node",verb="watch"}'] == 1
    assert not [key for key in found if 'verb="watch"' in key and "seconds" in key]


# ------------------------------------------------------------------------------------------------------- who is served


@dataclass
class Reviewer:
    """The API server's part: it knows one token, whose owner may get /metrics."""

    allowed: bool = True
    error: ClusterError | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, kind: Any, spec: Any) -> Mapping[str, Any]:
        if self.error:
            raise self.error
        self.asked.append((kind.kind, spec))
        if kind == TOKEN_REVIEW:
            user = {"username": "prometheus", "groups": ["a"], "extra": {"k": ["v"]}}
            return {"authenticated": True, "user": user} if spec["token"] == "good" else {"error": "no"}
        assert kind == ACCESS_REVIEW
        return {"allowed": self.allowed}


@pytest.mark.parametrize(
    ("header", "reviewer", "expected"),
    [
        ("", Reviewer(), Admittance.UNKNOWN_CLIENT),
        ("Basic good", Reviewer(), Admittance.UNKNOWN_CLIENT),
        ("Bearer ", Reviewer(), Admittance.UNKNOWN_CLIENT),
        ("Bearer bad", Reviewer(), Admittance.UNKNOWN_CLIENT),
        ("Bearer good", Reviewer(allowed=False), Admittance.FORBIDDEN),
        ("Bearer good", Reviewer(error=Away("gone")), Admittance.COULD_NOT_ASK),
        ("bearer good", Reviewer(), Admittance.ADMITTED),
    ],
)
def test_who_is_admitted(header: str, reviewer: Reviewer, expected: Admittance) -> None:
    assert Doorkeeper(reviewer, PATH, lambda: 0.0).admits(header) is expected


def test_the_api_server_is_asked_once_a_minute_and_about_the_right_one() -> None:
    reviewer, now = Reviewer(), [0.0]
    keeper = Doorkeeper(reviewer, PATH, lambda: now[0])
    for _ in range(3):
        assert keeper.admits("Bearer good") is Admittance.ADMITTED
    attributes = {"path": "/metrics", "verb": "get"}
    subject = {"user": "prometheus", "groups": ["a"], "extra": {"k": ["v"]}, "nonResourceAttributes": attributes}
    assert reviewer.asked == [("TokenReview", {"token": "good"}), ("SubjectAccessReview", subject)]
    reviewer.allowed, now[0] = False, 61.0
    assert keeper.admits("Bearer good") is Admittance.FORBIDDEN


def test_that_it_could_not_be_asked_is_not_kept() -> None:
    reviewer = Reviewer(error=Away("gone"))
    keeper = Doorkeeper(reviewer, PATH, lambda: 0.0)
    assert keeper.admits("Bearer good") is Admittance.COULD_NOT_ASK
    reviewer.error = None
    assert keeper.admits("Bearer good") is Admittance.ADMITTED


# ------------------------------------------------------------------------------------------------------------- the port


@contextmanager
def served(doorkeeper: Doorkeeper | None = None, certificate: ServedCertificate | None = None) -> Iterator[int]:
    server = metrics_server("127.0.0.1:0", metrics_of().text, doorkeeper, certificate)
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def got(port: int, path: str = PATH, context: ssl.SSLContext | None = None, **headers: str) -> tuple[int, str, str]:
    """Status, content type and content."""
    make: Any = http.client.HTTPSConnection if context else http.client.HTTPConnection
    connection = make("127.0.0.1", port, timeout=waiting.PATIENCE, **({"context": context} if context else {}))
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], text


def test_metrics_in_plain_http_for_everybody() -> None:
    with served() as port:
        status, kind, text = got(port)
        assert (status, kind.partition(";")[0]) == (200, "text/plain")
        assert "upgradeplan_leader 1.0\n" in text
        _, kind, text = got(port, Accept="application/openmetrics-text; version=1.0.0")
        assert kind.startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")
        assert got(port, "/")[::2] == (404, "not found\n")
        assert got(port, "/metrics/")[0] == 404


def test_a_client_is_told_why_it_is_refused() -> None:
    with served(Doorkeeper(Reviewer(), PATH, lambda: 0.0)) as port:
        assert got(port)[0] == 401
        assert got(port, Authorization="Bearer bad")[::2] == (401, "the API server does not know this token\n")
        assert got(port, Authorization="Bearer good")[0] == 200
        assert got(port, "/other")[0] == 404


def pair_of(authority: Pair) -> Pair:
    return new_serving_pair(authority, ["127.0.0.1"], _validity())


def _validity() -> Validity:
    now = datetime.now(UTC)
    return Validity(not_before=now - timedelta(hours=1), not_after=now + timedelta(hours=1))


def trusting(authority: Pair) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.certificate.decode())


def test_https_with_a_certificate_that_is_exchanged() -> None:
    first, second = (new_authority(_validity()) for _ in range(2))
    pairs = [pair_of(first)]
    certificate = ServedCertificate(lambda: pairs[-1])
    with served(certificate=certificate) as port:
        assert got(port, context=trusting(first))[0] == 200
        pairs.append(Pair(certificate=pair_of(second).certificate, key=pairs[0].key))  # half of it is written
        assert got(port, context=trusting(first))[0] == 200
        pairs.append(pair_of(second))
        assert got(port, context=trusting(second))[0] == 200
        with pytest.raises(ssl.SSLError):
            got(port, context=trusting(first))
        with pytest.raises((http.client.HTTPException, OSError)):
            got(port)


def test_a_client_that_does_not_shake_hands_keeps_nobody_waiting() -> None:
    pair = own_pair(("localhost",), datetime.now(UTC))
    with served(certificate=ServedCertificate(lambda: pair)) as port:
        silent = http.client.HTTPConnection("127.0.0.1", port, timeout=waiting.PATIENCE)
        silent.connect()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        assert got(port, context=context)[0] == 200
        silent.close()


def test_a_folder_without_a_certificate_is_named(tmp_path: Path) -> None:
    options = MetricsOptions(address="127.0.0.1:0", secure=True, certificate=str(tmp_path))
    with pytest.raises(Problems, match=r"--metrics-certificate .*tls\.crt"):
        serve_metrics(options, metrics_of(), Reviewer(), manager=None, webhook=None)  # type: ignore[arg-type]


def test_the_health_port_serves_health_and_nothing_else() -> None:
    health = health_server("127.0.0.1:0", lambda: False)
    health.start()
    try:
        assert got(health.port, "/healthz?a=b")[::2] == (200, "ok\n")
        assert got(health.port, "/readyz")[::2] == (503, "not ready\n")
        assert got(health.port, "/metrics")[::2] == (404, "not found\n")
        assert got(health.port, "/")[::2] == (404, "not found\n")
    finally:
        health.stop()


# -------------------------------------------------------------------------------------------------- where figures are


def test_a_queue_knows_how_many_are_due() -> None:
    queue = WorkQueue(lambda: 10.0, lambda: 0.5)
    queue.add("now")
    queue.add("later", 5.0)
    assert queue.depth == 1


def test_seconds_of_outages_are_added_up_while_they_last() -> None:
    moments = [NOW]
    clock = OutageClock(lambda: moments[-1])
    clock.lost()
    moments.append(NOW + timedelta(seconds=5))
    assert clock.away_seconds == 5
    clock.found()
    moments.append(NOW + timedelta(seconds=60))
    assert clock.away_seconds == 5
    clock.lost()
    moments.append(NOW + timedelta(seconds=62))
    assert clock.away_seconds == 7
