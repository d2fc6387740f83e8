"""Reads the end date out of an X.509 certificate: just enough DER (X.690) for `validity.notAfter` (RFC 5280, 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

_VERSION = 0xA0
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18


def not_after(certificate: bytes) -> datetime:
    """Raises `ValueError` for what is no certificate."""
    try:
        (_, whole), *_ = _parts(certificate)
        (_, signed), *_ = _parts(whole)
        fields = [part for part in _parts(signed) if part[0] != _VERSION]
        _, validity = fields[3]  # serialNumber, signature, issuer, validity
        (_, (tag, end)) = list(_parts(validity))
    except (IndexError, ValueError) as error:
        raise ValueError("is no X.509 certificate") from error
    return _time(tag, end.decode())


def _parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The (tag, content) of each element in a constructed one."""
    at = 0
    while at < len(content):
        tag, length, at = content[at], content[at + 1], at + 2
        if length & 0x80:
            count = length & 0x7F
            length, at = int.from_bytes(content[at : at + count], "big"), at + count
        yield tag, content[at : at + length]
        at += length


def _time(tag: int, text: str) -> datetime:
    form = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}[tag]
    return datetime.strptime(text, form).replace(tzinfo=UTC)
