"""Validates built-in objects beyond their schema. Pure.

Source: k8s.io/kubernetes 1.35, pkg/apis/*/validation; the rules that a mistake in a template can break.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver.selectors import selects
from renderer.model.ref import Body

_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def job_causes(body: Body) -> Iterator[StatusCause]:
    pod = body["spec"]["template"]["spec"]
    yield from _pod_causes("spec.template.spec", pod)
    if pod["restartPolicy"] == "Always":
        yield _required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from _selection_causes(body)


def workload_causes(body: Body) -> Iterator[StatusCause]:
    template = body["spec"]["template"]
    yield from _pod_causes("spec.template.spec", template["spec"])
    if template["spec"]["restartPolicy"] != "Always":
        yield _unsupported("spec.template.spec.restartPolicy", template["spec"]["restartPolicy"], '"Always"')
    if not body["spec"].get("selector"):
        yield _required("spec.selector", "")
    yield from _selection_causes(body)


def _selection_causes(body: Body) -> Iterator[StatusCause]:
    selector = body["spec"].get("selector")
    labels = (body["spec"]["template"].get("metadata") or {}).get("labels") or {}
    if selector is None or not selects(selector, labels):
        message = f"Invalid value: {labels!r}: `selector` does not match template `labels`"
        yield StatusCause(field="spec.template.metadata.labels", message=message, reason="FieldValueInvalid")


def _pod_causes(path: str, spec: Mapping[str, Any]) -> Iterator[StatusCause]:
    if not spec.get("containers"):
        yield _required(f"{path}.containers", "")
    volumes = {volume["name"] for volume in spec.get("volumes") or ()}
    names: set[str] = set()
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            yield from _container_causes(f"{path}.{group}[{index}]", container, volumes, names)


def _container_causes(
    path: str, container: Mapping[str, Any], volumes: Set[str], names: set[str]
) -> Iterator[StatusCause]:
    """`names` are those of the containers before it, this one is added."""
    for field in ("name", "image"):
        if not container.get(field):
            yield _required(f"{path}.{field}", "")
    name = container.get("name", "")
    if name in names:
        yield StatusCause(field=f"{path}.name", message=f'Duplicate value: "{name}"', reason="FieldValueDuplicate")
    names.add(name)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount["name"] not in volumes:
            field = f"{path}.volumeMounts[{index}].name"
            yield StatusCause(field=field, message=f'Not found: "{mount["name"]}"', reason="FieldValueNotFound")


def bare_pod_causes(body: Body) -> Iterator[StatusCause]:
    return _pod_causes("spec", body["spec"])


def config_map_causes(body: Body) -> Iterator[StatusCause]:
    contents: Mapping[str, Any] = body.get("data") or {}
    others: Mapping[str, Any] = body.get("binaryData") or {}
    for name, keys in (("data", contents), ("binaryData", others)):
        for key in keys:
            if not _KEY.fullmatch(key) or len(key) > 253:
                message = f"Invalid value: {key!r}: a valid config key must consist of letters, digits, '-', '_' or '.'"
                yield StatusCause(field=f"{name}[{key}]", message=message, reason="FieldValueInvalid")
    for key in sorted(set(contents) & set(others)):
        message = f"Invalid value: {key!r}: duplicate of key present in binaryData"
        yield StatusCause(field=f"data[{key}]", message=message, reason="FieldValueInvalid")


def service_causes(body: Body) -> Iterator[StatusCause]:
    spec = body["spec"]
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield _required("spec.ports", "")


def _required(field: str, detail: str) -> StatusCause:
    return StatusCause(field=field, message=f"Required value: {detail}", reason="FieldValueRequired")


def _unsupported(field: str, value: Any, supported: str) -> StatusCause:
    message = f'Unsupported value: "{value}": supported values: {supported}'
    return StatusCause(field=field, message=message, reason="FieldValueNotSupported")
