"""What was approved is what runs: a phase that is rendered otherwise is not entered, and what differs is named."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.inputs import write_inputs
from support.rehearsals import template_set
from support.small_cluster import METADATA, Small, world

from reconcile.loop.approval import rendered_for_review
from reconcile.loop.journal import Journal
from reconcile.loop.overrides import overrides_of
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.sealing import APPROVED_OBJECTS, seal
from reconcile.report.replay import replay
from renderer.assemble import assemble
from renderer.catalog.template_digests import template_digests
from renderer.errors import Problems
from renderer.files.inputs import read_inputs
from renderer.files.templates import read_templates
from renderer.render.seal import APPROVED

pytestmark = pytest.mark.slow


def approved(**spec: Any) -> Small:
    """A plan as `approve` leaves it, before it has begun."""
    found = world(**{"version": "v1.8.0", **spec})
    found.approve()
    return found


def reapprove(found: Small, digests: dict[str, str | None], copy: str | None) -> None:
    """As somebody might write it by hand: some digests are others, None is not there."""
    before = json.loads(found.plan["metadata"]["annotations"][APPROVED])
    text = json.dumps({name: digest for name, digest in {**before, **digests}.items() if digest is not None})
    found.patch(found.plan, {"metadata": {"annotations": {APPROVED: text, APPROVED_OBJECTS: copy}}})


def refusal(found: Small) -> str:
    waits = [wait.text for wait in found.rounds().decision.waits]  # type: ignore[union-attr]
    (text,) = [wait for wait in waits if "approved" in wait]
    return text


def test_a_plan_runs_as_it_was_approved() -> None:
    found = approved()
    found.rounds()
    assert found.phase == "ISODownloading"


def test_what_has_changed_since_is_refused_by_object_and_path() -> None:
    found = approved()
    found.until(lambda done: found.phase == "Initialized")
    found.set_status(version={"isoURL": "https://elsewhere.example.com/h.iso"})
    named = "VirtualMachineImage harvester-system/up-iso spec.url"
    assert f"phase ISODownload differs from what was approved in {named}" in refusal(found)
    assert found.phase == "Initialized"
    assert found.all("VirtualMachineImage") == []
    found.approve()
    found.rounds()
    assert found.phase == "ISODownloading"


@pytest.mark.parametrize(
    ("objects", "named"),
    [
        ({}, "VirtualMachineImage harvester-system/up-iso (added)"),
        ({"x": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}}, "ConfigMap x (removed)"),
    ],
)
def test_an_object_that_comes_or_goes_is_named(objects: Any, named: str) -> None:
    found = approved()
    copy = base64.b64encode(zlib.compress(json.dumps({"ISODownload": objects}).encode())).decode()
    reapprove(found, {"ISODownload": "sha256:0"}, copy)
    assert named in refusal(found)


def test_the_very_first_phase_is_refused_as_well() -> None:
    """With `spec.image` no Version is read, so what Initialize waits for is another thing."""
    found, other = world(), world(image="given")
    annotations = seal(rendered_for_review(other.scene.deps, other.plan), other.scene.deps.rendering.templates)
    found.patch(found.plan, {"metadata": {"annotations": annotations}})
    assert "in objects of another node than the first, or in what its steps wait for" in refusal(found)
    assert found.phase == ""
    assert found.condition("Progressing")["reason"] == "Pending"
    assert "differs from what was approved" in found.condition("Reconciling")["message"]


def test_a_phase_that_is_not_among_the_approved_is_refused() -> None:
    """Such as one that an overlay brought later."""
    found = approved()
    reapprove(found, {"ISODownload": None}, None)
    assert refusal(found) == "phase ISODownload was not approved"


def test_what_was_pending_is_free_to_go() -> None:
    found = approved()
    reapprove(found, {"ISODownload": "pending"}, None)
    found.rounds()
    assert found.phase == "ISODownloading"


@pytest.mark.parametrize("text", ["{", "[]", "sha256:0"])
def test_an_approval_that_cannot_be_read_approves_nothing(text: str) -> None:
    found = world()
    found.patch(found.plan, {"metadata": {"annotations": {APPROVED: text}}})
    assert refusal(found) == "phase Initialize was not approved"


BOMB = "much that was made small"


def bomb() -> str:
    return base64.b64encode(zlib.compress(b" " * 10**8)).decode()


@pytest.mark.parametrize("copy", [None, "", "no base64", base64.b64encode(b"no zlib").decode(), BOMB])
def test_a_copy_that_is_none_of_ours_leaves_the_refusal_as_it_is(copy: str | None) -> None:
    found = approved()
    reapprove(found, {"ISODownload": "sha256:0", "Unheard": "sha256:1"}, bomb() if copy == BOMB else copy)
    assert "differs from what was approved in fields that are not known" in refusal(found)


def test_the_copy_is_small(tmp_path: Path) -> None:
    """An annotation may have 256 KiB in all; what each node has is kept once."""
    few, many = (read_inputs([str(write_inputs(nodes, tmp_path / str(nodes)))]) for nodes in (3, 40))
    templates = template_digests(template_set().catalog)
    rendered = [assemble(inputs, read_templates()).render() for inputs in (few, many)]
    sizes = [len(seal(item, templates)[APPROVED_OBJECTS]) for item in rendered]
    assert max(sizes) < 16 * 1024


# ------------------------------------------------------------------------------------------------- the environment


def with_overrides(found: Small, **environ: str) -> None:
    """As `run` starts with these environment variables."""
    deps = found.scene.deps
    found.scene.deps = replace(deps, rendering=deps.rendering.overridden(overrides_of(environ)))
    found.restart()


def preloaded() -> Small:
    found = world(version="v1.8.0", upgrade="v1.8.0")
    found.set_status(currentPhase="ImagePreloaded", previousVersion="v1.7.1", releaseMetadata=METADATA)
    return found


def test_accounts_of_the_environment_are_used_and_part_of_what_is_approved() -> None:
    found = preloaded()
    with_overrides(found, UPGRADE_JOB_SERVICE_ACCOUNT="mine", UPGRADE_PLAN_SERVICE_ACCOUNT="")
    found.approve()
    found.rounds()
    [job] = found.all("Job")
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_registry_and_secrets_of_the_environment_reach_every_pod_of_the_upgrade() -> None:
    found = preloaded()
    given = {"UPGRADEPLAN_IMAGE_REGISTRY": "registry.example.com/a", "UPGRADEPLAN_IMAGE_PULL_SECRETS": "one,two"}
    with_overrides(found, **given)
    found.approve()
    found.rounds()
    [job] = found.all("Job")
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith("registry.example.com/a/rancher/harvester-upgrade-toolkit:")
    assert pod["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]


def test_a_seal_that_differs_for_the_environment_names_the_variable() -> None:
    found = preloaded()
    found.approve()
    with_overrides(found, UPGRADE_JOB_SERVICE_ACCOUNT="mine")
    named = (
        "Job harvester-system/up-cluster-upgrade spec.template.spec.serviceAccountName "
        "(set by the environment variable UPGRADE_JOB_SERVICE_ACCOUNT)"
    )
    assert f"phase ClusterUpgrade differs from what was approved in {named} (" in refusal(found)
    assert found.all("Job") == []


def test_a_journal_is_replayed_with_the_accounts_of_its_time(tmp_path: Path) -> None:
    found = preloaded()
    with_overrides(found, UPGRADE_JOB_SERVICE_ACCOUNT="mine")
    path, failed = tmp_path / "journal", list[str]()
    found.scene.reconciler = Reconciler(found.scene.deps, Journal(path, failed.append))
    found.rounds()
    assert found.all("Job")
    lines = list(replay(path, template_set()))
    assert lines
    assert [line for line in lines if line.differs or line.problem] == []


def test_the_image_of_host_checks_is_that_of_the_manager_and_no_text_with_blanks() -> None:
    assert overrides_of({"UPGRADEPLAN_IMAGE": "registry.example/ours:1"}) == {"managerImage": "registry.example/ours:1"}
    with pytest.raises(Problems, match="UPGRADEPLAN_IMAGE: 'two words' is not an image"):
        overrides_of({"UPGRADEPLAN_IMAGE": "two words"})


def test_a_name_that_no_account_can_have_is_refused() -> None:
    with pytest.raises(Problems) as refused:
        overrides_of({"UPGRADE_JOB_SERVICE_ACCOUNT": "Not a name", "UPGRADE_PLAN_SERVICE_ACCOUNT": "fine"})
    assert [item.message for item in refused.value.problems] == [
        "environment variable UPGRADE_JOB_SERVICE_ACCOUNT: 'Not a name' is not a name that a ServiceAccount can have"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("UPGRADEPLAN_IMAGE_REGISTRY", "https://registry.example.com"),
        ("UPGRADEPLAN_IMAGE_REGISTRY", "registry.example.com/"),
        ("UPGRADEPLAN_IMAGE_PULL_SECRETS", "one, two"),
        ("UPGRADEPLAN_TOOLKIT_TAG", "v1.8.0+1"),
    ],
)
def test_what_a_variable_cannot_be_is_refused_with_what_it_should_be(name: str, text: str) -> None:
    with pytest.raises(Problems) as refused:
        overrides_of({name: text})
    (problem,) = refused.value.problems
    assert problem.message.startswith(f"environment variable {name}: {text!r} is not ")
