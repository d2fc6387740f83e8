"""Carries out checks on the inputs of a run: files, folders, a support bundle, facts documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from reconcile.preflight.check_context import CheckContext, check_context
from reconcile.preflight.check_result import CheckReport
from reconcile.preflight.checking import run_checks
from reconcile.preflight.given_objects import GivenObjects
from reconcile.preflight.selecting import require_node
from reconcile.schemas import packaged_schemas
from renderer.assemble import TemplateSet
from renderer.catalog.checks import DeclaredCheck
from renderer.catalog.kinds import Kinds
from renderer.documents import Inputs
from renderer.model.check import CheckTime


def context_of_inputs(inputs: Inputs, template_set: TemplateSet, now: datetime) -> CheckContext:
    return check_context(
        template_set,
        packaged_schemas(),
        now,
        plan=inputs.plan.body if inputs.plan else None,
        release=inputs.release.body if inputs.release else None,
        objects=[source.body for source in inputs.objects],
    )


def check_inputs(
    inputs: Inputs,
    given: GivenObjects,
    template_set: TemplateSet,
    checks: Sequence[DeclaredCheck],
    when: Collection[CheckTime],
    now: datetime,
    node: str | None = None,
) -> CheckReport:
    """`given` are the inputs as `given_in` has them. Raises `Problems` for a node that they do not have, and for a
    declaration that cannot be carried out."""
    context = context_of_inputs(inputs, template_set, now)
    require_node(node, context.names.nodes)
    return run_checks(checks, given, context, when, node)


def given_in(inputs: Inputs, kinds: Kinds) -> GivenObjects:
    """All that the inputs say about a cluster."""
    return GivenObjects(
        [source.body for source in (*inputs.objects, *inputs.other_plans)],
        kinds,
        collected=inputs.collected,
        facts=inputs.facts,
        plan=inputs.plan.body if inputs.plan else None,
    )
