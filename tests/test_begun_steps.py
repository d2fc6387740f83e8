"""A step that has begun lives by its record: what is watched, given back and cleaned up does not change with the spec,
the templates or the annotations, nor with what can be read today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.rehearsals import template_set
from support.rendered_plans import overlaid
from support.small_cluster import (
    METADATA,
    PRE_HOOK,
    PRE_JOB,
    PREFIX,
    STRATEGY,
    Small,
    being_prepared,
    upgrading,
    waiting_for_rancher,
    world,
)

from reconcile.cluster.errors import BackendFailed
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.rendering import Rendering
from reconcile.status.plan import FAILED, SUCCEEDED
from renderer.assemble import open_template_set
from renderer.catalog.template_tree import TemplateTree
from renderer.model.phase import Fetch
from renderer.model.ref import Ref, ref_of
from renderer.templating import Templates

pytestmark = pytest.mark.slow

RETRY = f"{PREFIX}retry"


def preloading() -> Small:
    found = world()
    found.set_status(
        currentPhase="ImagePreloading",
        previousVersion="v1.7.1",
        releaseMetadata=METADATA,
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
    )
    found.rounds()
    assert names(found, "Plan") == ["up-image-preload"]
    return found


def names(found: Small, kind: str) -> list[str]:
    return sorted(body["metadata"]["name"] for body in found.all(kind))


def annotate(found: Small, key: str, value: str) -> None:
    found.patch(found.plan, {"metadata": {"annotations": {key: value}}})


def concurrency(found: Small, number: int) -> None:
    found.patch(found.plan, {"spec": {"imagePreloadOption": {"concurrency": number}}})


def waits(found: Small) -> list[str]:
    decision = found.rounds().decision
    assert decision is not None
    return [wait.text for wait in decision.waits]


def restart_without_repository(found: Small) -> None:
    """A new process, and a repository that answers 503 from now on."""

    def read(fetch: Fetch) -> bytes:
        service = Ref(api_version="v1", kind="Service", namespace=fetch.namespace, name=fetch.service)
        raise BackendFailed(service, fetch.path, 503, "503 Service Unavailable")

    shop = template_set()
    rendering = Rendering(shop.catalog, shop.templates, shop.spec_fields)
    found.scene.deps = replace(found.scene.deps, rendering=rendering, read=read)
    found.restart()


def cleaning_up() -> Small:
    found = upgrading("n1", "n2", states={"n1": "PostDrained", "n2": "PostDrained"})
    found.set_status(currentPhase="CleaningUp")
    lists = {
        "/harvester-iso/bundle/harvester/images-lists-archive/v1.7.1/image_list_all.txt": b"rancher/old:v1\n",
        "/harvester-iso/bundle/harvester/images-lists-archive/current/image_list_all.txt": b"rancher/new:v1\n",
    }
    found.scene.deps = replace(found.scene.deps, read=lambda fetch: lists[fetch.path])
    found.restart()
    found.rounds()
    assert names(found, "Plan") == ["up-image-cleanup"]
    return found


# ------------------------------------------------------------------------------------------------- what is watched


@pytest.mark.parametrize(("failed", "phase"), [(False, "NodeUpgrading"), (True, FAILED)])
def test_preloading_that_has_begun_is_not_skipped(failed: bool, phase: str) -> None:
    found = preloading()
    concurrency(found, -1)
    [wait] = waits(found)
    assert wait.startswith("Plan cattle-system/up-image-preload: ")
    assert found.phase == "ImagePreloading"
    found.end_plan("up-image-preload", failed=failed)
    found.rounds()
    for name in names(found, "Job"):
        found.end_job(name)
    for _ in range(3):
        found.rounds()
        for name in names(found, "Plan") if not failed else []:
            found.end_plan(name)
    assert found.phase == phase


SITE = """\
name: Site
description: Waits for the site.
status: {{active: SiteWaiting, completed: SiteWaited}}
deletion: free
{phase}
steps:
- name: Do
{step}
"""
SKIPPED = "skipWhen: [{expr: (plan.spec.imagePreloadOption.concurrency or 0) < 0, reason: it is asked for}]"
GATE = """\
  gates:
  - probe:
      object: {apiVersion: v1, kind: ConfigMap, namespace: harvester-system, name: site}
      all: [{builtin: true}]"""
BORROWED = "  borrowed: [{file: setting.yaml.j2, return: never}]"
SETTING = """\
apiVersion: harvesterhci.io/v1beta1
kind: Setting
metadata: {name: site}
value: "1"
"""


@pytest.mark.parametrize(
    ("phase", "step"),
    [(SKIPPED, GATE), ("", f"  {SKIPPED}\n{BORROWED}"), ("", f"  {SKIPPED}\n{GATE}")],
    ids=["phase", "step that has made nothing yet", "step that waits"],
)
def test_what_has_begun_is_not_skipped_when_its_condition_comes_true(phase: str, step: str) -> None:
    found = world()
    files = {"15-site/phase.yaml": SITE.format(phase=phase, step=step)}
    found.use_templates(overlaid(files | ({"15-site/setting.yaml.j2": SETTING} if "borrowed" in step else {})))
    found.set_status(currentPhase="Initialized", previousVersion="v1.7.1")
    found.rounds()
    before = waits(found)
    assert (found.phase, len(before)) == ("SiteWaiting", 1)
    concurrency(found, -1)
    assert waits(found) == before
    assert found.phase == "SiteWaiting"


def test_what_was_begun_as_approved_is_watched_though_it_would_be_another_now() -> None:
    found = preloading()
    found.approve()
    concurrency(found, 2)
    refusal, wait = waits(found)
    assert refusal.startswith("phase ImagePreload differs from what was approved")
    assert wait.startswith("Plan cattle-system/up-image-preload: ")
    found.end_plan("up-image-preload", failed=True)
    found.rounds()
    assert found.phase == FAILED


def test_nothing_begins_that_is_not_as_approved() -> None:
    found = preloading()
    found.approve()
    kind = found.scene.deps.kinds.row("upgrade.cattle.io/v1", "Plan").kind
    [plan] = found.all("Plan")
    found.scene.cluster.client().delete(kind, ref_of(plan))
    found.set_status(steps=None)
    concurrency(found, 2)
    assert [text for text in waits(found) if "approved" in text]
    assert names(found, "Plan") == []


def test_the_spec_of_an_object_that_was_made_is_fixed() -> None:
    """Even where the loop was killed before it could record that its write was made."""
    found = preloading()
    records = found.status["steps"]
    started = {**records["ImagePreload"]["records"]["Preload"], "state": "Started"}
    concurrency(found, 1)
    patched = {"ImagePreload": {"records": {**records["ImagePreload"]["records"], "Preload": started}}}
    found.set_status(steps=patched)
    found.restart()
    found.rounds()
    [plan] = found.all("Plan")
    assert plan["spec"]["concurrency"] == 3


def test_a_cleanup_that_has_begun_is_watched_without_the_repository() -> None:
    found = cleaning_up()
    restart_without_repository(found)
    [wait] = waits(found)
    assert wait.startswith("Plan cattle-system/up-image-cleanup: ")
    found.end_plan("up-image-cleanup")
    found.to_its_end()
    assert found.phase == SUCCEEDED
    assert names(found, "Plan") == []


def test_status_waits_for_what_the_loop_waits_for() -> None:
    found = cleaning_up()
    said = waits(found)
    restart_without_repository(found)
    looked = Reconciler(found.scene.deps).look(found.name)
    assert looked.decision is not None
    assert [wait.text for wait in looked.decision.waits] == said


# --------------------------------------------------------------------------------------------- what is given back


def test_what_is_on_loan_stays_while_its_step_cannot_be_rendered() -> None:
    """The drain hooks keep Rancher from going on without us."""
    found = waiting_for_rancher()
    found.set_status(releaseMetadata=None)
    found.restart()
    found.rounds()
    local = found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
    assert local["spec"]["rkeConfig"]["upgradeStrategy"] != STRATEGY


# ------------------------------------------------------------------------------------------------ what is cleaned up


def labels(component: str, **more: str) -> Mapping[str, str]:
    both = {"upgrade-plan": "up", "upgrade-component": component, **more}
    return {f"{PREFIX}{key}": value for key, value in both.items()}


def leftover(found: Small, kind: str, name: str, component: str, **more: str) -> None:
    """An object of the plan's that no template renders by this name."""
    made = next(body for body in found.all(kind))
    owner = {"apiVersion": found.plan["apiVersion"], "kind": "UpgradePlan", "name": "up", "controller": True}
    metadata = {
        "name": name,
        "namespace": made["metadata"]["namespace"],
        "labels": labels(component, **more),
        "ownerReferences": [{**owner, "uid": found.plan["metadata"]["uid"], "blockOwnerDeletion": True}],
    }
    found.create({key: made[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata})


def succeed(found: Small) -> None:
    """The plan stays, so that nothing goes just because its owner has gone."""
    found.set_status(currentPhase="CleanedUp")
    found.to_its_end()
    assert found.phase == SUCCEEDED


def test_the_first_objects_of_a_plan_that_was_taken_over_go_as_well() -> None:
    found = preloading()
    [made] = names(found, "Plan")
    mark = f"plan.upgrade.cattle.io/{made}"
    found.patch(found.get("v1", "Node", "n1"), {"metadata": {"labels": {mark: "hash"}}})
    found.set_status(steps=None)  # as the other manager leaves it
    annotate(found, RETRY, "1")
    found.restart()
    succeed(found)
    assert names(found, "Plan") == []
    assert mark not in found.get("v1", "Node", "n1")["metadata"]["labels"]


def test_the_first_objects_of_a_step_that_was_tried_again_go_as_well() -> None:
    found = preloading()
    [first] = found.all("Plan")
    kind = found.scene.deps.kinds.row("upgrade.cattle.io/v1", "Plan").kind
    found.scene.cluster.client().delete(kind, ref_of(first))
    annotate(found, RETRY, "1")
    found.rounds()
    assert names(found, "Plan") == ["up-image-preload-retry-1"]
    annotate(found, RETRY, "2")
    for name in ("up-image-preload", "up-image-preload-retry-1"):
        mark = {f"plan.upgrade.cattle.io/{name}": "hash"}
        found.patch(found.get("v1", "Node", "n1"), {"metadata": {"labels": mark}})
    succeed(found)
    assert names(found, "Plan") == []
    labels = found.get("v1", "Node", "n1")["metadata"]["labels"]
    assert [key for key in labels if key.startswith("plan.upgrade.cattle.io/")] == []


def test_what_has_the_labels_of_the_plan_goes_by_whatever_name() -> None:
    found = preloading()
    leftover(found, "Plan", "made-by-an-earlier-attempt", "image-preload")
    leftover(found, "Plan", "of-a-template-that-is-gone", "formerly")
    succeed(found)
    assert names(found, "Plan") == []


def test_what_somebody_else_has_made_of_ours_is_left_to_them() -> None:
    """The system-upgrade-controller copies a Plan's labels to its Jobs."""
    found = preloading()
    uid = found.get("v1", "Node", "n1")["metadata"]["uid"]
    controller = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    body = job("of-somebody-else", "pre-drain")
    body["metadata"]["ownerReferences"] = [controller]
    found.create(body)
    succeed(found)
    assert names(found, "Job") == ["of-somebody-else"]


def test_what_is_kept_for_good_stays_by_whatever_name() -> None:
    """Jobs that start virtual machines again go with the plan object, and not before."""
    found = upgrading("n1", "n2", states={"n1": "PostDrained", "n2": "PostDrained"})
    lists = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "up-restore-vm", "namespace": "harvester-system"},
    }
    found.create({**lists, "data": {"n1": "default/vm"}})
    found.patch(found.plan, {"spec": {"restoreVM": True}})
    found.create(job("by-another-name", "restore-vm"))
    found.create(job("a-drain-by-another-name", "pre-drain"))
    succeed(found)
    assert names(found, "Job") == ["by-another-name"]


def job(name: str, job_type: str) -> Any:
    container = {"name": "apply", "image": "example.com/image"}
    marks = labels("node-upgrade", **{"job-type": job_type, "node": "n1"})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "harvester-system", "labels": marks},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


# ------------------------------------------------------------------------------------- what cannot be rendered any more

NO_IMAGE = "no image/at all"


class CountingTemplates(Templates):
    """Knows which templates were rendered."""

    def __init__(self, tree: TemplateTree) -> None:
        super().__init__(tree)
        self.rendered: list[str] = []

    def render_text(self, path: str, context: Mapping[str, Any]) -> str:
        self.rendered.append(path)
        return super().render_text(path, context)


def break_templates(found: Small, **files: str) -> CountingTemplates:
    """As a loop starts whose overlay has these files."""
    tree = overlaid(files)
    parts, templates = open_template_set(tree), CountingTemplates(tree)
    rendering = Rendering(parts.catalog, templates, parts.spec_fields)
    found.scene.deps = replace(found.scene.deps, rendering=rendering)
    found.restart()
    return templates


def break_template(found: Small, name: str) -> None:
    break_templates(found, **{name: "{{ nothing.of.the.kind }}"})


SLOW = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


def test_a_template_that_does_too_much_is_tried_once_before_the_plan_has_begun() -> None:
    found, slow = world(), "20-iso-download/virtual-machine-image.yaml.j2"
    templates = break_templates(found, **{slow: SLOW})
    for _ in range(4):
        assert "the limit of a template" in found.round().problems[0]
    assert templates.rendered.count(slow) == 1
    found.patch(found.plan, {"spec": {"force": True}})
    found.round()
    assert templates.rendered.count(slow) == 2


def test_a_template_that_does_too_much_is_tried_again_where_it_would_see_something_else() -> None:
    """Of a plan that has begun: once for each node, and again for the one of which something was captured."""
    found, slow = being_prepared(), "70-node-upgrade/post-drain-job.yaml.j2"
    templates = break_templates(found, **{slow: SLOW})
    found.rounds()
    assert templates.rendered.count(slow) == 2
    found.set_status(steps={"NodeUpgrade": {"records": {"PreDrain/n1": {"captured": {"any": "value"}}}}})
    assert "the limit of a template" in found.rounds().problems[0]
    assert templates.rendered.count(slow) == 3


def test_what_cannot_be_rendered_is_said_with_its_place_and_remedy() -> None:
    """In the condition, the event, the wait and the round's own problems."""
    found, name = being_prepared(), "70-node-upgrade/post-drain-job.yaml.j2"
    break_templates(found, **{name: "kind: Job\n# {{ nothing.of.the.kind }}"})
    done = found.rounds()
    assert done.decision
    told = [found.condition("Degraded")["message"], done.problems[0], done.decision.waits[0].text]
    told.append(next(text for reason, text in found.events() if reason == "ReconcileError"))
    for text in told:
        assert f"overlay/{name}:2: 'nothing'" in text
        assert "(remedy: " in text
    assert len(told[0]) < 2000


BREAKS: Mapping[str, Callable[[Small], None]] = {
    "an edit": lambda found: annotate(found, f"{PREFIX}upgrade-toolkit-image", NO_IMAGE),
    "a template of a later step": lambda found: break_template(found, "70-node-upgrade/post-drain-job.yaml.j2"),
    "a template of its own": lambda found: break_template(found, "70-node-upgrade/pre-drain-job.yaml.j2"),
}


@pytest.mark.parametrize("how", BREAKS)
def test_what_has_begun_is_watched_though_something_cannot_be_rendered(how: str) -> None:
    found = being_prepared()
    BREAKS[how](found)
    done = found.rounds()
    assert done.unrendered
    degraded = found.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ReconcileError")
    found.end_job(PRE_JOB)
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", PRE_HOOK)) == ("PreDrained", None)
    assert [reason for reason, _ in found.events()].count("ReconcileError") == 1


@pytest.mark.parametrize("how", BREAKS)
def test_a_job_that_fails_ends_the_plan_though_something_cannot_be_rendered(how: str) -> None:
    found = being_prepared()
    BREAKS[how](found)
    found.end_job(PRE_JOB, failed=True, message="no room")
    for _ in range(3):
        found.rounds()
    assert found.phase == FAILED
    assert "no room" in found.condition("Progressing")["message"]


def test_the_plan_goes_on_once_everything_can_be_rendered_again() -> None:
    found = being_prepared()
    BREAKS["an edit"](found)
    found.end_job(PRE_JOB)
    found.rounds()
    annotate(found, f"{PREFIX}upgrade-toolkit-image", "")
    found.rounds()
    assert found.annotation("n1", PRE_HOOK) == "first"
    assert found.condition("Degraded")["status"] == "False"


@pytest.mark.parametrize("phase", ["ImagePreloaded", "CleanedUp"])
def test_no_phase_begins_or_ends_while_something_cannot_be_rendered(phase: str) -> None:
    found = preloading()
    found.end_plan("up-image-preload")
    BREAKS["an edit"](found)
    found.set_status(currentPhase=phase)
    found.rounds()
    assert (found.phase, found.jobs()) == (phase, [])
