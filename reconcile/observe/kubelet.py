"""The reading `kubelet`: each node's disk, and at which percentage the kubelet begins to remove images.

Kubelets are asked through the API server's node proxy, so that no token is sent to an address that nobody has
vouched for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from reconcile.cluster.errors import Away, ClusterError
from reconcile.cluster.protocol import Cluster
from reconcile.probes.look import ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

_FIGURES = ("capacityBytes", "usedBytes")


def kubelets_of(cluster: Cluster, kinds: Kinds, nodes: Iterable[Body]) -> Mapping[str, Callable[[], Any]]:
    """By node name: how to ask. What a kubelet does not report is left out of the answer."""
    return {ref.name: partial(_ask, cluster, kinds, ref) for ref in map(ref_of, nodes)}


def _ask(cluster: Cluster, kinds: Kinds, node: Ref) -> Mapping[str, Any] | ReadFailure:
    kind = kinds.row(node.api_version, node.kind).kind
    try:
        stats = json.loads(cluster.read(kind, node, "proxy/stats/summary"))
        config = json.loads(cluster.read(kind, node, "proxy/configz"))
    except Away:
        raise
    except (ClusterError, ValueError) as error:
        return ReadFailure(why=str(error).partition("\n")[0])
    threshold = _whole(look_up(config, ("kubeletconfig", "imageGCHighThresholdPercent")))
    disk = {name: _whole(look_up(stats, ("node", "fs", name))) for name in _FIGURES}
    found = {} if threshold is None else {"imageGCHighThresholdPercent": threshold}
    return found if None in disk.values() else {**found, "fs": disk}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
