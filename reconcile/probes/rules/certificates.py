"""The API servers' certificates outlive the upgrade, as the Harvester Upgrade Manager checks it.

Where no address of the API servers answers, the one counts that this program speaks to: a laptop may reach that alone.
Only a certificate that was read can fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from reconcile import objects
from reconcile.probes.look import CERTIFICATES, OWN_SERVER, Answer, ReadFailure
from reconcile.probes.rules.call import RuleCall, parse_integer
from reconcile.probes.verdict import Verdict, failed, passed, unknown, unread, waiting
from renderer.model.path import look_up
from renderer.model.ref import Body

_DAY = 86_400  # seconds


def expiry(call: RuleCall) -> Verdict:
    """The earliest end over all addresses; the message says the days that are left, not the days that are required."""
    text, annotation = call.text("days"), call.text("daysAnnotation")
    days = parse_integer(text)
    if days is None:
        return waiting(f'invalid value "{text}" for annotation {annotation}')
    if days <= 0:
        return waiting(f'invalid value "{text}" for annotation {annotation}, must be greater than 0')
    slices = call.look.list(CERTIFICATES.of)
    if isinstance(slices, ReadFailure):
        return unread("the API servers' EndpointSlices", slices)
    addresses = set(_addresses(slices))
    if "" in addresses:
        return unknown("an endpoint in the default/kubernetes endpointslices has no address that can be read")
    if not addresses:
        return unknown("cluster IP is empty in the default/kubernetes endpointslices")
    return _earliest(sorted(addresses), days, call)


def _earliest(addresses: Sequence[str], days: int, call: RuleCall) -> Verdict:
    """One address that answers is enough: the certificates of a cluster are made and rotated together."""
    read = {address: call.look.reading(CERTIFICATES, address) for address in addresses}
    failures = {address: found.why for address, found in read.items() if isinstance(found, ReadFailure)}
    ends = dict(_ends(read))
    if not ends and failures:
        ends = dict(_ends({OWN_SERVER: call.look.reading(CERTIFICATES, OWN_SERVER)}))
    unread = [
        f"the certificate of the API server at {address} could not be read: {failures[address]}" for address in failures
    ]
    if not ends:
        return unknown("; ".join(unread) or "no certificates found for kubernetes API server")
    address = min(ends, key=lambda name: (ends[name], name))
    seconds = (ends[address] - call.now).total_seconds()
    if seconds < days * _DAY:
        return failed(_ends_too_early(address, ends[address], seconds, days))
    left = int(seconds // _DAY)
    text = f"the earliest certificate of the API servers, at {address}, ends in {left} days, expected at least {days}"
    return passed(text, *unread)


def _ends(read: Mapping[str, Answer]) -> Iterator[tuple[str, datetime]]:
    for address, found in read.items():
        if not isinstance(found, ReadFailure) and (end := found.get("notAfter")):
            yield address, datetime.fromisoformat(end).astimezone(UTC)


def _ends_too_early(address: str, not_after: datetime, seconds: float, least: int) -> str:
    fraction = f".{not_after.microsecond:06}".rstrip("0").rstrip(".")
    written = f"{not_after:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"  # as Go writes a time
    days = int(abs(seconds) // _DAY)
    ends = (
        f"it will expire in {days} days, at least {least} are required"
        if seconds >= 0
        else f"it expired {days} days ago"
    )
    return (
        f"earliest expiring cert for default/kubernetes ClusterIP is {written} at {address}, {ends}. "
        "Please rotate RKE2 certificates"
    )


def _addresses(slices: Sequence[Body]) -> Iterator[str]:
    """An empty text for what cannot be read: the one that is not looked at may be the one that is about to end."""
    for body in slices:
        endpoints = look_up(body, ("endpoints",)) or ()
        for endpoint in endpoints if isinstance(endpoints, (list, tuple)) else (None,):
            addresses = objects.items(look_up(endpoint, ("addresses",)))
            yield from (address if isinstance(address, str) else "" for address in addresses or ("",))
