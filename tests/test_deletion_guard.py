"""The admission policy that guards plans: on a real API server, and in step with what each phase declares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest
from bench.live import PLANS
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from support.installed import objects_of, text_of
from support.rehearsals import template_set

GUARD = "deletion-guard"
ALLOWED = {"management.harvesterhci.io/allow-deletion": "true"}
PHASES = [declared.phase for declared in template_set().catalog.phases]


def test_the_policy_says_what_the_phases_declare() -> None:
    policy, _ = objects_of(GUARD)
    found = {item["name"]: item["expression"] for item in policy["spec"]["variables"]}
    for kind, more in (("forbidden", []), ("free", [""])):
        declared = [value for phase in PHASES if phase.deletion == kind for value in (phase.active, phase.completed)]
        assert ast.literal_eval(found[kind]) == [*more, *declared]


@pytest.fixture(scope="module")
def guarded(clean_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """It takes a moment until the server follows a new policy."""
    clean_control_plane.kubectl("apply", "-f", "-", stdin=text_of(GUARD))
    stands(clean_control_plane, "canary", "NodeUpgrading", {})
    try:
        until("the policy is followed", lambda: "half-way" in refusal(clean_control_plane, "canary"))
        yield clean_control_plane
    finally:
        clean_control_plane.kubectl("delete", "-f", "-", stdin=text_of(GUARD))
        until("the policy is gone", lambda: not refusal(clean_control_plane, "canary"))


def stands(plane: ControlPlane, name: str, phase: str, annotations: dict[str, str], progressing: str = "True") -> None:
    body = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"version": "v1.8.0"},
    }
    condition: dict[str, Any] = {"type": "Progressing", "status": progressing, "reason": "X", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    plane.api.create(PLANS, body)
    plane.api.patch(f"{PLANS}/{name}/status", {"status": {"currentPhase": phase, "conditions": [condition]}})


def refusal(plane: ControlPlane, name: str) -> str:
    """What the server says to a trial; empty where it would delete the plan."""
    try:
        plane.api.send("DELETE", f"{PLANS}/{name}?dryRun=All", None)
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("annotations", [{}, ALLOWED], ids=["bare", "allowed"])
@pytest.mark.parametrize("phase", PHASES, ids=[phase.name for phase in PHASES])
def test_a_plan_on_its_way(guarded: ControlPlane, phase: Any, annotations: dict[str, str]) -> None:
    """In every phase."""
    for number, value in enumerate((phase.active, phase.completed)):
        name = f"{phase.name.lower()}-{number}-{len(annotations)}"
        stands(guarded, name, value, annotations)
        told = refusal(guarded, name)
        if phase.deletion == "forbidden":
            assert f"is in {value}, which cannot be taken back half-way" in told
        elif phase.deletion == "careful" and not annotations:
            assert f"`upgradeplan abort {name}` takes it back" in told
        else:
            assert told == ""


def test_a_plan_that_has_not_begun_or_has_ended_may_go(guarded: ControlPlane) -> None:
    guarded.api.create(PLANS, {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "new"},
        "spec": {"version": "v1.8.0"},
    })  # fmt: skip
    assert refusal(guarded, "new") == ""
    for phase in ("Succeeded", "Failed"):
        stands(guarded, phase.lower(), phase, {}, progressing="False")
        assert refusal(guarded, phase.lower()) == ""
