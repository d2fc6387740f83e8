"""What one rendering does differently from another, on plans that differ in one thing each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rendered_plans import EXAMPLES, Rendered, overlaid, release, render_example, render_made, three_nodes

from renderer.compare import ChangeType, ComparedItem, Difference, Side, compare, differing
from renderer.model.path import ABSENT, look_up, path_name
from renderer.redaction import packaged_rules

EVENT = "  started: {type: Normal, reason: Begun, message: it is a test}\n"
PHASE = f"""\
name: Probe
description: Looks.
status: {{active: Probing, completed: Probed}}
deletion: free
steps:
- name: First
  owned: [config.yaml.j2]
- name: Second
{EVENT}"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ name("x") | quote }}, namespace: harvester-system}
data: {key: value}
"""
FOLDER = "15-probe"


def side(rendered: Rendered) -> Side:
    return Side(plan=rendered.plan, kinds=rendered.kinds, redaction=packaged_rules())


def probe(phase: str = PHASE, config: str = CONFIG, file: str = "config.yaml.j2") -> Side:
    """The packaged phases and one more."""
    tree = overlaid({f"{FOLDER}/phase.yaml": phase, f"{FOLDER}/{file}": config})
    return side(render_made(*three_nodes(), tree=tree))


def summary(differences: tuple[Difference, ...]) -> list[str]:
    """`operation subject name: fields`."""
    return [
        f"{item.operation} {item.subject} {item.name}" + (f": {', '.join(item.fields)}" if item.fields else "")
        for item in differences
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_rendering_does_not_differ_from_itself(example: str) -> None:
    rendered = render_example(example)
    assert compare(side(rendered), side(rendered)) == ()


@pytest.mark.slow
def test_another_release_changes_what_is_waited_for_and_what_is_written() -> None:
    given_plan, _, *others = three_nodes()
    other = release("v1.8.1", kubernetes="v1.35.4+rke2r1")
    before, after = render_made(*three_nodes()), render_made(given_plan, other, *others)
    found = summary(compare(side(before), side(after)))
    assert "changed step ImagePreload/VersionGuard: waitsFor[0]" in found
    assert "changed manifest Cluster fleet-local/local: spec.kubernetesVersion" in found
    assert "changed step NodeUpgrade/Reboot: waitsFor[0]" in found
    assert [item for item in found if "pendingOSImage" in item] == [
        f'changed manifest Node {node}: metadata.annotations["management.harvesterhci.io/pendingOSImage"]'
        for node in ("n1", "n2", "n3")
    ]


@pytest.mark.slow
def test_a_phase_that_comes_or_goes_is_told_with_its_objects_and_without_its_steps() -> None:
    without, with_it = side(render_made(*three_nodes())), probe()
    config = "manifest ConfigMap harvester-system/up-x"
    assert summary(compare(without, with_it)) == ["added phase Probe", f"added {config}"]
    assert summary(compare(with_it, without)) == ["removed phase Probe", f"removed {config}"]


@pytest.mark.slow
def test_a_step_that_comes_is_told_in_the_order_of_the_upgrade() -> None:
    third = "- name: Third\n  owned: [config.yaml.j2]\n"
    without = PHASE.replace("- name: First\n  owned: [config.yaml.j2]\n", "") + third
    assert summary(compare(probe(without), probe())) == [
        "added step Probe/First",
        "moved manifest ConfigMap harvester-system/up-x",
        "removed step Probe/Third",
    ]


@pytest.mark.slow
def test_an_object_that_moves_may_change_as_well() -> None:
    owned = "  owned: [config.yaml.j2]\n"
    first, second = PHASE.split(owned)
    later = f"{first}{EVENT}{second.replace(EVENT, owned)}"
    found = compare(probe(), probe(later, CONFIG.replace("value", "other")))
    (moved,) = [item for item in found if item.subject is ComparedItem.MANIFEST]
    assert (moved.operation, moved.step, moved.fields) == (ChangeType.MOVED, "Second", ("data.key",))
    assert moved.diff == (
        "--- a/Probe/First/config.yaml.j2\n"
        "+++ b/Probe/Second/config.yaml.j2\n"
        "@@ -4,4 +4,4 @@\n"
        "   name: up-x\n"
        "   namespace: harvester-system\n"
        " data:\n"
        "-  key: value\n"
        "+  key: other\n"
    )


@pytest.mark.slow
def test_an_object_of_another_name_is_still_that_of_its_template() -> None:
    found = compare(probe(), probe(config=CONFIG.replace('name("x")', 'name("y")')))
    manifest = "ConfigMap harvester-system/up-x -> ConfigMap harvester-system/up-y"
    assert f"changed manifest {manifest}: metadata.name" in summary(found)


@pytest.mark.slow
def test_what_only_the_loop_reads_is_told_by_its_name_in_the_phase_file() -> None:
    """How long is slow stands neither in a manifest nor in the index."""
    gate = "  gates: [{probe: {manifest: config.yaml.j2, all: [{builtin: true}]}, slowAfter: %s}]\n"
    phases = [PHASE.replace("j2]\n", "j2]\n" + gate % time) for time in ("5m", "10m")]
    (found,) = compare(*map(probe, phases))
    assert (found.operation, found.name, found.fields) == (ChangeType.CHANGED, "Probe/First", ("gates[0].slowAfter",))
    assert found.diff == ""


@pytest.mark.slow
def test_a_diff_of_what_comes_shows_all_of_it() -> None:
    phase, manifest = compare(side(render_made(*three_nodes())), probe())
    assert phase.diff.startswith("--- /dev/null\n+++ b/Probe\n@@ -0,0 +1,")
    assert manifest.diff.endswith("+data:\n+  key: value\n")


@pytest.mark.parametrize(
    ("left", "right", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": 1}, {"a": "1"}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a[1]"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ({"a": [{"b": 1}]}, {"a": [{"b/c": 1}]}, ["a[0].b", 'a[0]["b/c"]']),
        ({"a": {}}, {"a": []}, ["a"]),
    ],
)
def test_the_fields_that_differ_are_named(left: Mapping[str, Any], right: Mapping[str, Any], paths: list[str]) -> None:
    assert [path_name(path) for path in differing(left, right)] == paths


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(left=VALUES, right=VALUES)
def test_every_path_that_is_named_leads_to_a_difference_and_only_equals_have_none(left: Any, right: Any) -> None:
    paths = list(differing(left, right))
    assert all(repr(look_up(left, path)) != repr(look_up(right, path)) for path in paths)
    assert bool(paths) == (_exact(left) != _exact(right))


def _exact(value: Any) -> Any:
    """Equal only to what is equal and of the same type all through."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return [_exact(item) for item in value] if isinstance(value, list) else (type(value), value)


def test_absent_and_null_are_not_the_same() -> None:
    assert look_up({}, ("a",)) is ABSENT
    assert list(differing({}, {"a": None})) == [("a",)]
