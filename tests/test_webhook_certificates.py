"""The rotation of the webhook's certificates: decided on a clock, and kept on an embedded cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconcile.admission.certificates import (
    Pair,
    Validity,
    is_for,
    is_pair,
    new_authority,
    new_serving_pair,
    signer_of,
    validity_of,
)
from reconcile.admission.rotation import Lifetimes, Material, next_material, why_unusable

NAMES = ("hook.harvester-system.svc", "127.0.0.1")
START = datetime(2026, 11, 2, 8, tzinfo=UTC)
HOURS = Lifetimes(
    authority=timedelta(hours=36),
    serving=timedelta(hours=12),
    backdated=timedelta(hours=1),
    settling=timedelta(minutes=5),
)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def after(found: Material, hours: float, trusted: Any = None) -> Material:
    return next_material(found, NAMES, at(hours), HOURS, found.authorities if trusted is None else trusted)


FIRST = after(Material(), 0)


def is_good(found: Material, hours: float) -> bool:
    return not list(why_unusable(found, NAMES, at(hours)))


def test_the_first_ones() -> None:
    assert is_good(FIRST, 0)
    assert is_pair(FIRST.signer)
    assert is_for(FIRST.serving.certificate, NAMES)
    assert not is_for(FIRST.serving.certificate, ("other",))
    valid = validity_of(FIRST.serving.certificate)
    assert valid == Validity(not_before=at(-1), not_after=at(12))


def test_nothing_changes_until_a_third_is_left() -> None:
    assert after(FIRST, 7.6) == FIRST
    renewed = after(FIRST, 7.7)
    assert renewed.authorities == FIRST.authorities
    assert renewed.serving != FIRST.serving
    assert validity_of(renewed.serving.certificate) == Validity(not_before=at(6.7), not_after=at(19.7))


def test_a_new_authority_is_trusted_before_it_signs() -> None:
    old = replace(FIRST, serving=new_serving_pair(FIRST.signer, NAMES, Validity(not_before=at(20), not_after=at(32))))
    both = after(old, 24)
    new, *others = both.authorities
    assert others == list(FIRST.authorities)
    assert both.serving == old.serving, "signed by the old one, which is still trusted"
    assert after(both, 24.05) == both, "the API servers have not had their time"
    assert after(both, 25, trusted=FIRST.authorities) == both, "the configuration does not have it"
    turned = after(both, 24.1)
    assert signer_of(turned.serving.certificate, [new]) == new
    assert turned.authorities == both.authorities, "who still serves with the old certificate is trusted"
    assert after(turned, 36.1).authorities == (new,), "the old one has expired"


def test_one_that_would_expire_before_anybody_trusts_the_new_authority_is_replaced_in_the_end() -> None:
    old = replace(FIRST, serving=new_serving_pair(FIRST.signer, NAMES, Validity(not_before=at(20), not_after=at(26))))
    both = after(old, 24)
    assert after(both, 25.9, trusted=FIRST.authorities) == both
    late = after(both, 26.1, trusted=FIRST.authorities)
    assert is_good(late, 26.1)


def test_where_nobody_asks_the_webhook_nothing_has_to_settle() -> None:
    old = replace(FIRST, serving=new_serving_pair(FIRST.signer, NAMES, Validity(not_before=at(20), not_after=at(32))))
    found = next_material(old, NAMES, at(24), HOURS, None)
    assert signer_of(found.serving.certificate, found.authorities[:1])


OTHER = new_authority(Validity(not_before=at(-1), not_after=at(36)))
BROKEN: Mapping[str, Material] = {
    "nothing": Material(),
    "no authority": replace(FIRST, authorities=()),
    "an authority that is no certificate": replace(FIRST, authorities=(b"x",)),
    "no key of the authority": replace(FIRST, authority_key=b""),
    "another authority's key": replace(FIRST, authority_key=OTHER.key),
    "text for a key": replace(FIRST, authority_key=b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"),
    "no certificate": replace(FIRST, serving=Pair(certificate=b"", key=FIRST.serving.key)),
    "no key": replace(FIRST, serving=Pair(certificate=FIRST.serving.certificate, key=b"")),
    "another key": replace(FIRST, serving=Pair(certificate=FIRST.serving.certificate, key=OTHER.key)),
    "signed by another": replace(
        FIRST, serving=new_serving_pair(OTHER, NAMES, Validity(not_before=at(-1), not_after=at(12)))
    ),
    "for other names": replace(
        FIRST, serving=new_serving_pair(FIRST.signer, ["other"], Validity(not_before=at(-1), not_after=at(12)))
    ),
    "expired": replace(
        FIRST, serving=new_serving_pair(FIRST.signer, NAMES, Validity(not_before=at(-9), not_after=at(0)))
    ),
    "not yet valid": replace(
        FIRST, serving=new_serving_pair(FIRST.signer, NAMES, Validity(not_before=at(1), not_after=at(12)))
    ),
}


@pytest.mark.parametrize("found", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_made_again_at_once(found: Material) -> None:
    mended = after(found, 0, trusted=())
    assert mended != found
    assert is_pair(mended.signer)
    if "authority" not in "".join(name for name, item in BROKEN.items() if item is found):
        assert is_good(mended, 0)
    settled = after(mended, 0.2)
    assert is_good(settled, 0.2)
    assert after(settled, 0.2) == settled, "and then it stays"


@pytest.mark.parametrize("hours", [-1000, -2, 14, 100, 10_000])
def test_a_clock_that_was_wrong_heals(hours: float) -> None:
    """Whatever was made at another time is made again where it does not hold now."""
    assert is_good(after(FIRST, hours, trusted=()), hours)


def test_the_authorities_that_are_trusted_are_few() -> None:
    found = FIRST
    for _ in range(6):
        found = after(replace(found, authority_key=b""), 0, trusted=())
    assert len(found.authorities) == 3
