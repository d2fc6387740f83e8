"""Names what a live plan waits for where an input is missing, and who has to give it. The inputs themselves are in
`renderer.catalog.verify`, with texts for those who render files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconcile.decide.builder import DecisionBuilder, WaitRequest
from reconcile.decide.observation import Observation
from reconcile.probes.look import ReadFailure
from renderer.model.path import ABSENT, look_up
from renderer.model.ref import Ref
from renderer.model.rendered import Pending

_HARVESTER = "harvesterhci.io/v1beta1"
_NAMESPACE, _USUAL_MISTAKE = "harvester-system", "default"
_SERVER_VERSION = Ref(api_version=_HARVESTER, kind="Setting", name="server-version")

_LATER: Mapping[str, str] = {
    "releaseMetadata": "status.releaseMetadata is not set: an earlier phase reads it from the repository",
    "toolkitTag": "the tag of the toolkit image is not known: no spec.upgrade, release or values.toolkitTag names it",
    "imageLists": "the repository's image lists have not been read",
}
"""Inputs that a plan gets on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MissingInput:
    """`needs_operator`: it does not come until somebody creates or corrects the object."""

    text: str
    needs_operator: bool = False
    unknown: bool = False
    refs: tuple[Ref, ...] = ()


def wait_for_inputs(
    builder: DecisionBuilder, pending: Iterable[Pending], *, step: str, node: str | None, since: datetime
) -> None:
    """Adds all of them as one wait. What somebody has to create is reported at once, and not after a while."""
    found = _together(builder.observation, pending)
    if found.needs_operator:
        builder.wait_for_operator(found.text, step=step, since=since, refs=found.refs)
    else:
        asked = WaitRequest(text=found.text, step=step, node=node, since=since, unknown=found.unknown, refs=found.refs)
        builder.ask(asked)


def _together(observation: Observation, pending: Iterable[Pending]) -> _MissingInput:
    found = [_missing(observation, item) for item in pending]
    return _MissingInput(
        text="; ".join(item.text for item in found),
        needs_operator=any(item.needs_operator for item in found),
        unknown=any(item.unknown for item in found),
        refs=tuple(ref for item in found for ref in item.refs),
    )


def _missing(observation: Observation, item: Pending) -> _MissingInput:
    if item.input == "version":
        return _version(observation)
    if item.input == "previousVersion":
        return _object(observation, _SERVER_VERSION, "value", "it says which release is installed")
    if item.input == "nodes":
        return _MissingInput(text="no Node has the label harvesterhci.io/managed=true", needs_operator=True)
    return _MissingInput(text=_LATER.get(item.input) or f"{item.input} is not known yet: {item.remedy}")


def _version(observation: Observation) -> _MissingInput:
    """A Version is made with kubectl, which without `-n` puts it into another namespace than it is looked for in."""
    name = str((observation.plan.get("spec") or {}).get("version") or "")
    expected, elsewhere = (
        Ref(api_version=_HARVESTER, kind="Version", namespace=namespace, name=name)
        for namespace in (_NAMESPACE, _USUAL_MISTAKE)
    )
    remedy = f"create it in namespace {_NAMESPACE}"
    if observation.look.get(expected) is None and isinstance(observation.look.get(elsewhere), Mapping):
        remedy = f"there is one in {_USUAL_MISTAKE}: {remedy}"
    return _object(observation, expected, "spec.isoURL", remedy)


def _object(observation: Observation, ref: Ref, field: str, remedy: str) -> _MissingInput:
    body = observation.look.get(ref)
    if isinstance(body, ReadFailure):
        return _MissingInput(text=f"{ref} cannot be read: {body.why}", unknown=True, refs=(ref,))
    if body is None:
        return _MissingInput(text=f"{ref} not found; {remedy}", needs_operator=True, refs=(ref,))
    if look_up(body, tuple(field.split("."))) in (ABSENT, None, ""):
        return _MissingInput(text=f"{ref}: {field} is not set; {remedy}", needs_operator=True, refs=(ref,))
    return _MissingInput(text=f"{ref} is being read", refs=(ref,))  # it has come since this round began
