"""What `status` and `rehearse` tell machines has the form that their schemas say, at every stage of an upgrade."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from support.answer_schemas import validate, validator
from support.recordings import recording

from reconcile.report.progress import progress_lines, progress_of
from reconcile.simulator.rehearsal.report import report_of
from renderer.model.document_type import REHEARSAL_REPORT, STATUS_REPORT

pytestmark = [pytest.mark.slow, pytest.mark.lane("recordings")]

ENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "succeeds": ("three-node", {}),
    "fails": ("three-node", {"fail": ("pre-drain on charlie-2",)}),
    "stalls": ("three-node", {"stall": ("image-import",), "limit": timedelta(hours=12)}),
    "one node": ("single-node", {}),
    "held": ("paused-node", {}),
}


@pytest.mark.parametrize("name", ENDS)
def test_every_stage_of_an_upgrade_and_its_report_fit_their_schemas(name: str) -> None:
    example, wishes = ENDS[name]
    recorded = recording(example, **wishes)
    seen: set[str] = set()
    for moment, done in recorded:
        model = progress_of(done, moment)
        if (stage := json.dumps([model["phase"], model["nodes"]])) not in seen:
            validate(STATUS_REPORT, model)
            assert list(progress_lines(model))
            seen.add(stage)
    report = json.loads(json.dumps(report_of(recorded.result, recorded.rehearsal.name)))
    validate(REHEARSAL_REPORT, report)
    assert len(seen) > 2
    assert report["succeeded"] is (name not in ("fails", "stalls"))
    assert bool(report["waits"]) is (name == "stalls")


@pytest.mark.parametrize("name", ["status", "explain", "rehearse"])
def test_a_schema_refuses_what_it_does_not_know(name: str) -> None:
    assert not validator(name).is_valid({})
    body: Any = validator(name).schema
    assert body["additionalProperties"] is False
