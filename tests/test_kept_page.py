"""A page of a list is read as far as its objects are kept, and is the same as if it had been read whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.preflight_cases import case, paths, template_set
from support.rendered_plans import Json

from reconcile.cluster.kept_page import read_page
from reconcile.observe.kept_fields import for_checks
from renderer.model.path import parse_path

KINDS = template_set().catalog.kinds
PATHS = tuple(map(parse_path, ("apiVersion", "kind", "metadata.name", "spec.a.b", "status")))


def page(*items: Any, **metadata: str) -> bytes:
    return json.dumps({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": list(items)}).encode()


def items(content: bytes, wanted: Sequence[Any] = PATHS) -> list[Json] | None:
    found = read_page(content, tuple(wanted))
    return None if found is None else found["items"]


@pytest.mark.parametrize("path", paths(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_is_kept_is_the_same(path: Path) -> None:
    for body in case(path).bodies:
        row = KINDS.find(str(body["apiVersion"]), str(body["kind"]))
        keep = for_checks(row) if row else None
        if keep and keep.paths:
            read = items(page(json.loads(json.dumps(body, default=str))), keep.paths)
            whole = for_checks(row).trim(json.loads(json.dumps(body, default=str))) if row else None
            assert [keep.share(item) for item in read or ()] == [whole]


def test_the_rest_is_skipped() -> None:
    body = {
        "apiVersion": "v1",
        "metadata": {"name": "x", "managedFields": [{}]},
        "spec": {"a": {"b": 1, "c": 2}, "d": 3},
    }
    assert items(page(body)) == [{"apiVersion": "v1", "metadata": {"name": "x"}, "spec": {"a": {"b": 1}}}]


@pytest.mark.parametrize("spec", [None, "text", 7, 7.5, True, [], {}, {"a": None}, {"a": [{"b": 1}, None, "x", 3]}])
def test_a_value_of_another_shape_stays_to_be_found(spec: object) -> None:
    assert items(page({"spec": spec})) == [{"spec": spec}]


@pytest.mark.parametrize(
    "content", [b"<html>", b"", b"[]", b'{"items": 3}', page({"spec": [[1]]}), page(7), page(None)]
)
def test_what_is_no_such_page_is_to_be_read_whole(content: bytes) -> None:
    assert items(content) is None


def test_a_page_says_what_comes_after_it() -> None:
    assert read_page(page(**{"continue": "next", "resourceVersion": "7", "selfLink": "x"}), PATHS) == {
        "metadata": {"continue": "next", "resourceVersion": "7"},
        "items": [],
    }


def test_a_list_of_nothing_is_empty() -> None:
    assert read_page(b'{"metadata": {}, "items": null}', PATHS) == {"metadata": {}, "items": None}
