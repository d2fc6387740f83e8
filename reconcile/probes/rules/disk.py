"""Disk space for the new images on every node, as the Harvester Upgrade Manager checks it.

A kubelet that does not report is unknown and asked again; only a measured disk that is too full fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcile.probes.look import KUBELET, ReadFailure, Reading
from reconcile.probes.rules.call import RuleCall, listed, parse_bool
from reconcile.probes.verdict import Verdict, failed, passed, together, unknown, waiting
from renderer.model.path import ABSENT, look_up
from renderer.model.ref import Ref, ref_of


def headroom(call: RuleCall) -> Verdict:
    """All nodes, managed or not, or the one that is named; one message names every node that is too full."""
    skip = call.text("skip")
    skipped = parse_bool(skip) if skip else False
    if skipped is None:
        return waiting(f'invalid value "{skip}" for annotation {call.text("skipAnnotation")}')
    if skipped:
        return passed(f"the check is skipped: annotation {call.text('skipAnnotation')} is {skip}")
    only = call.text("node")
    kubelets = KUBELET.at(only) if only else KUBELET
    found = listed(call, kubelets.of)
    if isinstance(found, Verdict):
        return found
    (nodes,) = found
    if not nodes:
        return waiting(f"no Node {only} was found" if only else "no Node was found, expected at least 1")
    verdict = together([_node(ref_of(body), kubelets, call) for body in nodes], "; ")
    if verdict.passed and len(nodes) > 1:
        return passed(f"{len(nodes)} nodes stay below their image garbage collection thresholds")
    return verdict


def _node(node: Ref, kubelets: Reading, call: RuleCall) -> Verdict:
    reading = call.look.reading(kubelets, node.name)
    if isinstance(reading, ReadFailure):
        return unknown(f"can't get node {node.name} filesystem stats: {reading.why}", node)
    used, capacity = (look_up(reading, ("fs", figure)) for figure in ("usedBytes", "capacityBytes"))
    if used is ABSENT or not capacity:
        return unknown(f"can't get node {node.name} filesystem stats: its kubelet does not report them", node)
    return _projected(node, used + call.number("reserveBytes"), capacity, reading, call)


def _projected(node: Ref, used: int, capacity: int, reading: Mapping[str, Any], call: RuleCall) -> Verdict:
    reported = reading.get("imageGCHighThresholdPercent")
    threshold = call.number("defaultThresholdPercent", 85) if reported is None else reported
    percent = f"{used / capacity * 100:.2f}%"
    if used * 100 > threshold * capacity:  # strictly, and in whole numbers
        return failed(
            f'node "{node.name}" will reach {percent} storage space after loading new images, higher than '
            f"kubelet image garbage collection threshold {threshold}%",
            node,
        )
    return passed(f'node "{node.name}" will reach {percent}, threshold {threshold}%')
