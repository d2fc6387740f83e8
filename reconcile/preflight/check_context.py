"""Makes the context of checks: the names that their texts see, from a plan, a release and objects, each if there is
any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from reconcile.probes.look import ProbeContext
from reconcile.schemas import Schemas
from renderer.assemble import TemplateSet
from renderer.catalog.checks import DeclaredCheck, load_checks
from renderer.catalog.load import Catalog
from renderer.catalog.releases import load_releases
from renderer.context.checks import CheckNames, check_names
from renderer.context.facts import Facts
from renderer.model.ref import Body
from renderer.model.release_line import ReleaseLine
from renderer.model.sharing import ByIdentity, SameObject
from renderer.redaction import Redactor
from renderer.templating import Templates
from renderer.validation import document_problems

_MEMBERS = 16_384
"""Objects of which a plan that runs remembers that its checks pass: they are carried out again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """Within what checks are carried out. `plan` is empty where none was given; `releases` are what is known about
    releases."""

    names: CheckNames
    templates: Templates
    probes: ProbeContext
    plan: Body
    releases: tuple[ReleaseLine, ...]

    def at(self, now: datetime) -> CheckContext:
        """The same at a later time. Of the objects that passed those are remembered that are asked for again."""
        passing = self.probes.passing.renewed() if self.probes.passing is not None else None
        return replace(self, probes=replace(self.probes, now=now, passing=passing))


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
    facts = Facts(
        plan=plan or {},
        release=release,
        objects=tuple(objects),
        values=template_set.catalog.values,
        spec_fields=template_set.spec_fields,
    )
    return context_of_facts(template_set.catalog, template_set.templates, facts, schemas, now)


def context_of_facts(
    catalog: Catalog, templates: Templates, facts: Facts, schemas: Schemas, now: datetime, *, running: bool = False
) -> CheckContext:
    """`running`: the plan runs, and reads the release's metadata automatically."""
    releases = releases_of(catalog)
    return CheckContext(
        names=check_names(facts, releases, release_comes=running),
        templates=templates,
        probes=ProbeContext(
            kinds=catalog.kinds,
            schemas=schemas,
            now=now,
            redactor=Redactor(catalog.redaction),
            passing=ByIdentity(_MEMBERS) if running else None,
        ),
        plan=facts.plan,
        releases=releases,
    )


def checks_of(catalog: Catalog) -> tuple[DeclaredCheck, ...]:
    """The checks of a template tree, read once. Raises `Problems`."""
    return _checks(SameObject(catalog))


def releases_of(catalog: Catalog) -> tuple[ReleaseLine, ...]:
    """All that its tree knows of releases, read once. Raises `Problems`."""
    return _releases(SameObject(catalog))


@lru_cache(maxsize=4)
def _checks(catalog: SameObject) -> tuple[DeclaredCheck, ...]:
    return load_checks(catalog.it.tree, document_problems, catalog.it.kinds)


@lru_cache(maxsize=4)
def _releases(catalog: SameObject) -> tuple[ReleaseLine, ...]:
    return load_releases(catalog.it.tree, document_problems)
