"""A change of a plan that an agent delivers is set back: which agent it is, and what to commit."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from support.rendered_plans import plan

from reconcile.cli.change_to_commit import change_lines, delivery_model, removal_lines
from renderer.delivery.agent_marks import agents_of
from renderer.delivery.delivery_rules import load_rules
from renderer.files.templates import read_templates
from renderer.validation import document_problems

MARKS = load_rules(read_templates(), document_problems).marks
TRACKING = "argocd.argoproj.io/tracking-id"
PAUSED = {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n2"]}}}


def marked(**metadata: Any) -> dict[str, Any]:
    body = dict(plan())
    return {**body, "metadata": {**body["metadata"], **metadata}}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, []),
        ({"labels": {"app": "x"}, "annotations": {"a": "b"}, "managedFields": [{"manager": "kubectl"}]}, []),
        (
            {"annotations": {"argocd.argoproj.io/tracking-id": "a:b"}},
            ["Argo CD: annotation argocd.argoproj.io/tracking-id"],
        ),
        ({"labels": {"argocd.argoproj.io/instance": "a"}}, ["Argo CD: label argocd.argoproj.io/instance"]),
        ({"labels": {"app.kubernetes.io/instance": "a"}}, ["Argo CD: label app.kubernetes.io/instance"]),
        ({"managedFields": [{"manager": "argocd-controller"}]}, ["Argo CD: field manager argocd-controller"]),
        (
            {"labels": {"kustomize.toolkit.fluxcd.io/name": "a", "kustomize.toolkit.fluxcd.io/namespace": "b"}},
            ["Flux: label kustomize.toolkit.fluxcd.io/name"],
        ),
        ({"managedFields": [{"manager": "kustomize-controller"}]}, ["Flux: field manager kustomize-controller"]),
        ({"annotations": {"objectset.rio.cattle.io/id": "a"}}, ["Fleet: annotation objectset.rio.cattle.io/id"]),
        (
            {"annotations": {"meta.helm.sh/release-name": "a"}, "labels": {"app.kubernetes.io/instance": "a"}},
            ["Helm: annotation meta.helm.sh/release-name"],
        ),
        (
            {
                "labels": {"kustomize.toolkit.fluxcd.io/name": "a"},
                "annotations": {"argocd.argoproj.io/tracking-id": "b"},
            },
            ["Argo CD: annotation argocd.argoproj.io/tracking-id", "Flux: label kustomize.toolkit.fluxcd.io/name"],
        ),
        ({"annotations": None, "labels": None, "managedFields": None}, []),
    ],
)
def test_an_agent_is_known_by_its_marks(metadata: dict[str, Any], expected: list[str]) -> None:
    assert [f"{item.agent}: {item.mark}" for item in agents_of(marked(**metadata), MARKS)] == expected


def test_nothing_is_said_of_a_plan_that_nobody_delivers() -> None:
    assert [*change_lines(MARKS, plan(), PAUSED), *removal_lines(MARKS, plan())] == []


def test_an_answer_to_machines_has_the_same() -> None:
    assert delivery_model(MARKS, plan(), PAUSED) == {"delivered": []}
    found = delivery_model(MARKS, marked(annotations={TRACKING: "a"}), PAUSED)
    assert found["delivered"] == [{"agent": "Argo CD", "mark": f"annotation {TRACKING}"}]
    assert found["commit"]["spec"] == PAUSED["spec"]
    assert found["commit"]["metadata"] == {"name": plan()["metadata"]["name"]}


def test_the_change_to_commit_is_a_part_of_the_plan() -> None:
    first, *lines = change_lines(MARKS, marked(labels={"kustomize.toolkit.fluxcd.io/name": "a"}), PAUSED)
    assert first == (
        "warning: Flux (label kustomize.toolkit.fluxcd.io/name) delivers up: "
        "Git sets this back unless it is committed as well:"
    )
    assert yaml.safe_load("\n".join(lines)) == {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "up"},
        **PAUSED,
    }


def test_an_annotation_stands_beside_the_name() -> None:
    change = {"metadata": {"annotations": {"management.harvesterhci.io/retry": "1"}}}
    lines = [*change_lines(MARKS, marked(annotations={"argocd.argoproj.io/tracking-id": "a"}), change)]
    metadata = {"name": "up", "annotations": {"management.harvesterhci.io/retry": "1"}}
    assert yaml.safe_load("\n".join(lines[1:]))["metadata"] == metadata


def test_a_plan_that_is_aborted_has_to_leave_git_first() -> None:
    first, second = removal_lines(MARKS, marked(managedFields=[{"manager": "fleetagent"}]))
    assert first == (
        "warning: Fleet (field manager fleetagent) delivers up: "
        "Git creates the plan again, and with it the upgrade; first commit this:"
    )
    assert second == "  remove the file of UpgradePlan up, and its entry in kustomization.yaml"
