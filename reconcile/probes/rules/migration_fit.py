"""Explains why a virtual machine cannot be migrated to a node: what KubeVirt and the scheduler ask of
the pod that it is migrated into.

Sources: "Virtual hardware" and "Node assignment" of KubeVirt's user guide, and Harvester's "Setting up a common CPU
model for virtual machine migration": of an instance with the CPU model host-model, the target has to be labelled with
the source's model and with the features that it requires. Only machines are known, not all pods, so a node on which
there is room here may still have none. Whether a machine that runs there tolerates the new one is not asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reconcile import objects
from renderer.model.path import look_up
from renderer.model.ref import Body
from renderer.quantity import quantity_of

_MODEL, _FEATURE = "cpu-model.node.kubevirt.io/", "cpu-feature.node.kubevirt.io/"
_HOST_MODEL, _HOST_FEATURE = "host-model-cpu.node.kubevirt.io/", "host-model-required-features.node.kubevirt.io/"
_MIGRATION_MODEL = "cpu-model-migration.node.kubevirt.io/"
_SCHEDULABLE = "kubevirt.io/schedulable"
_CONDITIONS = ("disk-pressure", "memory-pressure", "network-unavailable", "not-ready", "pid-pressure", "unreachable")
_PASSING_TAINTS = (
    "node.kubernetes.io/unschedulable",
    "kubevirt.io/drain",
    *(f"node.kubernetes.io/{condition}" for condition in _CONDITIONS),
)
"""Taints of a node that is cordoned, drained or in trouble, which is said in other words, or is over before another
one's turn. No instance is stopped for them."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_RESOURCES = ("memory", "cpu")
_GIB, _MOST = Decimal(2**30), Decimal(2**63)


def unfit(instance: Body, here: Body, there: Body) -> str:
    """Gives the reason why a node cannot run the instance, whatever else runs there; empty if it can."""
    return next(filter(None, (row(instance, here, there) for row in _OF_THE_NODE)), "")


def _closed(_: Body, __: Body, there: Body) -> str:
    return "is not schedulable for KubeVirt" if objects.label(there, _SCHEDULABLE) == "false" else ""


def _tainted(instance: Body, _: Body, there: Body) -> str:
    tolerations = [each for each in objects.items(look_up(instance, ("spec", "tolerations"))) if _is_map(each)]
    for taint in objects.items(look_up(there, ("spec", "taints"))):
        if not _is_map(taint) or taint.get("effect") not in ("NoSchedule", "NoExecute"):
            continue
        if taint.get("key") not in _PASSING_TAINTS and not any(_tolerates(each, taint) for each in tolerations):
            return f"has the taint {taint.get('key')}"
    return ""


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    exists = toleration.get("operator") == "Exists"
    same_key = toleration.get("key") == taint.get("key") or (exists and not toleration.get("key"))
    same_value = exists or (toleration.get("value") or "") == (taint.get("value") or "")
    return same_key and same_value and toleration.get("effect") in (None, "", taint.get("effect"))


def _cpu_model(instance: Body, here: Body, there: Body) -> str:
    """A node that KubeVirt has not labelled is not judged."""
    model = look_up(instance, ("spec", "domain", "cpu", "model"))
    if model == "host-model":
        return _lacks(there, _MIGRATION_MODEL, _labelled(here, _HOST_MODEL), "CPU model")
    return _lacks(there, _MODEL, [model], "CPU model") if isinstance(model, str) and model != "host-passthrough" else ""


def _cpu_features(instance: Body, here: Body, there: Body) -> str:
    features = [
        each for each in objects.items(look_up(instance, ("spec", "domain", "cpu", "features"))) if _is_map(each)
    ]
    required = [str(each.get("name")) for each in features if each.get("policy") in (None, "", "require")]
    if look_up(instance, ("spec", "domain", "cpu", "model")) == "host-model":
        required += _labelled(here, _HOST_FEATURE)
    return _lacks(there, _FEATURE, required, "CPU feature")


def _lacks(node: Body, prefix: str, needed: Iterable[str], noun: str) -> str:
    there = set(_labelled(node, prefix))
    missing = [name for name in needed if name not in there]
    return f"lacks {noun} {', '.join(missing[:3])}" if missing and there else ""


def _labelled(node: Body, prefix: str) -> list[str]:
    labels = look_up(node, ("metadata", "labels"))
    found = labels.items() if isinstance(labels, Mapping) else ()
    return [key.removeprefix(prefix) for key, value in found if key.startswith(prefix) and value == "true"]


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


_OF_THE_NODE: tuple[Callable[[Body, Body, Body], str], ...] = (_closed, _tainted, _cpu_model, _cpu_features)


# ------------------------------------------------------------------------------------------- who else runs there


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A term of a required affinity to other pods; `selector` takes machines by their labels."""

    topology: str
    spaces: tuple[str, ...]
    selector: Mapping[str, Any]


class Neighbours:
    """The machines that run now, by their nodes: what they take, and where those are that others want or shun.

    What an affinity finds is worked out once, however many machines have it.
    """

    def __init__(self, instances: Iterable[Body], nodes: Mapping[str, Body]) -> None:
        self._nodes = nodes
        self._instances = [
            each for each in instances if look_up(each, ("status", "phase")) not in ("Succeeded", "Failed")
        ]
        self._taken: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for each in self._instances:
            for resource in _RESOURCES:
                self._taken[_node_of(each), resource] += _requested(each, resource) or 0
        self._found: dict[str, Counter[str]] = {}

    def crowded(self, instance: Body, there: Body) -> str:
        """Says why the node has no place for the instance beside those that run there; empty if it has one."""
        return self._full(instance, there) or self._shunned(instance, there)

    def _full(self, instance: Body, there: Body) -> str:
        name = str(look_up(there, ("metadata", "name")) or "")
        for resource in _RESOURCES:
            needed, whole = _requested(instance, resource), _amount(look_up(there, ("status", "allocatable", resource)))
            if needed is None or whole is None:
                continue
            left = max(Decimal(0), whole - self._taken[name, resource])
            if needed > left:
                free, asked = _shown(left, resource), _shown(needed, resource)
                return f"has {free} left for virtual machines, and it requests {asked}"
        return ""

    def _shunned(self, instance: Body, there: Body) -> str:
        if any(self._count(term, instance, there) for term in _terms(instance, "podAntiAffinity")):
            return "runs pods that its anti-affinity excludes"
        wanted = list(_terms(instance, "podAffinity"))
        if any(self._others(term, instance) and not self._count(term, instance, there) for term in wanted):
            return "runs no pod that its affinity requires"
        return ""

    def _count(self, term: _Term, instance: Body, there: Body) -> int:
        """Counts the others that the term takes and that are where the node is."""
        place = objects.label(there, term.topology)
        own = place and place == self._place(instance, term) and _takes(term, instance)
        return self._where(term)[place] - bool(own) if place else 0

    def _others(self, term: _Term, instance: Body) -> int:
        """A term that matches no other machine may be about pods that are not among the inputs."""
        return self._where(term).total() - _takes(term, instance)

    def _where(self, term: _Term) -> Counter[str]:
        key = repr(term)
        if key not in self._found:
            taken = (each for each in self._instances if _takes(term, each))
            self._found[key] = Counter(self._place(each, term) for each in taken)
        return self._found[key]

    def _place(self, instance: Body, term: _Term) -> str:
        return objects.label(self._nodes.get(_node_of(instance), {}), term.topology)


def _terms(instance: Body, kind: str) -> Iterator[_Term]:
    own = str(look_up(instance, ("metadata", "namespace")) or "")
    for each in objects.items(look_up(instance, ("spec", "affinity", kind, _REQUIRED))):
        selector = look_up(each, ("labelSelector",))
        if isinstance(selector, Mapping) and not _is_map(look_up(each, ("namespaceSelector",))):
            spaces = tuple(map(str, objects.items(look_up(each, ("namespaces",))))) or (own,)
            yield _Term(topology=str(look_up(each, ("topologyKey",))), spaces=spaces, selector=selector)


def _takes(term: _Term, instance: Body) -> bool:
    labels = look_up(instance, ("metadata", "labels"))
    space = str(look_up(instance, ("metadata", "namespace")) or "")
    return space in term.spaces and objects.selects(term.selector, labels if isinstance(labels, Mapping) else {})


def _requested(instance: Body, resource: str) -> Decimal | None:
    """Its request; of memory, what its guest has where none is written."""
    found = look_up(instance, ("spec", "domain", "resources", "requests", resource))
    if resource == "memory" and not isinstance(found, (str, int)):
        found = look_up(instance, ("spec", "domain", "memory", "guest"))
    return _amount(found)


def _amount(value: Any) -> Decimal | None:
    found = quantity_of(value)
    return None if found is None else max(Decimal(0), min(found, _MOST))


def _shown(amount: Decimal, resource: str) -> str:
    return f"{amount / _GIB:.4g} GiB of memory" if resource == "memory" else f"{amount:.4g} CPUs"


def _node_of(instance: Body) -> str:
    return str(look_up(instance, ("status", "nodeName")) or "")
