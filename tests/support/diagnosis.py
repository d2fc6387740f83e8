"""Support for tests of known causes: what the packaged tree knows, and a look over objects that are all there is."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reconcile.diagnosis.diagnosing import knowledge_of
from reconcile.diagnosis.engine import Knowledge
from reconcile.preflight.check_context import check_context
from reconcile.preflight.given_objects import GivenObjects
from reconcile.schemas import packaged_schemas
from renderer.model.collected import CollectedKind
from renderer.model.ref import Body
from support.preflight_cases import template_set


def knowledge(now: datetime) -> Knowledge:
    return knowledge_of(template_set().catalog, check_context(template_set(), packaged_schemas(), now))


def everything_in(bodies: Iterable[Body]) -> GivenObjects:
    """A look over these objects; there are no others of any kind."""
    kinds = template_set().catalog.kinds
    collected = [CollectedKind(api_version=row.kind.api_version, kind=row.kind.kind) for row in kinds]
    return GivenObjects(bodies, kinds, collected=collected)
