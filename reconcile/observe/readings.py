"""What is known of a cluster and is no object: kubelets' disks and API servers' certificates.

Kubelets are asked through the API server's node proxy, so that no token of ours leaves for an address that nobody has
vouched for. Answers are kept for a moment: a disk does not fill within a round.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from reconcile.cluster.errors import Away, ClusterError
from reconcile.cluster.protocol import Cluster
from reconcile.objects import items
from reconcile.probes.look import CertificateReading, KubeletReading, ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.path import ABSENT, look_up
from renderer.model.ref import Body, Ref, ref_of

_FRESH = timedelta(seconds=60)
_AT_ONCE = 8

Dial = Callable[[str, int], datetime | None]
"""(address, port) -> when the first presented certificate ends. Raises `OSError` where nobody answers."""


class Readings:
    """Asks, and remembers for a minute. `known` has what was given as facts instead, by node or address."""

    def __init__(
        self,
        cluster: Cluster,
        kinds: Kinds,
        now: Callable[[], datetime],
        dial: Dial,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._now = now
        self._dial = dial
        self._known = known or {}
        self._kept: dict[tuple[str, str], tuple[datetime, Any]] = {}

    def kubelets(self, nodes: Iterable[Body]) -> dict[str, KubeletReading | ReadFailure]:
        """One for each Node."""
        refs = [ref_of(node) for node in nodes]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            readings = list(pool.map(self._kubelet, refs))
        return {ref.name: reading for ref, reading in zip(refs, readings, strict=True)}

    def certificates(self, slices: Iterable[Body]) -> dict[str, CertificateReading | ReadFailure]:
        """One for each address of the EndpointSlices, which are those of the API servers."""
        found: dict[str, CertificateReading | ReadFailure] = {}
        for item in slices:
            ports = (_number(look_up(port, ("port",))) for port in items(item.get("ports")))
            port = next(filter(None, ports), 6443)
            for endpoint in items(item.get("endpoints")):
                addresses = filter(_is_text, items(look_up(endpoint, ("addresses",))))
                found |= {address: self._certificate(address, port) for address in addresses}
        return found

    def _kubelet(self, node: Ref) -> KubeletReading | ReadFailure:
        given = look_up(self._known, ("kubelet", node.name))
        if given is not ABSENT:
            return KubeletReading(
                capacity_bytes=look_up(given, ("fs", "capacityBytes")) or None,
                used_bytes=look_up(given, ("fs", "usedBytes")) or None,
                image_gc_high_threshold_percent=given.get("imageGCHighThresholdPercent"),
            )
        reading: KubeletReading | ReadFailure = self._remembered("kubelet", node.name, partial(self._ask_kubelet, node))
        return reading

    def _ask_kubelet(self, node: Ref) -> KubeletReading | ReadFailure:
        kind = self._kinds.row(node.api_version, node.kind).kind
        try:
            stats = json.loads(self._cluster.read(kind, node, "proxy/stats/summary"))
            config = json.loads(self._cluster.read(kind, node, "proxy/configz"))
        except Away:
            raise
        except (ClusterError, ValueError) as error:
            return ReadFailure(why=str(error).partition("\n")[0])
        disk = look_up(stats, ("node", "fs"))
        threshold = look_up(config, ("kubeletconfig", "imageGCHighThresholdPercent"))
        return KubeletReading(
            capacity_bytes=_number(look_up(disk, ("capacityBytes",))),
            used_bytes=_number(look_up(disk, ("usedBytes",))),
            image_gc_high_threshold_percent=_number(threshold),
        )

    def _certificate(self, address: str, port: int) -> CertificateReading | ReadFailure:
        given = look_up(self._known, ("certificates", address, "notAfter"))
        if given is not ABSENT:
            return CertificateReading(not_after=datetime.fromisoformat(given))
        ask = partial(self._ask_certificate, address, port)
        reading: CertificateReading | ReadFailure = self._remembered("certificate", address, ask)
        return reading

    def _ask_certificate(self, address: str, port: int) -> CertificateReading | ReadFailure:
        try:
            return CertificateReading(not_after=self._dial(address, port))
        except OSError as error:
            return ReadFailure(why=str(error) or type(error).__name__)

    def _remembered(self, what: str, name: str, ask: Callable[[], Any]) -> Any:
        asked, answer = self._kept.get((what, name), (None, None))
        if asked is None or self._now() - asked > _FRESH or isinstance(answer, ReadFailure):
            answer = ask()
            self._kept[what, name] = (self._now(), answer)
        return answer


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
