"""Names are those of the existing manager, by the rule of wrangler's SafeConcatName: plans find objects by them."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from renderer.names import NAME_LIMIT, label_value, safe_concat

NODE = "rack12-chassis03-blade07-compute-prod-a1.dc.example.com"
VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def sha(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("up", "iso"), "up-iso"),
        (("up", "node-upgrade", "pre-drain", "n1"), "up-node-upgrade-pre-drain-n1"),
        (("up", ""), "up"),
        (("a" * 63,), "a" * 63),
        (("a" * 60, "bc"), "a" * 60 + "-bc"),  # 63 characters fit
        (("a" * 64,), "a" * 57 + "-ffe05"),
        (("a" * 60, "bcd"), "a" * 57 + "-" + sha("a" * 60 + "-bcd", 5)),
        # Index 56 is no letter or digit: one character less, one digit more.
        (("a" * 56, "bcdefghi"), "a" * 56 + "-" + sha("a" * 56 + "-bcdefghi", 6)),
        (("a" * 56 + ".bcdefghi",), "a" * 56 + "-" + sha("a" * 56 + ".bcdefghi", 6)),
        # Index 55 may be one; two in a row stay, as they do in wrangler.
        (("a" * 55, "bcdefghi"), "a" * 55 + "-b-" + sha("a" * 55 + "-bcdefghi", 5)),
        (("a" * 55 + "--bcdefghi",), "a" * 55 + "--" + sha("a" * 55 + "--bcdefghi", 6)),
        # As the snapshots have it.
        (
            ("hvst-upgrade-864fh", "node-upgrade", "post-drain", "charlie-1-tink-system"),
            "hvst-upgrade-864fh-node-upgrade-post-drain-charlie-1-tink-0665b",
        ),
    ],
)
def test_the_rule(parts: tuple[str, ...], expected: str) -> None:
    assert safe_concat(*parts) == expected
    assert len(expected) <= NAME_LIMIT


def test_a_label_value_is_shortened_only_where_it_must_be() -> None:
    assert label_value(NODE) == NODE
    assert label_value("") == ""
    long = f"{NODE}.of.a.rack"
    assert label_value(long) == long[:57] + "-" + sha(long, 5)


def test_long_names_that_differ_at_the_end_or_in_the_middle_stay_apart() -> None:
    first, second = f"{NODE}-{'x' * 10}1", f"{NODE}-{'x' * 10}2"
    assert safe_concat("up", first) != safe_concat("up", second)


names = st.from_regex(VALID, fullmatch=True).filter(lambda text: len(text) <= 253)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(200))
@given(parts=st.lists(names, min_size=1, max_size=4))
def test_valid_parts_make_a_valid_name_that_is_always_the_same(parts: list[str]) -> None:
    name = safe_concat(*parts)
    assert VALID.fullmatch(name)
    assert len(name) <= NAME_LIMIT
    assert safe_concat(*parts) == name
    assert name == "-".join(parts) or name[:56] == "-".join(parts)[:56]
