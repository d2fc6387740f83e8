"""The table of eligible upgrades, row by row, and how versions are told apart."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from renderer.versions import Version, explained_refusal, first_to, is_older, newest_target, parse_version, refusal

DEVELOPMENT = "upgrading from dev versions to non-dev versions is prohibited"
DOWNGRADE = "downgrading is prohibited"
MINIMUM = "current version does not meet minimum upgrade requirement"
CROSS = "cross-version upgrades from/to any prerelease version are prohibited"
INCOMPARABLE = "incomparable: dev version"
INVALID = "invalid version string"


@pytest.mark.parametrize(
    ("current", "target", "minimum", "expected"),
    [
        # 1. To a development build: always, and whatever the rest says.
        pytest.param("v1.7.1", "f6bc010-dirty", "", None, id="from-a-release"),
        pytest.param("v1.9.0", "main-head", "v1.10.0", None, id="below-the-minimum"),
        pytest.param("f6bc010-dirty", "a1b2c3d", "v1.7.0", None, id="from-development"),
        ("v1.7.1", "v1.8", "v1.9.0", None),  # two numbers are no SemVer
        # 2. From a development build to a release.
        pytest.param("f6bc010-dirty", "v1.8.0", "", DEVELOPMENT, id="strict"),
        ("v1.7-head", "v1.8.0", "v1.7.0", DEVELOPMENT),
        ("main-head", "v1.8.0-rc1", "", DEVELOPMENT),
        # 3. The same again, also below the minimum.
        ("v1.8.0", "v1.8.0", "", None),
        ("1.8.0", "v1.8.0", "", None),
        ("v1.8.0", "v1.8.0", "v1.9.0", None),
        ("v1.8.0-rc1", "v1.8.0-rc1", "v1.9.0", None),
        ("v1.8.0+a", "v1.8.0+b", "", None),  # build metadata takes no part
        # 4. Down, told before the minimum is looked at.
        ("v1.8.0", "v1.7.1", "", DOWNGRADE),
        ("v1.8.0", "v1.8.0-rc5", "", DOWNGRADE),
        pytest.param("v1.8.0-rc2", "v1.8.0-rc1", "", DOWNGRADE, id="back"),
        ("v1.2.2", "v1.2.1", "v1.2.3", DOWNGRADE),
        # 5. The minimum.
        pytest.param("v1.2.1", "v1.2.2", "v1.2.1", None, id="newer"),
        pytest.param("v1.2.0", "v1.2.2", "v1.2.1", MINIMUM, id="older-than-the-minimum"),
        ("v1.6.0", "v1.8.0", "v1.7.0", MINIMUM),
        ("v1.2.0", "v1.2.2", "", None),
        ("v1.2.0-rc1", "v1.2.0", "v1.2.0", MINIMUM),  # a pre-release is older than its release
        ("v1.2.1-rc1", "v1.2.2", "v1.2.0", CROSS),
        ("v1.7.0", "v1.8.0", "f6bc010", INCOMPARABLE),
        # 6. From a pre-release to another release; to one from a release is allowed.
        ("v1.8.0-rc2", "v1.8.1", "", CROSS),
        ("v1.8.0-rc2", "v1.9.0-rc1", "", CROSS),
        pytest.param("v1.2.1", "v1.2.2-rc1", "", None, id="to-a-candidate"),
        # 7. The rest.
        ("v1.7.1", "v1.8.0-rc1", "v1.7.0", None),
        pytest.param("v1.8.0-rc1", "v1.8.0-rc2", "v1.7.0", None, id="forth"),
        ("v1.8.0-rc2", "v1.8.0", "v1.7.0", None),
        # Numbers are compared as numbers.
        ("v1.9.2", "v1.10.0", "v1.9.0", None),
        ("v1.10.0", "v1.9.2", "", DOWNGRADE),
        ("v1.9.0", "v1.11.0", "v1.10.0", MINIMUM),
        ("v1.8.0-rc.9", "v1.8.0-rc.10", "", None),
        ("v1.8.0-rc.10", "v1.8.0-rc.9", "", DOWNGRADE),
        # What is no version at all.
        ("", "v1.8.0", "", INVALID),
        ("v1.7.1", "", "", INVALID),
        ("v", "v1.8.0", "", INVALID),
        ("v1.7.1", "v1.8.0", "v", INVALID),
    ],
)
def test_the_table(current: str, target: str, minimum: str, expected: str | None) -> None:
    assert refusal(current=current, target=target, minimum=minimum) == expected


def test_without_strictness_a_development_build_may_become_a_release() -> None:
    assert refusal(current="f6bc010-dirty", target="v1.8.0", strict=False) is None
    assert refusal(current="f6bc010-dirty", target="v1.8.0") == DEVELOPMENT


@pytest.mark.parametrize(
    ("text", "stable", "prerelease"),
    [
        ("v1.8.0", (1, 8, 0), ()),
        ("1.10.0", (1, 10, 0), ()),
        ("v1.8.0-rc1", (1, 8, 0), ("rc1",)),
        ("v1.8.0-rc.1.x-y", (1, 8, 0), ("rc", "1", "x-y")),
        ("v1.35.2+rke2r1", (1, 35, 2), ()),
        ("v1.8.0-rc1+5.x", (1, 8, 0), ("rc1",)),
        ("vv1.8.0", None, ()),
        ("v1.8", None, ()),
        ("v1.8.0.1", None, ()),
        ("v01.8.0", None, ()),
        ("v1.8.0-", None, ()),
        ("v1.8.0-rc..1", None, ()),
        ("v1.8.0-01", None, ()),
        ("v1.8.0+", None, ()),
        (" v1.8.0", None, ()),
        ("v1.8.0\n", None, ()),
        ("v१.8.0", None, ()),
        ("f6bc010-dirty", None, ()),
        ("main-head", None, ()),
        ("5319e7", None, ()),
    ],
)
def test_a_version_is_a_release_a_prerelease_or_a_development_build(
    text: str, stable: tuple[int, int, int] | None, prerelease: tuple[str, ...]
) -> None:
    assert parse_version(text) == Version(text=text, stable=stable, prerelease=prerelease)
    assert parse_version(text).is_development == (stable is None)


def test_the_order_is_that_of_semver() -> None:
    """The example of the SemVer specification, section 11."""
    order = ["alpha", "alpha.1", "alpha.beta", "beta", "beta.2", "beta.11", "rc.1"]
    ladder = [parse_version(f"1.0.0-{text}") for text in order] + [parse_version(text) for text in ("1.0.0", "1.0.1")]
    for older, newer in itertools.combinations(ladder, 2):
        assert is_older(older, newer)
        assert not is_older(newer, older)


versions = st.one_of(
    st.from_regex(r"v?[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}(-rc\.?[0-9]{1,2})?(\+[a-z0-9]{1,4})?", fullmatch=True),
    st.text(max_size=12),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(300))
@given(current=versions, target=versions, minimum=versions)
def test_any_text_has_an_answer(current: str, target: str, minimum: str) -> None:
    """And there is no pair of releases that can be upgraded in both directions."""
    forth = refusal(current=current, target=target, minimum=minimum)
    back = refusal(current=target, target=current)
    assert forth in (None, DEVELOPMENT, DOWNGRADE, MINIMUM, CROSS, INCOMPARABLE, INVALID)
    if forth is None and back is None and not any(parse_version(text).is_development for text in (current, target)):
        assert refusal(current=current, target=target, minimum="v9999.0.0") is None, "only equal versions go both ways"


@pytest.mark.parametrize(
    ("current", "target", "minimum", "expected"),
    [
        ("v1.7.0", "v1.8.0", "v1.7.1", "v1.7.1"),  # of the same line
        ("v1.6.1", "v1.8.0", "v1.7.1", "v1.7.x"),
        ("v1.7.0-rc1", "v1.8.0", "", "v1.7.0"),
        ("v1.7.0-rc1", "v1.7.0", "", None),
        ("v1.7.1", "v1.8.0", "v1.7.1", None),
        ("v1.8.0", "v1.7.0", "v1.9.0", None),
        ("main-head", "v1.8.0", "v1.7.0", None),
        ("v1.7.0", "main-head", "v1.7.1", None),
        ("x", "v1.8.0", "", None),
    ],
)
def test_the_release_to_upgrade_to_first(current: str, target: str, minimum: str, expected: str | None) -> None:
    assert first_to(current=current, target=target, minimum=minimum) == expected


def test_a_refusal_quotes_the_beginning_of_a_long_version() -> None:
    refused = explained_refusal(current="A" * 70_000, target="v1.8.0", minimum="v1.7.1")
    assert refused is not None
    assert len(refused) < 500


@pytest.mark.parametrize(
    ("current", "minima", "expected"),
    [
        ("v1.7.1", {"v1.8.0": "", "v1.10.0": "", "v1.9.0": ""}, "v1.10.0"),
        ("v1.7.1", {"v1.8.0": "v1.7.0", "v1.9.0": "v1.8.0"}, "v1.8.0"),
        ("v1.7.1", {"v1.8.0-rc2": "", "v1.8.0": ""}, "v1.8.0"),
        ("v1.7.1", {"v1.7.1": "", "v1.6.0": "", "main-head": "", "": ""}, ""),
        ("v1.7.1", {}, ""),
        ("main-head", {"v1.8.0": ""}, ""),
        ("", {"v1.8.0": ""}, ""),
    ],
)
def test_the_newest_release_that_can_be_next(current: str, minima: dict[str, str], expected: str) -> None:
    assert newest_target(current=current, minima=minima) == expected
