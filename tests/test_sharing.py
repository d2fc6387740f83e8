"""Values that are alike hold their equal parts in common, and stay what they were."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recordings import recording

from renderer.digest import digest_of
from renderer.frozen import is_frozen
from renderer.model.probe import Fixed, ManifestTarget
from renderer.model.sharing import shared

OWN_PARTS = 300
"""Values that are one node's alone, of its steps in all phases."""
pytestmark = pytest.mark.lane("recordings")

SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.floats() | st.sampled_from(["", "a", "b", "0", "true"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


@given(VALUES, VALUES)
def test_a_value_stays_what_it_is_whatever_it_is_like(value: Any, like: Any) -> None:
    before = repr(value), repr(like)
    assert (repr(shared(value, like)), repr(like)) == before  # a repr tells 1 from True and knows the order of keys


@given(VALUES.filter(lambda value: "nan" not in repr(value)))
def test_of_two_equal_values_one_is_kept_but_for_numbers_that_only_look_equal(value: Any) -> None:
    other = copy.deepcopy(value)
    assert (shared(other, value) is value) or "." in repr(value) or "inf" in repr(value)


def test_equal_parts_are_one_and_others_stand_for_themselves() -> None:
    first = {"name": "one", "spec": {"containers": [{"image": "x" * 50, "env": [{"name": "NODE", "value": "one"}]}]}}
    second = {"name": "two", "spec": {"containers": [{"image": "x" * 50, "env": [{"name": "NODE", "value": "one"}]}]}}
    found = shared(second, first)
    assert found["name"] == "two"
    assert found["spec"] is first["spec"]


def test_nobody_changes_what_is_shared() -> None:
    """After a whole upgrade every manifest still is what it was when its digest was made."""
    rendered = [done.rendered for _, done in recording("three-node") if done.rendered]
    manifests = list(rendered[-1].manifests())
    assert len(manifests) > 25
    assert [item.file for item in manifests if digest_of(item.body) != item.digest] == []
    jobs = [item.body for item in manifests if item.template.endswith("pre-drain-job.yaml.j2")]
    parts = [{id(part) for part in _parts(body)} for body in jobs]
    assert len(jobs) == 3
    assert len(parts[0] & parts[1] & parts[2]) > 10


def test_a_frozen_value_shares_its_equal_parts_and_stays_what_it_was() -> None:
    one = ManifestTarget(file="a.yaml"), Fixed(value=(1, "x"))
    two = ManifestTarget(file="b.yaml"), Fixed(value=(1, "x"))
    found = shared(two, one)
    assert found == two
    assert found[1] is one[1]
    assert shared(Fixed(value=True), Fixed(value=1)).value is True


def test_the_steps_of_a_node_hold_little_that_those_of_another_do_not() -> None:
    """A thousand nodes have to fit into 128 MiB (`make bench`)."""
    rendered = [done.rendered for _, done in recording("three-node") if done.rendered][-1]
    of_node: dict[str, set[int]] = {}
    kept = []
    for phase in rendered.phases:
        for step in phase.steps:
            if step.step.node:
                parts = [*_all_of(step)]
                kept.append(parts)
                of_node.setdefault(step.step.node, set()).update(map(id, parts))
    first, *others = of_node.values()
    assert len(others) == 2
    own = first.difference(*others)
    assert len(own) < OWN_PARTS
    assert len(own) < len(first) / 2


def _all_of(value: Any) -> Iterator[Any]:
    """The value and its parts, scalars among them."""
    yield value
    if is_frozen(value):
        value = [getattr(value, name) for name in type(value).__slots__]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in inner:
        yield from _all_of(part)


def _parts(value: Any) -> Any:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        if isinstance(part, dict | list):
            yield part
            yield from _parts(part)
