"""The readiness of objects that takes more than their conditions: a Pod, a Service, a Harvester add-on."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile import objects
from reconcile.probes.look import Group, ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, passed, unread, waiting
from renderer.model.path import look_up
from renderer.model.ref import Body

_SERVICE_NAME = "kubernetes.io/service-name"
_ENABLED = ("AddonDeploySuccessful",)
_DISABLED = ("AddonDisabled", "")  # empty: never enabled


def pod_ready(call: RuleCall) -> Verdict:
    """Ready, or Succeeded. A Pod that is waiting says what its containers wait for."""
    phase = look_up(call.body, ("status", "phase"))
    if phase == "Succeeded":
        return passed("status.phase is 'Succeeded'")
    found = objects.condition(call.body, "Ready")
    if found is not None and found.status == "True":
        return passed("condition Ready is True")
    says = f"condition Ready is {found.status if found else 'absent'}, expected True"
    return waiting(", ".join((says, *_stuck(call))))


def _stuck(call: RuleCall) -> tuple[str, ...]:
    """`container apply is waiting: ImagePullBackOff`, one for each container that says so."""
    statuses = [
        status
        for field in ("initContainerStatuses", "containerStatuses")
        for status in objects.items(look_up(call.body, ("status", field)))
    ]
    reasons = [(look_up(status, ("name",)), look_up(status, ("state", "waiting", "reason"))) for status in statuses]
    return tuple(f"container {name} is waiting: {reason}" for name, reason in reasons if reason)


def has_ready_endpoint(call: RuleCall) -> Verdict:
    """An endpoint that does not say whether it is ready does not count."""
    slices = call.look.list(_slices(call.object.namespace, call.object.name))
    if isinstance(slices, ReadFailure):
        return unread("its EndpointSlices", slices)
    endpoints = [ready for body in slices if not objects.deletion_timestamp(body) for ready in _endpoints(body)]
    says = f"{endpoints.count(True)} of {len(endpoints)} endpoints are ready"
    return passed(says) if any(endpoints) else waiting(f"{says}, expected at least 1")


def _slices(namespace: str, service: str = "") -> Group:
    labels = ((_SERVICE_NAME, service),) if service else ()
    return Group(api_version="discovery.k8s.io/v1", kind="EndpointSlice", namespace=namespace, labels=labels)


def _endpoints(body: Body) -> Iterator[bool]:
    for endpoint in objects.items(look_up(body, ("endpoints",))):
        yield look_up(endpoint, ("conditions", "ready")) is True


def addon_settled(call: RuleCall) -> Verdict:
    enabled = look_up(call.body, ("spec", "enabled")) is True
    status = str(look_up(call.body, ("status", "status")) or "")
    settled = _ENABLED if enabled else _DISABLED
    says = f"it is {'enabled' if enabled else 'disabled'} and status.status is {status or 'empty'}"
    return passed(says) if status in settled else waiting(f"{says}, expected {settled[0]}")
