"""Counts free addresses in the networks that Longhorn has of its own: during an upgrade old and new pods stand side
by side, and each has an address.

Source: Harvester's pre-check script. Usable are the addresses of the range without the first and the last, and without
those of the excluded ranges, each counted once; taken are the entries of the Whereabouts pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
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
    usable = usable_addresses(text, objects.items(network.get("exclude")))
    if usable is None:
        return failed(f"{setting}: range {text!r} or one that it excludes is not a network", setting)
    pools = listed(call, _POOLS)
    if isinstance(pools, Verdict):
        return pools
    pool = next((body for body in pools[0] if look_up(body, ("metadata", "name")) == pool_name(text)), None)
    if pool is None:
        return unknown(f"IPPool kube-system/{pool_name(text)} not found; it says which addresses are taken")
    allocations = look_up(pool, ("spec", "allocations"))
    free = usable - (len(allocations) if isinstance(allocations, Mapping) else 0)
    says = f"{setting}: {max(0, free)} free addresses in {text}, expected at least {needed}"
    return passed(says) if free >= needed else failed(says, setting)


def pool_name(text: str) -> str:
    """The name of the Whereabouts pool of a range."""
    return text.replace(":", "-").replace("/", "-")


def usable_addresses(text: str, excluded: Iterable[Any]) -> int | None:
    """The number of addresses of a range that pods may have; None for what is no range."""
    try:
        whole = ip_network(text, strict=False)
        cut = [ip_network(str(each), strict=False) for each in excluded]
    except ValueError:
        return None
    first, last = int(whole.network_address) + 1, int(whole.broadcast_address) - 1
    spans = sorted((max(first, int(net.network_address)), min(last, int(net.broadcast_address))) for net in cut)
    return max(0, last - first + 1) - _covered(spans)


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
