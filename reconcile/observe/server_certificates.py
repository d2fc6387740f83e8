"""The reading `certificates`: when the certificate ends that each API server presents.

The end is read with just enough DER (X.690) for `validity.notAfter` (RFC 5280, 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from reconcile.objects import items
from reconcile.probes.look import OWN_SERVER, ReadFailure
from reconcile.status.times import time_text
from renderer.model.path import look_up
from renderer.model.ref import Body

Dial = Callable[[str, int], datetime | None]
"""(address, port) -> when the first presented certificate ends. Raises `OSError` if there is no answer. The address may
be `OWN_SERVER`, without a port."""

_DEFAULT_PORT = 6443
_VERSION = 0xA0
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18


def certificates_of(dial: Dial, slices: Iterable[Body]) -> Mapping[str, Callable[[], Any]]:
    """By address of the EndpointSlices, which are those of the API servers, and of our own: how to ask. A server that
    presents no certificate has an empty answer."""
    known = {address: partial(_ask, dial, address, port) for item in slices for address, port in _addresses(item)}
    return {**known, OWN_SERVER: partial(_ask, dial, OWN_SERVER, 0)} if known else {}


def _addresses(item: Body) -> Iterator[tuple[str, int]]:
    ports = (look_up(port, ("port",)) for port in items(item.get("ports")))
    port = next((port for port in ports if isinstance(port, int) and port is not True and port), _DEFAULT_PORT)
    for endpoint in items(item.get("endpoints")):
        found = items(look_up(endpoint, ("addresses",)))
        yield from ((address, port) for address in found if isinstance(address, str))


def _ask(dial: Dial, address: str, port: int) -> Mapping[str, Any] | ReadFailure:
    try:
        end = dial(address, port)
    except OSError as error:
        return ReadFailure(why=error.strerror or str(error) or type(error).__name__)
    return {"notAfter": time_text(end)} if end else {}


def not_after(certificate: bytes) -> datetime:
    """Raises `ValueError` for anything but a certificate."""
    try:
        (_, whole), *_ = _parts(certificate)
        (_, signed), *_ = _parts(whole)
        fields = [part for part in _parts(signed) if part[0] != _VERSION]
        _, validity = fields[3]  # serialNumber, signature, issuer, validity
        (_, (tag, end)) = list(_parts(validity))
    except (IndexError, ValueError) as error:
        raise ValueError("is not an X.509 certificate") from error
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
