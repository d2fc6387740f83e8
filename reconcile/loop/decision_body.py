"""A decision as plain data, by which two of them are compared; its objects are named by digests, without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from reconcile.borrow.fields import Patch
from reconcile.borrow.loan import path_of
from reconcile.decide.decision import Action, Apply, Borrow, Decision, Return
from reconcile.status.plan_body import status_body
from renderer.digest import digest_of
from renderer.model.path import ABSENT
from renderer.model.ref import Body, Ref
from renderer.redaction import Redactor, without_numbers

Line = dict[str, Any]


def decision_body(decision: Decision, redactor: Redactor) -> Line:
    """A decision as plain data, by which two of them are compared."""
    body = {
        "status": status_body(decision.status),
        "actions": [_action(action, redactor) for action in decision.actions],
        "events": [[event.type, event.reason, event.message] for event in decision.events],
        "waits": [plain(wait) for wait in decision.waits],
        "recheck": decision.recheck,
        "again": decision.again,
        "passes": sorted([step, place, count] for (step, place), count in decision.passes.items()),
    }
    shown: Line = redactor.value(json.loads(json.dumps(body, default=dict)))
    return shown


def _action(action: Action, redactor: Redactor) -> Line:
    """The action and its object; of a manifest just its digest."""
    if isinstance(action, (Apply, Borrow)):
        digest = redacted_digest(action.manifest.body, redactor)
        writes = {"writes": _writes(action.manifest.ref, action.patch, redactor)} if isinstance(action, Borrow) else {}
        return {"action": action_name(action), "step": plain(action.step), "digest": digest, **writes}
    if isinstance(action, Return):
        loans = [loan.to_status() for loan in action.settled]
        write = _writes(action.ref, action.patch, redactor) if action.patch else None
        return {"action": action_name(action), "ref": plain(action.ref), "writes": write, "settled": loans}
    return {
        "action": action_name(action),
        **{field.name: plain(getattr(action, field.name)) for field in fields(action)},
    }


def _writes(ref: Ref, patch: Patch, redactor: Redactor) -> Line:
    """A patch, with what is secret in fields of that object hidden."""
    if patch.merge is not None:
        return {"merge": redactor.body({**patch.merge, "apiVersion": ref.api_version, "kind": ref.kind})}
    operations = [
        {**item, "value": redactor.field(ref.api_version, ref.kind, path_of(item["path"]), item["value"])}
        if "value" in item
        else item
        for item in patch.operations
    ]
    return {"operations": plain(operations)}


def action_name(action: Action) -> str:
    ref = action.manifest.ref if isinstance(action, (Apply, Borrow)) else getattr(action, "ref", "")
    return f"{type(action).__name__} {ref}".strip()


def redacted_digest(body: Body, redactor: Redactor) -> str:
    """Names a manifest whose secrets are not known: alike whether it was rendered from them or from their marks."""
    return digest_of(without_numbers(redactor.body(body)))


def plain_ref(ref: Ref) -> list[str]:
    return [ref.api_version, ref.kind, ref.namespace, ref.name]


def plain(value: Any) -> Any:
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Ref):
        return {"api_version": value.api_version, "kind": value.kind, "namespace": value.namespace, "name": value.name}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
