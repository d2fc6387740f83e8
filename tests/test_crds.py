"""The definitions of custom resources: sound, complete, and refusing just what they should.

Good and bad objects and the table of CEL rules are files under `tests/schemas/`; a bad object says in its first lines
which fields are refused. The real API server is asked about the same files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import kubernetes_validate
import pytest
from cel_expr_python import cel
from controlplane.cluster import ControlPlane
from schemas.definitions import CRDS, PLAN, Json, crd_of, documents, openapi

from schemas import definitions, largest, served, strict, structural

CASES = Path(__file__).resolve().parent / "schemas"
GOOD = sorted((CASES / "good").glob("*.yaml"))
BAD = sorted((CASES / "bad").glob("*.yaml"))
(RULES,) = documents(CASES / "rules.yaml")
MOMENTS = (largest.paused, largest.at_work, largest.done)
LIMIT = 512 * 1024

each_definition = pytest.mark.parametrize("file", definitions.FILES, ids=lambda file: file.stem)
each_good = pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
each_bad = pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
each_rule = pytest.mark.parametrize("case", RULES, ids=lambda case: case["what"])
each_moment = pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)


# --- the definitions themselves


def test_the_kinds_are_those_that_we_touch() -> None:
    found = {" ".join([kind, *_plural_scope_subresources(crd)]) for kind, crd in CRDS.items()}
    assert found == set((CASES / "kinds.txt").read_text(encoding="utf-8").splitlines())


@each_definition
def test_a_definition_is_one_object_that_kubernetes_knows(file: Path) -> None:
    (crd,) = documents(file)
    assert kubernetes_validate.validate(crd, "1.35", strict=True) == "1.35"


@each_definition
def test_a_definition_is_named_as_the_api_server_wants_and_its_file_likewise(file: Path) -> None:
    (crd,) = documents(file)
    spec, names = crd["spec"], crd["spec"]["names"]
    assert crd["metadata"]["name"] == f"{names['plural']}.{spec['group']}"
    assert names["listKind"] == f"{names['kind']}List"
    assert names["singular"] == names["kind"].lower()
    assert [(version["served"], version["storage"]) for version in spec["versions"]] == [(True, True)]
    if file.parent.name == "third-party":
        assert file.name == f"{spec['group']}_{names['plural']}.yaml"
        assert file.read_text(encoding="utf-8").startswith("# Trimmed from ")


@each_definition
def test_a_schema_is_structural(file: Path) -> None:
    (crd,) = documents(file)
    assert structural.problems(openapi(crd)) == ()


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": {}}, "$: type is not object"),
        ({"properties": {"a": {}}}, "$.a: no type"),
        ({"properties": {"a": {"type": "array"}}}, "$.a: array without items, or items without array"),
        ({"properties": {"a": {"$ref": "x", "type": "string"}}}, "$.a: $ref is forbidden"),
        ({"required": ["b"]}, "$: required field b is not declared"),
        (
            {"properties": {}, "additionalProperties": {"type": "string"}},
            "$: additionalProperties is false or stands beside properties",
        ),
        (
            {"properties": {"metadata": {"type": "object", "description": "x"}}},
            "$.metadata: says more than its type and properties",
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
            "$: set of what is neither scalar nor atomic",
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
            "$: no map keys",
        ),
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "properties": {"type": {"type": "string"}}},
            },
            "$: a map key is not required",
        ),
        ({"type": "string", "x-kubernetes-map-type": "atomic"}, "$: x-kubernetes-map-type on what is not an object"),
    ],
)
def test_what_is_not_structural_is_found(schema: Json, problem: str) -> None:
    assert problem in structural.problems(schema)


# --- the UpgradePlan's own


def test_the_plan_is_shown_and_called_as_before() -> None:
    (version,) = PLAN["spec"]["versions"]
    assert PLAN["spec"]["names"]["shortNames"] == ["up", "ups"]
    assert [(column["name"], column["type"], column["jsonPath"]) for column in version["additionalPrinterColumns"]] == [
        ("VERSION", "string", ".spec.version"),
        ("CURRENTPHASE", "string", ".status.currentPhase"),
        ("AVAILABLE", "string", ".status.conditions[?(@.type=='Available')].status"),
        ("PROGRESSING", "string", ".status.conditions[?(@.type=='Progressing')].status"),
        ("DEGRADED", "string", ".status.conditions[?(@.type=='Degraded')].status"),
        ("AGE", "date", ".metadata.creationTimestamp"),
    ]


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("spec", "force image imagePreloadOption mode nodeUpgradeOption restoreVM skipOSUpgrade upgrade version"),
        (
            "status",
            "conditions currentPhase isoImageID nodeUpgradeStatuses phaseTransitionTimestamps previousVersion"
            " provisionGeneration releaseMetadata singleNode version"
            " acceptedRisks borrowed observedGeneration retry steps templates verification waitingSince",
        ),
    ],
)
def test_the_plan_has_the_documented_fields(part: str, names: str) -> None:
    assert set(openapi(PLAN)["properties"][part]["properties"]) == set(names.split())


def test_every_field_of_the_plan_is_explained_and_none_has_a_default() -> None:
    fields = [(path, field) for path, field in structural.fields(openapi(PLAN)) if path != "metadata"]
    assert [path for path, field in fields if not field.get("description", "").endswith((".", '".'))] == []
    assert [path for path, field in fields if "default" in field] == []


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("spec.nodeUpgradeOption.pauseNodes", "set"),
        ("status.conditions", "map"),
        ("status.phaseTransitionTimestamps", "atomic"),
        ("status.nodeUpgradeStatuses", "atomic"),
        ("status.steps", "atomic"),
        ("status.borrowed", "atomic"),
        ("status.templates", "atomic"),
    ],
)
def test_lists_and_maps_are_owned_in_the_documented_way(field: str, kind: str) -> None:
    schema = dict(structural.fields(openapi(PLAN)))[field]
    assert schema.get("x-kubernetes-list-type", schema.get("x-kubernetes-map-type")) == kind


@each_moment
def test_a_plan_for_a_thousand_nodes_stays_small(moment: Callable[[], Json]) -> None:
    plan = moment()
    assert strict.refused(PLAN, plan) == ()
    assert len(json.dumps(plan, separators=(",", ":"))) <= LIMIT


@each_rule
def test_rules(case: Json) -> None:
    assert broken_rules(case["new"], case.get("old")) == case["messages"]


def broken_rules(spec: Json, old: Json | None) -> list[str]:
    """Sorted messages. A rule on oldSelf is not evaluated on creation. The environment has the core language only."""
    environment = cel.NewEnv(variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN})
    data = {"self": spec} if old is None else {"self": spec, "oldSelf": old}
    rules = openapi(PLAN)["properties"]["spec"]["x-kubernetes-validations"]
    evaluated = [rule for rule in rules if old is not None or "oldSelf" not in rule["rule"]]
    return sorted(rule["message"] for rule in evaluated if not holds(environment.compile(rule["rule"]), data))


def holds(expression: cel.Expression, data: Mapping[str, Json]) -> bool:
    value = expression.eval(data=data).value()
    assert isinstance(value, bool), value
    return value


# --- objects


@each_good
def test_good_objects_are_accepted(file: Path) -> None:
    assert [strict.refused(crd_of(body), body) for body in documents(file)] == [()] * len(documents(file))


def test_every_kind_has_a_good_object() -> None:
    assert {f"{body['apiVersion']} {body['kind']}" for file in GOOD for body in documents(file)} == set(CRDS)


@each_bad
def test_bad_objects_are_refused_where_they_are_bad(file: Path) -> None:
    (body,) = documents(file)
    assert list(strict.refused(crd_of(body), body)) == sorted(expected_refusals(file))


def expected_refusals(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("# refused: ") for line in lines if line.startswith("# refused: ")]


# --- the same, asked of the real API server


def test_the_api_server_serves_every_kind(control_plane: ControlPlane) -> None:
    listed = control_plane.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    conditions = {
        crd["metadata"]["name"]: {c["type"]: c["status"] for c in crd["status"]["conditions"]} for crd in listed
    }
    for crd in CRDS.values():
        assert conditions[crd["metadata"]["name"]] == {"NamesAccepted": "True", "Established": "True"}


@each_rule
def test_rules_on_the_api_server(control_plane: ControlPlane, case: Json) -> None:
    new = definitions.plan("ruled", case["new"])
    if "old" not in case:
        assert served.broken_rules(control_plane.api, "POST", served.path(new), new) == case["messages"]
        return
    with served.created(control_plane.api, definitions.plan("ruled", case["old"])) as (one, live):
        changed = {**live, "spec": case["new"]}
        assert served.broken_rules(control_plane.api, "PUT", one, changed) == case["messages"]


@each_good
def test_the_api_server_keeps_all_of_good_objects(wiped_control_plane: ControlPlane, file: Path) -> None:
    for body in documents(file):
        with served.created(wiped_control_plane.api, body, "fieldValidation=Strict") as (one, live):
            live = served.put_status(wiped_control_plane.api, one, live, body, "fieldValidation=Strict")
        assert served.lost(body, live, body["metadata"]["name"]) == []


@each_bad
def test_the_api_server_refuses_bad_objects_for_the_same_fields(control_plane: ControlPlane, file: Path) -> None:
    (body,) = documents(file)
    words = "\n".join(served.refusals(control_plane.api, body))
    assert [path for path in expected_refusals(file) if f"{path}:" not in words and f'"{path}"' not in words] == []


@each_moment
def test_the_api_server_stores_a_plan_for_a_thousand_nodes_within_the_limit(
    control_plane: ControlPlane, moment: Callable[[], Json]
) -> None:
    body = moment()
    with served.created(control_plane.api, body) as (one, live):
        live = served.put_status(control_plane.api, one, live, body)
    assert served.lost(body, live, "plan") == []
    assert len(json.dumps(live, separators=(",", ":"))) <= LIMIT


@pytest.mark.parametrize("original", ["", "600", [], {}, ["a", None], {"a": []}, 0, False], ids=json.dumps)
def test_an_original_survives_a_merge_patch_of_the_status(control_plane: ControlPlane, original: object) -> None:
    assert borrowed_after_merge_patch(control_plane, {"absent": False, "value": original}) == {
        "absent": False,
        "value": original,
    }


def test_a_null_does_not_survive_a_merge_patch_and_is_still_told_from_absent(control_plane: ControlPlane) -> None:
    assert borrowed_after_merge_patch(control_plane, {"absent": False, "value": None}) == {"absent": False}
    assert borrowed_after_merge_patch(control_plane, {"absent": True}) == {"absent": True}


def borrowed_after_merge_patch(control_plane: ControlPlane, original: Json) -> Json:
    names = dict.fromkeys(("phase", "step", "apiVersion", "kind", "name"), "x")
    entry = {**names, "path": "/x", "taken": "2026-11-28T09:00:00Z", **original}
    with served.created(control_plane.api, definitions.plan("borrower", {"version": "v1"})) as (one, _):
        live = control_plane.api.patch(f"{one}/status?fieldValidation=Strict", {"status": {"borrowed": [entry]}})
    (found,) = live["status"]["borrowed"]
    return {key: found[key] for key in original if key in found}


def _plural_scope_subresources(crd: Json) -> tuple[str, ...]:
    return (crd["spec"]["names"]["plural"], crd["spec"]["scope"], *definitions.subresources(crd))
