"""The API servers' certificates outlive the upgrade, as the Harvester Upgrade Manager checks it.

An address that does not answer is unknown and asked again; only a certificate that was read can fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from reconcile import objects
from reconcile.probes.look import CERTIFICATES, ReadFailure
from reconcile.probes.rules.call import RuleCall, parse_integer
from reconcile.probes.verdict import Verdict, failed, passed, unknown
from renderer.model.path import look_up
from renderer.model.ref import Body

_DAY = 86_400  # seconds


def expiry(call: RuleCall) -> Verdict:
    """The earliest end over all addresses; the message says the days that are left, not the days that are wanted."""
    text, annotation = call.text("days"), call.text("daysAnnotation")
    days = parse_integer(text)
    if days is None:
        return failed(f'invalid value "{text}" for annotation {annotation}')
    if days <= 0:
        return failed(f'invalid value "{text}" for annotation {annotation}, must be greater than 0')
    slices = call.look.list(CERTIFICATES.of)
    if isinstance(slices, ReadFailure):
        return unknown(f"the API servers' EndpointSlices could not be read: {slices.why}")
    addresses = set(_addresses(slices))
    if "" in addresses:
        return unknown("an endpoint in the default/kubernetes endpointslices has no address that can be read")
    if not addresses:
        return unknown("cluster IP is empty in the default/kubernetes endpointslices")
    return _earliest(sorted(addresses), days, call)


def _earliest(addresses: Sequence[str], days: int, call: RuleCall) -> Verdict:
    ends: list[datetime] = []
    read_failures: list[str] = []
    for address in addresses:
        reading = call.look.reading(CERTIFICATES, address)
        if isinstance(reading, ReadFailure):
            read_failures.append(f"the certificate of the API server at {address} could not be read: {reading.why}")
        elif end := reading.get("notAfter"):
            ends.append(datetime.fromisoformat(end).astimezone(UTC))
    seconds = min(((end - call.now).total_seconds() for end in ends), default=None)
    if seconds is not None and seconds < days * _DAY:
        return failed(_ends(min(ends), seconds))
    if read_failures:
        return unknown("; ".join(read_failures))
    if seconds is None:
        return unknown("no certificates found for kubernetes API server")
    return passed(
        f"the earliest certificate of the API servers ends in {int(seconds // _DAY)} days, expected at least {days}"
    )


def _ends(not_after: datetime, seconds: float) -> str:
    fraction = f".{not_after.microsecond:06}".rstrip("0").rstrip(".")
    written = f"{not_after:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"  # as Go writes a time
    days = int(abs(seconds) // _DAY)
    ends = f"it will expire in {days} days" if seconds >= 0 else f"it expired {days} days ago"
    return (
        f"earliest expiring cert for default/kubernetes ClusterIP is {written}, {ends}. Please rotate RKE2 certificates"
    )


def _addresses(slices: Sequence[Body]) -> Iterator[str]:
    """An empty text for what cannot be read: the one that is not looked at may be the one that is about to end."""
    for body in slices:
        endpoints = look_up(body, ("endpoints",)) or ()
        for endpoint in endpoints if isinstance(endpoints, (list, tuple)) else (None,):
            addresses = objects.items(look_up(endpoint, ("addresses",)))
            yield from (address if isinstance(address, str) else "" for address in addresses or ("",))
