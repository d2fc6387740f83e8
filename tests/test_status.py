"""The plan's status: read back as written, patched by the smallest patch, and small enough for a thousand nodes."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bench.largest import LIMIT, NOW, largest_status
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.rendered_plans import NODE_STATES
from support.small_cluster import world

from reconcile.act.status import merge_patch
from reconcile.status.conditions import PlanCondition, with_condition
from reconcile.status.plan import PlanStatus
from reconcile.status.plan_body import status_body, status_of
from reconcile.status.record import OwnedObject, StepRecord, StepState
from renderer.model.ref import Ref

moments = st.integers(0, 10**6).map(lambda seconds: NOW + timedelta(seconds=seconds))
words = st.text("abcDEF-/.~ é", min_size=1, max_size=8)
names = st.from_regex(r"[a-z]([-a-z0-9.]{0,8}[a-z0-9])?", fullmatch=True)
steps = st.from_regex(r"[A-Z][A-Za-z]{0,8}", fullmatch=True)
refs = st.builds(Ref, api_version=st.just("batch/v1"), kind=st.just("Job"), namespace=names, name=names)
objects = st.builds(OwnedObject, ref=refs, digest=st.from_regex(r"[0-9a-f]{12}", fullmatch=True))
records = st.builds(
    StepRecord,
    state=st.sampled_from(StepState),
    started=moments,
    ended=st.none() | moments,
    message=st.just("") | words,
    objects=st.lists(objects, max_size=2).map(tuple),
    captured=st.dictionaries(steps, words | st.integers(0, 9), max_size=2),
)
places = st.tuples(steps, st.none() | names)
statuses = st.builds(
    PlanStatus,
    phase=steps,
    node_states=st.dictionaries(names, st.fixed_dictionaries({"state": steps}), max_size=3),
    records=st.dictionaries(places, st.dictionaries(steps, records, min_size=1, max_size=2), max_size=3),
    done=st.dictionaries(st.tuples(steps, names), st.dictionaries(steps, words, min_size=1), max_size=3),
    skipped=st.dictionaries(steps, words, max_size=2),
    rest=st.dictionaries(st.sampled_from(["previousVersion", "ofAnotherVersion"]), words, max_size=2),
)
values = st.recursive(
    st.booleans() | st.integers(0, 3) | words | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@pytest.mark.slow
@given(statuses)
@settings(max_examples=examples(60), deadline=None)
def test_a_status_is_read_as_it_was_written(status: PlanStatus) -> None:
    body = status_body(status)
    assert status_of({"status": json.loads(json.dumps(body))}) == status
    assert status_body(status_of({"status": body})) == body


def test_a_record_that_has_not_changed_is_written_as_it_was_read() -> None:
    """The very same mapping: nothing of it is compared, or sent."""
    raw = {"state": "Completed", "started": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:01:00Z"}
    plan = {"status": {"currentPhase": "NodeUpgrading", "steps": {"NodeUpgrade": {"records": {"PreDrain/n1": raw}}}}}
    status, key = status_of(plan), ("NodeUpgrade", "PreDrain", "n1")
    assert status_body(status)["steps"]["NodeUpgrade"]["records"]["PreDrain/n1"] is raw
    record = status.record(key)
    assert record is not None
    changed = status_body(status.with_record(key, replace(record, message="late")))
    assert changed["steps"]["NodeUpgrade"]["records"]["PreDrain/n1"] == {**raw, "message": "late"}


@pytest.mark.slow
@given(statuses, statuses)
@settings(max_examples=examples(150), deadline=None)
def test_what_has_changed_is_read_and_written_as_if_nothing_were_known(old: PlanStatus, new: PlanStatus) -> None:
    before = status_of({"status": status_body(old)})
    body = status_body(replace(new, read=before.read))
    assert body == status_body(new)
    assert status_of({"status": body}, before) == status_of({"status": copy.deepcopy(body)}) == new
    assert status_body(status_of({"status": copy.deepcopy(body)}, before)) == body


def test_a_node_that_has_moved_is_read_and_the_others_are_as_they_were() -> None:
    record = StepRecord(state=StepState.STARTED, started=NOW)
    status = PlanStatus().with_record(("P", "A", "n1"), record).with_record(("P", "A", "n2"), record)
    before = status_of({"status": status_body(status)})
    body = status_body(before.with_record(("P", "A", "n2"), replace(record, state=StepState.APPLIED)))
    after = status_of({"status": body}, before)
    assert after.records["P", "n1"] is before.records["P", "n1"]
    assert body["steps"]["P"]["records"]["A/n1"] is status_body(before)["steps"]["P"]["records"]["A/n1"]
    assert after.records["P", "n2"]["A"].state is StepState.APPLIED
    assert status_body(before)["steps"] is before.read.body


def test_fields_of_another_version_are_kept() -> None:
    body = {"currentPhase": "X", "later": {"a": [1, None]}, "nodeUpgradeStatuses": {"n": {"state": "New", "extra": 1}}}
    assert status_body(status_of({"status": body})) == body


def test_no_status_is_an_empty_one() -> None:
    assert status_of({}) == PlanStatus()
    assert status_body(PlanStatus()) == {}


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2, word for word."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@pytest.mark.slow
@given(bodies, bodies)
@settings(max_examples=examples(150), deadline=None)
def test_a_patch_makes_one_body_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_patch(copy.deepcopy(old), copy.deepcopy(new))
    assert merged(old, patch) == new
    assert (patch == {}) == (old == new)


@given(bodies, bodies)
@settings(max_examples=examples(60), deadline=None)
def test_a_patch_says_nothing_that_is_so_already(old: dict[str, Any], new: dict[str, Any]) -> None:
    for key in merge_patch(old, new):
        assert old.get(key) != new.get(key) or (key in old) != (key in new)


def test_a_node_that_only_moves_forward() -> None:
    status = PlanStatus().with_node("n", "PostDraining", NODE_STATES)
    assert status.with_node("n", "PreDrained", NODE_STATES) is status
    assert status.with_node("n", "WaitingReboot", NODE_STATES).node_states["n"] == {"state": "WaitingReboot"}
    failed = status.with_node("n", "PostDrainFailed", NODE_STATES, reason="Why", message="because")
    assert failed.node_states["n"] == {"state": "PostDrainFailed", "reason": "Why", "message": "because"}


def test_a_conditions_time_moves_with_its_status_and_only_then() -> None:
    said = PlanCondition(type="Ready", status="False", reason="A", message="m")
    first = with_condition((), said, now=NOW, generation=1)
    later = NOW + timedelta(hours=1)
    assert with_condition(first, said, now=later, generation=1) == first
    other = with_condition(first, PlanCondition(type="Ready", status="False", reason="B"), now=later, generation=1)
    assert (other[0]["reason"], other[0]["lastTransitionTime"]) == ("B", first[0]["lastTransitionTime"])
    turned = with_condition(first, PlanCondition(type="Ready", status="True", reason="C"), now=later, generation=1)
    assert turned[0]["lastTransitionTime"] == "2026-01-01T01:00:00Z"


def test_what_is_folded_is_still_over() -> None:
    done, skipped = StepRecord(state=StepState.COMPLETED, started=NOW, ended=NOW), StepState.SKIPPED
    status = PlanStatus().with_record(("P", "A", "n"), done)
    status = status.with_record(("P", "B", "n"), StepRecord(state=skipped, started=NOW, ended=NOW)).fold("P", "n")
    assert not status.records
    assert [status.is_over(("P", step, "n")) for step in "ABC"] == [True, True, False]
    assert [status.has_completed(("P", step, "n")) for step in "ABC"] == [True, False, False]
    assert status_of({"status": status_body(status)}) == status


@pytest.mark.slow
@pytest.mark.parametrize("in_flight", [1, 50])
def test_a_thousand_nodes_fit(in_flight: int) -> None:
    """etcd refuses more than 1.5 MB; the plan may take less than half of it."""
    body = status_body(largest_status(in_flight=in_flight))
    assert len(body["steps"]["NodeUpgrade"]["done"]) == 1000 - in_flight
    assert len(json.dumps(body, separators=(",", ":")).encode()) <= LIMIT


@pytest.mark.slow
def test_a_thousand_nodes_fit_with_what_the_server_adds() -> None:
    """The server's own record of who set which field counts as well."""
    found = world("n1")
    found.set_status(**status_body(largest_status(in_flight=1)))
    assert found.plan["metadata"]["managedFields"]
    assert len(json.dumps(found.plan, separators=(",", ":")).encode()) <= LIMIT
