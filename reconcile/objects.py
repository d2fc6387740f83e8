"""Reads the state of a live object, in Kubernetes' words: conditions, generations, labels, node, deletion.

Pure, and about one object at a time. Objects come from clusters of many versions and from files: what is missing or
misshapen is absent, never an error. Whether an object is ready is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from renderer.catalog.kinds import STATUS_OF_ANOTHER
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body

FIELD_MANAGER = "upgradeplan"
"""The field manager of everything that we write."""

PLAN_LABEL = f"{PREFIX}upgrade-plan"
"""Names the plan on every object that it owns."""

NODE_LABEL = f"{PREFIX}node"
"""Names the node on an object that was made for one."""

NODE_PLAN_LABEL = "upgrade.cattle.io/plan"
"""Names the Plan of the system-upgrade-controller on each of its Jobs and their pods."""

LISTED_IN_PART = frozenset({("v1", "Secret")})
"""Kinds of which no list has every object, so that each one is read by its name: nobody may read all Secrets."""


_WRITTEN = ("name", "generateName", "labels", "annotations")


def as_written(body: Body) -> Body:
    """An object as somebody writes it who creates it: what a server has said about one of that name is left out."""
    metadata = {key: body["metadata"][key] for key in _WRITTEN if key in body["metadata"]}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One entry of `status.conditions`. A condition without a status is Unknown, as the API conventions say."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None


def condition(body: Body, type_: str) -> Condition | None:
    """The first condition of this type."""
    return next((found for found in conditions(body) if found.type == type_), None)


def conditions(body: Body) -> Iterator[Condition]:
    for entry in items(_status(body).get("conditions")):
        if isinstance(entry, Mapping) and entry.get("type"):
            yield Condition(
                type=str(entry["type"]),
                status=status if isinstance(status := entry.get("status"), str) and status else "Unknown",
                reason=str(entry.get("reason") or ""),
                message=str(entry.get("message") or ""),
                observed_generation=_number(entry.get("observedGeneration")),
            )


def generation(body: Body) -> int | None:
    return _number(_metadata(body).get("generation"))


def observed_generation(body: Body) -> int | None:
    """The generation that the status is about; None where the kind does not say, or says it of another object."""
    group = str(body.get("apiVersion", "")).rpartition("/")[0]
    if (group, body.get("kind")) in STATUS_OF_ANOTHER:
        return None
    return _number(_status(body).get("observedGeneration"))


def is_behind(body: Body, observed: int | None) -> bool:
    """True if what was observed is older than the present generation. What is not said is not behind."""
    present = generation(body)
    return present is not None and observed is not None and observed < present


def deletion_timestamp(body: Body) -> str | None:
    """Since when the object is being deleted."""
    found = _metadata(body).get("deletionTimestamp")
    return str(found) if found else None


def uid(body: Body) -> str:
    """The object's own; empty before it was created."""
    return str(_metadata(body).get("uid") or "")


def is_owned_by(body: Body, owner: str) -> bool:
    """True if one of the owner references has this uid."""
    return any(_mapping(reference).get("uid") == owner for reference in items(_metadata(body).get("ownerReferences")))


def controller(body: Body) -> Mapping[str, Any] | None:
    """The owner reference of what controls the object."""
    found = map(_mapping, items(_metadata(body).get("ownerReferences")))
    return next((reference for reference in found if reference.get("controller")), None)


def is_applied_by_us(body: Body) -> bool:
    """True if we have ever applied it; what the Harvester Upgrade Manager has made for the plan, we have not."""
    entries = map(_mapping, items(_metadata(body).get("managedFields")))
    return any((entry.get("manager"), entry.get("operation")) == (FIELD_MANAGER, "Apply") for entry in entries)


def has_field_manager(body: Body, name: str) -> bool:
    """True if it owns a field of the object."""
    return any(entry.get("manager") == name for entry in map(_mapping, items(_metadata(body).get("managedFields"))))


def label(body: Body, key: str) -> str:
    """The label's value; empty if there is none."""
    return str(_mapping(_metadata(body).get("labels")).get(key) or "")


def has_labels(body: Body, expected: Iterable[tuple[str, str]]) -> bool:
    """Equality only, as `matchLabels`; an empty selector takes every object."""
    labels = _mapping(_metadata(body).get("labels"))
    return all(labels.get(key) == value for key, value in expected)


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """True if a label selector (`matchLabels`, `matchExpressions`) takes what has these labels; an absent one takes
    nothing."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in _mapping(selector.get("matchLabels")).items())
    return equal and all(expression_holds(labels, each) for each in items(selector.get("matchExpressions")))


def expression_holds(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    """One requirement of a selector; `Gt` and `Lt` are not used in this field and never hold."""
    value, values = labels.get(str(expression.get("key"))), items(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False


def is_selected(node: Body, spec: Mapping[str, Any]) -> bool:
    """True if the node selector and the required node affinity of a pod or a virtual machine take the node."""
    labels = {"metadata.name": str(_metadata(node).get("name")), **_mapping(_metadata(node).get("labels"))}
    if any(labels.get(key) != value for key, value in _mapping(spec.get("nodeSelector")).items()):
        return False
    affinity = _mapping(_mapping(spec.get("affinity")).get("nodeAffinity"))
    terms = _mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")).get("nodeSelectorTerms")
    return terms is None or any(_term_holds(labels, _mapping(term)) for term in items(terms))


def _term_holds(labels: Mapping[str, str], term: Mapping[str, Any]) -> bool:
    """An empty term takes nothing."""
    expected = (*items(term.get("matchExpressions")), *items(term.get("matchFields")))
    return bool(expected) and all(expression_holds(labels, _mapping(each)) for each in expected)


def node_name(body: Body) -> str:
    """The node that a Pod, or a Job's pod template, is bound to; empty where the scheduler decides."""
    spec = _mapping(body.get("spec"))
    template = _mapping(_mapping(spec.get("template")).get("spec"))
    return str(spec.get("nodeName") or template.get("nodeName") or "")


def items(value: Any) -> Sequence[Any]:
    """The items of a list; none of anything else."""
    return value if isinstance(value, (list, tuple)) else ()


def _metadata(body: Body) -> Mapping[str, Any]:
    return _mapping(body.get("metadata"))


def _status(body: Body) -> Mapping[str, Any]:
    return _mapping(body.get("status"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, (dict, Mapping)) else {}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
