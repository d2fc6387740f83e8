"""With `values.suspendSchedules` schedules of backups are suspended while a plan runs, and go on at each of its ends.
Without it nothing is rendered, asked for or permitted for that."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.installed import installation, objects_of
from support.rehearsals import START, permitted
from support.rendered_plans import (
    EXAMPLES,
    ROOT,
    inputs_of,
    inputs_of_example,
    overlaid,
    render_example,
    render_made,
    templates,
    three_nodes,
)
from support.small_cluster import Small, world
from test_retry import annotate, ended, import_fails, retry, told

from reconcile.objects import FIELD_MANAGER, has_field_manager
from reconcile.simulator.rehearsal.rehearsal import prepare
from reconcile.status.attempt import TAKE_BACK
from renderer.assemble import open_template_set
from renderer.catalog.template_tree import TemplateTree
from renderer.cli.program import run
from renderer.errors import Problems
from renderer.model.ref import ref_of
from renderer.yaml_io import dump, parse

API = "harvesterhci.io/v1beta1"
STEP = "Initialize/SuspendSchedules"
CHECK = "backup-schedule-active"


def values_of_a_site() -> str:
    values = templates()["values.yaml"].text
    assert "suspendSchedules: false" in values
    return values.replace("suspendSchedules: false", "suspendSchedules: true")


@cache
def suspending() -> TemplateTree:
    return overlaid({"values.yaml": values_of_a_site()})


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of templates, as a user has it."""
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "values.yaml").write_text(values_of_a_site(), encoding="utf-8")
    return folder


def schedule(name: str, *, namespace: str = "default", suspend: bool | None = None) -> dict[str, Any]:
    """As Harvester keeps it: the one dumped in harvester/harvester#6622, under another name."""
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": f"vm-{name}"}
    spec = {"cron": "0 1 * * *", "maxFailure": 2, "retain": 3, "vmbackup": {"source": source, "type": "backup"}}
    return {
        "apiVersion": API,
        "kind": "ScheduleVMBackup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec if suspend is None else {**spec, "suspend": suspend},
        "status": {"suspended": bool(suspend)},
    }


PROD = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}
SCHEDULES = (
    schedule("nightly"),
    schedule("nightly", namespace="prod", suspend=False),
    schedule("off", suspend=True),
)


def begun(*schedules: dict[str, Any], tree: TemplateTree | None = None, more: Iterable[dict[str, Any]] = ()) -> Small:
    """A plan of three nodes, as far as it goes at once. Somebody has created the schedules; without `more` their kind
    is one of which nobody has any."""
    found = world(more=[*more])
    for body in (PROD, *schedules) if schedules else ():
        kind = found.scene.deps.kinds.row(body["apiVersion"], body["kind"]).kind
        found.scene.cluster.client().create(kind, body, field_manager="somebody")
    found.use_templates(tree or suspending())
    found.rounds()
    return found


def suspended(found: Small) -> dict[str, Any]:
    """The field of each schedule; None where it is not there."""
    there = ((body["metadata"], body["spec"]) for body in found.all("ScheduleVMBackup"))
    return {f"{at['namespace']}/{at['name']}": spec.get("suspend") for at, spec in there}


ORIGINAL = {"default/nightly": None, "prod/nightly": False, "default/off": True}
SUSPENDED = dict.fromkeys(ORIGINAL, True)


# ------------------------------------------------------------------------------------------------------- without it


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_example_speaks_of_schedules(example: str) -> None:
    """Pinned renderings and their digests say the rest: nothing of them has changed."""
    files = render_example(example).files()
    assert not [path for path, text in files.items() if "ScheduleVMBackup" in text or "SuspendSchedules" in text]


def test_values_that_do_not_know_it_leave_schedules_alone() -> None:
    text = templates()["values.yaml"].text
    before = overlaid({"values.yaml": "".join(_without(text.splitlines(keepends=True), "suspendSchedules"))})
    assert render_made(*three_nodes(), tree=before).plan.digest == render_made(*three_nodes()).plan.digest
    assert blocking(begun(tree=before, more=SCHEDULES)) == [CHECK]


def _without(lines: Iterable[str], word: str) -> Iterable[str]:
    return (line for line in lines if not line.startswith(word))


def test_schedules_that_run_hold_the_plan_as_before() -> None:
    found = begun(tree=templates(), more=SCHEDULES)
    assert blocking(found) == [CHECK]
    assert suspended(found) == ORIGINAL


def blocking(found: Small) -> list[str]:
    decision = found.round().decision
    return sorted({wait.check.id for wait in decision.waits if wait.check}) if decision else []


# --------------------------------------------------------------------------------------------------- what is reviewed


def test_a_review_shows_one_schedule_that_stands_for_all() -> None:
    """Which there are is known when the checks have passed, so nobody's approval goes stale by a new one."""
    rendered = render_made(*three_nodes(), tree=suspending())
    mark = "<known at run time: schedules>"
    assert rendered.body(STEP) == {
        "apiVersion": API,
        "kind": "ScheduleVMBackup",
        "metadata": {"name": mark, "namespace": mark},
        "spec": {"suspend": True},
    }
    (manifest,) = rendered.manifests(STEP)
    assert manifest.file == "review/10-initialize/backup-schedules.yaml.txt"
    assert render_made(*three_nodes(), *SCHEDULES, tree=suspending()).plan.digest == rendered.plan.digest


def test_an_approved_plan_goes_on_whatever_schedules_there_are() -> None:
    found = world(more=SCHEDULES)
    found.use_templates(suspending())
    found.approve()
    found.create(schedule("made-later"))
    found.rounds()
    assert found.phase == "ISODownloading"
    assert suspended(found) == {**SUSPENDED, "default/made-later": True}


@pytest.mark.parametrize("format_name", ["fleet", "argocd", "flux"])
def test_an_agent_is_given_the_plan_and_no_phases(
    format_name: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the loop suspends: with phases alone the check would pass, and the schedules would run."""
    words = ["render", str(ROOT / "examples" / "three-node"), "--templates", str(site), "--format", format_name]
    words += ["--repo", "https://git.example.com/clusters.git", "--output-dir", str(tmp_path / "out")]
    assert run(["upgradeplan", *words, "--deliver", "phases"]) == 2
    assert "Initialize borrows spec.suspend of ScheduleVMBackup" in capsys.readouterr().err
    assert run(["upgradeplan", *words]) == 0
    speaking = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and _speaks(path)]
    assert [path.name for path in speaking] == ["backup-schedules.yaml.txt"]


def _speaks(path: Path) -> bool:
    return "kind: ScheduleVMBackup" in path.read_text(encoding="utf-8")


def test_a_value_that_nobody_has_is_a_problem_of_the_phase_that_names_it() -> None:
    phase = templates()["10-initialize/phase.yaml"].text.replace("withValue: suspendSchedules", "withValue: suspend")
    with pytest.raises(Problems, match="there with the value 'suspend', which"):
        open_template_set(overlaid({"10-initialize/phase.yaml": phase}))


# ------------------------------------------------------------------------------------------------------------ checks


def preflight(site: Path, capsys: pytest.CaptureFixture[str], *schedules: dict[str, Any], check: str = CHECK) -> Any:
    file = site.parent / "schedules.yaml"
    file.write_text("".join(f"---\n{dump(body)}" for body in schedules), encoding="utf-8")
    words = ["--templates", str(site), "--check", check, "-o", "json", str(file)]
    status = run(["upgradeplan", "preflight", str(ROOT / "examples" / "three-node"), *words])
    (answer,) = json.loads(capsys.readouterr().out)["checks"]
    return status, answer


def test_the_check_passes_and_names_each_schedule_that_will_be_suspended(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = preflight(site, capsys, *SCHEDULES)
    assert (status, answer["outcome"], answer["findings"]) == (0, "passed", [])
    assert answer["notes"] == [
        "schedule default/nightly of VM vm-nightly will be suspended until the upgrade ends (0 1 * * *)",
        "schedule prod/nightly of VM vm-nightly will be suspended until the upgrade ends (0 1 * * *)",
    ]


def test_nothing_is_noted_where_every_schedule_is_suspended(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = preflight(site, capsys, schedule("off", suspend=True))
    assert (answer["outcome"], answer["notes"]) == ("passed", [])


def test_recurring_jobs_of_longhorn_are_listed_since_nobody_can_suspend_them(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "RecurringJob",
        "metadata": {"name": "daily", "namespace": "longhorn-system"},
        "spec": {"name": "daily", "task": "backup", "cron": "0 0 * * *", "groups": ["default"], "retain": 3},
    }
    _, answer = preflight(site, capsys, job, check="recurring-job-active")
    assert answer["outcome"] == "warned"
    assert answer["findings"][0]["text"] == "Longhorn recurring job daily makes a backup at 0 0 * * *"


# -------------------------------------------------------------------------------------------------- while a plan runs


def test_schedules_that_run_are_suspended_once_the_checks_have_passed() -> None:
    found = begun(*SCHEDULES)
    assert suspended(found) == SUSPENDED
    assert found.phase == "ISODownloading"
    loans = [(loan["namespace"], loan["name"], loan["absent"], loan.get("value")) for loan in found.status["borrowed"]]
    assert loans == [("default", "nightly", True, None), ("prod", "nightly", False, False)]
    assert told(found, "BackupsSuspended") == [
        "Backups are not made by schedules until the plan ends: default/nightly, prod/nightly"
    ]


def test_nothing_is_suspended_while_a_check_blocks() -> None:
    """A plan may wait for days, and machines are backed up until then."""
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm"}
    runs = {
        "apiVersion": API,
        "kind": "VirtualMachineBackup",
        "metadata": {"name": "now", "namespace": "default"},
        "spec": {"source": source},
        "status": {"readyToUse": False},
    }
    found = begun(more=[*SCHEDULES, runs])
    assert blocking(found) == ["vm-backup-running"]
    assert suspended(found) == ORIGINAL


def test_a_schedule_that_is_made_meanwhile_is_left_alone() -> None:
    found = begun(*SCHEDULES)
    found.create(schedule("new"))
    found.rounds()
    found.restart()
    found.rounds()
    assert suspended(found) == {**SUSPENDED, "default/new": None}


def test_a_cluster_without_schedules_or_without_their_kind_goes_on() -> None:
    found = begun()
    assert found.phase == "ISODownloading"
    assert "borrowed" not in found.status
    assert told(found, "BackupsSuspended") == []


# -------------------------------------------------------------------------------------------------------- at each end


def unclaimed(found: Small) -> bool:
    return not any(has_field_manager(body, FIELD_MANAGER) for body in found.all("ScheduleVMBackup"))


def test_they_go_on_when_the_plan_is_deleted() -> None:
    found = begun(*SCHEDULES)
    found.patch(found.plan, {"metadata": {"annotations": {"management.harvesterhci.io/allow-deletion": "true"}}})
    found.delete_plan()
    found.rounds()
    assert (suspended(found), unclaimed(found)) == (ORIGINAL, True)


def failed_import() -> Small:
    found = begun(*SCHEDULES)
    import_fails(found, "up-iso")
    return ended(found)


def test_they_go_on_when_the_plan_has_failed_and_a_retry_suspends_the_same_again() -> None:
    found = failed_import()
    assert suspended(found) == ORIGINAL
    found.create(schedule("new"))
    retry(found)
    assert found.phase == "ISODownloading"
    assert suspended(found) == {**SUSPENDED, "default/new": None}
    import_fails(found, "up-iso-retry-1")
    ended(found)
    assert suspended(found) == {**ORIGINAL, "default/new": None}


def test_they_go_on_when_a_failed_plan_is_taken_back() -> None:
    found = failed_import()
    annotate(found, TAKE_BACK, "true")
    found.rounds()
    assert (suspended(found), unclaimed(found)) == (ORIGINAL, True)


def test_they_go_on_at_the_end_of_a_plan_whose_manager_does_not_know_the_value_any_more() -> None:
    found = begun(*SCHEDULES)
    found.use_templates(templates())
    import_fails(found, "up-iso")
    ended(found)
    assert suspended(found) == ORIGINAL


def test_what_somebody_has_set_meanwhile_is_theirs() -> None:
    found = begun(*SCHEDULES)
    found.patch(schedule("nightly"), {"spec": {"suspend": False}})
    import_fails(found, "up-iso")
    ended(found)
    assert suspended(found) == {**ORIGINAL, "default/nightly": False}
    assert told(found, "FieldLeft") == ["spec.suspend was changed to False by somebody else and is not restored"]


def test_one_that_is_gone_holds_up_nothing() -> None:
    found = begun(*SCHEDULES)
    kind = found.scene.deps.kinds.row(API, "ScheduleVMBackup").kind
    found.scene.cluster.client().delete(kind, ref_of(schedule("nightly")))
    import_fails(found, "up-iso")
    ended(found)
    assert suspended(found) == {"prod/nightly": False, "default/off": True}


# ------------------------------------------------------------------------------------------------------- permissions


GRANTED = {"apiGroups": ["harvesterhci.io"], "resources": ["schedulevmbackups"], "verbs": ["watch", "patch"]}


def test_an_installation_with_the_value_permits_it_and_no_other_does(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upgradeplan", "install", "--format", "plain", "--templates", str(site)]) == 0
    bodies = [document.value for document in parse(capsys.readouterr().out, "stdout")]
    assert [body["rules"] for body in bodies if GRANTED in (body.get("rules") or ())] == [[GRANTED]]
    assert not [body for body in objects_of() if GRANTED in (body.get("rules") or ())]


@pytest.mark.slow
def test_a_whole_upgrade_needs_no_more_than_that_and_gives_all_back() -> None:
    rules = {"rbac": {"rules": {"": [GRANTED]}}}
    granted = [body for file in installation(rules).files if file.name.startswith("rbac") for body in file.objects]
    example = inputs_of_example("three-node")
    there = replace(example, objects=(*example.objects, *inputs_of(SCHEDULES).objects))
    scene = prepare(there, open_template_set(suspending()), start=START, access=permitted(granted))
    seen: list[dict[str, Any]] = []
    result = scene.play(lambda done: seen.append(suspended(Small(scene=scene))))
    assert result.plan is not None
    assert result.plan["status"]["currentPhase"] == "Succeeded"
    assert SUSPENDED in seen
    assert suspended(Small(scene=scene)) == ORIGINAL
