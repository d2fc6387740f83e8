"""Where a plan waits too long, its Degraded condition begins with why, and not with what it waits for."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.rbac import READ_IN_TROUBLE
from support.rehearsals import permissions, rehearsal_of, template_set
from support.small_cluster import PRE_JOB, Small, being_prepared, rebooting, waiting_for_rancher, world
from test_retry import ended as over
from test_retry import import_fails, retry

from reconcile.loop.journal import Journal
from reconcile.loop.reconciler import Reconciler
from reconcile.report.replay import replay
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.cli.program import run
from renderer.model.ref import ref_of
from renderer.yaml_io import dump

pytestmark = pytest.mark.slow

BUDGET = "PodDisruptionBudget"


def later(found: Small, **span: float) -> None:
    found.scene.clock.advance(timedelta(**span).total_seconds())


def degraded(found: Small) -> str:
    condition = found.condition("Degraded")
    return str(condition["message"]) if condition["status"] == "True" else ""


def budget(name: str = "instance-manager-1") -> dict[str, Any]:
    """A budget of an instance manager that lets nothing go."""
    return {
        "apiVersion": "policy/v1",
        "kind": BUDGET,
        "metadata": {"name": name, "namespace": "longhorn-system"},
        "spec": {"selector": {"matchLabels": {"of": name}}, "minAvailable": 1},
        "status": {
            "disruptionsAllowed": 0,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "observedGeneration": 1,
            "conditions": [],
        },
    }


def guarded_pod(on: str, name: str = "instance-manager-1") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "longhorn-system", "labels": {"of": name}},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }


def drained() -> Small:
    """n1 is about to be drained, and a budget keeps a pod there."""
    found = waiting_for_rancher()
    found.create(budget())
    found.create(guarded_pod("n1"))
    found.patch(found.get("v1", "Node", "n1"), {"spec": {"unschedulable": True}})
    return found


def test_the_cause_comes_first_with_its_remedy_and_then_what_is_waited_for() -> None:
    found = drained()
    later(found, hours=3)
    found.rounds()
    text = degraded(found)
    assert text.startswith("PodDisruptionBudget longhorn-system/instance-manager-1 [n1] allows no disruption of ")
    assert text.index("; remedy: check that its engines are stopped") < text.index(
        "NodeUpgrade/PreDrain/n1: waiting for Rancher"
    )
    assert text.endswith("longer than 2h")


def test_a_node_is_named_once() -> None:
    found = rebooting()
    later(found, minutes=31)
    found.rounds()
    assert degraded(found).startswith("Node n1 has not rebooted; it runs Harvester v1.7.1, expected ")


def test_nobody_looks_around_again_until_something_else_waits_or_some_minutes_are_over() -> None:
    found = drained()
    later(found, hours=3)
    found.rounds()
    before, asked = degraded(found), len(found.scene.client.log.requests)
    for _ in range(3):
        later(found, seconds=20)
        found.rounds()
    assert len(found.scene.client.log.requests) == asked
    found.scene.cluster.client().delete(found.scene.deps.kinds.row("policy/v1", BUDGET).kind, ref_of(budget()))
    later(found, minutes=5)
    found.rounds()
    assert BUDGET in before
    assert BUDGET not in degraded(found)


def test_a_plan_that_goes_on_names_no_cause() -> None:
    found = rebooting()
    later(found, minutes=31)
    found.rounds()
    found.reboot("n1")
    found.rounds()
    assert degraded(found) == ""


def test_what_cannot_be_looked_at_leaves_what_is_waited_for() -> None:
    found = waiting_for_rancher()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, verb="list", kind=BUDGET))
    later(found, hours=3)
    found.rounds()
    assert "NodeUpgrade/PreDrain/n1: waiting for Rancher" in degraded(found)


def test_a_decision_is_replayed_with_the_causes_that_it_was_given(tmp_path: Path) -> None:
    found, file = drained(), tmp_path / "journal.jsonl"
    found.scene.reconciler = Reconciler(found.scene.deps, Journal(file, pytest.fail))
    later(found, hours=3)
    found.rounds()
    lines = list(replay(file, template_set()))
    assert [(line.differs, line.problem) for line in lines] == [((), None)] * len(lines)
    assert BUDGET in file.read_text(encoding="utf-8").splitlines()[-1]


def test_it_reads_no_more_than_it_may_and_uses_what_it_may_read() -> None:
    """Beside what an upgrade without trouble uses, which the audit log of a real one shows."""
    rbac = permissions.__wrapped__()
    for example, stalled in (("single-node", "image-import"), ("three-node", "pre-drain on charlie-1-tink-system")):
        scene = rehearsal_of(example, access=rbac, stall=[stalled])
        scene.cluster.client().create(scene.deps.kinds.row("v1", "Pod").kind, unmarked_virt_handler())
        scene.drive(scene.reconciler, lambda done: None).run(scene.name, timedelta(hours=6))
    assert [str(asked) for asked, review in rbac.asked.items() if not review.allowed] == []
    used = {f"{asked.namespace or 'cluster'}: {asked.group}/{asked.resource} {asked.verb}" for asked in rbac.asked}
    assert READ_IN_TROUBLE - used == frozenset()


def unmarked_virt_handler() -> dict[str, Any]:
    metadata = {"name": "v", "namespace": "harvester-system", "labels": {"kubevirt.io": "virt-handler"}}
    return {**guarded_pod("n1"), "metadata": metadata}


# -------------------------------------------------------------------------------------------------- a plan that fails

FAILURE = "node n1 upgrade failed: Job has reached the specified backoff limit"


def failing() -> Small:
    """The pre-drain Job of n1 has failed, and the plan's failure is not final: an undo step runs."""
    found = being_prepared()
    found.end_job(PRE_JOB, failed=True, message="Job has reached the specified backoff limit")
    found.rounds()
    assert found.condition("Progressing")["status"] == "True"
    return found


def ended(found: Small) -> str:
    found.end_plan("up-skip-manifest-remove")
    found.rounds()
    assert found.condition("Progressing")["status"] == "False"
    return degraded(found)


def test_the_cause_of_a_failure_comes_first_with_its_remedy() -> None:
    found = failing()
    text = ended(found)
    assert text.startswith(f"Job harvester-system/{PRE_JOB} [n1] failed: Job has reached the specified backoff limit")
    assert f"; remedy: read its log: kubectl logs -n harvester-system job/{PRE_JOB} --all-containers; {FAILURE}" in text
    assert found.condition("Progressing")["message"] == FAILURE
    assert found.condition("Stalled")["message"] == FAILURE


def test_a_manager_that_is_restarted_at_the_end_says_the_same() -> None:
    text = ended(failing())
    found = failing()
    found.restart()
    assert ended(found) == text


def test_causes_of_a_failure_are_looked_for_once_and_not_of_a_plan_that_is_over() -> None:
    found = failing()
    text = ended(found)
    found.restart()
    asked = len(found.scene.client.log.requests)
    for _ in range(3):
        later(found, minutes=10)
        found.rounds()
    assert len(found.scene.client.log.requests) == asked
    assert degraded(found) == text


def test_the_next_failure_of_a_plan_that_was_retried_has_its_own_cause() -> None:
    found = world()
    found.rounds()
    for number, name in enumerate(("up-iso", "up-iso-retry-1"), start=1):
        import_fails(found, name)
        over(found)
        assert degraded(found).startswith(f"VirtualMachineImage harvester-system/{name} is imported to 0%, failed 4 ")
        assert "; ISO image download failed: " in degraded(found)
        retry(found, str(number))
        assert degraded(found) == ""


def test_what_an_attempt_before_has_left_is_history_in_files_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = world()
    found.rounds()
    import_fails(found, "up-iso")
    over(found)
    retry(found)
    import_fails(found, "up-iso-retry-1")
    over(found)
    (tmp_path / "cluster.yaml").write_text("---\n".join(map(dump, found.scene.cluster.store.everything())))
    assert run(["upgradeplan", "diagnose", str(tmp_path), "-o", "json"]) == 1
    causes = json.loads(capsys.readouterr().out)["causes"]
    assert [cause["object"] for cause in causes if cause["id"] == "image-import"] == [
        "VirtualMachineImage harvester-system/up-iso-retry-1"
    ]
