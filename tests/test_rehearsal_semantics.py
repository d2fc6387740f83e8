"""The pure parts of the embedded cluster: field sets, merging, rules, quantities, the kinds it serves."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cel_expr_python import cel as reference
from conformance.case import ANSWERS, definitions
from controlplane.cluster import ControlPlane
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from reconcile.simulator.apiserver import cel
from reconcile.simulator.apiserver.builtin_rules import RULES
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.field_set import field, from_fields_v1, key, member, order, path_text, to_fields_v1
from reconcile.simulator.apiserver.schema_files import builtin_schemas
from reconcile.simulator.apiserver.served_kinds import Origin
from renderer.model.ref import Kind
from renderer.quantity import canonical

WIDGET = Kind(api_version="conformance.example.org/v1", kind="Widget", plural="widgets", namespaced=True)


def recorded_claims() -> list[dict[str, Any]]:
    """Every set of fields that the real server wrote in the conformance suite."""
    found = []
    for file in sorted(ANSWERS.glob("*.yaml")):
        for answer in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            metadata = answer.get("metadata", {}) if isinstance(answer, dict) else {}
            found += [entry["fieldsV1"] for entry in metadata.get("managedFields", ())]
    return found


@pytest.mark.slow
def test_every_claim_of_the_real_server_reads_and_writes_back() -> None:
    claims = recorded_claims()
    assert len(claims) > 100
    for claim in claims:
        assert to_fields_v1(from_fields_v1(claim)) == claim


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((field("spec"), field("replicas")), ".spec.replicas"),
        ((field("data"), field("a.b/c")), ".data.a.b/c"),
        ((field("containers"), key({"name": "main"}), field("image")), '.containers[name="main"].image'),
        ((key({"protocol": "TCP", "containerPort": 80}),), '[containerPort=80,protocol="TCP"]'),
        ((field("finalizers"), member("a/b")), '.finalizers[="a/b"]'),
        ((member(3),), "[=3]"),
    ],
)
def test_paths_are_written_as_conflicts_write_them(path: tuple[str, ...], text: str) -> None:
    assert path_text(path) == text


def test_paths_are_ordered_as_the_server_orders_them() -> None:
    """Fields before keys before values; numbers by size, not by their text."""
    expected = [
        (field("a"),),
        (field("a"), field("b")),
        (field("b"),),
        (key({"name": "x", "port": 9}),),
        (key({"name": "x", "port": 10}),),
        (key({"name": "y"}),),
        (member(9),),
        (member(10),),
        (member("1"),),
    ]
    assert all(order(left) < order(right) for left, right in itertools.pairwise(expected))


names = st.sampled_from("abcd")
items = st.fixed_dictionaries({"name": names}, optional={"value": names})
specs = st.fixed_dictionaries(
    {},
    optional={
        "color": st.sampled_from(["red", "green", "blue"]),
        "texts": st.dictionaries(names, names, max_size=3),
        "set": st.lists(names, unique=True, max_size=4),
        "plain": st.lists(names, max_size=3),
        "atomic": st.dictionaries(names, names, max_size=2),
        "nested": st.fixed_dictionaries(
            {}, optional={"a": names, "inner": st.fixed_dictionaries({}, optional={"c": st.booleans()})}
        ),
        "keyed": st.lists(
            st.fixed_dictionaries({"name": names}, optional={"value": names}),
            unique_by=lambda item: str(item["name"]),  # type: ignore[index]  # typed as what is not to be read
            max_size=3,
        ),
    },
)


def widget(spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": metadata, "spec": spec}


def fresh() -> EmbeddedCluster:
    return EmbeddedCluster(SimulatedClock(datetime(2026, 11, 28, tzinfo=UTC)), definitions=definitions())


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(specs, specs)
def test_an_apply_is_done_once(first: dict[str, Any], second: dict[str, Any]) -> None:
    client = fresh().client()
    client.apply(WIDGET, widget(first), field_manager="one")
    once = client.apply(WIDGET, widget(second), field_manager="two", force=True).body
    again = client.apply(WIDGET, widget(second), field_manager="two").body
    assert again == once


RULES_OF_CEL = (
    "has(self.a) && self.a == 'x'",
    "!has(self.b) || self.b > 1",
    "self.a in ['x', 'y']",
    "size(self.list) == 2 && self.list[0] == 1",
    "self.list.size() >= 1 ? self.a.startsWith('x') : false",
    "self.a != oldSelf.a || self.b <= 3",
    "self.map['k'] == \"v\" && 'k' in self.map",
    "(self.b == 2 || self.missing == 1) && !(self.a.endsWith('z'))",
    "self.a.matches('^x+$') && self.a.contains('x')",
    "self.b == -2 || self.b == 2",
    "has(self.nested.c) ? self.nested.c : has(self.nested)",
    "self.flag == true && self.nothing == null",
)
SCOPES = (
    {"a": "x", "b": 2, "list": [1, 2], "map": {"k": "v"}, "nested": {"c": True}, "flag": True, "nothing": None},
    {"a": "xyz", "b": 5, "list": [3], "map": {"k": "w"}, "nested": {}, "flag": False, "nothing": 1},
    {"b": 0, "list": [], "map": {}, "nested": {"c": False}},
)


@pytest.mark.parametrize("rule", RULES_OF_CEL)
@pytest.mark.parametrize("scope", SCOPES, ids=["full", "other", "sparse"])
def test_rules_mean_what_a_complete_cel_says(rule: str, scope: dict[str, Any]) -> None:
    environment = reference.NewEnv(variables={"self": reference.Type.DYN, "oldSelf": reference.Type.DYN})
    data = {"self": scope, "oldSelf": {**scope, "a": "before"}}
    expected = environment.compile(rule).eval(data=data).value()
    assert cel.holds(cel.parse(rule), data) is (expected is True)


@pytest.mark.parametrize(
    "rule", ["self.list.all(x, x > 0)", "self.a + self.b == 3", "quantity(self.a) > 1", "self.a ==", "self ? 1"]
)
def test_a_rule_that_is_not_known_is_not_run(rule: str) -> None:
    with pytest.raises(cel.UnsupportedRuleError):
        cel.parse(rule)


def widgets_with_rules(spec: list[str] = [], each: list[str] = []) -> EmbeddedCluster:  # noqa: B006 never changed
    """A cluster whose Widgets have these rules for `spec` and for each item of `spec.keyed`."""
    definition = json.loads(json.dumps(definitions()[0]))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["x-kubernetes-validations"] = [{"rule": rule} for rule in spec]
    schema["properties"]["keyed"]["items"]["x-kubernetes-validations"] = [{"rule": rule} for rule in each]
    return EmbeddedCluster(SimulatedClock(datetime(2026, 11, 28, tzinfo=UTC)), definitions=[definition])


def test_a_rule_that_was_not_evaluated_is_named_with_the_writer_to_whom_it_applied() -> None:
    cluster = widgets_with_rules(["self.set.all(x, x != '')", "has(self.color)"])
    cluster.client().create(WIDGET, widget({"color": "red"}), field_manager="one")
    (found,) = cluster.unchecked_rules("one")
    assert (found.kind, found.path, found.rule) == ("Widget", "spec", "self.set.all(x, x != '')")
    assert ".all()" in found.because
    assert cluster.unchecked_rules("two") == ()


@pytest.mark.parametrize(
    ("before", "after", "rules", "applied"),
    [
        ({"color": "red"}, {"color": "red", "plain": ["x"]}, ["self.list.all(x, true)"], True),
        ({"color": "red"}, {"color": "red"}, ["self.list.all(x, true)"], False),
        (None, {"color": "red"}, ["oldSelf.list.all(x, true)"], False),
        ({"color": "red"}, {"color": "blue"}, ["oldSelf.list.all(x, true)"], True),
    ],
    ids=["changed", "unchanged", "transition on create", "transition on update"],
)
def test_a_rule_applies_to_what_is_changed(before: Any, after: Any, rules: list[str], applied: bool) -> None:
    cluster = widgets_with_rules(rules)
    if before is not None:
        cluster.seed([widget(before)])
    cluster.client().apply(WIDGET, widget(after), field_manager="one", force=True)
    assert bool(cluster.unchecked_rules("one")) is applied


def test_a_rule_inside_of_a_list_applies_where_the_list_has_items() -> None:
    cluster = widgets_with_rules(each=["has(self.value)"])
    client = cluster.client()
    client.create(WIDGET, widget({"color": "red"}), field_manager="one")
    assert cluster.unchecked_rules("one") == ()
    client.apply(WIDGET, widget({"keyed": [{"name": "a"}]}), field_manager="one")
    assert [found.path for found in cluster.unchecked_rules("one")] == ["spec.keyed[*]"]


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Ki", "1000Ki"),
        ("2048", "2048"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("12e1", "120"),
        ("0", "0"),
        ("0Ki", "0"),
        ("512Ki", "512Ki"),
        ("100n", "100n"),
        ("-1k", "-1k"),
        ("not a quantity", "not a quantity"),
    ],
)
def test_quantities_take_their_canonical_form(given_text: str, expected: str) -> None:
    assert canonical(given_text) == expected


def test_every_built_in_kind_has_its_rules() -> None:
    assert set(RULES) == {str(kind) for kind in builtin_schemas()[1]}


@pytest.mark.controlplane
def test_kinds_are_served_as_the_real_server_serves_them(control_plane: ControlPlane) -> None:
    served = {
        (kind.api_version, kind.kind): (kind.plural, kind.namespaced)
        for kind in (item.kind for item in EmbeddedCluster(SimulatedClock(datetime.now(UTC))).registry)
    }
    lines = control_plane.kubectl("api-resources", "--no-headers").stdout.splitlines()
    real = {(columns[-3], columns[-1]): (columns[0], columns[-2] == "true") for columns in map(str.split, lines)}
    assert {name: real[name] for name in served} == served


def test_guessed_kinds_are_told_apart_from_described_ones() -> None:
    cluster = EmbeddedCluster(SimulatedClock(datetime(2026, 11, 28, tzinfo=UTC)))
    cluster.seed([{"apiVersion": "a.b/v1", "kind": "Policy", "metadata": {"name": "p"}}])
    found = cluster.registry.find("a.b/v1", "Policy")
    assert found is not None
    assert (found.kind.plural, found.kind.namespaced, found.origin) == ("policies", False, Origin.GUESSED)


def test_no_module_here_knows_the_kubernetes_package() -> None:
    for file in sorted((Path(cel.__file__).parent).glob("*.py")):
        assert "import kubernetes" not in file.read_text(encoding="utf-8"), file.name
