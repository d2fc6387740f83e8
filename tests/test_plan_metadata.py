"""A plan's metadata and its integers: what the API server would refuse is refused in a file, and nothing else is.

One table, asked of us and of a real API server.
"""

from __future__ import annotations

from typing import Any

import pytest
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane

from renderer.input_rules import PLAN_SCHEMA, plan_problems
from renderer.source_document import SourceDocument, without_lines
from renderer.validation import load
from renderer.validation.nulls import without_nulls
from schemas import served

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
GOOD: dict[str, dict[str, Any]] = {
    "labels": {"metadata": {"labels": {"a": "", "a.b/C_d": "x" * 63, "x": "1.10"}}},
    "annotations": {"metadata": {"annotations": {"a": "any text", "A/B": "x" * (2**18 - 12)}}},
    "finalizers": {"metadata": {"finalizers": ["x/y"]}},
    "owners": {"metadata": {"ownerReferences": [{**OWNER, "controller": True}]}},
    "the largest integer": {"spec": {"version": "v1", "imagePreloadOption": {"concurrency": 2**63 - 1}}},
}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a label with a blank": (
        {"metadata": {"labels": {"x": "a b"}}},
        "metadata.labels.x: 'a b' is not a valid label value",
    ),
    "a long label": ({"metadata": {"labels": {"x": "a" * 64}}}, "is not a valid label value"),
    "a label's key with a blank": ({"metadata": {"labels": {"x y": "a"}}}, "'x y' cannot be the key of a label"),
    "a label without key": ({"metadata": {"labels": {"": "a"}}}, "'' cannot be the key of a label"),
    "a label's key with two slashes": ({"metadata": {"labels": {"a/b/c": "x"}}}, "'a/b/c' cannot be the key"),
    "a label's prefix in capitals": ({"metadata": {"labels": {"A/b": "x"}}}, "'A/b' cannot be the key of a label"),
    "an annotation's key": ({"metadata": {"annotations": {"x y": "1"}}}, "cannot be the key of an annotation"),
    "large annotations": (
        {"metadata": {"annotations": {"a": "x" * (2**18)}}},
        "metadata.annotations: have 262145 bytes in total; at most 262144 are allowed",
    ),
    "a finalizer without name": (
        {"metadata": {"finalizers": [""]}},
        "metadata.finalizers[0]: '' cannot be the name of a finalizer",
    ),
    "an owner without fields": ({"metadata": {"ownerReferences": [{}]}}, "ownerReferences[0].uid: is missing"),
    "an owner's uid that is no text": (
        {"metadata": {"ownerReferences": [{**OWNER, "uid": True}]}},
        "ownerReferences[0].uid: true is not a string",
    ),
    "an owner's stranger": (
        {"metadata": {"ownerReferences": [{**OWNER, "nane": "x"}]}},
        "unknown field 'nane'; did you mean 'name'?",
    ),
    "an integer too large": (
        {"spec": {"version": "v1", "imagePreloadOption": {"concurrency": 2**63}}},
        "spec.imagePreloadOption.concurrency: 9223372036854775808 is more than 9223372036854775807",
    ),
    "an integer too small": (
        {"spec": {"version": "v1", "imagePreloadOption": {"concurrency": -(2**63) - 1}}},
        "spec.imagePreloadOption.concurrency: -9223372036854775809 is less than -9223372036854775808",
    ),
}


def plan(parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "p", **parts.get("metadata", {})},
        "spec": parts.get("spec", {"version": "v1"}),
    }


def told(parts: dict[str, Any]) -> list[str]:
    body = without_nulls(plan(parts), load(PLAN_SCHEMA))
    return [
        str(problem) for problem in plan_problems(SourceDocument(body=body, document=without_lines(body, "plan.yaml")))
    ]


@pytest.mark.parametrize("what", GOOD)
def test_what_the_api_server_takes_is_taken(what: str) -> None:
    assert told(GOOD[what]) == []


@pytest.mark.parametrize("what", BAD)
def test_what_the_api_server_refuses_is_refused(what: str) -> None:
    parts, message = BAD[what]
    assert any(message in text and "remedy: " in text for text in told(parts)), told(parts)


def test_the_api_server_says_the_same(clean_control_plane: ControlPlane) -> None:
    where = f"{served.path(plan({}))}?dryRun=All&fieldValidation=Strict"
    for parts in GOOD.values():
        clean_control_plane.api.create(where, plan(parts))
    for parts, _ in BAD.values():
        with pytest.raises(ApiError, match=r": 4(00|22) "):
            clean_control_plane.api.create(where, plan(parts))
