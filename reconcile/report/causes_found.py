"""Puts the causes that were found into the models of answers, and these into text."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.diagnosis.situation import Cause
from reconcile.report.progress import Model, age_of


def cause_model(cause: Cause) -> Model:
    """One cause in an answer: schemas/common.json."""
    return {
        "id": cause.id,
        "title": cause.title,
        "object": cause.object,
        "node": cause.node,
        "what": cause.what,
        "since": cause.since,
        "remedy": cause.remedy,
        "patient": cause.patient,
        "docs": cause.docs,
        "restart": cause.restart,
    }


def cause_lines(model: Model) -> Iterator[str]:
    """Each cause of a model that has `causes` and `at`, with its remedy."""
    for cause in model["causes"]:
        node = f" [{cause['node']}]" if cause["node"] else ""
        yield f"  because {cause['object']}{node} {cause['what']}{age_of(cause['since'], model['at'])}"
        yield f"    remedy: {cause['remedy']}"
        if cause["docs"]:
            yield f"    see {cause['docs']}"
