"""Builds the context: the plan, the release, facts about the cluster, and which inputs are given.

What has been recorded in the plan's status wins over what the objects say: a run must not change its mind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from renderer.context.facts import Facts, find, status, text_at
from renderer.context.nodes import nodes_of, single_node_of, unknown_plan
from renderer.context.scope import Looked, NotedScope, Scope, run_time_mark
from renderer.frozen import frozen
from renderer.model.plan_api import PREFIX, older_spelling
from renderer.model.ref import Body
from renderer.names import detector_name, label_value, safe_concat


@frozen
class Context:
    """`names` is what a template sees; `given` the inputs that are there; `marks` the texts that stand for values known
    at run time only."""

    names: Mapping[str, Any]
    given: frozenset[str]
    marks: frozenset[str]
    undoing: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """All that a template sees but functions: all that a rendering depends on."""
        return {name: value for name, value in self.names.items() if not callable(value)}

    @property
    def nodes(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.names["cluster"]["nodes"])


def context_of(facts: Facts) -> Context:
    """The context that is common to all phases."""
    plan = _plan(facts)
    nodes = nodes_of(facts, plan)
    previous = _previous_version(facts)
    release = _release(facts)
    version = _version(facts)
    tag, repo_tag = _tags(plan, release, facts)
    image = _image_in_status(facts) or plan["spec"]["image"] or _own_image(facts, plan)
    lists = _image_lists(facts.image_lists or {}) or _image_lists(facts.fetched)
    names = {
        "plan": Scope("plan", plan),
        "release": Scope("release", release or {}),
        "version": Scope("version", version or {}),
        "cluster": Scope(
            "cluster",
            {
                "nodes": nodes,
                "fullNodes": [node["name"] for node in nodes if not node["witness"]],
                "singleNode": single_node_of(facts, nodes),
                "previousVersion": previous,
            },
        ),
        "toolkit": Scope(
            "toolkit",
            {
                "image": _toolkit_image(facts, plan),
                "tag": tag,
                "repoTag": repo_tag,
                "pullSecrets": _pull_secrets(facts),
            },
        ),
        "isoImage": image,
        "imageLists": Scope("imageLists", lists or {}),
        "fetched": Scope("fetched", facts.fetched),
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
        "imageLists": lists is not None,
    }
    marks = frozenset(node["machinePlan"] for node in nodes if node["machinePlan"] == unknown_plan(node["name"]))
    return Context(names=names, given=frozenset(key for key, there in given.items() if there), marks=marks)


def _own_image(facts: Facts, plan: Mapping[str, Any]) -> str:
    """The name of the plan's own image; another one where the loop retries the import, which no review does."""
    return safe_concat(_name(plan), "iso", _suffix(facts.retry) if status(facts, "retry") else "")


def _image_in_status(facts: Facts) -> str:
    """Earlier managers put the namespace before the name; it always was this one for an image of their own."""
    return str(status(facts, "isoImageID") or "").removeprefix("harvester-system/")


def for_step(
    context: Context,
    node: Mapping[str, Any] | None,
    captured: Iterable[str],
    known: Mapping[str, Any],
    read: set[Looked] | None = None,
) -> Context:
    """The context of one step: its node, and what is captured in its phase. `known` has values captured so far. What is
    looked at goes into `read`."""
    of = f" of {node['name']}" if node else ""
    marks = {name: run_time_mark(f"{name}{of}") for name in captured}
    names = {**context.names, "captured": Scope("captured", {**marks, **known})}
    if node:
        names["node"] = node
    if read is not None:
        names = _noted(names, read)
    return replace(context, names=names, marks=context.marks | frozenset(marks.values()))


def _noted(names: Mapping[str, Any], read: set[Looked]) -> dict[str, Any]:
    """The names with scopes that note what is looked at. What is no scope counts as looked at, and so does what the
    functions are made from."""
    noted: dict[str, Any] = {}
    for name, value in names.items():
        noted[name] = NotedScope(value, read, (name,)) if isinstance(value, Scope) else value
        if not isinstance(value, Scope) and not callable(value):
            read.add(((name,), True))
    plan = noted["plan"]["metadata"]
    read.add((("plan", "metadata", "name"), True))
    return noted | {"annotation": _annotation(plan["annotations"])}


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


def _suffix(retry: int) -> str:
    return f"retry-{retry}" if retry else ""


def _functions(plan: Mapping[str, Any], retry: int) -> dict[str, Any]:
    def name(*parts: str) -> str:
        return safe_concat(_name(plan), *parts)

    def one_shot_name(*parts: str) -> str:
        return safe_concat(_name(plan), *parts, _suffix(retry))

    def detectors_name(*parts: str) -> str:
        return detector_name(_name(plan), *parts)

    return {
        "name": name,
        "oneShotName": one_shot_name,
        "detectorName": detectors_name,
        "annotation": _annotation(plan["metadata"]["annotations"]),
        "labelValue": label_value,
    }


def _annotation(annotations: Mapping[str, Any]) -> Callable[..., str]:
    def annotation(key: str, default: str = "") -> str:
        return annotation_of(annotations, key, default)

    return annotation


def annotation_of(annotations: Mapping[str, Any], key: str, default: str) -> str:
    """The value of an annotation of the plan, in whichever of its spellings; the newer one counts."""
    name = f"{PREFIX}{key}"
    return str(annotations.get(name, annotations.get(older_spelling(name), default)))


def _toolkit_image(facts: Facts, plan: Mapping[str, Any]) -> str:
    """A plan's own is taken as it is: it names its registry."""
    usual, registry = str(facts.values["toolkitImage"]), facts.values.get("imageRegistry")
    return plan["metadata"]["annotations"].get(f"{PREFIX}upgrade-toolkit-image") or (
        f"{registry}/{usual}" if registry else usual
    )


def _pull_secrets(facts: Facts) -> list[dict[str, str]]:
    """As a pod has them."""
    names = str(facts.values.get("imagePullSecrets") or "")
    return [{"name": name} for name in names.split(",") if name]


def _tags(plan: Mapping[str, Any], release: Body | None, facts: Facts) -> tuple[str | None, str | None]:
    """The toolkit image's tag for Jobs and for the repository. Neither depends on when it is asked for: the repository
    runs before the loop knows the release, so it never has the release's tag, and Jobs wait until it is known."""
    asked, usual = plan["spec"]["upgrade"], facts.values.get("toolkitTag")
    target = None if release is None else str(release.get("harvester") or "") or usual
    return _tag(asked or target or ""), _tag(asked or usual or "")


def _tag(text: str) -> str | None:
    """An image tag cannot hold a `+`."""
    return text.replace("+", "-") or None


def _release(facts: Facts) -> dict[str, Any] | None:
    recorded = status(facts, "releaseMetadata") or facts.release
    return None if not recorded else {"minUpgradableVersion": "", **recorded}


def _image_lists(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Both lists, since what matters is in which they differ."""
    lists = {name: found.get(name) for name in ("previous", "current")}
    return lists if all(value is not None for value in lists.values()) else None


def _version(facts: Facts) -> dict[str, str] | None:
    recorded = status(facts, "version")
    expected = (facts.plan.get("spec") or {}).get("version")
    found = {"spec": recorded} if recorded else find(facts, "harvesterhci.io/", "Version", expected, "harvester-system")
    url = text_at(found, "spec", "isoURL")
    return {"isoURL": url, "isoChecksum": text_at(found, "spec", "isoChecksum") or ""} if url else None


def _previous_version(facts: Facts) -> str | None:
    recorded = status(facts, "previousVersion")
    setting = find(facts, "harvesterhci.io/", "Setting", "server-version")
    return recorded or text_at(setting, "value") or text_at(setting, "default") or None
