"""`pause`, `resume`, `accept`, `abort`: what an operator says to a plan that runs. Each is one patch of
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from reconcile.cli.candidates import node_names, plan_names
from reconcile.cli.change_to_commit import change_to_commit, removal_to_commit
from reconcile.cli.connect import Target, cluster_options
from reconcile.cli.one_plan import must_go_on, patch_plan, plan_of, plan_on
from reconcile.cli.prompt import agreed
from renderer.cli.answer import say
from renderer.errors import ExitCode, problem
from renderer.model.plan_api import PREFIX

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from renderer.catalog.load import Catalog

ALLOW_DELETION = f"{PREFIX}allow-deletion"

_plan_option = click.option(
    "--plan",
    "name",
    metavar="NAME",
    shell_complete=plan_names,
    help="The plan. Defaults to the one that has not ended.",
)


@click.command
@click.argument("node", shell_complete=node_names)
@_plan_option
@cluster_options
def pause(node: str, name: str | None, target: Target) -> ExitCode:
    """Hold a node before its upgrade.

    \b
    Examples:
      upgradeplan pause charlie-2-tink-system

    A node whose drain has started is not stopped.
    """
    return _set_paused(target, name, node, expected=True)


@click.command
@click.argument("node", shell_complete=node_names)
@_plan_option
@cluster_options
def resume(node: str, name: str | None, target: Target) -> ExitCode:
    """Release a held node."""
    return _set_paused(target, name, node, expected=False)


@click.command
@click.argument("words", nargs=-1, required=True, metavar="ID... [PLAN]", shell_complete=plan_names)
@cluster_options
def accept(words: tuple[str, ...], target: Target) -> ExitCode:
    """Accept the risk of pre-flight checks.

    \b
    Examples:
      upgradeplan accept volume-degraded node-schedulable

    Adds the checks to the plan's annotation accept-risk: they no longer block the plan.
    Without PLAN it is the one that has not ended.
    """
    from reconcile.cli.parts import parts_of, plan_there
    from reconcile.preflight.accepting import ACCEPT_RISK, accepted_ids
    from reconcile.preflight.check_context import checks_of
    from reconcile.preflight.selecting import acceptable

    parts = parts_of(target)
    checks = checks_of(parts.rendering.catalog)
    known = {declared.check.id for declared in checks}
    names_plan = words[-1] not in known and bool(words[:-1]) and plan_there(parts, words[-1]) is not None
    ids, name = (words[:-1], words[-1]) if names_plan else (words, None)
    chosen = acceptable(checks, ids)
    plan, body = plan_of(parts, name)
    must_go_on(plan, body)
    before = accepted_ids(body["metadata"].get("annotations") or {})
    after = tuple(dict.fromkeys((*before, *(check.id for check in chosen))))
    change = {"metadata": {"annotations": {ACCEPT_RISK: ",".join(after)}}}
    if after != before:
        patch_plan(parts, body, change)
    say(
        f"{plan}: {check.id} is {'already ' if check.id in before else ''}accepted, although this may not hold: "
        f"{check.title}"
        for check in chosen
    )
    say(change_to_commit(target, body, change))
    return ExitCode.YES


@click.command
@click.argument("name", required=False, metavar="[PLAN]", shell_complete=plan_names)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_options
def abort(name: str | None, yes: bool, target: Target) -> ExitCode:
    """Abort a plan and restore what it changed.

    Returns the borrowed fields, removes the plan's objects and deletes the plan; a failed plan stays as a record.
    Refused in phases that must be completed, so that no cluster is left half upgraded, and for a plan that has
    succeeded or was taken back.
    """
    from reconcile.status.attempt import TAKE_BACK

    parts, plan, body = plan_on(target, name)
    phase = _phase_now(parts, body)
    if phase is not None and phase.deletion == "forbidden" and not body["metadata"].get("deletionTimestamp"):
        message = f"{plan} is in phase {phase.name}, which cannot be aborted"
        remedy = f"see what it waits for: upgradeplan explain {plan}"
        raise problem("DeletionForbidden", message, remedy=remedy, exit_code=ExitCode.NO)
    has_failed = _has_failed(body)
    if not has_failed and not body["metadata"].get("deletionTimestamp"):
        must_go_on(plan, body)
    say(_given_back(parts, body))
    taken_back = {"metadata": {"annotations": {TAKE_BACK: "true"}}}
    say(change_to_commit(target, body, taken_back) if has_failed else removal_to_commit(target, body))
    if not yes and not agreed(f"Abort {plan} and restore what it changed?"):
        return ExitCode.NO
    if has_failed:
        patch_plan(parts, body, taken_back)
    else:
        _delete(parts, body)
    say([f"aborting {plan}; to follow it, run: upgradeplan status {plan} --watch"])
    return ExitCode.YES


def _has_failed(body: Mapping[str, Any]) -> bool:
    """True for a plan that has ended as failed, and was not taken back: it is not deleted, since it is a record."""
    from reconcile.decide.plan import is_over
    from reconcile.status.attempt import is_taken_back
    from reconcile.status.plan import FAILED
    from reconcile.status.plan_body import status_of

    status = status_of(body)
    return is_over(status) and status.phase == FAILED and not is_taken_back(body)


def _delete(parts: ReconcilerDeps, body: Mapping[str, Any]) -> None:
    from renderer.model.ref import ref_of

    patch_plan(parts, body, {"metadata": {"annotations": {ALLOW_DELETION: "true"}}})
    ref = ref_of(body)
    parts.cluster.delete(parts.kinds.row(ref.api_version, ref.kind).kind, ref, uid=str(body["metadata"]["uid"]))


def _set_paused(target: Target, name: str | None, node: str, *, expected: bool) -> ExitCode:
    parts, plan, body = plan_on(target, name)
    require_node(parts, node)
    must_go_on(plan, body)
    if expected:
        _must_be_in_time(parts.rendering.catalog, plan, body, node)
    before = list(((body.get("spec") or {}).get("nodeUpgradeOption") or {}).get("pauseNodes") or ())
    after = [item for item in before if item != node] + ([node] if expected else [])
    if after == before or (expected and node in before):
        say([f"{plan}: {node} is already paused" if expected else f"{plan}: {_not_paused(body, node)}"])
        return ExitCode.YES
    change = {"spec": {"nodeUpgradeOption": {"pauseNodes": after}}}
    patch_plan(parts, body, change)
    say([f"{plan}: {node} {'will be held before its upgrade' if expected else 'resumed'}"])
    say(change_to_commit(target, body, change))
    return ExitCode.YES


def _not_paused(body: Mapping[str, Any], node: str) -> str:
    from reconcile.report.progress import PAUSED

    entry = ((body.get("status") or {}).get("nodeUpgradeStatuses") or {}).get(node) or {}
    if entry.get("state") == PAUSED:
        return f"{node} is already resumed; it continues at the manager's next look at the plan"
    return f"{node} is not paused"


def require_node(parts: ReconcilerDeps, node: str) -> None:
    from reconcile.probes.look import Group, ReadFailure

    nodes = parts.source.list(Group(api_version="v1", kind="Node"))
    names = [] if isinstance(nodes, ReadFailure) else sorted(str(item["metadata"]["name"]) for item in nodes)
    if names and node not in names:
        raise problem("NoSuchNode", f"Node {node} not found", remedy=f"choose one of: {', '.join(names)}")


def _must_be_in_time(catalog: Catalog, plan: str, body: Mapping[str, Any], node: str) -> None:
    """Raises `Problems` for a node whose upgrade has begun: it is not stopped."""
    from reconcile.status.plan_body import status_of

    status = status_of(body)
    state = (status.node_states.get(node) or {}).get("state")
    if state and _is_past_hold(catalog, state):
        message = f"the upgrade of {node} has already started ({state}) and cannot be paused"
        raise problem(
            "NodeHasBegun", message, remedy=f"see its progress: upgradeplan status {plan}", exit_code=ExitCode.NO
        )


def _is_past_hold(catalog: Catalog, state: str) -> bool:
    """True if a node in this state has gone past every state in which a step is held."""
    holds = [step.hold.state for item in catalog.phases for step in item.phase.steps if step.hold]
    return bool(holds) and all(catalog.node_states.is_ahead(state, hold) for hold in holds)


def _given_back(parts: ReconcilerDeps, body: Mapping[str, Any]) -> Iterator[str]:
    """Lists what the plan has on loan, and what that protects."""
    from reconcile.report.progress import borrowed_line, loan_model
    from reconcile.status.plan_body import loans_of

    classes = {declared.phase.name: declared.phase.deletion for declared in parts.rendering.catalog.phases}
    loans = [loan for loan in loans_of(body) if loan.returned is None]
    for loan in loans:
        yield f"borrowed: {borrowed_line(loan_model(loan))}"
    if any(classes.get(loan.phase) == "forbidden" for loan in loans):
        yield "warning: Rancher will upgrade the remaining nodes without the drain hooks"


def _phase_now(parts: ReconcilerDeps, body: Mapping[str, Any]) -> Any:
    now = (body.get("status") or {}).get("currentPhase")
    phases = (declared.phase for declared in parts.rendering.catalog.phases)
    return next((phase for phase in phases if now in (phase.active, phase.completed)), None)
