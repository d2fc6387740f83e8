"""Compares what an UpgradePlan's status has recorded with the cluster: borrowed fields, virtual machines that were
stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconcile.probes.look import Group
from reconcile.probes.rules.call import RuleCall, listed
from reconcile.probes.verdict import Verdict, passed, together, waiting
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

_MACHINES = Group(api_version="kubevirt.io/v1", kind="VirtualMachine")
_RUNS = ("Running", "Starting", "Migrating", "Paused")


def returned(call: RuleCall) -> Verdict:
    """Passed if no borrowed field is still on loan."""
    loans = look_up(call.body, ("status", "borrowed"))
    borrowed = [item for item in loans if isinstance(item, Mapping)] if isinstance(loans, list) else []
    left = [waiting(_on_loan(item), _lender(item)) for item in borrowed if not item.get("returned")]
    return together(left, "; ") if left else passed(f"all of {len(borrowed)} borrowed fields are returned")


def machines_run(call: RuleCall) -> Verdict:
    """Passed if every virtual machine that was stopped for the upgrade, and is to be started again, runs or is gone."""
    named = dict.fromkeys(_stopped(call.body, call.text("captured")))
    if not named:
        return passed("no virtual machine was stopped to be started again")
    found = listed(call, _MACHINES)
    if isinstance(found, Verdict):
        return found
    there = {(str(body["metadata"].get("namespace")), str(body["metadata"]["name"])): body for body in found[0]}
    off = [machine for name in named if (machine := there.get(name)) is not None and _is_off(machine)]
    verdicts = [waiting(_state(machine), ref_of(machine)) for machine in off]
    return together(verdicts, "; ") if verdicts else passed(f"all of {len(named)} virtual machines run again")


def _on_loan(item: Mapping[str, Any]) -> str:
    return f"has {item.get('path')} as {item.get('phase')}/{item.get('step')} has set it"


def _lender(item: Mapping[str, Any]) -> Ref:
    return Ref(
        api_version=str(item.get("apiVersion")),
        kind=str(item.get("kind")),
        namespace=str(item.get("namespace") or ""),
        name=str(item.get("name")),
    )


def _stopped(plan: Body, captured: str) -> Iterator[tuple[str, str]]:
    """Namespace and name of each machine in what the plan has captured under this name: `namespace/name` in a list."""
    steps = look_up(plan, ("status", "steps"))
    for phase in steps.values() if isinstance(steps, Mapping) else ():
        records = phase.get("records") if isinstance(phase, Mapping) else None
        for record in records.values() if isinstance(records, Mapping) else ():
            text = look_up(record, ("captured", captured))
            for word in re.split(r"[\s,]+", text) if isinstance(text, str) else ():
                namespace, _, name = word.partition("/")
                if name:
                    yield namespace, name


def _is_off(machine: Body) -> bool:
    return look_up(machine, ("status", "printableStatus")) not in _RUNS


def _state(machine: Body) -> str:
    state = look_up(machine, ("status", "printableStatus"))
    return f"is {state}" if isinstance(state, str) and state else "does not run"
