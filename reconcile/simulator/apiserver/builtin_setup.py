"""Adds what the API server and its admission plugins add to built-in objects, on create and on update. Pure.

Source: k8s.io/kubernetes 1.35, pkg/registry/*/strategy.go and plugin/pkg/admission.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.model.ref import Body

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def job(body: dict[str, Any]) -> dict[str, Any]:
    """A Job selects its pods by a label with its own uid, unless `manualSelector` is set."""
    if body["spec"]["manualSelector"]:
        return body
    name, uid = body["metadata"]["name"], body["metadata"]["uid"]
    by_uid = {"batch.kubernetes.io/controller-uid": uid}
    by_name = {"job-name": name, "batch.kubernetes.io/job-name": name}
    body = _with_labels(body, {**by_name, "controller-uid": uid, **by_uid})
    selector = body["spec"].get("selector") or {}
    matched = {**selector, "matchLabels": {**by_uid, **(selector.get("matchLabels") or {})}}
    return {**body, "spec": {**body["spec"], "selector": matched}}


def _with_labels(body: dict[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Adds labels to the pod template; those that are there already win."""
    template = body["spec"]["template"]
    metadata = {**template["metadata"], "labels": {**labels, **(template["metadata"].get("labels") or {})}}
    return {**body, "spec": {**body["spec"], "template": {**template, "metadata": metadata}}}


def service(body: dict[str, Any]) -> dict[str, Any]:
    spec = body["spec"]
    if spec["type"] == "ExternalName":
        return body
    address = spec.get("clusterIP") or _address(body["metadata"]["uid"])
    addresses = {"clusterIP": address, "clusterIPs": [address]}
    return {**body, "spec": {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", **spec, **addresses}}


def _address(uid: str) -> str:
    """An address of the usual range that follows from the uid alone."""
    number = int(uid[:8], 16)
    return f"10.43.{number >> 8 & 255}.{number & 255}"


def kept_address(new: dict[str, Any], old: Body) -> dict[str, Any]:
    """A Service that does not name its addresses keeps those that it was given."""
    given = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    spec = {name: old["spec"][name] for name in given if name in old["spec"]} | new["spec"]
    return {**new, "spec": spec}


def template_counted(new: dict[str, Any], old: Body) -> dict[str, Any]:
    """A DaemonSet counts changes of its template in an annotation."""
    before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "1")
    number = int(before) + (new["spec"]["template"] != old["spec"]["template"])
    annotations = {**(new["metadata"].get("annotations") or {}), TEMPLATE_GENERATION: str(number)}
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def node(body: dict[str, Any]) -> dict[str, Any]:
    """Admission keeps pods away until the kubelet has reported that it is ready."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    taints = body["spec"].get("taints") or []
    return body if taint in taints else {**body, "spec": {**body["spec"], "taints": [*taints, taint]}}


def namespace(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def claim(body: dict[str, Any]) -> dict[str, Any]:
    """Admission protects a claim that a pod uses."""
    finalizers = [*(body["metadata"].get("finalizers") or ()), "kubernetes.io/pvc-protection"]
    metadata = {**body["metadata"], "finalizers": list(dict.fromkeys(finalizers))}
    return {**body, "metadata": metadata, "status": {"phase": "Pending"}}


def pod(body: dict[str, Any]) -> dict[str, Any]:
    """Adds what admission adds, except for the volume with the service account's token."""
    spec = {"serviceAccountName": "default", "serviceAccount": "default", "priority": 0, **body["spec"]}
    spec = {"preemptionPolicy": "PreemptLowerPriority", **spec, "tolerations": _tolerations(spec)}
    return {**body, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


def _tolerations(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A pod stays for five minutes on a node that is not ready, unless its tolerations say otherwise."""
    given = list(spec.get("tolerations") or ())
    tolerated = {item.get("key") for item in given if item.get("effect") in (None, "NoExecute")}
    keys = () if None in tolerated else ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in keys
        if key not in tolerated
    ]
    return given + added


def definition(body: dict[str, Any]) -> dict[str, Any]:
    stored = [version["name"] for version in body["spec"]["versions"] if version["storage"]]
    return {**body, "status": {**body["status"], "storedVersions": stored}}
