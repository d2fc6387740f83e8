"""Label and field selectors in Kubernetes' text form, as tests on an object. Pure.

Source: k8s.io/apimachinery, packages labels and fields; which fields a kind can be selected by: the API reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from renderer.model.ref import Body, Kind

Test = Callable[[Body], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^=!\s]*)$")
_EXISTS = re.compile(r"^(?P<not>!?)\s*(?P<key>[A-Za-z0-9][\w./-]*)$")
_SPLIT = re.compile(r",(?![^(]*\))")

_EVERY_KIND = ("metadata.name", "metadata.namespace")
_INVOLVED = tuple(
    f"involvedObject.{name}"
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "v1 Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "v1 Secret": ("type",),
    "v1 Namespace": ("status.phase",),
    "v1 Node": ("spec.unschedulable",),
    "v1 Event": (*_INVOLVED, "reason", "reportingComponent", "source", "type"),
    "v1 Service": ("spec.clusterIP", "spec.type"),
    "batch/v1 Job": ("status.successful",),
    "apps/v1 ReplicaSet": ("status.replicas",),
}


class SelectorError(ValueError):
    """The text is not a selector, or names a field by which this kind cannot be selected."""


@lru_cache(maxsize=1024)
def label_test(selector: str) -> Test:
    """Raises SelectorError."""
    tests = [_label(part.strip()) for part in _SPLIT.split(selector) if part.strip()]
    return lambda body: all(test((body.get("metadata") or {}).get("labels") or {}) for test in tests)


@lru_cache(maxsize=1024)
def field_test(kind: Kind, selector: str, selectable: tuple[str, ...] = ()) -> Test:
    """`selectable` are the fields that a CRD declares. Raises SelectorError."""
    tests = [_field(kind, part.strip(), selectable) for part in selector.split(",") if part.strip()]
    return lambda body: all(test(body) for test in tests)


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """True if a LabelSelector of an object (`matchLabels`, `matchExpressions`) selects these labels."""
    expected = selector.get("matchLabels") or {}
    rules = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in expected.items()) and all(
        _rule(rule, labels) for rule in rules
    )


def _rule(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = rule["key"], rule.get("values") or ()
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[rule["operator"]]


def _label(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(part):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        expected = found["op"] == "in"
        return lambda labels: (labels.get(key) in values) is expected
    if found := _EQUAL.match(part):
        key, value, equal = found["key"], found["value"], found["op"] != "!="
        return lambda labels: (labels.get(key) == value) is equal
    if found := _EXISTS.match(part):
        key, expected = found["key"], not found["not"]
        return lambda labels: (key in labels) is expected
    raise SelectorError(f"unable to parse requirement: {part!r}")


def _field(kind: Kind, part: str, selectable: tuple[str, ...]) -> Test:
    found = _EQUAL.match(part)
    if not found:
        raise SelectorError(f"invalid field selector: {part!r}")
    name, value, equal = found["key"], found["value"], found["op"] != "!="
    if name not in (*_EVERY_KIND, *_FIELDS.get(str(kind), ()), *selectable):
        raise SelectorError(f"field label not supported: {name}")
    return lambda body: (_text(body, name) == value) is equal


def _text(body: Body, name: str) -> str:
    if name == "source":
        return str((body.get("source") or {}).get("component") or body.get("reportingComponent") or "")
    if name == "status.successful":
        name = "status.succeeded"
    value: Any = body
    for part in name.split("."):
        value = (value or {}).get(part)
    if value is None:
        return _WHEN_ABSENT.get(name, "")
    return str(value).lower() if isinstance(value, bool) else str(value)


_WHEN_ABSENT = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.succeeded": "0",
    "status.replicas": "0",
}
