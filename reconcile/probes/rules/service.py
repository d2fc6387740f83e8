"""A Service with a ready endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconcile import objects
from reconcile.probes.look import Group, Need, ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, passed, unknown, waiting
from renderer.model.path import look_up
from renderer.model.probe import EveryTarget
from renderer.model.ref import Body, Ref

_SERVICE_NAME = "kubernetes.io/service-name"


def has_ready_endpoint(call: RuleCall) -> Verdict:
    """An endpoint that does not say whether it is ready does not count."""
    slices = call.look.list(_slices(call.object.namespace, call.object.name))
    if isinstance(slices, ReadFailure):
        return unknown(f"its EndpointSlices could not be read: {slices.why}")
    endpoints = [ready for body in slices if not objects.deletion_timestamp(body) for ready in _endpoints(body)]
    says = f"{endpoints.count(True)} of {len(endpoints)} endpoints are ready"
    return passed(says) if any(endpoints) else waiting(f"{says}, expected at least 1")


def needs(target: Ref | EveryTarget | None, arguments: Mapping[str, Any]) -> tuple[Need, ...]:
    match target:
        case Ref():
            return (_slices(target.namespace, target.name),)
        case EveryTarget():
            return (_slices(target.namespace),)
        case None:
            return ()


def _slices(namespace: str, service: str = "") -> Group:
    labels = ((_SERVICE_NAME, service),) if service else ()
    return Group(api_version="discovery.k8s.io/v1", kind="EndpointSlice", namespace=namespace, labels=labels)


def _endpoints(body: Body) -> Iterator[bool]:
    for endpoint in objects.items(look_up(body, ("endpoints",))):
        yield look_up(endpoint, ("conditions", "ready")) is True
