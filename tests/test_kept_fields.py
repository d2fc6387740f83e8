"""Lists for checks keep what checks read and nothing else: every case of a check comes out the same, and a check that
reads more is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.preflight_cases import answer, case, paths, template_set
from support.rehearsals import inputs_of
from support.rendered_plans import Json, templates

from reconcile.cluster.kept_page import read_page
from reconcile.objects import FIELD_MANAGER
from reconcile.observe.kept_fields import for_checks
from reconcile.preflight.given_objects import GivenObjects
from reconcile.preflight.machines import machine_table
from renderer.catalog.checks import load_checks
from renderer.catalog.template_tree import Template
from renderer.errors import Problems
from renderer.model.ref import Body
from renderer.validation import document_problems

KINDS = template_set().catalog.kinds


def kept(body: Body) -> Body:
    row = KINDS.find(str(body["apiVersion"]), str(body["kind"]))
    return body if row is None else for_checks(row).trim(body)


@pytest.mark.parametrize("path", paths(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_check_says_the_same_of_what_is_kept(path: Path) -> None:
    given = case(path)
    assert answer(replace(given, bodies=tuple(map(kept, given.bodies)))) == answer(given)


@pytest.mark.parametrize("example", ["three-node", "two-node-witness", "pre-check-overlay"])
def test_the_table_of_machines_is_the_same_too(example: str) -> None:
    bodies = [source.body for source in inputs_of(example).objects]
    whole, part = (machine_table(GivenObjects(found, KINDS), {}) for found in (bodies, map(kept, bodies)))
    assert part == whole


def pod(name: str = "a") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "x"},
            "uid": f"{name}-0",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "other": name},
            "managedFields": [{"manager": FIELD_MANAGER}],
            "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": f"{name}-1"}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {
            "phase": "Running",
            "podIP": "192.0.2.1",
            "containerStatuses": [{"name": "c", "image": "i", "state": {"running": {}}}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": f"since {name}"}],
        },
    }


def test_of_a_pod_remains_what_checks_ask() -> None:
    assert kept(pod()) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "labels": {"app": "x"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "r"}],
        },
        "spec": {"nodeName": "n1"},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "c", "state": {"running": {}}}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.mark.parametrize("wrong", ["x", 7, None, [], [1]])
def test_what_has_another_shape_stays_to_be_found(wrong: object) -> None:
    assert kept({**pod(), "status": wrong})["status"] == wrong


def test_objects_of_a_list_share_what_is_equal() -> None:
    keep = for_checks(KINDS.row("v1", "Pod"))
    first, second = keep.trim(pod("a")), keep.trim(pod("b"))
    assert first["status"] is second["status"]
    assert first["metadata"]["labels"] is second["metadata"]["labels"]


def test_what_was_read_in_part_is_kept_and_shared_as_if_it_had_been_read_whole() -> None:
    keep = for_checks(KINDS.row("v1", "Pod"))
    assert keep.paths is not None
    pages = [json.dumps({"metadata": {}, "items": [pod(name)]}).encode() for name in "ab"]
    read = [page["items"][0] for page in (read_page(page, keep.paths) for page in pages) if page]
    first, second = map(keep.share, read)
    assert [first, second] == [kept(pod("a")), kept(pod("b"))]
    assert first["status"] is second["status"]


@pytest.mark.parametrize("key", ["annotations", "managedFields", "uid", "creationTimestamp"])
def test_of_long_lists_nothing_is_kept_that_is_another_one_for_each_and_that_no_check_reads(key: str) -> None:
    """Else the lists of a cluster with 10,000 machines would not fit beside the loop."""
    rows = [row for row in KINDS if row.checked is not None and row.kind.kind != "Node"]
    assert len(rows) > 5
    for row in rows:
        known = {"VirtualMachineBackup": "creationTimestamp", "PersistentVolumeClaim": "annotations"}
        about = {"name": "a", key: {"any": "x" * 2000} if key == "annotations" else "x"}
        body = {"apiVersion": row.kind.api_version, "kind": row.kind.kind, "metadata": about}
        if known.get(row.kind.kind) != key:
            assert kept(body)["metadata"] == {"name": "a"}, row.kind


def overlaid(check: str) -> None:
    tree = templates()
    head = "apiVersion: templates.upgradeplan/v1\nkind: Checks\nchecks:\n"
    text = head + "".join(f"{line}\n" for line in check.splitlines())
    files = {**tree, "preflight/ours.yaml": Template(text=text, shown="ours.yaml", packaged=False)}
    load_checks(files, document_problems, KINDS)


CHECK = """\
- id: ours
  title: every pod has an address
  severity: block
  when: [start]
  probe:
    every: {{apiVersion: v1, kind: {kind}, {where}}}
    all: [{{field: {{path: {path}, exists: true}}}}]
  remedy: "{remedy}"
  source: ours
"""


CLAIM = "PersistentVolumeClaim"
USUAL = {"kind": "Pod", "path": "status.phase", "where": "atLeast: 0", "remedy": "wait"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"path": "status.podIP"}, "status.podIP"),
        ({"where": "where: [{field: {path: spec.priority, atLeast: 1}}]"}, "spec.priority"),
        ({"remedy": "ask {{ object.spec.serviceAccountName }}"}, "spec.serviceAccountName"),
        ({"path": "'metadata.annotations[\"example.com/a\"]'"}, 'metadata.annotations["example.com/a"]'),
        ({"remedy": "since {{ object.metadata.creationTimestamp }}"}, "metadata.creationTimestamp"),
        ({"kind": CLAIM, "remedy": "{{ object.metadata.annotations['a/b'] }}"}, 'metadata.annotations["a/b"]'),
    ],
)
def test_a_check_that_reads_what_is_not_kept_is_refused(given: Mapping[str, str], field: str) -> None:
    parts: dict[str, Any] = {**USUAL, **given}
    with pytest.raises(Problems) as caught:
        overlaid(CHECK.format(**parts))
    (found,) = caught.value.problems
    assert (found.reason, found.file) == ("FieldNotKept", "ours.yaml")
    assert f"{field} of {parts['kind']}" in found.message
    assert "checked" in str(found.remedy)


@pytest.mark.parametrize(
    "given",
    [
        {"remedy": "see {{ object.metadata.name }} on {{ object.spec.nodeName }}"},
        {"remedy": "see {{ object.metadata.labels['a/b'] }}"},
        {"kind": CLAIM, "remedy": "see {{ object.metadata.annotations['harvesterhci.io/imageId'] }}"},
    ],
)
def test_a_check_that_reads_what_is_kept_is_not(given: Mapping[str, str]) -> None:
    overlaid(CHECK.format(**{**USUAL, **given}))
