"""Borrowed fields: what is recorded, what is written, and that exactly the originals come back.

Each file of `diff_cases/borrow` is a story: the manifest, the object, what others do meanwhile, and what is left.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.borrow import claim
from reconcile.borrow.fields import Patch, fields_of, patch_of, present_at
from reconcile.borrow.loan import Loan, Original, on_loan, path_of, pointer, record, settle
from reconcile.borrow.returns import ReturnPlan, has_drifted, plan_return
from reconcile.borrow.strategies import STRATEGIES, BorrowedField, BorrowStrategy
from reconcile.borrow.take import TakePlan, Taking, plan_take
from reconcile.objects import FIELD_MANAGER
from reconcile.schemas import packaged_schemas
from reconcile.simulator.apiserver.patches import json_patched, merge_patched
from renderer.catalog.borrow_options import BORROW_OPTIONS, BorrowOptionSpec
from renderer.catalog.declare import step_from
from renderer.layout.index import _care
from renderer.model.manifest_spec import Borrowed, BorrowOption, Occasion
from renderer.model.path import ABSENT
from renderer.model.phase import Position
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Ref, ref_of
from renderer.source_document import SourceDocument, without_lines
from renderer.validation import problems

STORIES = File(__file__).parent / "diff_cases" / "borrow"
TAKEN = "2026-11-28T09:00:00Z"
RETURNED = "2026-11-28T10:00:00Z"
PLAN_SCHEMA = "built/upgradeplan.json"
SCHEMAS = packaged_schemas()
QUANTITIES = SCHEMAS.quantities_of({})  # of things that no schema knows
REF = Ref(api_version="v1", kind="Thing", namespace="ns", name="it")


@pytest.mark.parametrize("file", sorted(STORIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_story(file: File) -> None:
    story = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec = borrowed(story["borrowed"])
    manifest, live = story["manifest"], with_version(story["live"])
    is_quantity = SCHEMAS.quantities_of(manifest)

    taken = plan_take(manifest, spec, live, is_quantity)

    assert told(taken) == story["take"]
    if taken.patch is None:
        return
    loans = record((), taken.originals, phase="P", step="S", ref=ref_of(manifest), taken=TAKEN)
    live = after(live, taken.patch)
    assert plan_take(manifest, spec, live, is_quantity).taking is Taking.SATISFIED
    for chapter in story.get("then", ()):
        live = merge_patched(live, chapter.get("meanwhile") or {})
        plan = plan_return(manifest, spec, live, loans, Occasion(chapter["on"]), is_quantity)
        assert list(plan.left) == chapter.get("left", [])
        live = after(live, plan.patch)
        loans = settle(loans, plan.settled, RETURNED)
        assert without_version(live) == chapter["object"]
        assert [pointer(loan.original.path) for loan in on_loan(loans, ref_of(manifest))] == chapter.get("onLoan", [])


def borrowed(raw: Mapping[str, Any]) -> Borrowed:
    """As `phase.yaml` declares it."""
    (spec,) = step_from({"name": "S", "borrowed": [{"file": "it.yaml.j2", **raw}]}, Position.DURING).manifests
    assert isinstance(spec, Borrowed)
    return spec


def told(plan: TakePlan) -> dict[str, Any]:
    parts = {
        "taking": str(plan.taking),
        "because": plan.because,
        "originals": [original_text(original) for original in plan.originals],
        "merge": plan.patch.merge if plan.patch else None,
        "operations": list(plan.patch.operations) if plan.patch else None,
    }
    return {key: value for key, value in parts.items() if value not in (None, "", [])}


def original_text(original: Original) -> dict[str, Any]:
    path = pointer(original.path)
    return {"path": path} if original.value is ABSENT else {"path": path, "value": original.value}


def with_version(live: Any) -> Any:
    return live and {**live, "metadata": {**live["metadata"], "resourceVersion": "7"}}


def without_version(live: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in live["metadata"].items() if key != "resourceVersion"}
    return {**live, "metadata": metadata}


def after(live: Any, patch: Patch | None) -> Any:
    """What a server has after the patch, which it would refuse if it were for another state of the object."""
    if patch is None:
        return live
    if patch.merge is None:
        return json_patched(live, patch.operations)
    return merge_patched(live, patch.merge)


KEYS = st.sampled_from("abcd")
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "1"])
LISTS = st.lists(st.one_of(SCALARS, st.dictionaries(KEYS, SCALARS, max_size=2)), max_size=3)
TREES = st.recursive(SCALARS | LISTS, lambda below: st.dictionaries(KEYS, below, max_size=3), max_leaves=8)
SPECS = st.dictionaries(KEYS, TREES, max_size=4)
SAME_EACH_TIME = settings(derandomize=True, deadline=None)  # the machine may be busy


def thing(spec: Any) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": spec}


@pytest.mark.slow
@SAME_EACH_TIME
@given(expected=SPECS, there=SPECS)
def test_what_is_taken_is_given_back_exactly(expected: Any, there: Any) -> None:
    """Whatever the shapes, the object is in the end what it was, null, empty and absent told apart."""
    spec, live = borrowed({"return": "always"}), with_version(thing(there))

    taken = plan_take(thing(expected), spec, live, QUANTITIES)
    loans = record((), taken.originals, phase="P", step="S", ref=REF, taken=TAKEN)
    changed = after(live, taken.patch)
    plan = plan_return(thing(expected), spec, changed, loans, Occasion.FAILURE, QUANTITIES)

    assert plan.left == ()
    assert after(changed, plan.patch) == live
    assert plan.settled == loans


@pytest.mark.slow
@SAME_EACH_TIME
@given(expected=SPECS, there=SPECS)
def test_what_is_taken_is_what_the_manifest_says(expected: Any, there: Any) -> None:
    spec, live = borrowed({"return": "never"}), with_version(thing(there))

    taken = plan_take(thing(expected), spec, live, QUANTITIES)
    again = plan_take(thing(expected), spec, after(live, taken.patch), QUANTITIES)

    assert again.taking is Taking.SATISFIED
    if taken.patch is not None:
        assert taken.taking is Taking.TAKE
        assert after(live, taken.patch) != live


@pytest.mark.slow
@SAME_EACH_TIME
@given(expected=SPECS, there=SPECS, theirs=st.dictionaries(st.sampled_from("xyz"), TREES, min_size=1, max_size=2))
def test_what_others_add_meanwhile_stays(expected: Any, there: Any, theirs: Any) -> None:
    """Fields that neither we nor the object had, everywhere in it."""
    spec, live = borrowed({"return": "always"}), with_version(thing(there))
    taken = plan_take(thing(expected), spec, live, QUANTITIES)
    loans = record((), taken.originals, phase="P", step="S", ref=REF, taken=TAKEN)
    changed = sprinkled(after(live, taken.patch), theirs)

    plan = plan_return(thing(expected), spec, changed, loans, Occasion.SUCCESS, QUANTITIES)
    final = after(changed, plan.patch)

    for path in places_of(changed):
        assert looked_up(final, path).items() >= theirs.items()


def sprinkled(value: Any, more: Any) -> Any:
    """`more` in every mapping of a spec."""
    if not isinstance(value, dict):
        return value
    below = {key: item if key == "metadata" else sprinkled(item, more) for key, item in value.items()}
    return below | copy.deepcopy(more)


def places_of(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return []
    below = [place for key, item in value.items() if key not in "xyz" for place in places_of(item, (*path, key))]
    return [path, *below] if path != ("metadata",) else []


def looked_up(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        value = value[step]
    return value


def original(path: str, value: Any = ABSENT) -> Original:
    return Original(path=path_of(path), value=value)


def recorded(loans: Sequence[Loan], *originals: Original, step: str = "S") -> tuple[Loan, ...]:
    return record(loans, originals, phase="P", step=step, ref=REF, taken=TAKEN)


def paths(loans: Sequence[Loan]) -> list[tuple[str, str, Any]]:
    return [(loan.step, pointer(loan.original.path), loan.original.value) for loan in loans]


def test_a_retry_after_the_write_keeps_the_first_original() -> None:
    """The write went through, the answer was lost; the second plan finds its own value and records nothing."""
    spec, manifest = borrowed({"return": "always", "raiseOnly": True}), thing({"value": "1800"})
    live = with_version(thing({"value": "600"}))
    first = plan_take(manifest, spec, live, QUANTITIES)
    loans = recorded((), *first.originals)

    again = plan_take(manifest, spec, after(live, first.patch), QUANTITIES)

    assert recorded(loans, *again.originals) == loans
    assert paths(loans) == [("S", "/spec/value", "600")]


def test_what_is_overwritten_now_is_what_goes_back() -> None:
    """Somebody changed the field between the record and the write, which was refused as stale."""
    loans = recorded((), original("/spec/value", "600"))
    assert paths(recorded(loans, original("/spec/value", "900"))) == [("S", "/spec/value", "900")]


def test_an_original_below_a_parent_of_ours_is_covered() -> None:
    loans = recorded((), original("/spec/a"))
    assert recorded(loans, original("/spec/a/b")) == loans


def test_a_parent_that_has_gone_takes_the_place_of_what_was_in_it() -> None:
    loans = recorded((), original("/spec/a/b", 1), original("/spec/ab", 2))
    assert paths(recorded(loans, original("/spec/a"))) == [("S", "/spec/ab", 2), ("S", "/spec/a", ABSENT)]


def test_steps_keep_records_of_their_own() -> None:
    loans = recorded(recorded((), original("/v", 1)), original("/v", 2), step="T")
    assert paths(loans) == [("S", "/v", 1), ("T", "/v", 2)]


def test_a_returned_loan_is_not_touched_again() -> None:
    loans = settle(recorded((), original("/v", 1)), recorded((), original("/v", 1)), RETURNED)
    assert on_loan(loans, REF) == ()
    assert [loan.returned for loan in recorded(loans, original("/v", 2))] == [RETURNED, None]


@pytest.mark.parametrize("value", [ABSENT, None, "", [], {}, 0, False, "600", {"a": [None]}])
def test_a_loan_survives_its_status(value: Any) -> None:
    (loan,) = recorded((), original("/metadata/annotations/a.b~1c~0d", value))
    item = loan.to_status()
    assert Loan.from_status(item) == loan
    assert loan.original.path == ("metadata", "annotations", "a.b/c~d")
    assert (item["absent"], "value" in item) == (value is ABSENT, value is not ABSENT and value is not None)


def test_a_status_item_is_what_the_api_takes() -> None:
    plan = {"metadata": {"name": "p"}, "spec": {"version": "v1"}, "apiVersion": PLAN_API_VERSION, "kind": "UpgradePlan"}
    loans = settle(recorded((), original("/spec/a~1b", None)), recorded((), original("/spec/a~1b", None)), RETURNED)
    status = {"borrowed": [loan.to_status() for loan in (*loans, *recorded((), original("/v")))]}
    assert problems(SourceDocument(body={**plan, "status": status}, document=without_lines({}, "p")), PLAN_SCHEMA) == []


CLAIM = {"manager": FIELD_MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}, "f:list": {}}}}
OTHERS = {"manager": "rancher", "operation": "Update", "fieldsV1": {"f:spec": {"f:b": {}}}}


def claimed(*entries: Any) -> dict[str, Any]:
    return {"metadata": {"name": "it", "managedFields": list(entries)}}


def test_the_manager_is_the_cluster_doors() -> None:
    assert claim.MANAGER == FIELD_MANAGER


def test_only_our_claims_are_released_the_last_one_first() -> None:
    live = claimed(CLAIM, OTHERS, {**CLAIM, "apiVersion": "v2"})
    assert [(op["op"], op["path"]) for op in claim.release_of(live)] == [
        ("test", "/metadata/managedFields/2"),
        ("remove", "/metadata/managedFields/2"),
        ("test", "/metadata/managedFields/0"),
        ("remove", "/metadata/managedFields/0"),
    ]
    assert json_patched(live, claim.release_of(live)) == claimed(OTHERS)


def test_a_sole_claim_is_replaced_by_the_servers_word_for_none() -> None:
    assert json_patched(claimed(CLAIM), claim.release_of(claimed(CLAIM))) == claimed({})


@pytest.mark.parametrize("other", [{"operation": "Apply"}, {"subresource": "status"}, {"manager": "kubectl"}])
def test_no_other_claim_is_ours(other: Any) -> None:
    assert claim.release_of(claimed(CLAIM | other)) == ()
    assert not claim.is_claimed(claimed(CLAIM | other), ("spec", "a"))


def test_an_object_without_claims_needs_no_release() -> None:
    assert claim.release_of({"metadata": {"name": "it"}}) == ()


@pytest.mark.parametrize(("path", "ours"), [("/spec/a", True), ("/spec/b", False), ("/spec/list", True), ("/v", False)])
def test_claims_tell_whose_a_field_is(path: str, ours: bool) -> None:
    assert claim.is_claimed(claimed(CLAIM, OTHERS), path_of(path)) is ours


@pytest.mark.parametrize(("manager", "value"), [(FIELD_MANAGER, "600"), ("kubectl", "1800")])
def test_a_template_that_is_gone_leaves_the_answer_to_the_claim(manager: str, value: str) -> None:
    """Our own program may be upgraded in the middle; then nobody knows what the manifest had said."""
    live = with_version(thing({"value": "1800"}))
    live["metadata"]["managedFields"] = [{**CLAIM, "manager": manager, "fieldsV1": {"f:spec": {"f:value": {}}}}]
    loans = recorded((), original("/spec/value", "600"))

    plan = plan_return(thing({}), borrowed({"return": "always"}), live, loans, Occasion.SUCCESS, QUANTITIES)

    assert after(live, plan.patch)["spec"] == {"value": value}
    assert plan.settled == loans


def test_an_object_that_is_gone_settles_its_loans() -> None:
    loans = recorded((), original("/spec/a", 1), original("/spec/b", 2))
    plan = plan_return(
        thing({"a": 3, "b": 4}), borrowed({"return": "always"}), None, loans, Occasion.SUCCESS, QUANTITIES
    )
    assert plan == ReturnPlan(settled=loans, left=("Thing ns/it is gone",))


def test_what_goes_back_on_different_occasions_stays_on_loan_until_the_last() -> None:
    spec = borrowed({"return": {"completed": ["spec.a.b"], "success": "all"}})
    manifest, live = thing({"a": {"b": 1, "c": 2}}), with_version(thing({}))
    taken = plan_take(manifest, spec, live, QUANTITIES)
    loans = recorded((), *taken.originals)

    early = plan_return(manifest, spec, after(live, taken.patch), loans, Occasion.COMPLETED, QUANTITIES)
    assert after(after(live, taken.patch), early.patch)["spec"] == {"a": {"c": 2}}
    assert early.settled == ()

    late = plan_return(
        manifest, spec, after(after(live, taken.patch), early.patch), loans, Occasion.SUCCESS, QUANTITIES
    )
    assert late.patch == Patch(merge={"metadata": {"resourceVersion": "7"}, "spec": {"a": None}})
    assert late.settled == loans


def test_secret_values_are_not_told() -> None:
    manifest = {**thing({}), "kind": "Secret", "data": {"password": "b3Vycw=="}}
    live = with_version({**thing({}), "kind": "Secret", "data": {"password": "dGhlaXJz"}})
    loans = recorded((), original("/data/password"))
    plan = plan_return(manifest, borrowed({"return": "always"}), live, loans, Occasion.SUCCESS, QUANTITIES)
    assert plan.left == ("data.password was changed by somebody else and is not restored",)


def test_fields_are_lists_scalars_and_empty_mappings_without_the_identity() -> None:
    manifest = thing({"a": {"b": [{"c": 1}]}, "d": {}, "e": None})
    assert dict(fields_of(manifest)) == {("spec", "a", "b"): [{"c": 1}], ("spec", "d"): {}, ("spec", "e"): None}


@pytest.mark.parametrize(
    ("path", "stands"),
    [
        ("/a/b", (("a", "b"), 1)),
        ("/a/c/d", (("a", "c"), ABSENT)),
        ("/a/b/c", (("a", "b"), 1)),
        ("/a", (("a",), {"b": 1})),
    ],
)
def test_standing(path: str, stands: Any) -> None:
    assert present_at({"a": {"b": 1}}, path_of(path)) == stands


def test_a_patch_with_a_null_deep_in_a_list_is_a_json_patch() -> None:
    patch = patch_of({("a", "b"): [{"c": None}], ("d",): ABSENT}, None)
    assert patch.merge is None
    assert json_patched({"a": {}, "d": 1}, patch.operations) == {"a": {"b": [{"c": None}]}}


GENERAL = {"file", "when", "return", "whenAbsent", "originalsOnTakeOver", "originalsInAnnotations", "leftOvers"}
"""What every borrowed manifest may say, whatever its strategy."""


def test_each_option_of_a_borrowed_manifest_is_a_row_of_both_tables() -> None:
    """And a key of the schema: `phase.yaml` can say no more and no less."""
    schema = json.loads((File(__file__).parents[1] / "schemas" / "phase.json").read_text(encoding="utf-8"))
    declared = set(schema["$defs"]["borrowed"]["properties"]) - GENERAL
    assert declared == set(BORROW_OPTIONS) == set(STRATEGIES)


def test_a_strategy_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only lowers: declared, shown to a reviewer, written, left to others, given back."""

    def why_not_lowered(field: BorrowedField) -> str | None:
        return "not more" if field.value <= field.expected else None

    spec = BorrowOptionSpec(read=lambda raw: BorrowOption(name="lowerOnly"), index=lambda option: {"lowered": True})
    monkeypatch.setitem(BORROW_OPTIONS, "lowerOnly", spec)
    monkeypatch.setitem(STRATEGIES, "lowerOnly", BorrowStrategy(kept=why_not_lowered, reads_live=True, may_drift=True))
    declared, manifest = borrowed({"return": "always", "lowerOnly": True}), thing({"a": 5, "b": 5})

    assert _care(declared) == {"whenAbsent": None, "lowered": True}
    taken = plan_take(manifest, declared, with_version(thing({"a": 3, "b": 9})), QUANTITIES)
    assert told(taken) == {
        "taking": "take",
        "because": "not more",
        "originals": [{"path": "/spec/b", "value": 9}],
        "merge": {"metadata": {"resourceVersion": "7"}, "spec": {"b": 5}},
    }
    (b,) = taken.originals
    changed = with_version(thing({"a": 3, "b": 1}))
    assert not has_drifted(manifest, declared, changed, b, QUANTITIES)
    assert has_drifted(manifest, borrowed({"return": "always"}), changed, b, QUANTITIES)
    loans = recorded((), b)
    back = plan_return(manifest, declared, after(with_version(thing({"a": 3, "b": 9})), taken.patch), loans, *ENDED)
    assert back.patch == Patch(merge={"metadata": {"resourceVersion": "7"}, "spec": {"b": 9}})


ENDED = (Occasion.SUCCESS, QUANTITIES)


def test_drift_of_a_field_beside_a_union_is_seen() -> None:
    """The union's list may be changed by others; its neighbour may not."""
    union = {"path": "spec.list", "keys": ["name"], "values": "values"}
    spec = borrowed({"return": "always", "union": union})
    manifest = thing({"list": [{"name": "a", "values": ["x"]}], "mode": "ours"})
    live = with_version(thing({"list": [], "mode": "theirs"}))
    originals = (original(f"/spec/{name}", None) for name in ("list", "mode"))
    drifted = [has_drifted(manifest, spec, live, was, QUANTITIES) for was in originals]
    assert drifted == [False, True]


def test_drift_of_a_quantity_is_another_amount() -> None:
    spec, manifest = borrowed({"return": "always"}), with_kind(thing({"overhead": {"cpu": "1000m"}}))
    is_quantity = SCHEMAS.quantities_of(manifest)
    was = original("/spec/overhead/cpu", "2")
    assert not has_drifted(manifest, spec, with_kind(thing({"overhead": {"cpu": "1"}})), was, is_quantity)
    assert has_drifted(manifest, spec, with_kind(thing({"overhead": {"cpu": "2"}})), was, is_quantity)


def with_kind(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "apiVersion": "v1", "kind": "Pod"}


def test_a_request_is_answered_only_on_the_object_that_had_it() -> None:
    """It may be taken away meanwhile, and the answer would stay for another one."""
    spec, live = borrowed({"return": "never"}), with_version(thing({}))
    answered = plan_take(thing({"a": 1}), spec, live, QUANTITIES, answers=True)
    assert answered.patch == Patch(merge={"metadata": {"resourceVersion": "7"}, "spec": {"a": 1}})
    assert plan_take(thing({"a": 1}), spec, live, QUANTITIES).patch == Patch(merge={"spec": {"a": 1}})
