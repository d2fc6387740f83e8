"""Documents told apart and judged: a folder of inputs for each case, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from renderer.documents import Inputs, plan_of, recognize
from renderer.errors import ExitCode, Problems
from renderer.files.inputs import read_inputs
from renderer.input_rules import input_problems, input_warnings
from renderer.model.path import walk
from renderer.source_document import SourceDocument, without_lines
from renderer.yaml_io import parse

CASES = Path(__file__).parent / "data" / "inputs"
FIELD_CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize("folder", sorted((CASES / "good").iterdir()), ids=lambda folder: folder.name)
def test_good_inputs_are_told_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(folder)
    inputs = read_inputs(["."])
    warnings = "".join(f"warning: {each}\n" for each in (*inputs.warnings, *input_warnings(inputs)))
    expected = folder / "expected.txt"
    if request.config.getoption("update_snapshots", default=False):
        expected.write_text(f"{summary(inputs)}{warnings}", encoding="utf-8")
    assert f"{summary(inputs)}{warnings}" == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", sorted((CASES / "bad").iterdir()), ids=lambda folder: folder.name)
def test_all_that_is_wrong_is_said_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(Problems) as caught:
        read_inputs(["."])
    assert f"{caught.value}\n" == (folder / "expected.txt").read_text(encoding="utf-8")
    assert all(problem.remedy for problem in caught.value.problems)
    assert caught.value.exit_code is ExitCode.BAD_INPUT


def summary(inputs: Inputs) -> str:
    """The plan, the release and each object with its place, then the values that matter."""
    lines = [f"plan {inputs.plan.place}: {json.dumps(inputs.plan.body['spec'])}"] if inputs.plan else ["no plan"]
    if inputs.release:
        lines += [f"release {inputs.release.place}: {json.dumps(inputs.release.body)}"]
    lines += [
        f"{source.body['kind']} {source.place}: {json.dumps(source.body['metadata'])}" for source in inputs.objects
    ]
    lines += [f"facts {section}: {json.dumps(entries)}" for section, entries in inputs.facts.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("file", sorted(FIELD_CASES.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_field_cases_are_accepted_but_the_one_of_unquoted_versions(file: Path) -> None:
    if "stage: input validation" not in file.read_text(encoding="utf-8"):
        assert plan_of(read_inputs([str(file)])).body["metadata"]["name"].startswith("hvst-upgrade-")
        return
    with pytest.raises(Problems) as caught:
        read_inputs([str(file)])
    wrong = {(problem.field, problem.message) for problem in caught.value.problems}
    assert wrong == {
        ("spec.version", "1.1 is not a string"),
        ("metadata.name", "1.1 is not a string"),
        ("spec.minUpgradableVersion", "1.9 is not a string"),
        ("spec.releaseDate", "20270115 is not a string"),
    }
    assert all("in quotes" in (problem.remedy or "") for problem in caught.value.problems)


# ------------------------------------------------------------------------------------------------- explicitly named

PLAN = """
apiVersion: management.harvesterhci.io/v1beta1
kind: UpgradePlan
metadata: {name: %s}
spec: {version: v1.8.0}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: %s}
"""
RELEASE = """
harvester: %s
os: Harvester
kubernetes: v1.35.2+rke2r1
"""
KUBELET = "apiVersion: upgradeplan/v1\nkind: Facts\nfacts: {kubelet: {%s: {imageGCHighThresholdPercent: %d}}}\n"


def documents(file: str, *texts: str) -> list[Any]:
    return list(parse("---\n".join(texts), file))


def test_what_is_named_takes_the_place_of_what_was_found() -> None:
    found = documents("found", PLAN % "found", RELEASE % "v1", NODE % "found", KUBELET % ("a", 80), KUBELET % ("b", 80))
    inputs, problems = recognize(
        found,
        plan=documents("plan", PLAN % "named", KUBELET % ("a", 70)),
        release=documents("release", RELEASE % "v2"),
        cluster=documents("cluster", NODE % "named", KUBELET % ("a", 90)),
    )
    assert problems == ()
    assert inputs.plan is not None
    assert inputs.plan.body["metadata"]["name"] == "named"
    assert inputs.release is not None
    assert inputs.release.body["harvester"] == "v2"
    assert [source.body["metadata"]["name"] for source in inputs.objects] == ["named"]
    assert inputs.facts == {
        "kubelet": {"a": {"imageGCHighThresholdPercent": 90}, "b": {"imageGCHighThresholdPercent": 80}}
    }


def test_what_else_stands_in_a_named_file_counts_as_found() -> None:
    inputs, problems = recognize([], plan=documents("plan", PLAN % "p", NODE % "n", RELEASE % "v1"))
    assert problems == ()
    assert inputs.release is not None
    assert [source.place for source in inputs.objects] == ["plan:8"]


def test_a_named_file_without_what_it_is_named_for_is_a_problem() -> None:
    _, problems = recognize(
        [],
        plan=documents("a.yaml", NODE % "n"),
        release=documents("b.yaml", NODE % "n"),
        cluster=documents("c.yaml", PLAN % "p"),
    )
    assert [str(problem) for problem in problems] == [
        "a.yaml: holds no UpgradePlan\n    remedy: name another file with --plan, or leave --plan out",
        "b.yaml: holds no release\n    remedy: name another file with --release, or leave --release out",
        "c.yaml: holds no object of the cluster\n    remedy: name another file with --cluster, or leave --cluster out",
    ]


def test_no_plan_is_refused_only_by_who_wants_one() -> None:
    inputs, problems = recognize(documents("f", NODE % "n"))
    assert problems == ()
    with pytest.raises(Problems, match="no UpgradePlan among the inputs") as caught:
        plan_of(inputs)
    assert caught.value.problems[0].remedy == "name the file or folder that holds it, or use --plan FILE"


def test_a_source_knows_its_lines_inside_a_list() -> None:
    text = (
        "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: a}\n\n- metadata:\n    name: b\n    labels: {x: z}"
    )
    inputs, _ = recognize(documents("nodes.yaml", text))
    second = inputs.objects[1]
    assert second.body == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b", "labels": {"x": "z"}}}
    assert (second.place, second.line_of(("metadata", "labels", "x"))) == ("nodes.yaml:6", 8)


# ------------------------------------------------------------------------------------------------------- any document

KEYS = st.text(max_size=3) | st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "generateName",
        "labels",
        "spec",
        "status",
        "items",
        "facts",
        "harvester",
        "os",
        "kubernetes",
        "kubelet",
        "imageLists",
        "current",
        "version",
        "image",
        "conditions",
        "nodeInfo",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from(
        [
            "management.harvesterhci.io/v1beta1",
            "UpgradePlan",
            "UpgradePlanList",
            "v1",
            "Node",
            "List",
            "NodeList",
            "harvesterhci.io/v1beta1",
            "Version",
            "Setting",
            "RenderedPlan",
            "a",
            "v1.8.0",
        ]
    )
)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=25
)
LIKE_A_PLAN = st.fixed_dictionaries(
    {"apiVersion": st.just("management.harvesterhci.io/v1beta1"), "kind": st.just("UpgradePlan")},
    optional={"metadata": ANYTHING, "spec": ANYTHING, "status": ANYTHING, "more": ANYTHING},
)
LIKE_AN_OBJECT = st.fixed_dictionaries(
    {"apiVersion": SCALARS, "kind": SCALARS}, optional={"metadata": ANYTHING, "items": ANYTHING, "spec": ANYTHING}
)
LIKE_FACTS = st.fixed_dictionaries({"facts": ANYTHING})


@pytest.mark.slow
@settings(max_examples=examples(500), deadline=None)
@given(st.lists(LIKE_A_PLAN | LIKE_AN_OBJECT | LIKE_FACTS | ANYTHING, max_size=4), st.booleans())
def test_any_documents_end_in_inputs_and_problems(values: list[Any], named: bool) -> None:
    given_documents = [without_lines(value, f"{number}.yaml") for number, value in enumerate(values)]
    inputs, problems = recognize(given_documents, cluster=given_documents[:1] if named else None)
    for problem in [*problems, *input_problems(inputs)]:
        assert problem.file
        assert problem.message
        assert problem.remedy


def test_no_scalar_of_a_release_is_anything_but_text() -> None:
    inputs, _ = recognize(documents("r", RELEASE % "1.10" + "x: {y: [1, 0x1, 1e3, no, ~, 2027-01-15]}\n"))
    assert isinstance(inputs.release, SourceDocument)
    assert all(isinstance(value, str) for _, value in walk(inputs.release.body))
