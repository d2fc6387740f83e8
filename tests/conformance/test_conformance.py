"""Every case on both stages, held to what the real server answered when it was recorded."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from controlplane.cluster import ControlPlane

from conformance.case import Case, cases
from conformance.random_case import random_case
from conformance.record import as_text
from conformance.run import run
from conformance.stages import EmbeddedStage, RealStage

CASES = tuple(cases())
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(scope="module")
def real_stage(control_plane: ControlPlane) -> RealStage:
    return RealStage(control_plane)


@each_case
def test_embedded(case: Case) -> None:
    assert as_text(run(case, EmbeddedStage())) == as_text(answers(case))


LATE = {
    "namespace-delete": "waits for the namespace controller's next look, 15 s; the embedded case, held to the recorded "
    "answers, stands for it"
}

MORE = pytest.mark.full(
    "more cases on the real API server, each in a namespace of its own, which is emptied of every kind; every third "
    "case there, and all of them on the embedded cluster, held to what the real one answered, stand for them"
)
RANDOM = pytest.mark.full("more random writes on both; six of them stand for them")


def _on_the_real_server() -> list[Any]:
    """All cases, and which of them a short run leaves out."""
    places = {case.name: place for place, case in enumerate(CASES)}
    late = {name: [pytest.mark.full(why)] for name, why in LATE.items()}
    more = {name: [MORE] for name, place in places.items() if place % 3}
    return [pytest.param(case, id=case.name, marks=(more | late).get(case.name, [])) for case in CASES]


@pytest.mark.parametrize("case", _on_the_real_server())
@pytest.mark.controlplane
def test_real(case: Case, real_stage: RealStage) -> None:
    assert as_text(run(case, real_stage)) == as_text(answers(case))


@pytest.mark.parametrize("number", [*range(6), *(pytest.param(number, marks=RANDOM) for number in range(6, 18))])
@pytest.mark.controlplane
def test_both_stages_agree_on_random_writes(number: int, real_stage: RealStage) -> None:
    case = random_case(number)
    assert as_text(run(case, EmbeddedStage())) == as_text(run(case, real_stage))


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60


def answers(case: Case) -> list[Any]:
    return list(yaml.load_all(case.answers.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
