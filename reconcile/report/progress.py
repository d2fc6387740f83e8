"""Reports the progress of a plan: its phases, its nodes, and what it waits for, since when, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from types import MappingProxyType
from typing import Any

from reconcile.borrow.loan import Loan, path_of
from reconcile.decide.after_checks import VERIFICATION
from reconcile.decide.decision import Wait
from reconcile.loop.round import Round
from reconcile.preflight.check_result import CheckOutcome
from reconcile.report.ways_out import ways_out, ways_out_model
from reconcile.status.plan import FAILED, SUCCEEDED, PlanStatus
from reconcile.status.plan_body import status_of
from reconcile.status.times import age_text, time_of, time_text
from renderer.model.path import path_name
from renderer.model.phase import Phase
from renderer.yaml_io import dump

Model = dict[str, Any]

PAUSED = "UpgradePaused"
"""The API's state of a node that is held."""

_LONGEST = 60  # characters of a list or mapping that a line shows


def progress_of(done: Round, now: datetime, usual: Mapping[str, int] = MappingProxyType({})) -> Model:
    """The model of `status`: schemas/status.json. `done` is what a round saw; its decision may be None. `usual` says
    how many seconds a phase usually takes."""
    plan = done.plan or {}
    status = status_of(plan)
    decision = done.decision
    nodes = done.rendered.nodes if done.rendered else sorted(status.node_states)
    waits = [_wait(wait) for wait in decision.waits] if decision else []
    return {
        "plan": done.name,
        "version": (plan.get("spec") or {}).get("version") or "",
        "image": (plan.get("spec") or {}).get("image") or "",
        "phase": status.phase,
        "message": (status.condition("Progressing") or {}).get("message", ""),
        "deleting": bool((plan.get("metadata") or {}).get("deletionTimestamp")),
        "phases": [
            {**phase_model(phase.phase, status), "usual": usual.get(phase.phase.name)}
            for phase in (done.rendered.phases if done.rendered else ())
        ],
        "nodes": [_node(node, status) for node in nodes],
        "waits": waits,
        "problems": list(done.problems),
        "borrowed": [loan_model(loan) for loan in status.loans if loan.returned is None],
        "verification": verification_of(status),
        "managed": True,
        "waysOut": ways_out_model(ways_out(done)),
        "next": _next(done, status),
        "at": time_text(now),
    }


def phase_model(phase: Phase, status: PlanStatus) -> Model:
    """One item of `phases`."""
    times = {e["phase"]: e["phaseTransitionTimestamp"] for e in status.rest.get("phaseTransitionTimestamps") or ()}
    return {
        "name": phase.name,
        "state": _state(phase, status, times),
        "began": times.get(phase.active, ""),
        "ended": times.get(phase.completed, ""),
        "skipped": status.skipped.get(phase.name, ""),
        "deletion": str(phase.deletion),
    }


def _state(phase: Phase, status: PlanStatus, times: Mapping[str, str]) -> str:
    if phase.name in status.skipped:
        return "skipped"
    if phase.completed in times:
        return "done"
    if phase.active not in times:
        return "to do"
    return "failed" if status.phase == FAILED else "running"


def _node(node: str, status: PlanStatus) -> Model:
    entry = status.node_states.get(node) or {}
    return {
        "name": node,
        "state": entry.get("state", ""),
        "reason": entry.get("reason", ""),
        "message": entry.get("message", ""),
    }


def _wait(wait: Wait) -> Model:
    return {
        "step": wait.step,
        "node": wait.node or "",
        "text": wait.text,
        "summary": wait.summary,
        "since": time_text(wait.since) if wait.since else "",
        "limit": wait.limit,
        "slow": wait.slow,
        "unknown": wait.unknown,
        "objects": [str(ref) for ref in wait.refs],
        **({"check": asdict(wait.check)} if wait.check else {}),
    }


def verification_of(status: PlanStatus) -> list[Model]:
    """The findings of the checks after the upgrade, as they are recorded."""
    return [dict(item) for item in status.field(VERIFICATION) or ()]


def is_worth_a_look(found: Model) -> bool:
    """False for what is only good to know."""
    return CheckOutcome(found["outcome"]) is not CheckOutcome.ADVISED


def _next(done: Round, status: PlanStatus) -> str:
    """The command that helps now; empty if none does. It is never the one that shows the progress, which is read."""
    if status.phase == SUCCEEDED:
        return f"upgradeplan verify {done.name}" if any(map(is_worth_a_look, verification_of(status))) else ""
    if status.phase == FAILED:
        return f"upgradeplan explain {done.name}"
    if held := _held(done, status):
        return f"upgradeplan resume {held[0]} --plan {done.name}"
    slow = done.decision is not None and any(wait.slow or wait.unknown for wait in done.decision.waits)
    return f"upgradeplan explain {done.name}" if slow or done.problems else ""


def _held(done: Round, status: PlanStatus) -> list[str]:
    """Nodes that are held and not released."""
    option = ((done.plan or {}).get("spec") or {}).get("nodeUpgradeOption") or {}
    paused = option.get("pauseNodes") or ()
    return sorted(node for node in paused if (status.node_states.get(node) or {}).get("state") == PAUSED)


def age_of(since: str, at: str) -> str:
    """` (for 12m)`; nothing if the start is unknown."""
    if not since:
        return ""
    try:
        return f" (for {age_text((time_of(at) - time_of(since)).total_seconds())})"
    except (ValueError, TypeError):  # not a time as the API writes it
        return f" (since {since})"


def borrowed_line(loan: Model) -> str:
    """`Cluster fleet-local/local spec.rkeConfig.upgradeStrategy (will be removed again)`."""
    value = loan["goesBackTo"]
    back = "will be removed again" if value == "absent" else f"will be set back to {value_text(value)}"
    return f"{loan['object']} {path_name(path_of(loan['path']))} ({back})"


def loan_model(loan: Loan) -> Model:
    """One item of `borrowed`."""
    item = loan.to_status()
    where = f"{item.get('namespace')}/{item['name']}" if item.get("namespace") else item["name"]
    return {
        "object": f"{item['kind']} {where}",
        "path": item["path"],
        "goesBackTo": "absent" if item["absent"] else item.get("value"),
        "taken": item["taken"],
    }


def value_text(value: Any) -> str:
    """On one line, as YAML has it; what is long is counted instead."""
    if isinstance(value, (list, tuple, Mapping)):
        text = json.dumps(value, ensure_ascii=False, default=dict)
        kind = "entries" if isinstance(value, Mapping) else "items"
        return text if len(text) <= _LONGEST else f"the former value with {len(value)} {kind}"
    return dump(value).strip()
