"""The diff of a phase: dry runs on the embedded cluster, told as text and as JSON.

Each folder of `diff_cases/phases` is a case: what the cluster has, what the phase would apply, and what is said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path as File
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from controlplane.audit import AuditEvent
from controlplane.cluster import ControlPlane
from support.rbac import Rbac
from support.rendered_plans import inputs_of_example, render_example
from support.seeding import seed

from reconcile.act.applied import ApplyResult
from reconcile.act.apply import ObjectWriter
from reconcile.act.belonging import Plan
from reconcile.act.dry_run import try_phase
from reconcile.borrow.loan import Loan
from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster
from reconcile.diff import document, text
from reconcile.diff.build import Tried, diffs_of, waits_of
from reconcile.diff.entry import Change, Diff, DiffEntry, Untried
from reconcile.diff.field_changes import FieldChange, changes, steps_text, unmet
from reconcile.diff.list_changes import explained
from reconcile.diff.masks import masked, rules_from
from reconcile.diff.redact import DiffRedactor
from reconcile.diff.trial import Operation, Trial
from reconcile.schemas import UNKNOWN, packaged_schemas
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.values import same, satisfies
from renderer.catalog.declare import step_from
from renderer.catalog.kinds import Kinds, rows_from
from renderer.digest import digest_of, short_digest
from renderer.errors import ExitCode, Problem
from renderer.model.document_type import DIFF_REPORT, DIFF_RULES
from renderer.model.manifest_spec import Owned
from renderer.model.path import ABSENT, parse_path
from renderer.model.path_rule import edited
from renderer.model.phase import Deletion, Phase, Position
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import Manifest, Pending, RenderedPhase, RenderedPlan, RenderedStep
from renderer.redaction import packaged_rules, redaction_rules
from renderer.render.manifest import in_order
from renderer.source_document import without_lines
from renderer.validation import document_problems

ROOT = File(__file__).resolve().parents[1]
PHASES = File(__file__).parent / "diff_cases" / "phases"
START = datetime(2026, 11, 28, 12, 0, 0, tzinfo=UTC)
SCHEMAS = packaged_schemas()
PLAN = {
    "apiVersion": "management.harvesterhci.io/v1beta1",
    "kind": "UpgradePlan",
    "metadata": {"name": "up"},
    "spec": {"version": "v1.8.0"},
}


def read(file: File) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


KINDS = Kinds(row for file in sorted((ROOT / "templates/_kinds").glob("*.yaml")) for row in rows_from(read(file)))
RULES = rules_from(read(ROOT / "templates/_diff/rules.yaml"), packaged_rules())


@pytest.mark.parametrize("case", sorted(PHASES.iterdir()), ids=lambda case: case.name)
def test_phase(case: File) -> None:
    """`case.yaml` has `cluster` (there all along), `created` by another manager, `applied` by us, and `steps`."""
    declared = read(case / "case.yaml")

    found, writes = diffed(declared)

    told = f"{text.table(found)}\n{text.details(found)}exit code {found.exit_code()}\n"
    assert told == (case / "expected.txt").read_text(encoding="utf-8")
    assert writes == 0
    answer = json.loads(json.dumps(document.to_json("up", [found])))
    assert document_problems(without_lines(DIFF_REPORT.document(answer), "diff"), DIFF_REPORT) == []
    for secret in declared.get("secrets", ()):
        assert secret not in told
        assert secret not in json.dumps(answer)


def diffed(case: Mapping[str, Any]) -> tuple[Diff, int]:
    """The diff, and how many writes it took."""
    whole = EmbeddedCluster(SimulatedClock(START), () if case.get("unserved") else None)
    whole.seed((PLAN, *case.get("cluster", ())))
    admin = whole.client()
    plan = Plan.of(admin.get(KINDS.row(str(PLAN["apiVersion"]), "UpgradePlan").kind, ref_of(PLAN)).body)
    for manager, bodies in case.get("created", {}).items():
        for body in bodies:
            admin.create(KINDS.row(body["apiVersion"], body["kind"]).kind, body, field_manager=manager)
    writer = ObjectWriter(cluster=admin, kinds=KINDS, schemas=SCHEMAS, plan=plan)
    for body in case.get("applied", ()):
        assert writer.own(made(body, Owned(file="it.yaml.j2")), None).problem is None
    account = case.get("account")
    access = Rbac(whole.store.everything(), namespace="harvester-system", account=account) if account else None
    client = whole.client(access=access)
    phase = phase_of(case)
    trials = try_phase(
        ObjectWriter(cluster=client, kinds=KINDS, schemas=SCHEMAS, plan=plan),
        phase,
        recorded={manifest.ref: manifest.digest for manifest in phase.manifests() if case.get("recorded")},
        loans=[Loan.from_status({**item, "taken": "2026-11-28T09:00:00Z"}) for item in case.get("loans", ())],
    )
    words = {manifest.file: case["waitsFor"] for manifest in phase.manifests() if "waitsFor" in case}
    return diff_of(phase, trials, words), len(client.log.writes)


def diff_of(phase: RenderedPhase, trials: Iterable[Trial], waits_for: Mapping[str, str] = MappingProxyType({})) -> Diff:
    """The diff of a phase alone."""
    tried = Tried(phase=phase, trials=tuple(trials), waits_for=waits_for)
    (found,) = diffs_of("up", [tried], rules=RULES, schemas=SCHEMAS)
    return found


def phase_of(case: Mapping[str, Any]) -> RenderedPhase:
    phase = Phase(
        name="Phase",
        number=60,
        folder="60-phase",
        description="",
        active="Phasing",
        completed="Phased",
        deletion=Deletion.FREE,
    )
    return RenderedPhase(phase=phase, steps=tuple(step_of(item) for item in case["steps"]))


def step_of(item: Mapping[str, Any]) -> RenderedStep:
    """As rendering makes it: declarations with the manifests that their templates render."""
    raws = [*item.get("owned", ()), *item.get("borrowed", ())]
    declared = {
        key: [{"file": f"{raw['manifest']['kind'].lower()}.yaml.j2", **without(raw)} for raw in item.get(key, ())]
        for key in ("owned", "borrowed")
    }
    step = step_from({"name": item["name"], **declared}, Position.DURING)
    manifests = in_order(
        made(raw["manifest"], spec, raw.get("runTime", ())) for raw, spec in zip(raws, step.manifests, strict=True)
    )
    return RenderedStep(
        phase="Phase",
        step=step,
        manifests=manifests,
        skipped=item.get("skipped"),
        skipped_if=tuple(item.get("skippedIf", ())),
        pending=tuple(Pending(**pending) for pending in item.get("pending", ())),
    )


def without(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in ("manifest", "runTime")}


def made(body: Body, spec: Any, run_time: Any = ()) -> Manifest:
    file = f"60-phase/{body['kind'].lower()}-{body['metadata']['name']}.yaml"
    return Manifest(
        file=file,
        template=f"60-phase/{spec.file}",
        spec=spec,
        body=body,
        run_time=tuple(map(parse_path, run_time)),
        images=(),
        digest=digest_of(body),
    )


def test_the_packaged_rules_are_what_their_schema_says() -> None:
    raw = read(ROOT / "templates/_diff/rules.yaml")
    assert document_problems(without_lines(raw, "rules"), DIFF_RULES) == []
    assert RULES.masked


# -------------------------------------------------------------------------------------------------- one diff as JSON

REF = Ref(api_version="v1", kind="Secret", namespace="ns", name="it")


def entry(operation: Operation, **parts: Any) -> DiffEntry:
    return DiffEntry(operation=operation, step="P/S", ref=REF, file="f.yaml", template="f.yaml.j2", **parts)


def diff(*operations: Operation, untried: tuple[Untried, ...] = ()) -> Diff:
    return Diff(plan="up", phase="P", entries=tuple(map(entry, operations)), untried=untried)


NODES = Pending(input="nodes", remedy="give them")
NOT_KNOWN = Untried(step="P/S", pending=(NODES,))


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (diff(), ExitCode.YES),
        (diff(Operation.UNCHANGED, Operation.SKIP, Operation.RETURN_LATER), ExitCode.YES),
        (diff(Operation.UNCHANGED, untried=(Untried(step="P", skipped="it is not needed"),)), ExitCode.YES),
        *((diff(Operation(name)), ExitCode.NO) for name in ("create", "change", "adopt", "borrow", "wait", "pending")),
        (diff(untried=(NOT_KNOWN,)), ExitCode.NO),
        (diff(Operation.CREATE, Operation.CONFLICT), ExitCode.CLUSTER),
        (diff(Operation.REFUSED), ExitCode.CLUSTER),
    ],
)
def test_exit_codes_are_those_of_kubectl_diff(found: Diff, code: ExitCode) -> None:
    assert found.exit_code() is code


def test_json_tells_absent_from_null_and_empty() -> None:
    fields = (
        Change(field="a", before=ABSENT, after=None),
        Change(field="b", before="", after=ABSENT),
        Change(field="c", before=None, after=[]),
    )
    (told,) = document.to_json("up", [Diff(plan="up", phase="P", entries=(entry(Operation.CHANGE, changes=fields),))])[
        "phases"
    ]
    assert told == {
        "phase": "P",
        "changes": True,
        "summary": {"change": 1},
        "entries": [
            {
                "operation": "change",
                "step": "P/S",
                "apiVersion": "v1",
                "kind": "Secret",
                "namespace": "ns",
                "name": "it",
                "file": "f.yaml",
                "template": "f.yaml.j2",
                "fields": [
                    {"field": "a", "after": None},
                    {"field": "b", "before": ""},
                    {"field": "c", "before": None, "after": []},
                ],
            }
        ],
        "untried": [],
    }


def test_warnings_and_refusals_of_secrets_are_told_without_values() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "it"},
        "data": {"a": "aHVudGVyMjI=", "b": "eA=="},
    }
    message = 'data.a: Invalid value: "x": must not be "hunter22"; data.b: Invalid value: "aHVudGVyMjI=": no'
    trial = Trial(
        step="Phase/S",
        manifest=made(body, Owned(file="it.yaml.j2")),
        operation=Operation.REFUSED,
        problem=Problem(reason="Invalid", message=message),
        warnings=("hunter22 is weak",),
    )

    (told,) = diff_of(phase_of({"steps": []}), [trial]).entries

    assert told.problem is not None
    assert told.problem.message == 'data.a: must not be "*** (1)"; data.b: no'
    assert told.warnings == ("*** (1) is weak",)


def tried_secret(phase: str, warnings: tuple[str, ...] = (), **data: str) -> Tried:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}, "stringData": data}
    trial = Trial(
        step=f"{phase}/S",
        manifest=made(body, Owned(file="it.yaml.j2")),
        operation=Operation.CREATE,
        after=body,
        warnings=warnings,
    )
    whole = phase_of({"steps": []})
    return Tried(phase=replace(whole, phase=replace(whole.phase, name=phase)), trials=(trial,), waits_for={})


def test_secrets_have_their_numbers_and_are_hidden_in_all_phases_of_a_run() -> None:
    phases = (
        tried_secret("First", ("gamma is weak",), s1="alpha", s2="beta"),
        tried_secret("Second", ("alpha is weak",), s3="beta"),
        tried_secret("Third", s4="gamma"),
    )
    entries = [item.entries[0] for item in diffs_of("up", phases, rules=RULES, schemas=SCHEMAS)]
    assert [(entry.after or {})["stringData"] for entry in entries] == [
        {"s1": "*** (1)", "s2": "*** (2)"},
        {"s3": "*** (2)"},
        {"s4": "*** (3)"},
    ]
    assert [entry.warnings for entry in entries] == [("*** (3) is weak",), ("*** (1) is weak",), ()]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"skipped": "nothing to preload"}, Untried(step="Phase", skipped="nothing to preload")),
        ({"pending": (NODES,)}, Untried(step="Phase", pending=(NODES,))),
    ],
)
def test_a_phase_that_is_not_tried_as_a_whole_says_why(parts: Any, told: Untried) -> None:
    phase = replace(phase_of({"steps": []}), **parts)
    assert diff_of(phase, ()).untried == (told,)


# ------------------------------------------------------------------------------------------------------------- walk

POD = {"apiVersion": "v1", "kind": "Pod"}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}


def containers(*items: Any) -> dict[str, Any]:
    return {**DEPLOYMENT, "spec": {"template": {"spec": {"containers": list(items)}}}}


def walked(before: Body, after: Body) -> list[tuple[str, Any, Any]]:
    found = changes(before, after, SCHEMAS.of(after))
    return [(steps_text(change.path), change.before, change.after) for change in found]


CONTAINERS = "spec.template.spec.containers"
WALKS = {
    "a keyed list by its keys": (
        containers({"name": "a", "image": "x"}, {"name": "b"}),
        containers({"name": "b"}, {"name": "c"}, {"name": "a", "image": "y"}),
        [(f"{CONTAINERS}[name=a].image", "x", "y"), (f"{CONTAINERS}[name=c]", ABSENT, {"name": "c"})],
    ),
    "the order alone": (
        containers({"name": "a"}, {"name": "b"}),
        containers({"name": "b"}, {"name": "a"}),
        [(CONTAINERS, [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}])],
    ),
    "keys that the server fills in": (
        containers({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        containers({"name": "a", "ports": [{"containerPort": 80}]}),
        [(f"{CONTAINERS}[name=a].ports[containerPort=80,protocol=TCP].protocol", "TCP", ABSENT)],
    ),
    "keys that do not tell apart": (
        containers({"name": "a"}, {"name": "a"}),
        containers({"name": "a"}),
        [(CONTAINERS, [{"name": "a"}, {"name": "a"}], [{"name": "a"}])],
    ),
    "a set": (
        {**POD, "metadata": {"finalizers": ["a", "b"]}},
        {**POD, "metadata": {"finalizers": ["b", "a"]}},
        [],
    ),
    "an atomic list": (
        containers({"name": "a", "args": ["x", "y"]}),
        containers({"name": "a", "args": ["y", "x"]}),
        [(f"{CONTAINERS}[name=a].args", ["x", "y"], ["y", "x"])],
    ),
    "quantities by what they amount to": (
        containers({"name": "a", "resources": {"limits": {"cpu": "1000m", "memory": "1Gi", "x": "1e3", "y": "2"}}}),
        containers({"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1024Mi", "x": "1k", "y": "2m"}}}),
        [(f"{CONTAINERS}[name=a].resources.limits.y", "2", "2m")],
    ),
    "text that looks like a quantity": (
        {**POD, "metadata": {"labels": {"a": "1000m"}}},
        {**POD, "metadata": {"labels": {"a": "1"}}},
        [("metadata.labels.a", "1000m", "1")],
    ),
    "true is not one": ({"kind": "X", "a": True}, {"kind": "X", "a": 1}, [("a", True, 1)]),
    "another type": ({"kind": "X", "a": {"b": 1}}, {"kind": "X", "a": [1]}, [("a", {"b": 1}, [1])]),
    "keys that need quotes": (
        {"kind": "X", "a": {"b/c.d": 1}},
        {"kind": "X", "a": {"b/c.d": 2}},
        [('a["b/c.d"]', 1, 2)],
    ),
    "owners of a custom kind": (
        {**PLAN, "metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2"}]}},
        {**PLAN, "metadata": {"ownerReferences": [{"uid": "2"}, {"uid": "1", "name": "b"}]}},
        [("metadata.ownerReferences[uid=1].name", "a", "b")],
    ),
    "a keyed list of a custom kind": (
        {**PLAN, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {**PLAN, "status": {"conditions": [{"type": "Other"}, {"type": "Ready", "status": "False"}]}},
        [
            ("status.conditions[type=Ready].status", "True", "False"),
            ("status.conditions[type=Other]", ABSENT, {"type": "Other"}),
        ],
    ),
}


@pytest.mark.parametrize("case", WALKS.values(), ids=WALKS)
def test_walk(case: tuple[Body, Body, list[Any]]) -> None:
    before, after, expected = case
    assert walked(before, after) == expected


QUANTITIES = (
    "1000n=1u 1000u=1m 1000m=1 1000=1k 1000k=1M 1000M=1G 1000G=1T 1000T=1P 1000P=1E 1024=1Ki 1024Ki=1Mi .5=500m"
)


@pytest.mark.parametrize("pair", [*QUANTITIES.split(), "1024Pi=1Ei", "1e3=1k", "1E3=1k", "+1=1", "12.50=12500m"])
def test_quantities(pair: str) -> None:
    left, right = (containers({"name": "a", "resources": {"limits": {"x": text}}}) for text in pair.split("="))
    assert walked(left, right) == []
    assert len(walked(left, containers({"name": "a", "resources": {"limits": {"x": "7"}}}))) == 1


def test_nothing_is_unmet_that_a_server_filled_in() -> None:
    live = containers(
        {"name": "a", "image": "x", "ports": [{"containerPort": 80, "protocol": "TCP"}]}, {"name": "side"}
    )
    expected = containers({"name": "a", "image": "x", "ports": [{"containerPort": 80}]})
    assert list(unmet(live, expected, SCHEMAS.of(live))) == []
    (change,) = unmet(live, containers({"name": "a", "image": "y"}), SCHEMAS.of(live))
    assert (steps_text(change.path), change.before, change.after) == (f"{CONTAINERS}[name=a].image", "x", "y")


@pytest.mark.parametrize(
    ("live", "expected", "good"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, True),
        ({"a": 1, "b": None}, {"b": None}, True),
        ({"a": 1}, {"a": True}, False),
        ([{"a": 1, "b": 2}], [{"a": 1}], True),
        ([{"a": 1}, {"a": 1}], [{"a": 1}], False),
        ([], [], True),
        (ABSENT, [], False),
        (ABSENT, {}, False),
        ({"a": 1}, {}, True),
    ],
)
def test_satisfies(live: Any, expected: Any, good: bool) -> None:
    assert satisfies(live, expected) is good


@pytest.mark.parametrize(
    ("left", "right"), [({"a": [True]}, {"a": [1]}), ({}, []), (0, False), (None, ABSENT), ([1], [1, 2])]
)
def test_not_the_same(left: Any, right: Any) -> None:
    assert not same(left, right)


# ---------------------------------------------------------------------------------------------------------- explain


def explanation(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    found = explained(FieldChange(path=("a",), before=before, after=after))
    return [(steps_text(change.path), change.before, change.after) for change in found]


def test_an_item_at_the_head_is_one_change() -> None:
    assert explanation(["a", "b", "c"], ["x", "a", "b", "c"]) == [("a[0]", ABSENT, "x")]


def test_a_single_item_is_explained() -> None:
    assert explanation([{"v": 1}], [{"v": 2}]) == [("a[0].v", 1, 2)]


def test_items_are_explained_in_their_order() -> None:
    before = [{"n": index, "v": 1} for index in range(12)]
    after = [{"n": index, "v": 2 if index in (2, 10) else 1} for index in range(12)]
    assert explanation(before, after) == [("a[2].v", 1, 2), ("a[10].v", 1, 2)]


@pytest.mark.parametrize(("before", "after"), [("x", "y"), ([1, 2], []), (list(range(60)), list(range(61))), ([], [1])])
def test_what_is_better_shown_as_a_whole_is(before: Any, after: Any) -> None:
    assert explanation(before, after) == [("a", before, after)]


@pytest.mark.slow
def test_deepdiff_and_the_client_are_not_loaded_for_equal_objects() -> None:
    code = """
import sys
from reconcile.diff import build, document, text
from reconcile.act import apply, dry_run
from reconcile.diff.build import waits_of
from reconcile.diff.field_changes import changes
from reconcile.schemas import UNKNOWN
assert not list(changes({"a": [1]}, {"a": [1]}, UNKNOWN))
loaded = {"deepdiff", "kubernetes", "requests"} & sys.modules.keys()
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


# -------------------------------------------------------------------------------------------------- redact and mask


def secret(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "data": data}


def test_equal_values_have_equal_numbers_all_through_a_run() -> None:
    redactor = DiffRedactor(RULES.redaction)
    first = redactor.one(secret(a="aHVudGVyMjI=", b="bGV0bWVpbjE="))
    second = redactor.one({"apiVersion": "v1", "kind": "Secret", "stringData": {"c": "letmein1"}})
    assert first["data"] == {"a": "*** (1)", "b": "*** (2)"}
    assert second["stringData"] == {"c": "*** (2)"}


def test_both_sides_of_a_comparison_use_kubectls_words() -> None:
    before, after = DiffRedactor(RULES.redaction).pair(
        secret(a="eA==", b="eA==", c="eA=="), secret(a="eA==", b="eQ==", d="eQ==")
    )
    assert before["data"] == {"a": "*** (1)", "b": "*** (before)", "c": "*** (1)"}
    assert after["data"] == {"a": "*** (1)", "b": "*** (after)", "d": "*** (2)"}


def test_what_is_no_base64_and_what_is_no_text_is_hidden_as_well() -> None:
    rules = redaction_rules([{"kinds": [{"paths": ["spec.config", 'spec.items["*"].token']}]}])
    body = {"kind": "X", "spec": {"config": {"user": "me", "n": 1}, "items": [{"token": "a"}, {"token": None}, {}]}}
    assert DiffRedactor(RULES.redaction).one(secret(a="!!"))["data"] == {"a": "*** (1)"}
    assert DiffRedactor(rules).one(body)["spec"] == {
        "config": "*** (1)",
        "items": [{"token": "*** (2)"}, {"token": None}, {}],
    }


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("data.a", "*** (1)"),
        ("data.a.b", "*** (1)"),
        ("data", "hunter22"),
        ("metadata.labels.a", "hunter22"),
        ('metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]', "*** (1)"),
        ('metadata.annotations["other"]', "hunter22"),
    ],
)
def test_a_value_is_hidden_by_its_path(path: str, shown: str) -> None:
    """What a borrowed field goes back to, for instance."""
    assert DiffRedactor(RULES.redaction).value(secret(), parse_path(path), "hunter22") == shown


def test_a_text_is_freed_of_what_was_hidden_but_for_the_shortest() -> None:
    redactor = DiffRedactor(RULES.redaction)
    redactor.one(secret(a="aHVudGVyMjI=", b="eHl6", c="YWJjZA==", d="aHVudGVyMjIhIQ=="))
    said = "hunter22 hunter22!! aHVudGVyMjI= xyz abcd"
    assert redactor.text(said) == "*** (1) *** (4) *** (1) xyz *** (3)"


def test_a_text_is_freed_of_what_a_server_has_encoded() -> None:
    redactor = DiffRedactor(RULES.redaction)
    redactor.learn({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "hunter22"}})
    assert redactor.text("aHVudGVyMjI= is no number") == "*** (1) is no number"


def test_what_is_the_same_written_otherwise_has_the_same_number() -> None:
    rules = redaction_rules([{"kinds": [{"paths": ['a["*"]']}]}])
    body = {"kind": "X", "a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]}
    assert DiffRedactor(rules).one(body)["a"] == ["*** (1)", "*** (1)"]


def test_other_kinds_are_shown() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "shown"}}
    assert DiffRedactor(RULES.redaction).one(body) == body


def test_a_mapping_that_held_noise_only_goes_with_it() -> None:
    noise = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    body = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "it", "uid": "1", "annotations": noise}, "status": {}}
    assert masked(body, RULES) == {"apiVersion": "v1", "kind": "X", "metadata": {"name": "it"}}


def test_copies_in_annotations_are_left_out_whatever_the_rules_say() -> None:
    body = {"kind": "X", "metadata": {"annotations": {"a": "b", "objectset.rio.cattle.io/applied": "H4sI"}}}
    assert masked(body, rules_from({}, packaged_rules())) == {"kind": "X", "metadata": {"annotations": {"a": "b"}}}


def test_masking_changes_no_object_in_place() -> None:
    body = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "it", "uid": "1"}}
    masked(body, RULES)
    assert body["metadata"] == {"name": "it", "uid": "1"}


def test_a_rule_without_its_kind_is_for_all_and_with_it_for_that_only() -> None:
    kinds = [{"apiVersion": "v1", "kind": "A"}]
    rules = rules_from({"mask": [{"kinds": kinds, "paths": ["x"]}]}, packaged_rules())
    assert masked({"apiVersion": "v1", "kind": "A", "x": 1}, rules) == {"apiVersion": "v1", "kind": "A"}
    assert masked({"apiVersion": "v2", "kind": "A", "x": 1}, rules)["x"] == 1


def test_an_edit_tells_where_it_is() -> None:
    seen: list[Any] = []

    def edit(path: Any, value: Any) -> Any:
        seen.append((path, value))
        return value

    value = {"a": [{"b": 1}, {"b": 2}, 3]}
    assert edited(value, parse_path('a["*"].b'), edit) == value
    assert seen == [(("a", 0, "b"), 1), (("a", 1, "b"), 2)]


def test_an_unknown_place_has_atomic_lists() -> None:
    assert (UNKNOWN.at("a").item().keys, UNKNOWN.at("a").is_set) == ((), False)


# ---------------------------------------------------------------------------------------------------- a whole example


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSite:
    """The three-node example and its cluster. `asked` says what was asked of the server since the last call: how often
    to read, to try and to write."""

    plan: RenderedPlan
    writer: ObjectWriter
    asked: Callable[[], Mapping[str, int]]


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.controlplane)])
def site(request: pytest.FixtureRequest) -> DiffSite:
    return embedded_site() if request.param == "embedded" else real_site(request.getfixturevalue("wiped_control_plane"))


def embedded_site() -> DiffSite:
    client = EmbeddedCluster(SimulatedClock(START)).client()

    def asked() -> Mapping[str, int]:
        found = Counter(_sort(request.verb, dry_run=request.dry_run) for request in client.log.requests)
        client.log.clear()
        return found

    return site_on(client, asked)


def real_site(plane: ControlPlane) -> DiffSite:
    mark = 0

    def asked() -> Mapping[str, int]:
        nonlocal mark
        events = plane.audit(since=mark, user="admin")
        mark = plane.audit_mark()
        return Counter(_sort(_verb(event), dry_run="dryRun" in event.uri) for event in events)

    access = find_access({}, kubeconfig=str(plane.kubeconfig))
    return site_on(connect(access, environ={}, now=lambda: datetime.now(UTC)), asked)


def site_on(cluster: Cluster, asked: Callable[[], Mapping[str, int]]) -> DiffSite:
    inputs, rendered = inputs_of_example("three-node"), render_example("three-node")
    assert inputs.plan is not None
    seed(cluster, [inputs.plan.body, *(source.body for source in inputs.objects)], KINDS)
    plan = Plan.of(cluster.get(KINDS.row(str(PLAN["apiVersion"]), "UpgradePlan").kind, ref_of(inputs.plan.body)).body)
    asked()
    writer = ObjectWriter(cluster=cluster, kinds=KINDS, schemas=SCHEMAS, plan=plan)
    return DiffSite(plan=rendered.plan, writer=writer, asked=asked)


def _verb(event: AuditEvent) -> str:
    return "review" if "selfsubjectaccessreviews" in event.uri else event.verb


def _sort(verb: str, *, dry_run: bool) -> str:
    if verb == "review":
        return verb
    return "read" if verb in ("get", "list", "watch") else "try" if dry_run else "write"


def test_a_diff_reads_each_object_once_and_tries_it_once(site: DiffSite) -> None:
    tried = [trial for phase in site.plan.phases for trial in try_phase(site.writer, phase)]
    counts = Counter(trial.operation for trial in tried)

    assert counts[Operation.REFUSED] == 0
    asked = site.asked()
    assert asked == {
        "read": len(tried) - counts[Operation.PENDING],
        "try": counts[Operation.CREATE] + counts[Operation.BORROW],
        "review": 4,  # of all that is pending: Secrets and a ConfigMap may be read, and patched
    }
    assert sum(asked.values()) == 57


@pytest.mark.slow
def test_a_first_apply_is_one_write_an_object_and_a_second_none(site: DiffSite) -> None:
    owned = [m for phase in site.plan.phases for step in phase.steps for m in step.manifests if not m.borrowed]

    first = [site.writer.own(manifest, None) for manifest in owned]
    assert {applied.outcome for applied in first} == {ApplyResult.CREATED}
    assert site.asked() == {"write": len(owned)} == {"write": 16}

    again = [
        site.writer.own(m, done.body, recorded=short_digest(m.digest)) for m, done in zip(owned, first, strict=True)
    ]
    assert {applied.outcome for applied in again} == {ApplyResult.UNCHANGED}
    assert site.asked() == {}


@pytest.mark.slow
def test_the_same_example_twice_is_the_same_text() -> None:
    """Numbers, orders and words depend on nothing but what is there."""
    site = embedded_site()
    phase = next(phase for phase in site.plan.phases if phase.phase.name == "NodeUpgrade")
    words = waits_of(phase)
    tables = [text.table(diff_of(phase, try_phase(site.writer, phase), words)) for _ in range(2)]
    assert tables[0] == tables[1]
    assert "NodeUpgrade/SingleNode on 3 nodes: skipped, with several nodes Rancher sets the pace" in tables[0]
    assert "pre-drain-charlie-1-tink-system is ready" in tables[0]
