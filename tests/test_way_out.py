"""No wait without an end that somebody hears of, no plan that cannot be got rid of, no step that cannot be retried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.rendered_plans import Json, overlaid
from support.small_cluster import METADATA, POST, PRE_JOB, Small, being_prepared, drained, waiting_for_rancher, world

from reconcile.loop.journal import Journal, JournalEntry, keep_nothing
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.rendering import Rendering
from reconcile.report.replay import replay
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.status.plan import SUCCEEDED
from renderer.assemble import TemplateSet, open_template_set
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import ref_of

pytestmark = pytest.mark.slow

HOUR = 3600
RETRY = "management.harvesterhci.io/retry"
TOOLKIT = "management.harvesterhci.io/upgrade-toolkit-image"


def annotate(found: Small, key: str, value: str) -> None:
    found.patch(found.plan, {"metadata": {"annotations": {key: value}}})


def is_there(found: Small) -> bool:
    return found.get(PLAN_API_VERSION, "UpgradePlan", found.name) is not None


def downloading() -> Small:
    found = world()
    found.rounds()
    assert found.phase == "ISODownloading"
    return found


def hold_the_image(found: Small) -> Any:
    [image] = found.all("VirtualMachineImage")
    found.patch(image, {"metadata": {"finalizers": ["example.com/keep"]}})
    return image


def test_a_plan_that_is_being_deleted_says_what_it_waits_for() -> None:
    found = downloading()
    image = hold_the_image(found)
    found.delete_plan()
    found.rounds()
    progressing = found.condition("Progressing")
    said = f"the plan is being deleted: {ref_of(image)} is being deleted, waiting for finalizer example.com/keep"
    assert (progressing["reason"], progressing["message"]) == ("Deleting", said)
    assert found.condition("Degraded")["status"] == "False"


def test_deletion_is_not_blocked_by_one_object() -> None:
    found = downloading()
    image = hold_the_image(found)
    found.delete_plan()
    found.rounds()
    found.scene.clock.advance(14 * 60)
    found.rounds()
    assert is_there(found)
    found.scene.clock.advance(2 * 60)
    found.rounds()
    assert not is_there(found)
    [told] = [text for reason, text in found.events() if reason == "CleanupGivenUp"]
    assert told == f"left behind: {ref_of(image)} is being deleted, waiting for finalizer example.com/keep"


def test_deletion_is_not_blocked_by_what_cannot_be_looked_at() -> None:
    found = downloading()
    found.read_directly()
    found.scene.client.faults.add(
        InjectedApiFault(trouble=ApiFault.FAILED, verb="list", kind="VirtualMachineImage", count=10_000)
    )
    found.delete_plan()
    found.rounds()
    assert is_there(found)
    found.scene.clock.advance(HOUR)
    found.rounds()
    assert not is_there(found)


def test_a_loan_keeps_the_plan_whatever_it_takes() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    found.read_directly()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, verb="get", kind="Cluster", count=10_000))
    found.delete_plan()
    found.rounds()
    for item in found.all("Plan"):
        found.end_plan(item["metadata"]["name"])
    found.rounds()
    found.scene.clock.advance(5 * HOUR)
    found.rounds()
    assert is_there(found)
    assert "cannot be read, so nothing is returned yet" in found.condition("Degraded")["message"]


def test_a_plan_that_cannot_be_rendered_can_be_deleted() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    annotate(found, TOOLKIT, "no image/at all")
    found.rounds()
    assert found.condition("Degraded")["reason"] == "ReconcileError"
    found.delete_plan()
    found.rounds()
    for item in found.all("Plan"):
        found.end_plan(item["metadata"]["name"])
    found.rounds()
    assert not is_there(found)
    assert found.all("VirtualMachineImage") == found.all("Deployment") == found.all("Plan") == []
    setting = found.get("longhorn.io/v1beta2", "Setting", "replica-replenishment-wait-interval", "longhorn-system")
    assert setting["value"] == "600"


def test_a_cluster_of_witnesses_alone_does_not_keep_its_plan() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    for name in ("n1", "n2"):
        labels = {"node-role.harvesterhci.io/witness": "true"}
        found.patch(found.get("v1", "Node", name), {"metadata": {"labels": labels}})
    found.delete_plan()
    found.rounds()
    for item in found.all("Plan"):
        found.end_plan(item["metadata"]["name"])
    found.rounds()
    assert not is_there(found)


def test_what_nobody_knows_how_to_undo_is_told() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    found.set_status(releaseMetadata=None)
    found.delete_plan()
    found.rounds()
    assert not is_there(found)
    [told] = [text for reason, text in found.events() if reason == "UndoGivenUp"]
    assert told == "NodeUpgrade/UnskipManifests was not undone: the plan can no longer be rendered"
    assert found.all("Plan") == []


def test_a_job_that_is_gone_is_not_made_again_by_itself_but_when_it_is_asked_for() -> None:
    found = being_prepared()
    [job] = found.all("Job")
    kind = found.scene.deps.kinds.row("batch/v1", "Job").kind
    found.scene.cluster.client().delete(kind, ref_of(job))
    found.rounds()
    assert found.jobs() == []
    annotate(found, RETRY, "1")
    found.rounds()
    assert found.jobs() == [f"{PRE_JOB}-retry-1"]
    told = f"NodeUpgrade/PreDrain/n1: Job harvester-system/{PRE_JOB} is gone, trying again as {PRE_JOB}-retry-1"
    assert told in [text for reason, text in found.events() if reason == "StepRetried"]
    found.end_job(f"{PRE_JOB}-retry-1")
    found.ask("n1", POST, "second")
    found.rounds()
    assert found.state("n1") == "PostDraining"


def test_asking_for_another_attempt_leaves_what_runs_alone() -> None:
    found = being_prepared()
    annotate(found, RETRY, "1")
    found.rounds()
    assert found.jobs() == [PRE_JOB]
    found.end_job(PRE_JOB)
    found.rounds()
    assert found.state("n1") == "PreDrained"


def test_what_an_earlier_attempt_has_made_goes_as_well() -> None:
    found = drained()
    annotate(found, RETRY, "1")
    found.ask("n1", POST, "second")
    found.rounds()
    assert found.jobs() == ["up-node-upgrade-post-drain-n1-retry-1", PRE_JOB]
    found.delete_plan()
    for _ in range(3):
        found.rounds()
        for item in found.all("Plan"):
            found.end_plan(item["metadata"]["name"])
    assert not is_there(found)
    assert found.jobs() == []


def test_a_failure_says_why() -> None:
    found = downloading()
    [image] = found.all("VirtualMachineImage")
    conditions = [
        {"type": "RetryLimitExceeded", "status": "True", "message": "retry limit exceeded: 3"},
        {"type": "Imported", "status": "False", "reason": "ImportFailed", "message": "checksum mismatch"},
    ]
    found.patch(image, {"status": {"conditions": conditions, "failed": 4}})
    found.rounds()
    assert found.condition("Progressing")["message"] == "ISO image download failed"  # the API's words
    for kind in ("Degraded", "Stalled"):
        said = found.condition(kind)["message"]
        assert f"ISO image download failed: {ref_of(image)}: condition Imported is False" in said
        assert "checksum mismatch" in said


def test_a_failure_says_on_which_nodes() -> None:
    names = [f"n{number}" for number in range(1, 8)]
    found = world(*names)
    found.set_status(
        currentPhase="ImagePreloading",
        previousVersion="v1.7.1",
        releaseMetadata=METADATA,
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
    )
    found.rounds()
    for name in names:
        labels = {"upgrade-plan": found.name, "upgrade-component": "image-preload"}
        found.create(job_for(name, {f"management.harvesterhci.io/{key}": value for key, value in labels.items()}))
        found.end_job(f"preload-{name}", failed=True, message="no space left on device")
    found.end_plan("up-image-preload", failed=True)
    found.rounds()
    assert found.condition("Progressing")["message"] == "image-preload plan job(s) failed"
    said = found.condition("Degraded")["message"]
    assert "; image-preload plan job(s) failed: Plan cattle-system/up-image-preload: " in said
    assert "; n1: no space left on device; n2: " in said
    assert said.endswith("; and 2 more nodes")


def job_for(node: str, labels: dict[str, str]) -> Any:
    container = {"name": "upgrade", "image": "example.com/image"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"preload-{node}",
            "namespace": "cattle-system",
            "labels": {**labels, "upgrade.cattle.io/node": node},
        },
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


# ---------------------------------------------------------------------------- objects that are read by their names only

SITE = """
apiVersion: templates.upgradeplan/v1
kind: Phase
name: Site
description: Prepares the site.
status: {active: SitePreparing, completed: SitePrepared}
deletion: free
steps:
- {name: Tokens, owned: [token.yaml.j2]}
"""
TOKEN = """
{% for namespace in ["cattle-system", "fleet-local"] %}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ name("token") | quote }}, namespace: {{ namespace | quote }}}
type: Opaque
stringData: {token: a-secret-of-the-site}
{% endfor %}
"""


def with_secrets(keep: Callable[[JournalEntry], None] = keep_nothing) -> tuple[Small, TemplateSet]:
    """A plan of which a phase of the site has made Secrets."""
    found = world("n1")
    templates = open_template_set(overlaid({"05-site/phase.yaml": SITE, "05-site/token.yaml.j2": TOKEN}))
    rendering = Rendering(templates.catalog, templates.templates, templates.spec_fields)
    found.scene.deps = replace(found.scene.deps, rendering=rendering)
    found.scene.reconciler = Reconciler(found.scene.deps, keep)
    found.until(lambda _: found.phase == "SitePrepared")
    assert [body["metadata"]["namespace"] for body in tokens(found)] == ["cattle-system", "fleet-local"]
    return found, templates


def tokens(found: Small) -> list[Json]:
    return [body for body in found.all("Secret") if body["metadata"]["name"] == "up-token"]


def test_secrets_that_a_phase_has_made_go_with_the_plan(tmp_path: Path) -> None:
    """No list has them: each is read by its name. What is in the journal is enough to decide the same again."""
    path = tmp_path / "journal"
    found, templates = with_secrets(Journal(path, lambda text: None))
    found.set_status(currentPhase="CleanedUp")
    assert found.rounds().over
    assert (found.phase, tokens(found)) == (SUCCEEDED, [])
    assert [line.problem or line.differs for line in replay(path, templates) if line.problem or line.differs] == []
    assert "a-secret-of-the-site" not in path.read_text(encoding="utf-8")


def test_a_secret_of_somebody_else_under_the_same_name_stays() -> None:
    found, _ = with_secrets()
    for body in tokens(found):
        found.scene.cluster.client().delete(found.scene.deps.kinds.row("v1", "Secret").kind, ref_of(body))
        metadata = {key: body["metadata"][key] for key in ("name", "namespace")}
        found.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    found.set_status(currentPhase="CleanedUp")
    assert found.rounds().over
    assert len(tokens(found)) == 2
