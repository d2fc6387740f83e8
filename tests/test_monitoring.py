"""Alerts and the dashboard: of metrics that exist, firing when they should, and taken as they are by promtool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from controlplane import promtool
from jsonschema import Draft202012Validator
from support.installed import installation
from support.rehearsals import template_set
from support.rendered_plans import ROOT

from reconcile.metrics.metric_table import METRICS, Metric, MetricType
from reconcile.metrics.plan_samples import NOT_STARTED, REASONS, VERDICTS
from renderer.model.ref import Body
from renderer.yaml_io import dump, parse

HERE = ROOT / "tests" / "monitoring"
PROMTOOL = pytest.mark.skipif(promtool.find() is None, reason=promtool.MISSING)
_SUFFIXES = ("_bucket", "_sum", "_count")
_FROM_PROMETHEUS = {"pod", "namespace", "job", "instance", "le"}
"""Labels that Prometheus adds, or a histogram has."""


@cache
def monitored() -> dict[str, Body]:
    """The objects by kind, where monitoring is enabled."""
    found = installation({"prometheus": {"enable": True}})
    return {
        body["kind"]: body for file in found.files if file.name in ("monitoring", "dashboard") for body in file.objects
    }


def rules() -> list[Any]:
    (group,) = monitored()["PrometheusRule"]["spec"]["groups"]
    return list(group["rules"])


def dashboard() -> Any:
    return json.loads(monitored()["ConfigMap"]["data"]["upgradeplan.json"])


def panels() -> list[Any]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> dict[str, str]:
    """By the name of what has it; variables of Grafana as a value that they may have."""
    alerts = {rule["alert"]: rule["expr"] for rule in rules()}
    drawn = {f"{panel['title']} {target['refId']}": target["expr"] for panel in panels() for target in panel["targets"]}
    filled = {name: text.replace("$plan", "x").replace("$__rate_interval", "5m") for name, text in drawn.items()}
    return alerts | filled


# --------------------------------------------------------------------------------------------------------- expressions


def rows() -> dict[str, Metric]:
    """Every time series' name to its metric."""
    found = {row.name: row for row in METRICS if row.type is not MetricType.HISTOGRAM}
    histograms = [row for row in METRICS if row.type is MetricType.HISTOGRAM]
    return found | {f"{row.name}{suffix}": row for row in histograms for suffix in _SUFFIXES}


def selectors(expression: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """(metric, [(label, operator, value)])."""
    for name, braces in re.findall(r"(upgradeplan_\w+)(?:\{([^}]*)\})?", expression):
        yield name, re.findall(r'(\w+)\s*(=~|=)\s*"([^"]*)"', braces)


@pytest.mark.parametrize("name", expressions())
def test_an_expression_is_of_metrics_and_labels_that_exist(name: str) -> None:
    expression, known = expressions()[name], rows()
    found = list(selectors(expression))
    assert found, "no metric of ours"
    for metric, matchers in found:
        assert metric in known
        assert {label for label, _, _ in matchers} <= set(known[metric].labels) | _FROM_PROMETHEUS
        for label, operator, value in matchers:
            assert_is_a_value(label, operator, value)
    grouped = {word for by in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for word in re.findall(r"\w+", by)}
    assert grouped <= {label for metric, _ in found for label in known[metric].labels} | _FROM_PROMETHEUS


def assert_is_a_value(label: str, operator: str, value: str) -> None:
    """A misspelt value would select nothing for ever."""
    if label not in values_of():
        return
    known = values_of()[label]
    if operator == "=":
        assert value in known, f"{label}={value}"
    else:
        assert all(any(re.fullmatch(part, word) for word in known) for part in value.split("|")), value


@cache
def values_of() -> dict[str, set[str]]:
    catalog = template_set().catalog
    phases = {value for phase in catalog.phases for value in (phase.phase.active, phase.phase.completed)}
    return {
        "state": {NOT_STARTED, *(state.name for state in catalog.node_states)},
        "phase": {*phases, "Succeeded", "Failed"},
        "reason": set(REASONS),
        "verdict": set(VERDICTS),
        "type": {"Degraded", "Progressing", "Available", "Ready", "Reconciling", "Stalled"},
        "status": {"True", "False", "Unknown"},
    }


# -------------------------------------------------------------------------------------------------------------- alerts


def write_rules(folder: Path) -> Path:
    file = folder / "rules.yaml"
    file.write_text(dump(monitored()["PrometheusRule"]["spec"]), encoding="utf-8")
    return file


def told(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    tool = promtool.find()
    assert tool is not None
    return subprocess.run([tool, *words], cwd=folder, capture_output=True, text=True, check=False)


@PROMTOOL
def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    done = told("check", "rules", str(write_rules(tmp_path)), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules())} rules found" in done.stdout


@pytest.mark.slow
@PROMTOOL
def test_alerts_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    write_rules(tmp_path)
    shutil.copy(HERE / "alerts.yaml", tmp_path)
    done = told("test", "rules", "alerts.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_to_fire() -> None:
    (cases,) = parse((HERE / "alerts.yaml").read_text(encoding="utf-8"), "alerts.yaml")
    fired = {
        case["alertname"] for test in cases.value["tests"] for case in test["alert_rule_test"] if case["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in rules()}


def test_an_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        labels = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
        assert labels <= grouped, rule["alert"]


# ----------------------------------------------------------------------------------------------------------- dashboard


def test_the_dashboard_fits_the_schema_of_dashboards() -> None:
    schema = json.loads((HERE / "dashboard.schema.json").read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(dashboard())] == []


def test_no_panel_lies_on_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_the_variables_of_the_dashboard_are_those_that_it_uses() -> None:
    named = {item["name"] for item in dashboard()["templating"]["list"]}
    text = json.dumps(dashboard())
    used = set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval"}
    assert used == named


@PROMTOOL
def test_promtool_can_read_what_the_dashboard_asks(tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(expressions().values())]
    (tmp_path / "rules.yaml").write_text(dump({"groups": [{"name": "dashboard", "rules": recorded}]}), encoding="utf-8")
    done = told("check", "rules", "rules.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------------------- objects


def test_nothing_of_it_is_there_unless_it_is_asked_for() -> None:
    names = {file.name for file in installation().files}
    assert "metrics" in names
    assert names & {"monitoring", "dashboard", "network-policy"} == set()


def test_prometheus_finds_the_port_and_speaks_as_the_manager_does() -> None:
    found = {file.name: file.objects for file in installation().files}
    (service,) = (body for body in found["metrics"] if body["kind"] == "Service")
    monitor = monitored()["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert monitor["endpoints"][0]["scheme"] == "https"
    plain = installation({"prometheus": {"enable": True}, "metrics": {"secure": False}})
    objects = [body for file in plain.files for body in file.objects]
    (monitor,) = (body["spec"] for body in objects if body["kind"] == "ServiceMonitor")
    assert monitor["endpoints"][0]["scheme"] == "http"
    assert "bearerTokenFile" not in monitor["endpoints"][0]
    (deployment,) = (body for body in objects if body["kind"] == "Deployment")
    assert "--no-metrics-secure" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert not [body for body in objects if str(body["metadata"]["name"]).endswith("-metrics-auth")]


def test_the_webhooks_service_is_not_asked_for_metrics() -> None:
    (webhook,) = (file.objects[0] for file in installation().files if file.name == "webhook")
    asked = monitored()["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert not asked.items() <= webhook["metadata"]["labels"].items()


def test_a_network_policy_lets_monitoring_in() -> None:
    found = installation({"networkPolicy": {"enable": True}})
    (policy,) = (body for file in found.files for body in file.objects if body["kind"] == "NetworkPolicy")
    ports = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["spec"]["ingress"]}
    assert set(ports) == {8443, 9443}
    assert ports[9443] is None
    assert ports[8443][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "cattle-monitoring-system"
    }


def test_the_guide_names_every_alert() -> None:
    guide = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(Upgrade\w+)` \|", guide, re.MULTILINE)) == {rule["alert"] for rule in rules()}
