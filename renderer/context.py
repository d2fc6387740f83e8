"""What templates and expressions see: the plan, the release, facts about the cluster, and the inputs that are given.

Joins between objects (Node to Machine to machine-plan Secret) are made here, once. What has been recorded in the plan's
status wins over what the objects say, since a run must not change its mind. Pure; it knows no phase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from renderer.model.path import ABSENT, look_up
from renderer.model.ref import Body
from renderer.names import label_value, safe_concat

PREFIX = "management.harvesterhci.io/"
_MANAGED = "harvesterhci.io/managed"
_WITNESS = "node-role.harvesterhci.io/witness"


class Scope(Mapping[str, Any]):
    """A named, immutable mapping; an unknown key in a template is an error that says the name."""

    __slots__ = ("_values", "name")

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self._values = {key: _scoped(f"{name}.{key}", value) for key, value in values.items()}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that rendering starts from. `release` is None while it is not known; `image_lists` likewise."""

    plan: Body
    release: Body | None = None
    objects: Sequence[Body] = ()
    image_lists: Mapping[str, Sequence[str]] | None = None
    values: Mapping[str, Any]
    spec_fields: Mapping[str, Any]
    retry: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`names` is what a template sees; `given` the inputs that are there; `marks` the texts that stand for values known
    at run time only."""

    names: Mapping[str, Any]
    given: frozenset[str]
    marks: frozenset[str]

    @property
    def nodes(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.names["cluster"]["nodes"])


def context_of(facts: Facts) -> Context:
    """The context that is common to all phases."""
    plan = _plan(facts)
    nodes = _nodes(facts, plan)
    previous = _previous_version(facts)
    release = _release(facts)
    version = _version(facts)
    tag, repo_tag = _tags(plan, release, previous)
    image = plan["spec"]["image"] or _status(facts, "isoImageID") or safe_concat(_name(plan), "iso")
    names = {
        "plan": Scope("plan", plan),
        "release": Scope("release", release or {}),
        "version": Scope("version", version or {}),
        "cluster": Scope(
            "cluster",
            {"nodes": nodes, "singleNode": _single_node(facts, nodes), "previousVersion": previous},
        ),
        "toolkit": Scope("toolkit", {"image": _toolkit_image(facts, plan), "tag": tag, "repoTag": repo_tag}),
        "isoImage": image,
        "imageLists": Scope("imageLists", facts.image_lists or {}),
        "values": Scope("values", facts.values),
        "retry": facts.retry,
        **_functions(plan, facts.retry),
    }
    given = {
        "nodes": bool(nodes),
        "version": bool(plan["spec"]["image"] or version),
        "previousVersion": bool(previous),
        "repoTag": bool(repo_tag),
        "releaseMetadata": release is not None,
        "toolkitTag": bool(tag),
        "imageLists": facts.image_lists is not None,
    }
    marks = frozenset(node["machinePlan"] for node in nodes if node["machinePlan"] == _unknown_plan(node["name"]))
    return Context(names=names, given=frozenset(key for key, there in given.items() if there), marks=marks)


def for_step(
    context: Context, node: Mapping[str, Any] | None, captured: Iterable[str], known: Mapping[str, Any]
) -> Context:
    """The context of one step: its node, and what is captured in its phase. `known` has values captured so far."""
    of = f" of {node['name']}" if node else ""
    marks = {name: run_time_mark(f"{name}{of}") for name in captured}
    names = {**context.names, "captured": Scope("captured", {**marks, **known})}
    if node:
        names["node"] = node
    return replace(context, names=names, marks=context.marks | frozenset(marks.values()))


def run_time_mark(what: str) -> str:
    """The text that stands in a manifest for a value that is known at run time only."""
    return f"<known at run time: {what}>"


def _scoped(name: str, value: Any) -> Any:
    if isinstance(value, Mapping) and not isinstance(value, Scope):
        return Scope(name, value)
    if isinstance(value, (list, tuple)):
        return tuple(_scoped(f"{name}[{index}]", item) for index, item in enumerate(value))
    return value


# --------------------------------------------------------------------------------------------------------- the plan


def _plan(facts: Facts) -> dict[str, Any]:
    """The plan with every field of its spec there, None where it is not set."""
    metadata = facts.plan.get("metadata") or {}
    spec = _filled(facts.spec_fields, facts.plan.get("spec") or {})
    return {
        "metadata": {
            "name": metadata.get("name", ""),
            "annotations": dict(metadata.get("annotations") or {}),
            "labels": dict(metadata.get("labels") or {}),
        },
        "spec": spec,
    }


def _filled(fields: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _filled(inner, value.get(name) or {}) if isinstance(inner, Mapping) else value.get(name)
        for name, inner in fields.items()
    }


def _name(plan: Mapping[str, Any]) -> str:
    return str(plan["metadata"]["name"])


def _status(facts: Facts, field: str) -> Any:
    return (facts.plan.get("status") or {}).get(field)


def _functions(plan: Mapping[str, Any], retry: int) -> dict[str, Any]:
    annotations = plan["metadata"]["annotations"]

    def name(*parts: str) -> str:
        return safe_concat(_name(plan), *parts)

    def one_shot_name(*parts: str) -> str:
        return safe_concat(_name(plan), *parts, f"retry-{retry}" if retry else "")

    def annotation(key: str, default: str = "") -> str:
        return str(annotations.get(f"{PREFIX}{key}", default))

    return {"name": name, "oneShotName": one_shot_name, "annotation": annotation, "labelValue": label_value}


def _toolkit_image(facts: Facts, plan: Mapping[str, Any]) -> str:
    return plan["metadata"]["annotations"].get(f"{PREFIX}upgrade-toolkit-image") or str(facts.values["toolkitImage"])


def _tags(plan: Mapping[str, Any], release: Body | None, previous: str | None) -> tuple[str | None, str | None]:
    """The toolkit image's tag for Jobs and for the repository, which runs before the new release is known."""
    asked = plan["spec"]["upgrade"]
    target = str((release or {}).get("harvester") or "")
    return _tag(asked or target), _tag(asked or previous or "")


def _tag(text: str) -> str | None:
    """An image tag cannot hold a `+`."""
    return text.replace("+", "-") or None


# ------------------------------------------------------------------------------------------------------ the release


def _release(facts: Facts) -> dict[str, Any] | None:
    recorded = _status(facts, "releaseMetadata") or facts.release
    return None if not recorded else {"minUpgradableVersion": "", **recorded}


def _version(facts: Facts) -> dict[str, str] | None:
    recorded = _status(facts, "version")
    wanted = (facts.plan.get("spec") or {}).get("version")
    found = recorded or _spec_of(_find(facts, "harvesterhci.io/", "Version", wanted, "harvester-system"))
    if not found or not found.get("isoURL"):
        return None
    return {"isoURL": found["isoURL"], "isoChecksum": found.get("isoChecksum") or ""}


def _previous_version(facts: Facts) -> str | None:
    recorded = _status(facts, "previousVersion")
    setting = _find(facts, "harvesterhci.io/", "Setting", "server-version") or {}
    return recorded or setting.get("value") or setting.get("default") or None


# -------------------------------------------------------------------------------------------------------- the nodes


def _nodes(facts: Facts, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Managed nodes, and those that the run has recorded; by name."""
    live = {_meta(item, "name"): item for item in _all(facts, "v1", "Node")}
    managed = {name for name, node in live.items() if _labels(node).get(_MANAGED) == "true"}
    recorded = set(_status(facts, "nodeUpgradeStatuses") or {})
    paused = set(plan["spec"]["nodeUpgradeOption"]["pauseNodes"] or ())
    machines = _machines(facts)
    plans = _machine_plans(facts)
    return [
        _node(name, live.get(name, {}), name in paused, machines.get(name), plans)
        for name in sorted(managed | recorded)
    ]


def _node(name: str, node: Body, paused: bool, machine: str | None, plans: Mapping[str, str]) -> dict[str, Any]:
    machine = machine or (node.get("metadata") or {}).get("annotations", {}).get("cluster.x-k8s.io/machine")
    return {
        "name": name,
        "witness": _labels(node).get(_WITNESS, "false") != "false",
        "paused": paused,
        "machine": machine,
        "machinePlan": plans.get(machine or "") or _unknown_plan(name),
    }


def _unknown_plan(node: str) -> str:
    return run_time_mark(f"machine-plan Secret of {node}")


def _machines(facts: Facts) -> dict[str, str]:
    """Node name to Machine name."""
    found = (item for item in _all(facts, "cluster.x-k8s.io/", "Machine") if _meta(item, "namespace") == "fleet-local")
    pairs = ((look_up(item, ("status", "nodeRef", "name")), _meta(item, "name")) for item in found)
    return {node: machine for node, machine in pairs if node is not ABSENT}


def _machine_plans(facts: Facts) -> dict[str, str]:
    """Machine name to the name of its machine-plan Secret."""
    secrets = (item for item in _all(facts, "v1", "Secret") if item.get("type") == "rke.cattle.io/machine-plan")
    pairs = ((_labels(item).get("rke.cattle.io/machine-name"), _meta(item, "name")) for item in secrets)
    return {machine: name for machine, name in pairs if machine}


def _single_node(facts: Facts, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """As recorded once Initialize has looked; before that, the only managed node."""
    status = facts.plan.get("status") or {}
    if status.get("previousVersion"):
        return status.get("singleNode")
    return nodes[0]["name"] if len(nodes) == 1 else None


# -------------------------------------------------------------------------------------------------------- look-ups


def _all(facts: Facts, api: str, kind: str) -> Iterator[Body]:
    """`api` is a whole apiVersion, or a group with its slash."""
    for item in facts.objects:
        version = str(item.get("apiVersion", ""))
        if item.get("kind") == kind and (version.startswith(api) if api.endswith("/") else version == api):
            yield item


def _find(facts: Facts, api: str, kind: str, name: str | None, namespace: str = "") -> Body | None:
    found = (i for i in _all(facts, api, kind) if _meta(i, "name") == name and (_meta(i, "namespace") == namespace))
    return next(found, None)


def _meta(item: Body, field: str) -> str:
    return str((item.get("metadata") or {}).get(field) or "")


def _labels(item: Body) -> Mapping[str, str]:
    return (item.get("metadata") or {}).get("labels") or {}


def _spec_of(item: Body | None) -> Body:
    return (item or {}).get("spec") or {}
