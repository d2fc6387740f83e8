"""`retry`: continues a failed plan from the step that has failed. It patches the plan; the loop does the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from reconcile.cli.candidates import node_names, plan_names
from reconcile.cli.change_to_commit import change_to_commit
from reconcile.cli.connect import Target, cluster_options
from reconcile.cli.control import require_node
from reconcile.cli.one_plan import patch_plan, plan_on
from reconcile.cli.prompt import agreed
from renderer.cli.answer import say
from renderer.errors import ExitCode, problem
from renderer.model.ref import Body

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.status.plan import PlanStatus


@click.command
@click.argument("name", required=False, metavar="[PLAN]", shell_complete=plan_names)
@click.option(
    "--node", metavar="NODE", shell_complete=node_names, help="Retry only if it is this node that has failed."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_options
def retry(name: str | None, node: str | None, yes: bool, target: Target) -> ExitCode:
    """Retry the step that has failed.

    \b
    Examples:
      upgradeplan retry hvst-upgrade-864fh
      upgradeplan retry --node charlie-2-tink-system

    The plan goes back to the phase of the step, and the step creates its objects again under new names; those that
    have failed stay. Fields that the failure has returned are borrowed again with their first originals. Refused while
    another upgrade is active. For a plan that has not failed, a step whose object was deleted creates it again.
    """
    from reconcile.status.attempt import RETRY, attempt_of, last_attempt
    from reconcile.status.plan_body import status_of

    parts, plan, body = plan_on(target, name)
    status = status_of(body)
    if node is not None:
        require_node(parts, node)
        _must_be_the_one(plan, status, node)
    number = str(max(attempt_of(body), last_attempt(status)) + 1)
    _must_be_allowed(parts, plan, _with_annotation(body, RETRY, number), status)
    say(_what_is_retried(plan, status))
    if not yes and not agreed(f"Retry {plan}?"):
        return ExitCode.NO
    change = {"metadata": {"annotations": {RETRY: number}}}
    patch_plan(parts, body, change)
    say([*_how_it_goes_on(parts, plan, number), *change_to_commit(target, body, change)])
    return ExitCode.YES


def _must_be_allowed(parts: ReconcilerDeps, plan: str, asked: Body, status: PlanStatus) -> None:
    """Raises `Problems` where the loop would refuse it."""
    from reconcile.loop.plan_round import PlanRound
    from reconcile.loop.round import Memory
    from reconcile.status.plan import SUCCEEDED

    decision = None if status.phase == SUCCEEDED else PlanRound(parts, Memory(), asked).look().decision
    answer = (decision.status.field("retry") if decision else None) or {}
    why = f"it has ended: {SUCCEEDED}" if status.phase == SUCCEEDED else answer.get("refused")
    if why:
        remedy = f"see the other ways out: upgradeplan explain {plan}"
        raise problem("RetryRefused", f"{plan} is not retried: {why}", remedy=remedy, exit_code=ExitCode.NO)


def _must_be_the_one(plan: str, status: PlanStatus, node: str) -> None:
    """Raises `Problems` unless the node, and no other, is what has failed."""
    nodes = sorted({str(place[1]) for place, steps in status.records.items() for r in steps.values() if r.failed})
    if nodes == [node]:
        return
    named = ", ".join(each for each in nodes if each != "None")
    if node in nodes:
        message = f"{named} have failed, and {plan} continues only if all of them are retried"
    else:
        message = f"no step of {node} has failed" + (f"; failed: {named}" if named else "")
    remedy = f"leave out --node: upgradeplan retry {plan}"
    raise problem("OtherNodeFailed", message, remedy=remedy, exit_code=ExitCode.NO)


def _what_is_retried(plan: str, status: PlanStatus) -> Iterator[str]:
    from reconcile.status.plan import FAILED

    if status.phase != FAILED:
        yield f"{plan} has not failed: steps whose object was deleted create it again; everything else goes on as it is"
        return
    for (phase, node), steps in status.records.items():
        failed = ((step, record.message) for step, record in steps.items() if record.failed)
        yield from (f"retry of {'/'.join(filter(None, (phase, step, node)))}: {said}" for step, said in failed)
    yield "fix the cause first; nodes that are done stay done"


def _how_it_goes_on(parts: ReconcilerDeps, plan: str, number: str) -> Iterator[str]:
    from reconcile.cli.parts import nobody_works

    yield f"retry {number} of {plan} is requested; to follow it, run: upgradeplan status {plan} --watch"
    if idle := nobody_works(parts, "", plan):
        yield f"note: {idle.why}; or run: {idle.command}"


def _with_annotation(body: Mapping[str, Any], key: str, value: str) -> dict[str, Any]:
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), key: value}}}
