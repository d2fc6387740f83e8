"""A manager whose templates are others than those that a plan began with finishes what has begun, and begins nothing
else before somebody has approved its templates."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.rehearsals import template_set
from support.rendered_plans import overlaid
from support.small_cluster import METADATA, Small, world

from reconcile.decide.other_templates import TEMPLATES_APPROVED
from reconcile.loop.journal import Journal
from reconcile.loop.reconciler import Reconciler
from reconcile.report.replay import replay
from renderer.catalog.template_tree import TemplateTree

pytestmark = pytest.mark.slow

JOB = "60-cluster-upgrade/job.yaml.j2"
NODE_JOB = "70-node-upgrade/pre-drain-job.yaml.j2"
HELD = "has not begun, since the manager's templates differ from those that the plan began with: "
BEGAN = template_set().catalog.tree


def changed(path: str) -> TemplateTree:
    """The packaged templates, one of them with a remark that changes no object."""
    return overlaid({path: f"{BEGAN[path].text}\n# another release of the program\n"})


def preloading(tree: TemplateTree = BEGAN) -> Small:
    """A plan that has begun to load images, under a manager with these templates."""
    found = world()
    found.set_status(
        currentPhase="ImagePreloading",
        previousVersion="v1.7.1",
        releaseMetadata=METADATA,
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
    )
    found.use_templates(tree)
    found.rounds()
    assert plans(found) == ["up-image-preload"]
    return found


def plans(found: Small) -> list[str]:
    return sorted(body["metadata"]["name"] for body in found.all("Plan"))


def end_preload(found: Small) -> None:
    found.end_plan("up-image-preload")
    found.rounds()


def held(found: Small) -> str:
    """What the plan is held for, in all places where a person looks."""
    decision = found.rounds().decision
    assert decision is not None
    [wait] = [wait for wait in decision.waits if HELD in wait.text]
    assert (wait.slow, wait.limit) == (True, None)
    assert HELD in found.condition("Degraded")["message"]
    assert HELD in found.condition("Reconciling")["message"]
    return wait.text


def test_what_has_begun_is_finished_and_the_next_phase_is_not_begun() -> None:
    found = preloading()
    found.use_templates(changed(JOB))
    end_preload(found)
    assert found.phase == "ImagePreloaded"
    assert held(found) == (
        f"phase ClusterUpgrade {HELD}{JOB}; review what they change (upgradeplan diff up) and run upgradeplan approve "
        "up, or run the manager that the plan began with"
    )
    assert found.jobs() == []


def test_a_program_of_the_release_that_began_shows_what_the_manager_waits_for() -> None:
    """It would go on itself; after a rollback of the manager it says nothing of it."""
    found = preloading()
    found.use_templates(changed(JOB))
    end_preload(found)
    assert held(found)
    found.use_templates(BEGAN)
    decision = found.scene.reconciler.look(found.name).decision
    assert decision is not None
    (wait,) = [wait for wait in decision.waits if wait.slow]
    assert wait.text.startswith(f"ClusterUpgrade: phase ClusterUpgrade {HELD}{JOB};")
    assert wait.text.endswith(", as the manager says")
    assert wait.since is not None
    found.rounds()
    decision = found.scene.reconciler.look(found.name).decision
    assert decision is not None
    assert not [wait for wait in decision.waits if wait.slow]


def test_it_continues_with_the_manager_that_began() -> None:
    """A rollback."""
    found = preloading()
    found.use_templates(changed(JOB))
    end_preload(found)
    assert held(found)
    found.use_templates(BEGAN)
    found.rounds()
    assert (found.phase, found.jobs()) == ("ClusterUpgrading", ["up-cluster-upgrade"])
    assert found.condition("Degraded")["status"] == "False"


def test_it_continues_with_templates_that_were_approved() -> None:
    found = preloading()
    found.use_templates(changed(JOB))
    end_preload(found)
    assert held(found)
    found.approve()
    found.rounds()
    assert (found.phase, found.jobs()) == ("ClusterUpgrading", ["up-cluster-upgrade"])
    text = f"Continuing with the manager's templates, as approved: {JOB}"
    assert found.events().count((TEMPLATES_APPROVED, text)) == 1


def test_the_manager_that_began_is_another_one_after_an_approval() -> None:
    """The rollback of a manager whose templates were approved is a change as any other."""
    found = preloading()
    found.use_templates(changed(JOB))
    found.approve()
    found.rounds()
    found.use_templates(BEGAN)
    end_preload(found)
    assert HELD in held(found)
    found.approve()
    found.rounds()
    assert found.phase == "ClusterUpgrading"


def test_an_approval_of_other_templates_is_none() -> None:
    found = preloading()
    found.use_templates(changed(NODE_JOB))
    found.approve()
    found.use_templates(changed(JOB))
    end_preload(found)
    assert HELD in held(found)


@pytest.mark.parametrize("path", ["20-iso-download/virtual-machine-image.yaml.j2", NODE_JOB, "preflight/nodes.yaml"])
def test_what_the_next_phase_is_not_rendered_from_does_not_hold_it(path: str) -> None:
    found = preloading()
    found.use_templates(changed(path))
    end_preload(found)
    assert found.phase == "ClusterUpgrading"


@pytest.mark.parametrize("path", ["_macros/objects.j2", "_kinds/kubernetes.yaml", "values.yaml"])
def test_what_all_phases_share_holds_every_phase(path: str) -> None:
    values = BEGAN["values.yaml"].text.replace("isoImportRetries: 3", "isoImportRetries: 4")
    tree = overlaid({path: values}) if path == "values.yaml" else changed(path)
    found = preloading()
    found.use_templates(tree)
    end_preload(found)
    assert f"{HELD}{'values.yaml: isoImportRetries' if path == 'values.yaml' else path};" in held(found)


def test_values_of_the_installation_are_compared_too() -> None:
    """A manager that was installed with another tag of the toolkit makes other objects of the same templates."""
    found = preloading()
    found.use_templates(BEGAN, {"toolkitTag": "v9"})
    end_preload(found)
    assert f"{HELD}values.yaml: toolkitTag;" in held(found)
    found.use_templates(BEGAN)
    found.rounds()
    assert (found.phase, found.jobs()) == ("ClusterUpgrading", ["up-cluster-upgrade"])


def test_a_value_that_comes_to_the_same_holds_nothing() -> None:
    found = preloading()
    tag = str(template_set().catalog.values["toolkitTag"])
    found.use_templates(BEGAN, {"toolkitTag": tag, "managerImage": "registry.example.com/upgradeplan:next"})
    end_preload(found)
    assert found.phase == "ClusterUpgrading"


def test_values_of_the_installation_are_approved_with_an_overlay_that_has_them() -> None:
    """`approve` knows no environment variables of the manager; an overlay says the same."""
    found = preloading()
    found.use_templates(BEGAN, {"toolkitTag": "v9"})
    end_preload(found)
    assert held(found)
    values = BEGAN["values.yaml"].text.replace("toolkitTag: v1.8.0", "toolkitTag: v9")
    found.use_templates(overlaid({"values.yaml": values}))
    found.approve()
    found.use_templates(BEGAN, {"toolkitTag": "v9"})
    found.rounds()
    assert found.phase == "ClusterUpgrading"


NOTE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: note\n  namespace: harvester-system\n"
ADDED = {
    "55-note/phase.yaml": (
        "apiVersion: templates.upgradeplan/v1\nkind: Phase\nname: Note\ndescription: Leaves a note.\n"
        "status: {active: Noting, completed: Noted}\ndeletion: free\nsteps:\n- name: Note\n  owned: [note.yaml.j2]\n"
    ),
    "55-note/note.yaml.j2": NOTE,
}


def test_a_phase_that_is_new_is_named() -> None:
    found = preloading()
    found.use_templates(overlaid(ADDED))
    end_preload(found)
    assert f"phase Note {HELD}55-note/note.yaml.j2 (added), 55-note/phase.yaml (added);" in held(found)


def test_a_phase_that_is_gone_is_named() -> None:
    found = preloading(overlaid(ADDED))
    found.use_templates(BEGAN)
    end_preload(found)
    text = held(found)
    assert f"phase ClusterUpgrade {HELD}55-note/note.yaml.j2 (removed), 55-note/phase.yaml (removed);" in text


def test_a_phase_whose_first_steps_have_begun_has_begun() -> None:
    """The fields that are borrowed before the nodes' phase is entered are not left so while an operator sleeps."""
    found = preloading()
    end_preload(found)
    found.end_job("up-cluster-upgrade")
    found.until(lambda done: "NodeUpgrade" in (found.status.get("steps") or {}))
    assert found.phase == "ClusterUpgraded"
    found.use_templates(changed(NODE_JOB))
    found.rounds()
    found.end_plan("up-skip-manifest-apply")
    found.rounds()
    assert found.phase == "NodeUpgrading"


def test_a_plan_that_ends_is_taken_back_by_any_manager() -> None:
    found = preloading()
    found.use_templates(changed("80-image-cleanup/plan.yaml.j2"))
    found.delete_plan()
    found.to_its_end()
    assert found.all("UpgradePlan") == []


def test_the_record_is_small_and_survives() -> None:
    found = preloading()
    templates, record = found.scene.deps.rendering.templates, found.status["templates"]
    assert record == {"digest": templates.digest, "files": dict(templates.files)}
    assert len(str(record)) < 4096


def test_the_hold_is_decided_again_from_the_journal(tmp_path: Path) -> None:
    """With the templates that the manager had then, whatever the replaying program has."""
    found = preloading()
    found.use_templates(changed(JOB))
    journal = tmp_path / "journal"
    found.scene.reconciler = Reconciler(found.scene.deps, Journal(journal, pytest.fail))
    end_preload(found)
    assert held(found)
    lines = [*replay(journal, template_set())]
    assert lines
    assert [line for line in lines if line.differs or line.problem] == []
