"""Reads an AdmissionReview as the API server sends it, and writes the answer. Pure.

Source: the types of k8s.io/api/admission/v1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import StatusCause
from renderer.input_rules import PLAN_SCHEMA
from renderer.model.path import Path
from renderer.model.plan_api import GROUP, PLAN_API_VERSION
from renderer.model.ref import Body
from renderer.validation import load, schema_problems

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"
_INVALID = 422


class ReviewError(ValueError):
    """The body is no AdmissionReview that asks something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """The question. `resource` is `GROUP/VERSION RESOURCE[/SUBRESOURCE]`; `plan` and `old` are empty where the
    operation has none, and where the object is no UpgradePlan."""

    uid: str
    operation: str
    resource: str
    name: str = ""
    plan: Body
    old: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A plan that is not from a file."""

    body: Body
    file: str = ""

    def line_of(self, path: Path = ()) -> int | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Refused where there is a cause. `warnings` are shown to the client in either case."""

    causes: tuple[StatusCause, ...] = ()
    warnings: tuple[str, ...] = ()


PLANS = f"{PLAN_API_VERSION} upgradeplans"
ADMITTED = Judgement()


def read_review(content: bytes) -> AdmissionRequest:
    """Raises `ReviewError`."""
    review = _json(content)
    found = (review.get("apiVersion"), review.get("kind"))
    if found != (_API_VERSION, _KIND):
        raise ReviewError(f"expected {_API_VERSION} {_KIND}")
    asked = _mapping(review, "request")
    resource = _mapping(asked, "resource")
    group_version = "/".join(filter(None, (_text(resource, "group"), _text(resource, "version"))))
    named = "/".join(filter(None, (_text(resource, "resource"), _text(asked, "subResource"))))
    request = AdmissionRequest(
        uid=_text(asked, "uid", required=True),
        operation=_text(asked, "operation", required=True),
        resource=f"{group_version} {named}",
        name=_text(asked, "name"),
        plan=_plan(asked, "object"),
        old=_plan(asked, "oldObject"),
    )
    if request.resource == PLANS and request.operation in ("CREATE", "UPDATE") and not request.plan:
        raise ReviewError("request.object is not an UpgradePlan")
    return request


def write_review(request: AdmissionRequest, judgement: Judgement) -> Body:
    """The answer. What is refused is `Invalid`, as Kubernetes' own validation says it: each cause with its field."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": not judgement.causes}
    if judgement.warnings:
        response["warnings"] = list(judgement.warnings)
    if judgement.causes:
        response["status"] = _status(_name(request), judgement.causes)
    return {"apiVersion": _API_VERSION, "kind": _KIND, "response": response}


def _status(name: str, causes: Sequence[StatusCause]) -> Body:
    texts = [f"{cause.field}: {cause.message}".removeprefix(": ") for cause in causes]
    found = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return {
        "status": "Failure",
        "code": _INVALID,
        "reason": "Invalid",
        "message": f'UpgradePlan.{GROUP} "{name}" is invalid: {found}',
        "details": {
            "group": GROUP,
            "kind": "UpgradePlan",
            "name": name,
            "causes": [{"reason": item.reason, "message": item.message, "field": item.field} for item in causes],
        },
    }


def _name(request: AdmissionRequest) -> str:
    """The name that the API server is to make begins with `generateName`."""
    metadata = request.plan.get("metadata") or {}
    return request.name or str(metadata.get("name") or metadata.get("generateName") or "")


def _json(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise ReviewError("the body is not JSON") from None
    if not isinstance(found, Mapping):
        raise ReviewError("the body is not a JSON object")
    return found


def _plan(asked: Mapping[str, Any], key: str) -> Body:
    """Empty unless it is an UpgradePlan. The server itself has held the object to its definition."""
    found = asked.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ReviewError(f"request.{key} is not an object")
    if (found.get("apiVersion"), found.get("kind")) != (PLAN_API_VERSION, "UpgradePlan"):
        return {}
    if why := _misfit(found):
        raise ReviewError(f"request.{key} is not a valid UpgradePlan: {why}")
    return found


def _misfit(plan: Body) -> str:
    """The first field of a wrong type; empty if there is none. The request may not be from an API server."""
    if not isinstance(plan.get("metadata"), Mapping):
        return "it has no metadata"
    found = schema_problems(_Asked(body=plan), load(PLAN_SCHEMA))
    return next((f"{each.field}: {each.message}" for each in found if each.reason == "WrongType"), "")


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    if not isinstance(found, Mapping):
        raise ReviewError(f"{key} is missing or not an object")
    return found


def _text(value: Mapping[str, Any], key: str, *, required: bool = False) -> str:
    found = value.get(key)
    if found is None and not required:
        return ""
    if not isinstance(found, str) or (required and not found):
        raise ReviewError(f"{key} is missing or not text")
    return found
