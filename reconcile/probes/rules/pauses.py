"""The nodes that the built-in upgrade has to pause before. A name that no node has would hold no node.

Both places hold JSON in a text: the annotation of an Upgrade, and Harvester's Setting `upgrade-config`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconcile import objects
from reconcile.probes.look import NODES
from reconcile.probes.rules.call import RuleCall, listed, parse_json
from reconcile.probes.rules.named import named
from reconcile.probes.verdict import Verdict, passed, together, waiting
from renderer.model.path import look_up
from renderer.model.ref import Ref, ref_of

_MAP = "harvesterhci.io/node-upgrade-pause-map"
_CONFIGURED = ("nodeUpgradeOption", "strategy", "pauseNodes")
_STATES = ("pause", "unpause")


def of_map(call: RuleCall) -> Verdict:
    text = look_up(call.body, ("metadata", "annotations", _MAP))
    if not isinstance(text, str) or not text:
        return passed(f"has no annotation {_MAP}")
    states = parse_json(text)
    if not isinstance(states, Mapping):
        return waiting(f"annotation {_MAP} is not a JSON object of node names and 'pause' or 'unpause'")
    odd = [
        waiting(f"annotation {_MAP} says {state!r} for Node {node}, expected 'pause' or 'unpause'")
        for node, state in states.items()
        if state not in _STATES
    ]
    return _together([*odd, *_nodes(call, states)], f"annotation {_MAP} names nodes that exist")


def of_setting(call: RuleCall) -> Verdict:
    text = look_up(call.body, ("value",))
    if not isinstance(text, str) or not text:
        return passed("has its default value")
    found = look_up(parse_json(text), _CONFIGURED)
    return _together(_nodes(call, map(str, objects.items(found))), "pauseNodes names nodes that exist")


def _nodes(call: RuleCall, names: Iterable[str]) -> list[Verdict]:
    found = listed(call, NODES)
    if isinstance(found, Verdict):
        return [found]
    there = [ref_of(body) for body in found[0]]
    return [named(Ref(api_version="v1", kind="Node", name=name), there) for name in names]


def _together(verdicts: list[Verdict], says: str) -> Verdict:
    verdict = together([passed(says), *verdicts], "; ")
    return passed(says) if verdict.passed else verdict
