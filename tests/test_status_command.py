"""What `status` and `rehearse` tell machines has the form that their schemas say, at every stage of an upgrade."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.answer_schemas import validate, validator
from support.recordings import recording
from support.rehearsals import rehearsal_of
from support.small_cluster import OLD_OS, rebooting

from reconcile.observe.source import DirectSource
from reconcile.report.extent import extent_of
from reconcile.report.progress import progress_of
from reconcile.report.progress_view import progress_lines
from reconcile.simulator.rehearsal.report import report_of
from renderer.model.document_type import REHEARSAL_REPORT, STATUS_REPORT
from renderer.model.plan_api import plan_ref

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
    shapes = [body["$defs"][each["$ref"].rpartition("/")[2]] for each in body.get("oneOf", ())] or [body]
    assert all(shape["additionalProperties"] is False for shape in shapes)


@pytest.mark.parametrize(
    ("ready", "unmet"),
    [("True", f"still {OLD_OS}, not rebooted yet"), ("Unknown", f"still {OLD_OS}, not rebooted yet, not Ready")],
)
def test_a_node_that_reboots_is_waited_for_in_words_and_by_fields_in_json(ready: str, unmet: str) -> None:
    found = rebooting()
    found.patch(
        found.get("v1", "Node", "n1"), {"status": {"conditions": [{"type": "Ready", "status": ready}]}}, "status"
    )
    model = progress_of(found.rounds(), datetime(2030, 1, 1, tzinfo=UTC))
    (line,) = [line for line in progress_lines(model) if " n1 " in line and "waits for" in line]
    assert line.startswith(f"  waits for n1 to come back: {unmet} (for ")
    (wait,) = [wait for wait in model["waits"] if wait["node"] == "n1"]
    assert wait["step"] == "NodeUpgrade/Reboot/n1"
    assert "status.nodeInfo.osImage is" in wait["text"]
    assert "status.nodeInfo.bootID is" in wait["text"]


def test_the_extent_of_an_upgrade_is_one_line() -> None:
    rehearsal = rehearsal_of("three-node")
    source = DirectSource(rehearsal.client, rehearsal.deps.kinds)
    plan = source.get(plan_ref(rehearsal.name))
    assert isinstance(plan, Mapping)
    assert extent_of(source, plan, 8) == (
        "from v1.7.1 to v1.8.0-rc1: 8 phases, 3 nodes rebooted in turn, 3 VMs moved or stopped"
    )
