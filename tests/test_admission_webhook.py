"""The answers of the validating webhook: what is asked, what is refused, and in which words."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.admission_cases import SECONDS, GivenCluster, case, judge_of, paths, review_of, source_of
from support.preflight_cases import checks

from reconcile.admission.review import (
    ADMITTED,
    Judgement,
    ReviewError,
    read_review,
    write_review,
)
from reconcile.cluster.errors import StatusCause
from reconcile.observe.timed import TimedSource
from reconcile.probes.look import Group, ReadFailure
from renderer.model.ref import Body


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    found = case(path)
    source = source_of(found)
    with judge_of(source) as judge:
        judgement = judge.judge(found.request, SECONDS)
    expected = found.head["expect"]
    shown = [(cause.field, cause.reason) for cause in judgement.causes]
    assert shown == [(cause["field"], cause["reason"]) for cause in expected["causes"]], judgement
    for cause, said in zip(judgement.causes, expected["causes"], strict=True):
        assert cause.message.startswith(said["message"])
    for warning in expected.get("warnings", ()):
        assert any(said.startswith(warning) for said in judgement.warnings), judgement.warnings


def test_no_check_shows_the_whole_spec_as_a_value() -> None:
    """`Not found` and `Invalid value` are said of a value, which stands in the message."""
    whole = [item.check.id for item in checks().values() if item.check.denial.field == "spec"]
    assert len(whole) > 30
    assert {item.check.denial.cause for item in checks().values() if item.check.id in whole} == {"Forbidden"}


def test_a_read_that_never_ends_is_given_up_in_time() -> None:
    pods, ended = Group(api_version="v1", kind="Pod"), Event()

    class SilentSource(GivenCluster):
        def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
            ended.wait()
            return ()

    with ThreadPoolExecutor(1) as pool:
        try:
            found = TimedSource(SilentSource(iter(())), pool, 0.1, time.monotonic).list(pods)
        finally:
            ended.set()
    assert isinstance(found, ReadFailure)
    assert found.why == "Pod objects: no answer within 0.1 s"


def test_plans_are_judged_one_after_the_other() -> None:
    """Each takes the lists of a whole cluster into memory."""
    asked, may_go = Event(), Event()

    class SlowSource(GivenCluster):
        def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
            asked.set()
            may_go.wait()
            return super().list(group)

    request = read_review(json.dumps(review_of()).encode())
    with judge_of(SlowSource(iter(()))) as judge, ThreadPoolExecutor(1) as other:
        first = other.submit(judge.judge, request, SECONDS)
        asked.wait()
        (cause,) = judge.judge(request, 0.001).causes
        may_go.set()
        assert first.result().causes
    assert (cause.reason, cause.field) == ("InternalError", "")
    assert "another plan is being checked" in cause.message


def test_a_refusal_is_worded_as_the_api_servers_own() -> None:
    request = read_review(json.dumps(review_of()).encode())
    one = StatusCause(field="spec.version", reason="FieldValueNotFound", message='Not found: "v9"')
    two = StatusCause(field="", reason="InternalError", message="Internal error: no answer")
    response = write_review(request, Judgement(causes=(one, two), warnings=("look",)))["response"]
    assert (response["uid"], response["allowed"], response["warnings"]) == (request.uid, False, ["look"])
    assert response["status"] == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": 'UpgradePlan.management.harvesterhci.io "up" is invalid: '
        '[spec.version: Not found: "v9", Internal error: no answer]',
        "details": {
            "group": "management.harvesterhci.io",
            "kind": "UpgradePlan",
            "name": "up",
            "causes": [
                {"reason": "FieldValueNotFound", "message": 'Not found: "v9"', "field": "spec.version"},
                {"reason": "InternalError", "message": "Internal error: no answer", "field": ""},
            ],
        },
    }


def test_who_is_admitted_gets_no_status() -> None:
    request = read_review(json.dumps(review_of()).encode())
    answer = write_review(request, ADMITTED)
    assert answer["response"] == {"uid": request.uid, "allowed": True}
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")


def changed(**request: Any) -> bytes:
    review = json.loads(json.dumps(review_of()))
    review["request"] |= request
    return json.dumps(review).encode()


MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no text": b"\xff\xfe{}",
    "deeply nested": b"[" * 100_000,
    "no object": b"[]",
    "another kind": json.dumps({**review_of(), "kind": "Pod"}).encode(),
    "an older version": json.dumps({**review_of(), "apiVersion": "admission.k8s.io/v1beta1"}).encode(),
    "no request": json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).encode(),
    "an empty uid": changed(uid=""),
    "a uid that is a number": changed(uid=7),
    "a resource that is text": changed(resource="upgradeplans"),
    "an object that is a list": changed(object=[]),
    "no object to create": changed(object=None),
    "an object of another kind": changed(object={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}),
    "a spec that is a list": changed(object={**review_of()["request"]["object"], "spec": []}),
    "a pause list that is text": changed(
        object={**review_of()["request"]["object"], "spec": {"nodeUpgradeOption": {"pauseNodes": "a"}}}
    ),
    "annotations that are text": changed(
        object={**review_of()["request"]["object"], "metadata": {"name": "up", "annotations": "x"}}
    ),
    "no metadata": changed(object={"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan"}),
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_review_is_malformed(content: bytes) -> None:
    with pytest.raises(ReviewError):
        read_review(content)


def test_an_object_of_another_resource_is_let_through_and_said() -> None:
    pods = changed(
        resource={"group": "", "version": "v1", "resource": "pods"},
        object={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
    )
    with judge_of(source_of(case(paths()[0]))) as judge:
        judgement = judge.judge(read_review(pods), SECONDS)
        assert (judgement.causes, len(judgement.warnings)) == ((), 1)
        assert judge.judge(read_review(changed(subResource="status")), SECONDS).causes == ()


def test_the_name_that_is_still_to_be_made_is_said_by_its_beginning() -> None:
    plan = {**review_of()["request"]["object"], "metadata": {"generateName": "hvst-upgrade-"}}
    request = read_review(changed(object=plan, name=""))
    status = write_review(request, Judgement(causes=(StatusCause(field="spec", reason="x", message="y"),)))["response"]
    assert status["status"]["details"]["name"] == "hvst-upgrade-"
