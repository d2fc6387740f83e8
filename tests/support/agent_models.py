"""Models of how kstatus (Helm, and Flux where it is given no expression) and Fleet judge an object of a custom kind by
its conditions, written after their sources: sigs.k8s.io/cli-utils and rancher/wrangler's summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Body = Mapping[str, Any]

FALSE_IS_ERROR = ("Active", "Created", "Deployed", "Downloaded", "Initialized", "Installed", "Pending", "Provisioned")
FALSE_IS_TRANSITIONING = ("Completed", "Ready", "Available")
TRUE_IS_ERROR = ("Stalled", "Failed")


def kstatus(body: Body) -> str:
    """Current, InProgress or Failed. What says nothing is Current."""
    metadata, status = body["metadata"], body.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata.get("generation"):
        return "InProgress"
    found = dict(_conditions(body))
    if found.get("Reconciling") == "True":
        return "InProgress"
    if found.get("Stalled") == "True":
        return "Failed"
    return "InProgress" if found.get("Ready") in ("False", "Unknown") else "Current"


def fleet(body: Body, ignored: Iterable[tuple[str, str]] = ()) -> str:
    """Ready, NotReady or Error of a bundle that holds this object, with `ignore.conditions`."""
    found = [pair for pair in _conditions(body) if pair not in tuple(ignored)]
    if any(type_ in TRUE_IS_ERROR and status == "True" for type_, status in found):
        return "Error"
    if any(type_ in FALSE_IS_ERROR and status == "False" for type_, status in found):
        return "Error"
    if any(type_ in FALSE_IS_TRANSITIONING and status == "Unknown" for type_, status in found):
        return "Error"
    moving = any(type_ in FALSE_IS_TRANSITIONING and status == "False" for type_, status in found)
    if moving or ("Reconciling", "True") in found:
        return "NotReady"
    return {"Current": "Ready", "Failed": "Error"}.get(kstatus(body), "NotReady")


def _conditions(body: Body) -> Iterator[tuple[str, str]]:
    for entry in (body.get("status") or {}).get("conditions") or ():
        yield entry["type"], entry["status"]
