"""Whose the objects are that stand in the way of an installation, and what can be done, on the embedded cluster."""

from __future__ import annotations

from typing import Any

import pytest
from support.installed import objects_of
from support.rehearsals import START

from reconcile.install.rivals import problems_of, rivals_of, ways_out
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.model.ref import Body

NAME = "harvester-upgrade-manager"
OBJECTS = tuple(objects_of("deployment", "metrics"))
ADDON = {
    "apiVersion": "harvesterhci.io/v1beta1",
    "kind": "Addon",
    "metadata": {"name": NAME, "namespace": "harvester-system"},
    "spec": {"enabled": True, "repo": "r", "chart": NAME, "version": "1.0.0", "valuesContent": ""},
}
ELSEWHERE = [
    {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration", "metadata": {"name": "x"}}
    for kind in ("Validating", "Mutating")
]
"""Webhooks that have to do with no plan."""
IN_PLACE = ["To install in its place; the definition of UpgradePlan and all plans stay:"]


def by_helm(body: Body, **labels: str) -> Body:
    """As a release has made it; `labels` are then its only ones."""
    notes = {"meta.helm.sh/release-name": NAME, "meta.helm.sh/release-namespace": "harvester-system"}
    metadata: dict[str, Any] = {**body["metadata"], "annotations": notes}
    return {**body, "metadata": {**metadata, **({"labels": labels} if labels else {})}}


def said(*objects: Body) -> list[str]:
    cluster = EmbeddedCluster(SimulatedClock(START))
    cluster.seed([*objects, *ELSEWHERE])
    rivals = rivals_of(cluster.client(), OBJECTS)
    assert f"belong to {'Addon' if ADDON in objects else 'Helm release'} harvester-system/{NAME}" in "".join(
        problem.message for problem in problems_of(rivals)
    )
    return [*ways_out(rivals, (), "upgradeplan install")]


@pytest.mark.parametrize(
    ("more", "change", "removal"),
    [
        (
            (),
            f"helm upgrade -n harvester-system {NAME} CHART --reuse-values",
            f"helm uninstall -n harvester-system {NAME}",
        ),
        (
            (ADDON,),
            f"kubectl -n harvester-system edit addons.harvesterhci.io {NAME}",
            f"kubectl -n harvester-system patch addons.harvesterhci.io {NAME} --type merge -p "
            """'{"spec": {"enabled": false}}'""",
        ),
    ],
    ids=["release", "addon"],
)
def test_a_release_of_this_programs_own_chart_is_no_other_manager(
    more: tuple[Body, ...], change: str, removal: str
) -> None:
    assert said(*map(by_helm, OBJECTS), *more) == [
        "That is this program, installed by its chart. To change that installation:",
        f"  {change}",
        *IN_PLACE,
        f"  {removal}",
        "  upgradeplan install",
    ]


def test_one_object_of_another_program_makes_it_another_manager() -> None:
    theirs = by_helm(OBJECTS[0], **{"app.kubernetes.io/name": NAME})
    lines = said(theirs, *map(by_helm, OBJECTS[1:]))
    assert lines[0].startswith("To install beside the other manager, stop it")
    assert "  upgradeplan install --name upgradeplan" in lines
