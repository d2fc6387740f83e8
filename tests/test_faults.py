"""Each fault that can be asked for makes a difference to a rehearsal, or is refused with what would."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.rehearsals import ROOT, START, inputs_of, prepared
from support.rendered_plans import looking_at_hosts

from reconcile.simulator.actors.fault_options import FaultOptions, fault_plan_of, known_targets
from reconcile.simulator.actors.faults import SIMULATED_OPERATIONS, FaultMode, OperationTarget, SimulatedOperation
from reconcile.simulator.actors.simulation_log import SimulationEvent
from reconcile.simulator.rehearsal.rehearsal import Rehearsal, prepare
from reconcile.simulator.rehearsal.report import report_of
from renderer.assemble import open_template_set
from renderer.cli.program import run

ON_MANY_NODES = frozenset(
    {
        "skip-manifest-apply",
        "skip-manifest-remove",
        "rancher",
        "one-at-a-time",
        "pre-drain-request",
        "pre-drain",
        "vm-migration",
        "drain",
        "kubernetes",
        "volume-rebuild",
        "post-drain-request",
        "post-drain",
        "restore-vm",
    }
)
EXAMPLES = {**dict.fromkeys(ON_MANY_NODES, "three-node"), "addon": "paused-node"}
"""Where the operation takes place; elsewhere a single node is quicker."""

NODES = {"three-node": "charlie-2", "single-node": "alfa-1"}
EVERY_MODE = "cluster-upgrade"
ONE_MODE = ("host-check", "image-import", "reboot", "system-upgrade-controller")
"""A Job on a host, a controller of Harvester's, a machine, and a controller that makes Jobs."""
LATE = pytest.mark.full(
    f"the rest of the walk over all faults; every one of {EVERY_MODE}, and one fault each of an operation of another "
    "kind, stand for it"
)

Happened = tuple[Any, ...]


class Differs(BaseException):
    """The rehearsal has gone another way than the undisturbed one: it need not go on."""


def cases() -> Iterator[Any]:
    for operation in SIMULATED_OPERATIONS.values():
        modes = [*sorted(operation.modes), *(["away"] if operation.is_job else [])]
        for number, mode in enumerate(modes):
            is_short = operation.name == EVERY_MODE or (number == 0 and operation.name in ONE_MODE)
            marks = [] if is_short else [LATE]
            yield pytest.param(operation, str(mode), marks=marks, id=f"{mode}-{operation.name}")


def happened(events: tuple[SimulationEvent, ...]) -> list[Happened]:
    """Without uids of Jobs, which say how many objects were created before."""
    return [
        (each.time, each.what, each.subject, each.node, each.to, "" if "Job " in each.detail else each.detail)
        for each in events
    ]


def rehearsal(example: str, *, hosts: bool = False, **options: list[str]) -> Rehearsal:
    """`hosts`: a Job looks at each node's host, as where the manager knows its image."""
    inputs = inputs_of(example)
    faults = fault_plan_of(FaultOptions(**options), known_targets(source.body for source in inputs.objects))
    if hosts:
        return prepare(inputs, open_template_set(looking_at_hosts()), start=START, faults=faults)
    return prepared(inputs, faults=faults)


@cache
def undisturbed(example: str, *, hosts: bool) -> tuple[list[Happened], dict[str, Any]]:
    played = rehearsal(example, hosts=hosts)
    result = played.play(lambda done: None)
    return happened(result.log.events), report_of(result, played.name)


def option(operation: SimulatedOperation, mode: str) -> str:
    on = {OperationTarget.NODE: NODES.get(EXAMPLES.get(operation.name, "single-node"), "")}
    target = {**on, OperationTarget.VIRTUAL_MACHINE: "web-1"}.get(operation.on, "")
    text = f"{operation.name} on {target}" if target else operation.name
    return {"slow": f"{text}=40m", "away": f"3m at {text}"}.get(mode, text)


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "mode"), list(cases()))
def test_a_fault_makes_a_difference(operation: SimulatedOperation, mode: str) -> None:
    example = EXAMPLES.get(operation.name, "single-node")
    hosts = operation.name == "host-check"
    events, report = undisturbed(example, hosts=hosts)
    played = rehearsal(example, hosts=hosts, **{mode: [option(operation, mode)]})

    def compare(done: object) -> None:
        now = happened(played.log.events)
        if now != events[: len(now)]:
            raise Differs

    try:
        result = played.play(compare)
    except Differs:
        return
    assert report_of(result, played.name) != report
    assert result.not_injected == ()


def test_the_walk_tries_every_operation_and_every_mode() -> None:
    tried = {str(case.id) for case in cases()}
    assert {f"{mode}-{name}" for name, each in SIMULATED_OPERATIONS.items() for mode in each.modes} <= tried
    assert {mode for each in SIMULATED_OPERATIONS.values() for mode in each.modes} == set(FaultMode)


# -------------------------------------------------------------------------------------------------------- the command


def rehearse(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = run(["upgradeplan", "rehearse", "--quiet", *words])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


@pytest.mark.slow
def test_a_fault_that_never_takes_place_is_refused_with_what_does(capsys: pytest.CaptureFixture[str]) -> None:
    inputs = str(ROOT / "examples" / "single-node")
    status, text = rehearse(capsys, inputs, "--fail", "pre-drain on alfa-1", "--away", "5m at image-preload")
    assert status == 2
    assert "--fail: 'pre-drain on alfa-1-tink-system' had no effect" in text
    assert "choose an operation that takes place: cluster-upgrade, image-cleanup, image-import" in text
    assert "image-preload'" not in text


@pytest.mark.slow
def test_a_fault_that_comes_too_late_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    inputs = str(ROOT / "examples" / "single-node")
    status, text = rehearse(capsys, inputs, "--fail", "image-import", "--fail", "reboot")
    assert status == 1
    assert "NOT INJECTED\n  --fail 'reboot': the upgrade ended before this took place" in text


def test_a_template_that_cannot_be_rendered_is_why_nothing_happens(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "12-site-token"
    folder.mkdir()
    header = "apiVersion: templates.upgradeplan/v1\nkind: Phase\nname: SiteToken\ndescription: A token.\n"
    states = "status: {active: TokenMaking, completed: TokenMade}\ndeletion: free\n"
    step = "steps:\n- {name: Token, owned: [token.yaml.j2], noGate: it is there at once}\n"
    (folder / "phase.yaml").write_text(header + states + step)
    (folder / "token.yaml.j2").write_text("metadata: {name: {{ plan.nam }}}\n")
    status, text = rehearse(capsys, str(ROOT / "examples" / "single-node"), "--templates", str(tmp_path))
    assert status == 2
    assert f"{tmp_path / '12-site-token' / 'token.yaml.j2'}:1: plan has no 'nam'" in text


@pytest.mark.slow
def test_a_job_of_a_phase_of_ones_own_can_fail(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "examples" / "pre-check-overlay"
    words = (str(folder), "--templates", str(folder / "templates"), "--fail")
    status, text = rehearse(capsys, *words, "pre-check")
    assert (status, "would fail" in text) == (1, True)
    status, text = rehearse(capsys, *words, "pre-chekc")
    assert status == 2
    assert "unknown operation 'pre-chekc'; did you mean 'pre-check'?" in text


# ------------------------------------------------------------------------------------------ rules that were not checked


def definition_with_rule(path: Path) -> None:
    """The cluster's own definition of Longhorn's settings, with a rule that the simulated server cannot evaluate."""
    body = yaml.safe_load(
        (ROOT / "schemas" / "crds" / "third-party" / "longhorn.io_settings.yaml").read_text(encoding="utf-8")
    )
    for version in body["spec"]["versions"]:
        rules = [{"rule": "self.value.split(',').all(x, x != '')"}]
        version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = rules
    path.write_text(yaml.safe_dump(body), encoding="utf-8")


@pytest.mark.slow
def test_a_rule_that_was_not_evaluated_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    definition_with_rule(tmp_path / "definition.yaml")
    inputs = (str(ROOT / "examples" / "single-node"), str(tmp_path))
    status, text = rehearse(capsys, *inputs)
    assert status == 0
    assert "NOT CHECKED\n  Setting: CEL rule \"self.value.split(',').all(x, x != '')\" was not evaluated (" in text
