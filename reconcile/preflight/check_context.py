"""Makes the context of checks: the names that their texts see, from a plan, a release and objects, each if there is
any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconcile.probes.look import ProbeContext
from reconcile.schemas import Schemas
from renderer.assemble import TemplateSet
from renderer.catalog.releases import load_releases
from renderer.context.checks import CheckNames, check_names
from renderer.context.facts import Facts
from renderer.model.ref import Body
from renderer.model.release_line import ReleaseLine
from renderer.templating import Templates
from renderer.validation import document_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """Within what checks are carried out. `plan` is empty where none was given; `releases` are what is known of
    releases."""

    names: CheckNames
    templates: Templates
    probes: ProbeContext
    plan: Body
    releases: tuple[ReleaseLine, ...]


def check_context(
    template_set: TemplateSet,
    schemas: Schemas,
    now: datetime,
    *,
    plan: Body | None = None,
    release: Body | None = None,
    objects: Sequence[Body] = (),
) -> CheckContext:
    """`objects` are those that rendering looks at: nodes, machines and their plans, the Version, `server-version`."""
    catalog, releases = template_set.catalog, load_releases(template_set.tree, document_problems)
    facts = Facts(
        plan=plan or {},
        release=release,
        objects=tuple(objects),
        values=catalog.values,
        spec_fields=template_set.spec_fields,
    )
    return CheckContext(
        names=check_names(facts, releases),
        templates=template_set.templates,
        probes=ProbeContext(kinds=catalog.kinds, schemas=schemas, now=now),
        plan=plan or {},
        releases=releases,
    )
