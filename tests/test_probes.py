"""Probes by case files: `probes/<subject>/*.yaml` are objects as a cluster has them, and the verdict with its words.

A case without a probe asks whether its first object is ready by its kind's own rule.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcile import objects
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import Answer, Group, ProbeContext, ReadFailure, Reading, WorkedOut
from reconcile.probes.rules.call import parse_json
from reconcile.probes.rules.table import RULES
from reconcile.probes.verdict import ProbeResult, Verdict, gate_verdict, passed, together, waiting
from reconcile.schemas import packaged_schemas
from renderer.catalog.declare import phase_from
from renderer.catalog.kinds import KindRow, Kinds, rows_from
from renderer.catalog.probes import gate_from, probe_from, ref_from
from renderer.catalog.rules import RULES as DECLARED_RULES
from renderer.catalog.rules import misused
from renderer.describe import DescriptionContext, describe_gate, describe_probe, describe_trigger
from renderer.errors import Problems
from renderer.model.path import ABSENT
from renderer.model.phase import Step
from renderer.model.probe import (
    BuiltinPredicate,
    ClusterTarget,
    EveryTarget,
    FieldPredicate,
    Fixed,
    Gate,
    ManifestTarget,
    ObjectTarget,
    Probe,
    RulePredicate,
    Test,
    Trigger,
)
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.sharing import ByIdentity

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "probes"
NOW = datetime(2026, 11, 2, 8, tzinfo=UTC)


def _kinds() -> Kinds:
    files = sorted((ROOT / "templates" / "_kinds").glob("*.yaml"))
    return Kinds(row for file in files for row in rows_from(yaml.load(file.read_text(), Loader=yaml.CSafeLoader)))


KINDS = _kinds()
SCHEMAS = packaged_schemas()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenObjects:
    """What was read."""

    bodies: tuple[Body, ...] = ()
    read_failures: Mapping[str, str] = field(default_factory=dict)  # a kind, and why it could not be looked at
    readings: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        if ref.kind in self.read_failures:
            return ReadFailure(why=self.read_failures[ref.kind])
        return next((body for body in self.bodies if ref_of(body) == ref), None)

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        if group.kind in self.read_failures:
            return ReadFailure(why=self.read_failures[group.kind])
        return tuple(body for body in self.bodies if _is_in(group, body))

    def reading(self, reading: Reading, name: str) -> Answer:
        return self.readings.get(reading.name, {}).get(name, ReadFailure(why="nobody asked"))


def _is_in(group: Group, body: Body) -> bool:
    ref = ref_of(body)
    return (
        (ref.api_version, ref.kind) == (group.api_version, group.kind)
        and group.namespace in ("", ref.namespace)
        and objects.has_labels(body, group.labels)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCase:
    probe: Probe
    scope: ProbeContext
    snapshot: GivenObjects
    head: Mapping[str, Any]


def _case(path: Path) -> ProbeCase:
    head, *bodies = yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)
    manifests = {file: tuple(ref_from(ref) for ref in refs) for file, refs in head.get("manifests", {}).items()}
    scope = ProbeContext(
        kinds=KINDS,
        schemas=SCHEMAS,
        now=_time(head.get("now")) or NOW,
        manifests=manifests,
        captured=head.get("captured", {}),
    )
    probe = probe_from(head["probe"]) if "probe" in head else _ready(ref_of(bodies[0]))
    snapshot = GivenObjects(
        bodies=tuple(bodies),
        read_failures=head.get("readFailures", {}),
        readings={
            "kubelet": {node: _kubelet(raw) for node, raw in head.get("kubelet", {}).items()},
            "certificates": {address: _certificate(raw) for address, raw in head.get("certificates", {}).items()},
            "hosts": head.get("hosts", {}),
        },
    )
    return ProbeCase(probe=probe, scope=scope, snapshot=snapshot, head=head)


def _ready(ref: Ref) -> Probe:
    return Probe(target=ObjectTarget(ref=ref), all=(BuiltinPredicate(),))


def _kubelet(raw: Mapping[str, Any]) -> Answer:
    """Case files write the figures side by side."""
    if "readFailure" in raw:
        return ReadFailure(why=raw["readFailure"])
    disk = {name: raw[name] for name in ("capacityBytes", "usedBytes") if name in raw}
    return {**{name: value for name, value in raw.items() if name not in disk}, **({"fs": disk} if disk else {})}


def _certificate(raw: Any) -> Answer:
    if isinstance(raw, Mapping):
        return ReadFailure(why=raw["readFailure"])
    return {"notAfter": raw} if raw else {}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


PATHS = sorted(CASES.glob("*/*.yaml"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path) -> None:
    case = _case(path)
    verdict = evaluate(case.probe, case.snapshot, case.scope)
    expected = case.head["expect"]
    assert {"outcome": verdict.outcome.value, "reason": verdict.reason} == {
        key: expected[key] for key in ("outcome", "reason")
    }
    assert "\n" not in verdict.reason
    assert list(verdict.warnings) == expected.get("warnings", [])
    assert bool(verdict.offenders) <= (not verdict.passed)
    if "offenders" in expected:
        assert [str(ref) for ref in verdict.offenders] == expected["offenders"]
    if "seen" in expected:
        assert verdict.seen == expected["seen"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_words(path: Path) -> None:
    case = _case(path)
    words = describe_probe(case.probe, DescriptionContext(manifests=case.scope.manifests, ready=_own_rule))
    assert "\n" not in words
    assert words == case.head.get("words", words)


def _own_rule(api_version: str, kind: str) -> tuple[Any, ...]:
    row = KINDS.find(api_version, kind)
    return row.ready.all if row and row.ready else ()


REPORTING = sorted({(row.kind.api_version, row.kind.kind) for row in KINDS if row.reports_generation})


@pytest.mark.parametrize("said", [None, "2", "x", True, 1.5, {}], ids=repr)
@pytest.mark.parametrize("kind", REPORTING, ids=str)
def test_a_status_that_does_not_say_its_generation_proves_nothing(kind: tuple[str, str], said: Any) -> None:
    """Of a kind that always says it: everything else in the status is as of an object that is done."""
    (done,) = [body for body in _done() if (body["apiVersion"], body["kind"]) == kind]
    for status in ({**done["status"], "observedGeneration": said}, _without(done["status"], "observedGeneration")):
        body = {**done, "metadata": {**done["metadata"], "generation": 2}, "status": status}
        probe = _ready(ref_of(body))
        scope = _scope_of(probe)
        verdict = evaluate(probe, GivenObjects(bodies=(body,)), scope)
        assert verdict.outcome is ProbeResult.WAITING
        assert "generation 2 is not observed yet, the status does not say which generation" in verdict.reason


@cache
def _done() -> list[Any]:
    """Each kind's object that is done."""
    paths = [path for path in PATHS if path.stem == "done"]
    return [body for path in paths for body in [_first_two(path)[1]] if body is not None]


def _without(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != key}


WRONG: Sequence[Any]
WRONG = (None, True, 0, -1, 1.5, 10**30, "", "x", "x\ny", [], ["x"], [None], [[]], {}, {"x": 1}, ABSENT)
"""What may stand where something else is expected; ABSENT: nothing."""


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_whatever_objects_say_the_answer_is_a_line_of_words(path: Path) -> None:
    """Twenty times one or two values of a case's objects are taken away or replaced, by the seed that its name is."""
    case, chance = _case(path), random.Random(path.stem)
    for _ in range(20 if case.snapshot.bodies else 0):
        bodies = [copy.deepcopy(body) for body in case.snapshot.bodies]
        for _ in range(chance.choice((1, 2))):
            _spoil(chance.choice(bodies), chance)
        verdict = evaluate(case.probe, replace(case.snapshot, bodies=tuple(bodies)), case.scope)
        assert verdict.reason, bodies
        assert "\n" not in verdict.reason, bodies


def _spoil(body: Any, chance: random.Random) -> None:
    """Changes the body in place; what names the object stays, since without it nobody would have read it."""
    names = {"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace"}
    places = [place for place in _places(body) if ".".join(map(str, place[1])) not in names]
    if not places:
        return
    holder, where = chance.choice(places)
    value = chance.choice(WRONG)
    if value is ABSENT:
        del holder[where[-1]]
    else:
        holder[where[-1]] = copy.deepcopy(value)


def _places(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every place that something stands at: what holds it, and the way there."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield value, (*where, step)
        yield from _places(item, (*where, step))


def test_every_rule_has_its_cases() -> None:
    """Five for each kind whose rule asks for more than that the object is there; all of them by the rule itself."""
    asked = Counter(
        (body["apiVersion"], body["kind"])
        for path in PATHS
        for head, body in [_first_two(path)]
        if "probe" not in head and body is not None
    )
    expected = {
        (row.versions[0], row.kind.kind)
        for row in KINDS
        if row.ready
        and not all(isinstance(item, FieldPredicate) and item.path[0] == "metadata" for item in row.ready.all)
    }
    assert {kind: asked[kind] for kind in expected if asked[kind] < 5} == {}


def _first_two(path: Path) -> tuple[Mapping[str, Any], Body | None]:
    head, *bodies = yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)
    return head, bodies[0] if bodies else None


def _declared_steps() -> Iterator[Step]:
    for file in sorted((ROOT / "templates").glob("*/phase.yaml")):
        phase = phase_from(yaml.load(file.read_text(), Loader=yaml.CSafeLoader), number=1, folder=file.parent.name)
        for step in phase.steps:
            yield from (step, step.undo) if step.undo else (step,)


def _declared_probes() -> Iterator[tuple[str, Probe]]:
    for step in _declared_steps():
        for number, gate in enumerate(step.gates):
            yield f"{step.name}-gate-{number}", gate.probe
        if step.trigger:
            yield f"{step.name}-trigger", step.trigger.probe
        if step.skip_unless:
            yield f"{step.name}-skipUnless", step.skip_unless.probe
    for row in KINDS:
        if row.ready:
            ref = Ref(api_version=row.kind.api_version, kind=row.kind.kind, namespace="a", name="x")
            yield f"ready-{ref.api_version}-{ref.kind}", _ready(ref)


DECLARED = dict(_declared_probes())
LOOKS_AT_THE_CLUSTER = {name: probe for name, probe in DECLARED.items() if "versionEligible" not in str(probe)}


def _scope_of(probe: Probe) -> ProbeContext:
    ref = Ref(api_version="batch/v1", kind="Job", namespace="a", name="x")
    manifests = {probe.target.file: (ref,)} if isinstance(probe.target, ManifestTarget) else {}
    return ProbeContext(kinds=KINDS, schemas=SCHEMAS, now=NOW, manifests=manifests, captured={"bootID": "6f1c"})


def _resolved(probe: Probe) -> Probe:
    """With those arguments filled in whose text would be refused as it stands in the template."""
    rules = [
        RulePredicate(name=item.name, arguments=(*item.arguments, ("days", "7"), ("skip", "")))
        if isinstance(item, RulePredicate)
        else item
        for item in probe.all
    ]
    return Probe(target=probe.target, all=tuple(rules), fails=probe.fails)


@pytest.mark.parametrize("name", LOOKS_AT_THE_CLUSTER)
def test_nothing_passes_on_an_empty_cluster(name: str) -> None:
    probe = _resolved(LOOKS_AT_THE_CLUSTER[name])
    scope = _scope_of(probe)
    verdict = evaluate(probe, GivenObjects(), scope)
    assert verdict.outcome in (ProbeResult.WAITING, ProbeResult.UNKNOWN)
    assert verdict.reason


@pytest.mark.parametrize("name", LOOKS_AT_THE_CLUSTER)
def test_nothing_fails_and_nothing_passes_while_the_cluster_is_away(name: str) -> None:
    probe = _resolved(LOOKS_AT_THE_CLUSTER[name])
    scope = _scope_of(probe)
    away = {row.kind.kind: "connection refused" for row in KINDS}
    verdict = evaluate(probe, GivenObjects(read_failures=away), scope)
    assert verdict.outcome is ProbeResult.UNKNOWN
    assert verdict.reason.endswith("connection refused")


@pytest.mark.parametrize("row", [row for row in KINDS if row.ready], ids=lambda row: str(row.kind))
def test_an_object_without_a_status_is_not_ready(row: KindRow) -> None:
    ref = Ref(api_version=row.kind.api_version, kind=row.kind.kind, namespace="a", name="x")
    probe = _ready(ref)
    bare = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"name": ref.name, "namespace": ref.namespace}}
    scope = _scope_of(probe)
    verdict = evaluate(probe, GivenObjects(bodies=(bare,)), scope)
    if ref.kind == "Addon":
        assert verdict.passed  # one that was never enabled has no status
    else:
        assert verdict.outcome is ProbeResult.WAITING


def test_a_summary_has_a_text_for_each_test() -> None:
    probe = {"object": {"apiVersion": "v1", "kind": "Node", "name": "a"}, "all": [{"absent": True}]}
    assert gate_from({"probe": probe, "summary": {"waitsFor": "w", "unmet": ["u"]}}).summary is not None
    with pytest.raises(ValueError, match="has 2 texts, expected one for each of the 1 tests in all"):
        gate_from({"probe": probe, "summary": {"waitsFor": "w", "unmet": ["u", "v"]}})


@pytest.mark.parametrize("outcome", [ProbeResult.WAITING, ProbeResult.UNKNOWN, ProbeResult.FAILED])
def test_a_gate_counts_passes_in_a_row(outcome: ProbeResult) -> None:
    gate = Gate(probe=_ready(Ref(api_version="v1", kind="Node", name="a")), consecutive=3)
    other = Verdict(outcome=outcome, reason="b")
    passes, told = 0, []
    for verdict in (passed("a"), passed("a"), other, passed("a"), passed("a"), passed("a"), passed("a")):
        answer = gate_verdict(gate, verdict, passes)
        passes = answer.passes
        told.append((answer.verdict.outcome, answer.verdict.reason, answer.passes))
    once = (ProbeResult.WAITING, "a; passed 1 of 3 times in a row", 1)
    twice = (ProbeResult.WAITING, "a; passed 2 of 3 times in a row", 2)
    thrice = (ProbeResult.PASSED, "a", 3)
    assert told == [once, twice, (outcome, "b", 0), once, twice, thrice, thrice]


def test_a_gate_that_asks_for_no_row_opens_at_once() -> None:
    gate = Gate(probe=_ready(Ref(api_version="v1", kind="Node", name="a")))
    assert gate_verdict(gate, passed("a"), 0).verdict == passed("a")


def test_words_of_gates_and_triggers() -> None:
    probe = _ready(Ref(api_version="batch/v1", kind="Job", namespace="a", name="x"))
    lexicon = DescriptionContext(ready=_own_rule)
    assert describe_gate(Gate(probe=probe, consecutive=3)) == "Job a/x is ready, 3 times in a row"
    ready = "Job a/x is ready (condition Complete is True)"
    assert describe_gate(Gate(probe=probe), lexicon) == ready
    assert (
        describe_trigger(Trigger(probe=probe, capture="request"), lexicon) == f"{ready} (the value is kept as request)"
    )


def test_no_verdicts_at_all_are_waiting() -> None:
    assert together([]).outcome is ProbeResult.WAITING


def test_each_offender_of_many_is_a_verdict_of_its_own() -> None:
    """The reason names three; nobody who has to repair ten looks for the others."""
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}"}, "spec": {}} for n in range(10)]
    probe = probe_from(
        {"every": {"apiVersion": "v1", "kind": "Node"}, "all": [{"field": {"path": "spec.x", "exists": True}}]}
    )
    verdict = evaluate(probe, GivenObjects(bodies=tuple(nodes)), _scope_of(probe))
    assert "and 7 more" in verdict.reason
    assert [str(item.offenders[0]) for item in verdict.singles] == [f"Node n{n}" for n in range(10)]


def test_several_predicates_about_one_object_are_one_verdict() -> None:
    probe = probe_from(
        {
            "object": {"apiVersion": "v1", "kind": "Node", "name": "a"},
            "all": [{"field": {"path": "spec.x", "exists": True}}, {"field": {"path": "spec.y", "exists": True}}],
        }
    )
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    verdict = evaluate(probe, GivenObjects(bodies=(node,)), _scope_of(probe))
    assert [item.reason for item in verdict.singles] == [verdict.reason]


def test_the_kubelets_that_are_too_full_are_told_one_by_one() -> None:
    nodes = tuple({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in ("a", "b", "c"))
    full: Answer = {"imageGCHighThresholdPercent": 85, "fs": {"capacityBytes": 100, "usedBytes": 90}}
    readings: Mapping[str, Mapping[str, Answer]] = {"kubelet": {"a": full, "b": ReadFailure(why="away"), "c": full}}
    probe = probe_from({"cluster": True, "all": [{"rule": {"name": "diskHeadroom", "reserveBytes": 1}}]})
    verdict = evaluate(probe, GivenObjects(bodies=nodes, readings=readings), _scope_of(probe))
    told = [(item.outcome.value, item.offenders[0].name) for item in verdict.singles]
    assert told == [("failed", "a"), ("unknown", "b"), ("failed", "c")]


def test_what_is_as_bad_is_said_once() -> None:
    both = together([waiting("a"), passed("b"), waiting("a"), waiting("c")])
    assert both == waiting("a, c")


def test_the_rules_that_may_be_named_are_those_that_there_are() -> None:
    assert set(RULES) == set(DECLARED_RULES)


def test_rules_are_used_as_they_are_declared() -> None:
    for name, probe in DECLARED.items():
        for rule in [item for item in (*probe.all, *probe.fails) if isinstance(item, RulePredicate)]:
            kind = "" if isinstance(probe.target, ClusterTarget) else None
            assert misused(rule.name, dict(rule.arguments), kind) is None, name


_TAKES = "rule versionEligible does not take x; it takes current, target"


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "wrong"),
    [
        ("podReady", (), "Pod", None),
        ("podReady", (), "Job", "rule podReady is about Pod, not about Job"),
        ("podReady", (), "", "rule podReady is about Pod, not about the cluster as a whole"),
        ("podReady", ("x",), None, "rule podReady does not take x; it takes no arguments"),
        ("certificateExpiry", (), None, "rule certificateExpiry needs days"),
        (
            "certificateExpiry",
            ("days", "x"),
            None,
            "rule certificateExpiry does not take x; it takes days, daysAnnotation",
        ),
    ],
)
def test_a_misused_rule(name: str, arguments: tuple[str, ...], kind: str | None, wrong: str | None) -> None:
    assert misused(name, arguments, kind) == wrong


def _about(kind: str, predicate: Any) -> Probe:
    return Probe(target=ObjectTarget(ref=Ref(api_version="v1", kind=kind, name="x")), all=(predicate,))


_TEXT_FOR_A_NUMBER = RulePredicate(name="diskHeadroom", arguments=(("reserveBytes", "13Gi"),))


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        (_about("Gadget", BuiltinPredicate()), "UnknownKind"),
        (_about("Event", BuiltinPredicate()), "NoRule"),
        (_about("Node", RulePredicate(name="gadget")), "InvalidRule"),
        (_about("Node", FieldPredicate(path=("kind",), test=Test.MATCHES, operand=Fixed(value="["))), "InvalidPattern"),
        (Probe(target=ClusterTarget(), all=(BuiltinPredicate(),)), "InvalidProbe"),
        (Probe(target=ClusterTarget(), all=(RulePredicate(name="serviceHasReadyEndpoint"),)), "InvalidProbe"),
        (
            Probe(
                target=ClusterTarget(), all=(RulePredicate(name="diskHeadroom", arguments=(("reserveBytes", "13Gi"),)),)
            ),
            "InvalidRule",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_verified_catalogue_cannot_contain_is_a_problem(probe: Probe, reason: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}
    bodies = tuple({**node, "kind": kind} for kind in ("Node", "Event", "Gadget"))
    snapshot = GivenObjects(
        bodies=bodies,
        readings={"kubelet": {"x": {"fs": {"capacityBytes": 2, "usedBytes": 1}}}},
    )
    with pytest.raises(Problems) as caught:
        evaluate(probe, snapshot, ProbeContext(kinds=KINDS, schemas=SCHEMAS, now=NOW))
    assert [problem.reason for problem in caught.value.problems] == [reason]


@pytest.mark.parametrize(
    ("body", "node"),
    [
        ({"kind": "Pod", "spec": {"nodeName": "a"}}, "a"),
        ({"kind": "Job", "spec": {"template": {"spec": {"nodeName": "b"}}}}, "b"),
        ({"kind": "Job", "spec": {"template": {}}}, ""),
        ({"kind": "Pod"}, ""),
    ],
)
def test_node_name(body: Body, node: str) -> None:
    assert objects.node_name(body) == node


def test_conditions_of_odd_objects() -> None:
    body = {
        "status": {
            "conditions": [None, "x", {"status": "True"}, {"type": "Ready"}, {"type": "Ready", "status": "True"}]
        }
    }
    assert [(found.type, found.status) for found in objects.conditions(body)] == [
        ("Ready", "Unknown"),
        ("Ready", "True"),
    ]
    assert objects.label({"metadata": {"labels": None}}, "a") == ""
    assert objects.label({"metadata": {"labels": {"a": "b"}}}, "a") == "b"


def test_what_a_rule_has_worked_out_is_kept_for_these_very_objects() -> None:
    asked: list[int] = []
    kept, first, second = WorkedOut(), ({"a": 1},), ({"a": 1},)

    def work() -> int:
        asked.append(len(asked))
        return asked[-1]

    found = [kept.once("x", of, work) for of in ((first, first), (first, first), (second, first), (second, first))]
    assert found == [0, 0, 1, 1], "equal objects may be others"
    assert kept.once("y", (second, first), work) == 2


def test_what_passes_is_remembered_only_where_nothing_else_is_looked_at() -> None:
    """A Service is taken by its kind's own rule, which looks at EndpointSlices."""
    at = {"name": "x", "namespace": "a"}
    labelled = {**at, "labels": {"kubernetes.io/service-name": "x"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": at, "spec": {"clusterIP": "10.53.0.9"}}
    slices = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": labelled}
    taken = EveryTarget(api_version="v1", kind="Service", where=(BuiltinPredicate(),), at_least=0)
    exists = FieldPredicate(path=("spec", "clusterIP"), test=Test.EXISTS, operand=Fixed(value=True))
    scope = ProbeContext(kinds=KINDS, schemas=SCHEMAS, now=NOW, passing=ByIdentity())
    probe = Probe(target=taken, all=(exists,))

    def reason(*, ready: bool) -> str:
        endpoints = [{"conditions": {"ready": ready}}]
        return evaluate(probe, GivenObjects(bodies=(service, {**slices, "endpoints": endpoints})), scope).reason

    assert reason(ready=True) == "1 of 1 services pass"
    assert "none is needed" in reason(ready=False)


def test_a_text_that_is_no_json_is_none_however_deep_it_is() -> None:
    assert parse_json('{"a": 1}') == {"a": 1}
    assert parse_json("{") is None
    assert parse_json("[" * 100_000) is None
