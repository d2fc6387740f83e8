"""Refuses inputs that can never be upgraded: no node to upgrade, a version that is too old.

Pure. What is found in a cluster is for the checks of `templates/preflight` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from renderer.documents import Inputs
from renderer.errors import Problem
from renderer.model.node_labels import LABELS, WITNESS, is_managed, is_witness
from renderer.model.path import Path, look_up
from renderer.model.ref import Body
from renderer.source_document import SourceDocument
from renderer.versions import is_too_old

_HOSTNAME: Path = (*LABELS, "kubernetes.io/hostname")
_ONLY_WITNESSES = "every managed node is a witness; none can run the upgrade's repository or virtual machines"


def begin_problems(inputs: Inputs, oldest: str) -> list[Problem]:
    """Reasons for the loop not to begin on this cluster, whatever the plan is."""
    return list(_version_problems(inputs, oldest))


def cluster_problems(inputs: Inputs) -> list[Problem]:
    """Clusters for which nothing can be rendered."""
    return list(_only_witnesses(inputs))


def unusable_nodes(objects: Iterable[Body]) -> list[Problem]:
    """Reasons for the loop not to begin on the live nodes: it would wait for them and never see an end."""
    nodes = [body for body in objects if body.get("kind") == "Node" and is_managed(body)]
    nameless = [str(body["metadata"]["name"]) for body in nodes if not look_up(body, _HOSTNAME)]
    found = []
    if nodes and all(map(is_witness, nodes)):
        names = ", ".join(str(body["metadata"]["name"]) for body in nodes)
        remedy = f"add a node that is not a witness, or remove the label {WITNESS} from a node that is not a witness"
        found.append(Problem(reason="OnlyWitnesses", message=f"{_ONLY_WITNESSES}: {names}", remedy=remedy))
    if nameless:
        message = f"no label kubernetes.io/hostname, by which its Jobs find a node, on Node {', '.join(nameless)}"
        remedy = (
            f"kubectl label node {nameless[0]} kubernetes.io/hostname={nameless[0]}, and so on; its kubelet sets it"
        )
        found.append(Problem(reason="NodeNotSelectable", message=message, remedy=remedy))
    return found


def rehearsal_problems(inputs: Inputs) -> list[Problem]:
    """Nodes that a rehearsal would wait for and never see."""
    nodes = _managed(inputs)
    if not nodes:
        message = 'no Node with the label harvesterhci.io/managed: "true" among the inputs: there is nothing to upgrade'
        remedy = "add what kubectl get nodes -o yaml prints"
        return [Problem(reason="MissingInput", message=message, remedy=remedy)]
    return [_no_hostname(node) for node in nodes if not _has(node, _HOSTNAME)]


# ------------------------------------------------------------------------------------------------------------ nodes


def _no_hostname(node: SourceDocument) -> Problem:
    message = f"Node {_name(node)} has no label kubernetes.io/hostname, by which its Jobs find it: they would never run"
    remedy = f"its kubelet sets it: kubectl label node {_name(node)} kubernetes.io/hostname={_name(node)}"
    return node.problem("NodeNotSelectable", message, _HOSTNAME, remedy=remedy)


def _only_witnesses(inputs: Inputs) -> Iterator[Problem]:
    managed = _managed(inputs)
    if managed and all(is_witness(node.body) for node in managed):
        remedy = "add the cluster's other Node objects to the inputs"
        yield managed[0].problem("OnlyWitnesses", _ONLY_WITNESSES, (*LABELS, WITNESS), remedy=remedy)


# ----------------------------------------------------------------------------------------------------- other objects


def _version_problems(inputs: Inputs, oldest: str) -> Iterator[Problem]:
    for source, path in _current_versions(inputs):
        current = look_up(source.body, path)
        if is_too_old(str(current), oldest):
            message = f"the cluster runs {current}, and only {oldest} or newer can be upgraded"
            remedy = f"upgrade it to {oldest} or newer first, as the documentation of that release describes"
            yield source.problem("VersionTooOld", message, path, remedy=remedy)
        return


def _current_versions(inputs: Inputs) -> Iterator[tuple[SourceDocument, Path]]:
    """The places that say the version that runs now; the first one counts."""
    if inputs.plan and isinstance(look_up(inputs.plan.body, ("status", "previousVersion")), str):
        yield inputs.plan, ("status", "previousVersion")
    for setting in _of_kind(inputs, "harvesterhci.io/v1beta1", "Setting"):
        for key in ("value", "default"):
            if _name(setting) == "server-version" and setting.body.get(key):
                yield setting, (key,)


# ------------------------------------------------------------------------------------------------------------ look-ups


def _managed(inputs: Inputs) -> list[SourceDocument]:
    return [node for node in _of_kind(inputs, "v1", "Node") if is_managed(node.body)]


def _has(source: SourceDocument, path: Path) -> bool:
    return bool(look_up(source.body, path))


def _of_kind(inputs: Inputs, api_version: str, kind: str) -> list[SourceDocument]:
    named = (api_version, kind)
    return [source for source in inputs.objects if (source.body["apiVersion"], source.body["kind"]) == named]


def _name(source: SourceDocument) -> str:
    return str(source.body["metadata"]["name"])
