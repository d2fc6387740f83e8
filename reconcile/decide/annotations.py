"""Keeps originals in annotations of the plan as well, as long as their fields are borrowed.

The Harvester Upgrade Manager reads them there if it takes the plan over. Our own record is the status.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reconcile.borrow.loan import Loan, loan_step
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision import Annotate
from renderer.model.manifest_spec import Borrowed
from renderer.model.path import ABSENT
from renderer.model.rendered import RenderedStep


def note_originals(builder: DecisionBuilder, item: RenderedStep) -> Annotate | None:
    """The write that notes what the step has on loan; None if the annotations say it already."""
    there = _annotations(builder)
    noted = {key: _text(loan.original.value) for key, loan in _noted(builder, [item]) if loan.returned is None}
    missing = tuple((key, text) for key, text in noted.items() if there.get(key) != text)
    return Annotate(annotations=missing) if missing else None


def forget_originals(builder: DecisionBuilder, steps: Iterable[RenderedStep]) -> bool:
    """Decides to remove the annotations of what has been returned. Returns whether none is left."""
    noted = list(_noted(builder, steps))
    lent = {key for key, loan in noted if loan.returned is None}
    over = dict.fromkeys(key for key, _ in noted if key not in lent and key in _annotations(builder))
    if over:
        builder.actions.append(Annotate(annotations=tuple(over.items())))
    return not over


def _noted(builder: DecisionBuilder, steps: Iterable[RenderedStep]) -> Iterator[tuple[str, Loan]]:
    """The loans of these steps whose originals are noted, each with the key of its annotation."""
    for item in steps:
        loans = [loan for loan in builder.status.loans if (loan.phase, loan.step) == (item.phase, loan_step(item))]
        for spec in item.step.manifests if loans else ():
            for noted in spec.originals_in_annotations if isinstance(spec, Borrowed) else ():
                found = (loan for loan in loans if loan.original.path == noted.path)
                yield from ((noted.annotation, loan) for loan in found if loan.original.value is not ABSENT)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _annotations(builder: DecisionBuilder) -> dict[str, str]:
    return builder.observation.plan["metadata"].get("annotations") or {}
