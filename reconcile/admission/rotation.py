"""Decides which keys and certificates the webhook has next: what is good stays, what ends soon is renewed. Pure.

A new authority is trusted before it signs: it is put in front of the old ones, and only once the API server has had its
time to learn of it, a serving certificate of its own replaces the old one, which is valid until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconcile.admission.certificates import (
    Pair,
    Validity,
    can_sign,
    is_for,
    is_pair,
    new_authority,
    new_serving_pair,
    signer_of,
    validity_of,
)

_NO_PAIR = Pair(certificate=b"", key=b"")
_OLD_AUTHORITIES = 2
"""At most so many are trusted beside the one that signs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """The times for which an authority and a serving certificate are valid; each is renewed when a third is left.
    `backdated`: clocks of a cluster differ by less. `settling` is the time in which every API server learns of an
    authority that is added to the webhook's configuration."""

    authority: timedelta = timedelta(days=2 * 365)
    serving: timedelta = timedelta(days=90)
    backdated: timedelta = timedelta(hours=1)
    settling: timedelta = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Keys and certificates, in PEM, as they are stored. The first of `authorities` is the one that signs, with
    `authority_key`; the others are still trusted. Any of it may be empty or unreadable."""

    authorities: tuple[bytes, ...] = ()
    authority_key: bytes = b""
    serving: Pair = _NO_PAIR

    @property
    def bundle(self) -> bytes:
        return b"".join(self.authorities)

    @property
    def signer(self) -> Pair:
        return Pair(certificate=self.authorities[0] if self.authorities else b"", key=self.authority_key)


def next_material(
    found: Material, names: Sequence[str], now: datetime, lifetimes: Lifetimes, trusted: Collection[bytes] | None
) -> Material:
    """`trusted` are the authorities that the API server is configured to trust; None where the webhook is not
    registered, so that nothing has to be learned. The same material where nothing is due."""
    return _with_serving(_with_authority(found, now, lifetimes), names, now, lifetimes, trusted)


def _with_authority(found: Material, now: datetime, lifetimes: Lifetimes) -> Material:
    alive = tuple(item for item in found.authorities if (valid := validity_of(item)) and now < valid.not_after)
    kept = replace(found, authorities=alive)
    validity = validity_of(kept.signer.certificate)
    if can_sign(kept.signer) and validity and validity.holds(now) and not _ends_soon(validity, now):
        return kept
    made = new_authority(_from(now, lifetimes.authority, lifetimes))
    return replace(kept, authorities=(made.certificate, *alive[:_OLD_AUTHORITIES]), authority_key=made.key)


def _with_serving(
    found: Material, names: Sequence[str], now: datetime, lifetimes: Lifetimes, trusted: Collection[bytes] | None
) -> Material:
    usable = not list(why_unusable(found, names, now))
    if usable and not (_is_due(found, now) and _is_settled(found, now, lifetimes, trusted)):
        return found
    authority = validity_of(found.signer.certificate)
    validity = _from(now, lifetimes.serving, lifetimes)
    if authority is not None:
        validity = replace(validity, not_after=min(validity.not_after, authority.not_after))
    return replace(found, serving=new_serving_pair(found.signer, names, validity))


def why_unusable(found: Material, names: Sequence[str], now: datetime) -> Iterator[str]:
    """Everything for which no client would accept the serving certificate; nothing if one does."""
    validity = validity_of(found.serving.certificate)
    if validity is None:
        yield "tls.crt holds no certificate"
        return
    if not is_pair(found.serving):
        yield "tls.key is not the key of tls.crt"
    if now < validity.not_before:
        yield f"tls.crt is not valid before {validity.not_before:%Y-%m-%dT%H:%M:%SZ}"
    if now >= validity.not_after:
        yield f"tls.crt has expired at {validity.not_after:%Y-%m-%dT%H:%M:%SZ}"
    if not is_for(found.serving.certificate, names):
        yield f"tls.crt is not for {', '.join(names)}"
    if signer_of(found.serving.certificate, found.authorities) is None:
        yield "no authority in ca.crt has signed tls.crt"


def _is_due(found: Material, now: datetime) -> bool:
    """True for one that ends soon, or was signed by an authority that is being replaced."""
    validity = validity_of(found.serving.certificate)
    old = signer_of(found.serving.certificate, found.authorities) != found.signer.certificate
    return old or validity is None or _ends_soon(validity, now)


def _is_settled(found: Material, now: datetime, lifetimes: Lifetimes, trusted: Collection[bytes] | None) -> bool:
    validity = validity_of(found.signer.certificate)
    if trusted is None or validity is None:
        return True
    known_for = now - validity.not_before - lifetimes.backdated
    return found.signer.certificate in trusted and known_for >= lifetimes.settling


def _ends_soon(validity: Validity, now: datetime) -> bool:
    return validity.not_after - now < (validity.not_after - validity.not_before) / 3


def _from(now: datetime, lifetime: timedelta, lifetimes: Lifetimes) -> Validity:
    return Validity(not_before=now - lifetimes.backdated, not_after=now + lifetime)
