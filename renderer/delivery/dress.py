"""Dressings: all that an agent's copy of a manifest has beside the manifest. Digests never include them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from renderer.delivery.delivery_rules import DeliveryRules
from renderer.digest import digest_of, short_digest
from renderer.frozen import frozen
from renderer.model.ref import Body
from renderer.names import shortened_name
from renderer.render.manifest import written

_GUARD = "run-once"
"""The name that the script is run under; namespace, ConfigMap and digest follow it."""
_LONGEST = 63


def dressed(body: Body, rules: DeliveryRules, record: str = "", *, is_of_new_kind: bool = False) -> Body:
    """The body with every dressing. `record` names the ConfigMap that says that a Job has succeeded, if it is one; an
    object is of a new kind if the tree defines its kind as well."""
    added = _added(rules, is_of_new_kind=is_of_new_kind)
    metadata = {**body["metadata"], "annotations": {**(body["metadata"].get("annotations") or {}), **added}}
    guarded = _guarded(body, rules.script, record) if record and rules.script else body
    return written({**guarded, "metadata": metadata})


def undressed(body: Body, rules: DeliveryRules) -> Body:
    """The body as it was before it was dressed."""
    added = [_added(rules, is_of_new_kind=it) for it in (False, True)]
    annotations: dict[str, Any] = body["metadata"].get("annotations") or {}
    kept = {key: text for key, text in annotations.items() if all(one.get(key) != text for one in added)}
    return written({**_unguarded(body, rules.script), "metadata": {**body["metadata"], "annotations": kept}})


def record_of(body: Body, plan: str, step: str) -> str:
    """The ConfigMap that says that a Job has succeeded; empty for an object that is not a Job."""
    is_job = (body.get("apiVersion"), body.get("kind")) == ("batch/v1", "Job")
    return shortened_name(_LONGEST, plan, step.lower(), "done") if is_job else ""


@frozen
class Record:
    """The ConfigMap that says which Jobs of a step have succeeded, and the accounts that they run as."""

    name: str
    namespace: str
    accounts: tuple[str, ...]


def records_of(bodies: Iterable[Body], plan: str, step: str) -> Iterator[Record]:
    """One for each namespace in which the step has Jobs."""
    accounts: dict[tuple[str, str], set[str]] = defaultdict(set)
    for body in bodies:
        if record := record_of(body, plan, step):
            pod = body["spec"]["template"]["spec"]
            accounts[record, body["metadata"]["namespace"]].add(pod.get("serviceAccountName", "default"))
    for (name, namespace), found in accounts.items():
        yield Record(name=name, namespace=namespace, accounts=tuple(sorted(found)))


def _added(rules: DeliveryRules, *, is_of_new_kind: bool) -> dict[str, str]:
    """Annotations of several dressings with one key are one list."""
    found: dict[str, str] = {}
    for dressing in rules.dressings:
        if dressing.of is None or is_of_new_kind:
            for key, text in dressing.annotations.items():
                found[key] = f"{found[key]},{text}" if key in found else text
    return found


def _guarded(body: Body, script: str, record: str) -> Body:
    """The Job whose first container runs its command unless the record has the digest of the Job."""
    container = _container(body)
    namespace, digest = body["metadata"]["namespace"], short_digest(digest_of(body))
    before = ["sh", "-c", script, _GUARD, namespace, record, digest]
    return _with_container(body, {**container, "command": [*before, *container["command"]]})


def _unguarded(body: Body, script: str) -> Body:
    container = _container(body)
    command = (container or {}).get("command") or []
    if not script or command[:4] != ["sh", "-c", script, _GUARD]:
        return body
    return _with_container(body, {**container, "command": command[7:]})


def _container(body: Body) -> Mapping[str, Any]:
    containers = body.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    first: Mapping[str, Any] = containers[0]
    return first


def _with_container(body: Body, container: Mapping[str, Any]) -> Body:
    spec = body["spec"]
    template = spec["template"]
    containers = [container, *template["spec"]["containers"][1:]]
    return {**body, "spec": {**spec, "template": {**template, "spec": {**template["spec"], "containers": containers}}}}
