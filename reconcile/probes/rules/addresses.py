"""Counts free addresses in the networks that Longhorn has of its own: during an upgrade old and new pods stand side
by side, and each has an address.

Source: Harvester's pre-check script, and how Whereabouts assigns. Usable are the addresses of the range without the
network's first and last, and without those of the excluded ranges, each counted once; taken are those of them that the
Whereabouts pool has entries for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_interface, ip_network
from typing import Any

from reconcile import objects
from reconcile.probes.look import Group, ReadFailure
from reconcile.probes.rules.call import RuleCall, listed, parse_json
from reconcile.probes.verdict import Verdict, failed, passed, unknown, unread
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref

_HARVESTER, _LONGHORN = "harvesterhci.io/v1beta1", "longhorn.io/v1beta2"
_STORAGE = Ref(api_version=_HARVESTER, kind="Setting", name="storage-network")
_RWX = Ref(api_version=_HARVESTER, kind="Setting", name="rwx-network")
_OLD_RWX = Ref(
    api_version=_LONGHORN,
    kind="Setting",
    namespace="longhorn-system",
    name="storage-network-for-rwx-volume-enabled",
)
_POOLS = Group(api_version="whereabouts.cni.cncf.io/v1alpha1", kind="IPPool", namespace="kube-system")
_INSTANCE_MANAGERS = Group(api_version=_LONGHORN, kind="InstanceManager", namespace="longhorn-system")
_IMAGE_MANAGERS = Group(api_version=_LONGHORN, kind="BackingImageManager", namespace="longhorn-system")

_DIGITS = 40
"""More than any distance within a network has."""

Network = IPv4Network | IPv6Network
Settings = Mapping[str, Any]


def storage_network(call: RuleCall) -> Verdict:
    """As many free addresses as Longhorn has managers, and one more if volumes for several nodes share the network."""
    settings = _settings(call, _STORAGE, _RWX)
    if isinstance(settings, Verdict):
        return settings
    storage, rwx = settings
    old = ({},) if rwx else _settings(call, _OLD_RWX)
    if isinstance(old, Verdict):
        return old
    shared = _is_shared(rwx, old[0])
    if not storage:
        says = "RWX volumes share the storage network, and no storage network is set"
        return failed(says, _RWX if rwx else _OLD_RWX) if shared else passed("no storage network is set")
    managers = listed(call, _INSTANCE_MANAGERS, _IMAGE_MANAGERS)
    if isinstance(managers, Verdict):
        return managers
    return _enough(call, _STORAGE, storage, sum(map(len, managers)) + shared)


def rwx_network(call: RuleCall) -> Verdict:
    """One free address for the upgrade's repository, in a network that volumes for several nodes have of their own."""
    settings = _settings(call, _RWX)
    if isinstance(settings, Verdict):
        return settings
    network = settings[0].get("network")
    if settings[0].get("share-storage-network") is True or not isinstance(network, Mapping) or not network:
        return passed("RWX volumes have no network of their own")
    return _enough(call, _RWX, network, 1)


def _is_shared(rwx: Settings, old: Settings) -> bool:
    """Since v1.8 by Harvester's setting, before that by Longhorn's."""
    return rwx.get("share-storage-network") is True or old.get("value") is True


def _enough(call: RuleCall, setting: Ref, network: Settings, needed: int) -> Verdict:
    text = str(network.get("range") or "")
    bounds = [str(network.get(key) or "") for key in ("range_start", "range_end")]
    addresses = range_of(text, objects.items(network.get("exclude")), *bounds)
    if addresses is None:
        more = ", or range_start or range_end is not an address" if any(bounds) else ""
        return failed(f"{setting}: range {text!r} or one that it excludes is not a network{more}", setting)
    pools = listed(call, _POOLS)
    if isinstance(pools, Verdict):
        return pools
    pool = next((body for body in pools[0] if look_up(body, ("metadata", "name")) == addresses.pool), None)
    if pool is None:
        return unknown(f"IPPool kube-system/{addresses.pool} not found; it says which addresses are taken")
    free = addresses.usable - addresses.taken(look_up(pool, ("spec", "allocations")))
    says = f"{setting}: {max(0, free)} free addresses in {text}, expected at least {needed}"
    return passed(says) if free >= needed else failed(says, setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRange:
    """Addresses from `first` to `last` of a network, as numbers. `cut` are the spans that are left out, in order."""

    whole: Network
    first: int
    last: int
    cut: tuple[tuple[int, int], ...]

    @property
    def pool(self) -> str:
        """The name of its Whereabouts pool."""
        return str(self.whole).replace(":", "-").replace("/", "-")

    @property
    def usable(self) -> int:
        """The number of addresses that pods may have."""
        return max(0, self.last - self.first + 1) - _covered(self.cut)

    def taken(self, allocations: Any) -> int:
        """The number of usable addresses that a pool's allocations take: each is kept under its distance from the
        network's own address."""
        keys = allocations if isinstance(allocations, Mapping) else {}
        return sum(not str(key).isdecimal() or self._holds(int(str(key)[:_DIGITS])) for key in keys)

    def _holds(self, distance: int) -> bool:
        number = int(self.whole.network_address) + distance
        return self.first <= number <= self.last and not any(low <= number <= high for low, high in self.cut)


def range_of(text: str, excluded: Iterable[Any], start: str = "", end: str = "") -> AddressRange | None:
    """The addresses of a range, a network or `FIRST-LAST/LENGTH`, without its networks and single addresses that are
    excluded; None for what Whereabouts cannot read. A network without two more addresses has none for pods.

    `start` and `end` narrow a network, and say nothing beside first and last of the range itself. What of them lies
    outside is ignored, as Whereabouts does.
    """
    begin, dash, rest = text.partition("-")
    try:
        written = ip_interface(rest if dash else text)
        whole, cut = written.network, [ip_network(str(each), strict=False) for each in excluded]
        bounds = (begin, str(written.ip)) if dash else (start, end)
        low, high = (int(ip_address(bound)) if bound else None for bound in bounds)
    except ValueError:
        return None
    if "/" not in text or (dash and ip_address(begin) not in whole):
        return None
    first, last = int(whole.network_address) + 1, int(whole.broadcast_address) - 1
    first = low if low is not None and first <= low <= last else first
    last = high if high is not None and first <= high <= last else last
    ours = [net for net in cut if net.version == whole.version]
    spans = sorted((max(first, int(net.network_address)), min(last, int(net.broadcast_address))) for net in ours)
    return AddressRange(whole=whole, first=first, last=last, cut=tuple(spans))


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """The count of numbers that lie in any of these spans, which are in the order of their beginnings."""
    total, end = 0, -1
    for low, high in spans:
        total += max(0, high - max(low, end + 1) + 1)
        end = max(end, high)
    return total


# ------------------------------------------------------------------------------------------------------------ settings


def _settings(call: RuleCall, *refs: Ref) -> tuple[Settings, ...] | Verdict:
    """The values of settings, which are JSON; empty for one that is not set."""
    found = [(ref, call.look.get(ref)) for ref in refs]
    values = [_value(ref, body) for ref, body in found]
    wrong = [value for value in values if isinstance(value, Verdict)]
    return wrong[0] if wrong else tuple(value for value in values if not isinstance(value, Verdict))


def _value(ref: Ref, body: Body | ReadFailure | None) -> Settings | Verdict:
    if isinstance(body, ReadFailure):
        return unread(ref, body)
    text = (look_up(body, ("value",)) or look_up(body, ("default",))) if body else ""
    if not isinstance(text, str) or not text:
        return {}
    value = parse_json(text)
    if value is None and text.strip() != "null":
        return failed(f"{ref}: its value is not JSON", ref)
    return value if isinstance(value, Mapping) else {"value": value}
