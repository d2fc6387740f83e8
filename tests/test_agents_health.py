"""Health as Argo CD and Flux judge it by what we generate, against our own probes, over all objects of `probes/`.

The Lua and the CEL run for real. What an agent cannot see, since it looks at one object alone, is listed below, and is
always a wait where we report more.
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cel_expr_python import cel as cel_engine
from lupa import lua51
from support.agent_models import fleet, kstatus
from support.recordings import recording
from test_probes import KINDS, PATHS, GivenObjects, _case, _ready, _spoil

from reconcile.probes.evaluate import evaluate
from reconcile.probes.verdict import ProbeResult
from renderer.catalog.kinds import Kinds, rows_from
from renderer.delivery.health.argo_scripts import APPLICATION, argo_health, lua
from renderer.delivery.health.fleet_settings import fleet_health
from renderer.delivery.health.flux_expressions import cel, flux_health
from renderer.delivery.health.health_rule import HealthRule, health_rule, health_rules, judged_by_others
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

HEALTH = {"passed": "Healthy", "waiting": "Progressing", "unknown": "Progressing", "failed": "Degraded"}
STATUS = {"passed": "Current", "waiting": "InProgress", "unknown": "InProgress", "failed": "Failed"}

ARGO_WAITS = {("plan/failed-then-overwritten", "Plan")}
"""Only the failed Job tells, which is another object."""

FLUX_WAITS = {
    *ARGO_WAITS,
    (
        "managed-chart/generation-of-its-bundle",
        "ManagedChart",
    ),  # Flux compares the generations itself; nobody delivers such a chart
}


def _objects() -> Iterator[tuple[str, Body, HealthRule]]:
    """Every object of a case whose kind's rule an agent can follow."""
    for path in PATHS:
        for body in _case(path).snapshot.bodies:
            rule = _rule_of(body)
            if rule is not None:
                yield f"{path.parent.name}/{path.stem}", body, rule


@functools.cache
def _rule(api_version: str, kind: str) -> HealthRule | None:
    row = KINDS.find(api_version, kind)
    return health_rule(row) if row else None


def _rule_of(body: Body) -> HealthRule | None:
    return _rule(body["apiVersion"], body["kind"])


OBJECTS = [pytest.param(*found, id=f"{found[0]}-{number}") for number, found in enumerate(_objects())]
CASES = {f"{path.parent.name}/{path.stem}": path for path in PATHS}


def _ours(name: str, body: Body) -> ProbeResult:
    case = _case(CASES[name])
    return evaluate(_ready(ref_of(body)), case.snapshot, case.scope).outcome


RUNTIME = lua51.LuaRuntime(register_eval=False)
for library in ("io", "os", "math", "debug", "coroutine", "python"):  # Argo CD opens base, table and string only
    RUNTIME.globals()[library] = None


@functools.cache
def _script(text: str) -> Any:
    return RUNTIME.eval(f"function(object) obj = object {text} end")


def argo(rule: HealthRule, body: Body) -> Mapping[str, Any]:
    return dict(_script(lua(rule))(_table(body)))


def _table(value: Any) -> Any:
    if isinstance(value, Mapping):
        return RUNTIME.table_from({key: _table(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return RUNTIME.table_from([_table(item) for item in value])
    return float(value) if isinstance(value, int) and abs(value) >= 2**53 else value


_TOP_LEVEL = ("apiVersion", "kind", "metadata", "spec", "status", "value", "data")


@functools.cache
def _compiled(text: str) -> Any:
    variables = dict.fromkeys(_TOP_LEVEL, cel_engine.Type.DYN)
    return cel_engine.NewEnv(variables=variables).compile(text)


def flux(rule: HealthRule, body: Body) -> str:
    """As kustomize-controller does: the generation, then `failed`, then `current`; an error is no answer yet."""
    generation, observed = look_up(body, ("metadata", "generation")), look_up(body, ("status", "observedGeneration"))
    if isinstance(generation, int) and isinstance(observed, int) and generation != observed:
        return "InProgress"
    check = cel(rule)
    for key, status in (("failed", "Failed"), ("current", "Current")):
        holds = _holds(check[key], body) if key in check else False
        if holds is not False:
            return status if holds else "InProgress"
    return "InProgress"


def _holds(text: str, body: Body) -> bool | None:
    """None where the expression cannot be evaluated, as where it reads a field that is not there."""
    given = {key: value for key, value in body.items() if key in _TOP_LEVEL}
    try:
        answer = _compiled(text).eval(data=given).value()
    except Exception:
        return None
    return answer if isinstance(answer, bool) else None


@pytest.mark.parametrize(("name", "body", "rule"), OBJECTS)
def test_the_agents_judge_as_we_do(name: str, body: Body, rule: HealthRule) -> None:
    ours, case = _ours(name, body), (name, rule.kind)
    assert argo(rule, body)["status"] == ("Progressing" if case in ARGO_WAITS else HEALTH[ours]), lua(rule)
    assert flux(rule, body) == ("InProgress" if case in FLUX_WAITS else STATUS[ours]), cel(rule)


@pytest.mark.slow
def test_each_exception_is_a_wait_where_we_report_more() -> None:
    cases = {(name, rule.kind): _ours(name, body) for name, body, rule in map(_values, OBJECTS)}
    assert {cases[case] for case in FLUX_WAITS} == {ProbeResult.FAILED, ProbeResult.PASSED}


def _values(parameters: Any) -> Any:
    return parameters.values


@pytest.mark.parametrize("path", PATHS[::4], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_nothing_passes_earlier_whatever_the_objects_say(path: Path) -> None:
    """Values are taken away or replaced, by the seed that the case's name is: an error in a script is no answer, but
    `Healthy` or `Current` for what we do not pass would start the next phase."""
    chance = random.Random(path.stem)
    case = _case(path)
    for _ in range(8 if case.snapshot.bodies else 0):
        body: Any = copy.deepcopy(chance.choice(case.snapshot.bodies))
        _spoil(body, chance)
        rule = _rule_of(body)
        if rule is None:
            continue
        ours = evaluate(_ready(ref_of(body)), GivenObjects(bodies=(body,)), case.scope).outcome
        found = argo(rule, body)["status"], flux(rule, body)
        assert ours == "passed" or not {"Healthy", "Current"} & set(found), (body, ours, found)


def test_rules_are_made_for_the_kinds_that_the_agents_do_not_know() -> None:
    expected = {f"{rule.group}_{rule.kind}" for rule in health_rules(KINDS) if rule.is_custom}
    assert {key.removeprefix("resource.customizations.health.") for key in argo_health(KINDS)} == {
        *expected,
        "argoproj.io_Application",
    }
    assert {"upgrade.cattle.io_Plan", "management.harvesterhci.io_UpgradePlan"} <= expected
    assert not any(name.startswith(("batch", "apps", "_")) for name in expected)
    used = [("upgrade.cattle.io/v1", "Plan"), ("batch/v1", "Job"), ("v1", "ConfigMap"), ("example.org/v1", "Unknown")]
    assert [check["kind"] for check in flux_health(KINDS, used)] == ["Plan"]


def test_what_only_other_objects_prove_is_named() -> None:
    used = [("v1", "Service"), ("v1", "Event"), ("batch/v1", "Job"), ("upgrade.cattle.io/v1", "Plan")]
    assert judged_by_others(KINDS, used) == (("v1", "Service"),)


@pytest.mark.parametrize(
    ("status", "health"),
    [
        ({}, "Progressing"),
        ({"health": {"status": "Healthy"}}, "Healthy"),
        ({"health": {"status": "Degraded", "message": "x"}}, "Degraded"),
    ],
)
def test_an_application_has_its_own_health(status: Mapping[str, Any], health: str) -> None:
    assert dict(_script(APPLICATION)(_table({"status": status})))["status"] == health


def test_a_row_that_an_agent_cannot_follow_has_no_rule() -> None:
    raw = {"apiVersion": "example.org/v1", "kind": "Thing", "plural": "things", "namespaced": True}
    field = {"path": "status.version", "matches": "^v1"}
    (row,) = rows_from({"kinds": [{**raw, "ready": {"all": [{"field": field}]}}]})
    assert health_rule(row) is None
    assert judged_by_others(Kinds([row]), [("example.org/v1", "Thing")]) == (("example.org/v1", "Thing"),)


KSTATUS = {"passed": "Current", "waiting": "InProgress", "failed": "Failed"}
FLEET = {"passed": "Ready", "waiting": "NotReady", "failed": "Error"}


@pytest.mark.slow
@pytest.mark.parametrize("faults", [{}, {"fail": ("image-preload",)}], ids=["succeeds", "fails"])
def test_an_upgrade_plan_is_judged_right_by_everybody_at_every_moment(faults: Mapping[str, tuple[str, ...]]) -> None:
    """By our rules, and out of the box: kstatus needs no rule, Fleet ignores the one condition that is told to it."""
    (_, kind) = used = ("management.harvesterhci.io/v1beta1", "UpgradePlan")
    settings = fleet_health(KINDS, [used])
    assert settings.ignored_conditions == (("Available", "False"),)
    assert not settings.unjudged
    seen: list[tuple[str, ...]] = []
    for _, done in recording("single-node", **faults):
        plan = done.plan
        if plan is None or not (plan.get("status") or {}).get("conditions"):
            continue
        rule = _rule_of(plan)
        assert rule is not None
        assert rule.kind == kind
        ours = evaluate(_ready(ref_of(plan)), GivenObjects(bodies=(plan,)), _case(PATHS[0]).scope).outcome
        assert (argo(rule, plan)["status"], flux(rule, plan)) == (HEALTH[ours], STATUS[ours]), plan["status"]
        bare = kstatus(plan), fleet(plan, settings.ignored_conditions)
        # A plan that has failed is still at work for a moment: it returns what it has borrowed.
        assert bare in ((KSTATUS[ours], FLEET[ours]), *([("InProgress", "NotReady")] if ours == "failed" else []))
        seen.append((str(ours), *bare))
    assert seen[-1] == (("failed", "Failed", "Error") if faults else ("passed", "Current", "Ready"))
    assert seen[0] == ("waiting", "InProgress", "NotReady")


def test_fleet_is_told_what_it_cannot_judge() -> None:
    """Of each custom kind that Fleet is said to misjudge there is an object which it takes for ready too early."""
    early = {
        (body["apiVersion"], body["kind"])
        for name, body, rule in map(_values, OBJECTS)
        if rule.is_custom and fleet(body) == "Ready" and _ours(name, body) != "passed"
    }
    used = [("batch/v1", "Job"), ("v1", "Service"), ("apps/v1", "Deployment"), *early]
    settings = fleet_health(KINDS, used)
    assert settings.wait_for_jobs
    assert settings.unjudged == tuple(
        sorted({("v1", "Service"), *early} - {("management.harvesterhci.io/v1beta1", "UpgradePlan")})
    )
    assert {("upgrade.cattle.io/v1", "Plan"), ("harvesterhci.io/v1beta1", "VirtualMachineImage")} <= set(
        settings.unjudged
    )
    assert not fleet_health(KINDS, [("v1", "ConfigMap")]).wait_for_jobs
