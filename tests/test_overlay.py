"""A phase is a folder: one that an overlay adds is in its place everywhere, with no code and no schema changed.

What can be wrong with an overlay is told as a problem that names the file, and all of it at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.rendered_plans import (
    PREFIX,
    ROOT,
    inputs_of_example,
    overlaid,
    plan,
    render,
    render_example,
    render_made,
    templates,
    three_nodes,
)

from renderer.assemble import assemble, open_template_set
from renderer.catalog.load import load_catalog
from renderer.catalog.places import RESERVED
from renderer.errors import Problem, Problems
from renderer.files.templates import read_templates
from renderer.layout.select import select
from renderer.layout.table import LAYOUTS
from renderer.layout.trees import files_of
from renderer.model.phase import Position
from renderer.validation import document_problems
from renderer.yaml_io import dump, parse

OVERLAY = ROOT / "examples" / "pre-check-overlay" / "templates"
CASES = ROOT / "tests" / "overlay"
WRONG: dict[str, Any] = parse((CASES / "trees.yaml").read_text(encoding="utf-8"), "trees.yaml")[0].value
MANIFESTS: dict[str, Any] = parse((CASES / "manifests.yaml").read_text(encoding="utf-8"), "manifests.yaml")[0].value
PHASE = """\
apiVersion: templates.upgradeplan/v1
kind: Phase
name: Wait
description: Waits.
status: {active: Waiting, completed: Waited}
deletion: free
"""
KINDS = "apiVersion: templates.upgradeplan/v1\nkind: Kinds\nkinds:\n"
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ name("x") | quote }}, namespace: harvester-system}
"""


def names(*overlays: Path) -> list[str]:
    return [item.phase.name for item in load_catalog(templates(*overlays), document_problems).phases]


# --------------------------------------------------------------------------------------------------- the phase PreCheck


def test_the_overlay_holds_no_code() -> None:
    files = sorted(path.relative_to(OVERLAY).as_posix() for path in OVERLAY.rglob("*") if path.is_file())
    assert files == ["15-pre-check/job.yaml.j2", "15-pre-check/phase.yaml", "15-pre-check/script.yaml.j2"]


def test_the_phase_stands_between_the_packaged_ones() -> None:
    assert names() == ["Initialize", "ISODownload", *names()[2:]]
    assert names(OVERLAY) == ["Initialize", "PreCheck", "ISODownload", *names()[2:]]


@pytest.mark.slow
def test_the_phase_is_rendered_and_nothing_else_changes() -> None:
    plain, with_phase = render_example("three-node"), render_example("pre-check-overlay")
    added = {path: text for path, text in with_phase.files().items() if path not in plain.files()}
    assert sorted(added) == ["15-pre-check/job.yaml", "15-pre-check/script.yaml"]
    for path, text in plain.files().items():
        assert path == "index.yaml" or with_phase.files()[path] == text
    assert plain.plan.digest != with_phase.plan.digest
    unchanged = {phase.phase.name: phase.digest for phase in with_phase.plan.phases if phase.phase.name != "PreCheck"}
    assert unchanged == {phase.phase.name: phase.digest for phase in plain.plan.phases}


def test_the_index_explains_the_phase() -> None:
    (index,) = parse(render_example("pre-check-overlay").files()["index.yaml"], "index.yaml")
    phase = index.value["phases"][1]
    assert phase["name"] == "PreCheck"
    assert phase["folder"] == "15-pre-check"
    assert phase["status"] == {"active": "PreChecking", "completed": "PreChecked"}
    assert phase["deletion"] == "careful"
    script, check = phase["steps"]
    assert script["waitsFor"] == [
        "ConfigMap harvester-system/hvst-upgrade-864fh-pre-check is ready (metadata.uid is set)"
    ]
    assert check["waitsFor"] == [
        "Job harvester-system/hvst-upgrade-864fh-pre-check is ready (condition Complete is True)"
    ]
    assert [m["file"] for m in check["manifests"]] == ["15-pre-check/job.yaml"]
    kustomization = render_example("pre-check-overlay").files("kustomize")["15-pre-check/kustomization.yaml"]
    assert parse(kustomization, "")[0].value["resources"] == ["script.yaml", "job.yaml"]


def test_the_phase_can_be_asked_for_alone_and_up_to() -> None:
    whole = render_example("pre-check-overlay").plan
    assert [phase.phase.name for phase in select(whole, phases=["PreCheck"]).phases] == ["PreCheck"]
    assert [phase.phase.name for phase in select(whole, through="PreCheck").phases] == ["Initialize", "PreCheck"]
    with pytest.raises(Problems, match="no phase 'PreChek'; did you mean 'PreCheck'"):
        select(whole, phases=["PreChek"])


def test_the_phase_tells_the_loop_all_that_it_needs() -> None:
    (phase,) = select(render_example("pre-check-overlay").plan, phases=["PreCheck"]).phases
    (gate,) = phase.steps[1].step.gates
    assert gate.waiting == "the pre-check is running"
    assert gate.failure.message == "pre-check failed; its log names what to fix"
    assert gate.slow_after == 600


def test_a_retry_reaches_the_phase() -> None:
    rendered = render(inputs_of_example("pre-check-overlay"), templates(OVERLAY), retry=1)
    job = rendered.body("PreCheck/Check")
    assert job["metadata"]["name"] == "hvst-upgrade-864fh-pre-check-retry-1"
    (volume,) = job["spec"]["template"]["spec"]["volumes"]
    assert volume["configMap"]["name"] == rendered.body("PreCheck/Script")["metadata"]["name"]


# -------------------------------------------------------------------------------------------------- laying over others


def test_a_file_takes_the_place_of_the_packaged_one() -> None:
    text = templates()["values.yaml"].text.replace("rancher/harvester-upgrade-toolkit", "mirror.example.com/toolkit")
    rendered = render_made(*three_nodes(), tree=overlaid({"values.yaml": text}))
    assert {image.partition(":")[0] for image in rendered.plan.images} == {"mirror.example.com/toolkit"}


def test_the_last_of_several_overlays_wins(tmp_path: Path) -> None:
    for number, text in enumerate((PHASE, PHASE.replace("Wait", "Rest"))):
        folder = tmp_path / str(number) / "90-wait"
        folder.mkdir(parents=True)
        (folder / "phase.yaml").write_text(text)
    tree = read_templates([tmp_path / "0", tmp_path / "1"])
    assert "name: Rest" in tree["90-wait/phase.yaml"].text
    assert load_catalog(tree, document_problems).phases[-1].phase.name == "Rest"


def test_a_phase_may_have_no_step_and_take_a_packaged_input() -> None:
    rendered = render_made(*three_nodes(), tree=overlaid({"05-wait/phase.yaml": f"{PHASE}requires: [nodes]\n"}))
    assert rendered.plan.phases[0].phase.name == "Wait"
    assert not list(rendered.plan.phases[0].manifests())


@pytest.mark.slow
def test_a_value_that_is_captured_is_marked_and_kept_from_agents() -> None:
    step = """steps:
- name: Do
  capture: {boot: {object: {apiVersion: v1, kind: Node, name: n1}, path: status.nodeInfo.bootID}}
  owned: [thing.yaml.j2]
"""
    thing = f"{CONFIG_MAP}data: {{boot: {{{{ captured.boot | quote }}}}}}\n"
    files = {"90-wait/phase.yaml": f"{PHASE}{step}", "90-wait/thing.yaml.j2": thing}
    rendered = render_made(*three_nodes(), tree=overlaid(files))
    (manifest,) = rendered.manifests("Wait/Do")
    assert manifest.file == "review/90-wait/thing.yaml.txt"
    assert manifest.body["data"] == {"boot": "<known at run time: boot>"}
    assert manifest.run_time == (("data", "boot"),)
    assert rendered.files()[manifest.file].startswith(
        "# Applied by the upgrade loop only: it holds values that are known at run"
    )
    assert not any("90-wait" in path for path in rendered.files("kustomize") if path.endswith("kustomization.yaml"))


@pytest.mark.slow
def test_what_others_stand_in_comes_first_in_files_and_in_what_is_applied() -> None:
    """Within a step; what is borrowed keeps its order, and two objects of one template stay in one file."""
    declared = "steps:\n- name: Do\n  owned: [map.yaml.j2, more.yaml.j2]\n  borrowed:\n"
    declared += "".join(f"  - {{file: {name}.yaml.j2, return: never}}\n" for name in ("node", "space"))
    documents = {
        "map": ["Service", "ConfigMap"],
        "more": ["ServiceAccount", "CustomResourceDefinition", "Namespace"],
        "node": ["Node"],
        "space": ["Namespace"],
    }
    files = {
        f"90-wait/{name}.yaml.j2": "---\n".join(dump(of_kind(kind, f"{name}-it")) for kind in kinds)
        for name, kinds in documents.items()
    }
    rendered = render_made(*three_nodes(), tree=overlaid({"90-wait/phase.yaml": f"{PHASE}{declared}", **files}))
    expected = [
        "Namespace more-it",
        "CustomResourceDefinition mores.example.com",
        "ServiceAccount harvester-system/more-it",
    ]
    expected += [
        "ConfigMap harvester-system/map-it",
        "Service harvester-system/map-it",
        "Node node-it",
        "Namespace space-it",
    ]
    assert [str(manifest.ref) for manifest in rendered.manifests("Wait/Do")] == expected
    (index,) = parse(rendered.files()["index.yaml"], "index.yaml")
    assert [item["object"] for item in index.value["phases"][-1]["steps"][0]["manifests"]] == expected
    text = rendered.files()["review/90-wait/map.yaml.txt"]
    assert [item.value["kind"] for item in parse(text, "")] == ["ConfigMap", "Service"]


def test_objects_of_another_template_in_between_do_not_part_a_file() -> None:
    files = {
        "90-wait/phase.yaml": f"{PHASE}steps:\n- name: Do\n  owned: [map.yaml.j2, more.yaml.j2]\n",
        "90-wait/map.yaml.j2": "---\n".join(dump(of_kind(kind, "it")) for kind in ("Service", "Namespace")),
        "90-wait/more.yaml.j2": dump(of_kind("ConfigMap", "more")),
    }
    rendered = render_made(*three_nodes(), tree=overlaid(files)).files()
    assert [item.value["kind"] for item in parse(rendered["review/90-wait/map.yaml.txt"], "")] == [
        "Namespace",
        "Service",
    ]


def of_kind(kind: str, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "annotations": {"example.com/it": "x"}}
    if kind == "CustomResourceDefinition":
        names = {"kind": "More", "plural": "mores", "singular": "more", "listKind": "MoreList"}
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        spec = {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "mores.example.com"},
            "spec": spec,
        }
    namespace = {} if kind in ("Namespace", "Node") else {"namespace": "harvester-system"}
    return {"apiVersion": "v1", "kind": kind, "metadata": {**metadata, **namespace}}


def test_notes_and_files_of_every_packaged_folder_may_be_laid_over() -> None:
    files = {"README.md": "x", "90-wait/phase.yaml": PHASE, "90-wait/notes.md": "x", "_macros/own.j2": "x"}
    own = {path: file.text for path, file in templates().items() if path.startswith(("_", "install/", "values"))}
    assert load_catalog(overlaid({**files, **own}), document_problems)


def test_a_template_may_take_in_a_file_of_any_name() -> None:
    files = {
        "90-wait/phase.yaml": f"{PHASE}{STEP}",
        "90-wait/a.yaml.j2": f"{{% macro own() %}}{{% include '90-wait/own.txt' %}}{{% endmacro %}}{CONFIG_MAP}",
        "90-wait/own.txt": "taken in",
        "90-wait/other.txt": "not taken in",
    }
    with pytest.raises(Problems) as caught:
        load_catalog(overlaid(files), document_problems)
    [problem] = caught.value.problems
    assert problem.file == "overlay/90-wait/other.txt"


def test_what_goes_wrong_in_a_template_is_told_by_its_line() -> None:
    files = {
        "90-wait/phase.yaml": f"{PHASE}{STEP}",
        "90-wait/a.yaml.j2": f"{CONFIG_MAP}data:\n  a: {{{{ plan.spce | quote }}}}",
    }
    with pytest.raises(Problems, match=r"^overlay/90-wait/a.yaml.j2:5: plan has no 'spce'; did you mean 'spec'\?"):
        render_made(*three_nodes(), tree=overlaid(files))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  skipWhen: [{expr: plan.spce, reason: x}]", "plan has no 'spce'; did you mean 'spec'? (in `plan.spce`)"),
        ("  skipWhen: [{expr: plan.spec +, reason: x}]", "unexpected ')' (in `plan.spec +`)"),
        (
            "  started: {type: Normal, reason: X, message: '{{ plna.metadata }}'}",
            "'plna' is undefined (in `{{ plna.metadata }}`)",
        ),
    ],
)
def test_what_goes_wrong_in_a_declaration_is_told_by_its_line(line: str, told: str) -> None:
    step = f"steps:\n- name: Do\n  record: {{previousVersion: \"'v1.7.0'\"}}\n{line}\n"
    with pytest.raises(Problems) as caught:
        render_made(*three_nodes(), tree=overlaid({"90-wait/phase.yaml": f"{PHASE}{step}"}))
    assert str(caught.value).startswith(f"overlay/90-wait/phase.yaml:10: {told}"), caught.value


@pytest.mark.slow
def test_a_path_that_a_plan_fills_in_wrongly_is_told() -> None:
    field = """{path: "data['{{ annotation('own') }}']", exists: true}"""
    probe = f"{{object: {{apiVersion: v1, kind: Node, name: a}}, all: [{{field: {field}}}]}}"
    phase = f"{PHASE}steps:\n- name: Do\n  gates:\n  - probe: {probe}\n"
    tree = overlaid({"90-wait/phase.yaml": phase})
    found = render_made(*three_nodes(given_plan=plan(annotations={f"{PREFIX}own": "a.b/c"})), tree=tree)
    assert found.step("Wait/Do").step.gates[0].probe.all[0].path == ("data", "a.b/c")  # type: ignore[union-attr]
    told = r"^overlay/90-wait/phase.yaml:8: step Do: path .* is invalid from "
    with pytest.raises(Problems, match=told):
        render_made(*three_nodes(given_plan=plan(annotations={f"{PREFIX}own": "a']..b"})), tree=tree)


@pytest.mark.slow
def test_a_new_kind_needs_a_row_and_no_more() -> None:
    owned = "steps:\n- name: Do\n  owned: [thing.yaml.j2]\n"
    thing = CONFIG_MAP.replace("v1\nkind: ConfigMap", "example.com/v1\nkind: Thing")
    files = {"90-wait/phase.yaml": f"{PHASE}{owned}", "90-wait/thing.yaml.j2": thing}
    with pytest.raises(Problems, match=r"example.com/v1 Thing is not in the kinds table"):
        render_made(*three_nodes(), tree=overlaid(files))
    row = f"{KINDS}- {{apiVersion: example.com/v1, kind: Thing, plural: things, namespaced: true}}\n"
    with pytest.raises(Problems, match=r"step Do: nothing says when a example\.com/v1 Thing is ready"):
        render_made(*three_nodes(), tree=overlaid({**files, "_kinds/own.yaml": row}))
    ready = row.replace("true}", "true, ready: {all: [{condition: {type: Ready, status: 'True'}}]}}")
    assert render_made(*three_nodes(), tree=overlaid({**files, "_kinds/own.yaml": ready})).body("Wait/Do")


# ---------------------------------------------------------------------------------------------------- what can be wrong

STEP = "steps:\n- name: Do\n  owned: [a.yaml.j2]\n"


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_tree_is_told_by_file(what: str) -> None:
    with pytest.raises(Problems) as caught:
        open_template_set(overlaid(WRONG[what]["files"]))
    told = [str(problem) for problem in caught.value.problems]
    assert any(WRONG[what]["told"] in text for text in told), told
    assert all(problem.remedy for problem in caught.value.problems), told


def test_a_node_state_that_is_filled_in_is_refused_where_nothing_knows_it() -> None:
    """It is known only once the plan is rendered, so loading the tree cannot refuse it."""
    step = f"{STEP}  forEach: node\n  nodeStates: {{active: '{{{{ plan.spec.version }}}}'}}\n"
    files = {"90-wait/phase.yaml": f"{PHASE}{step}", "90-wait/a.yaml.j2": CONFIG_MAP}
    with pytest.raises(Problems, match=r"step Do: 'v1\.8\.0' is not a node state") as caught:
        render_made(*three_nodes(), tree=overlaid(files))
    assert {problem.reason for problem in caught.value.problems} == {"UnknownNodeState"}


def test_all_that_is_wrong_is_told_in_one_run() -> None:
    several = ("a folder without a number", "an unknown key", "two phases with one number")
    files = {path: text for name in several for path, text in WRONG[name]["files"].items()}
    with pytest.raises(Problems) as caught:
        load_catalog(overlaid(files), document_problems)
    assert {problem.reason for problem in caught.value.problems} >= {"PhaseFolder", "UnknownField", "PhaseConflict"}


def test_nothing_is_rendered_from_a_tree_that_is_wrong() -> None:
    with pytest.raises(Problems, match="is not a phase folder"):
        assemble(inputs_of_example("three-node"), overlaid({"wait/phase.yaml": PHASE}))


@pytest.mark.slow
@pytest.mark.parametrize("what", MANIFESTS)
def test_what_is_wrong_with_a_manifest_is_told_by_template_and_field(what: str) -> None:
    text, expected = MANIFESTS[what]["renders"], MANIFESTS[what]["told"]
    files = {"90-wait/phase.yaml": f"{PHASE}{STEP}  noGate: no need\n", "90-wait/a.yaml.j2": text}
    with pytest.raises(Problems) as caught:
        render_made(*three_nodes(), tree=overlaid(files))
    told = [str(problem) for problem in caught.value.problems]
    assert any(text.startswith(("overlay/90-wait/a.yaml.j2", "templates/")) and expected in text for text in told), told
    assert all(problem.remedy for problem in caught.value.problems)


@pytest.mark.slow
def test_what_is_borrowed_must_be_fields_of_different_objects() -> None:
    borrowed = f"{PHASE}steps:\n- name: Do\n  borrowed: [{{file: a.yaml.j2, return: always}}]\n"
    node = "{apiVersion: v1, kind: Node, metadata: {name: x}}"
    for text, expected in ((node, "borrows no field"), (f"{node}\n---\n{node}", "borrows from Node x twice")):
        with pytest.raises(Problems, match=expected):
            render_made(*three_nodes(), tree=overlaid({"90-wait/phase.yaml": borrowed, "90-wait/a.yaml.j2": text}))


# --------------------------------------------------------------------------------------- declarations of any form

STRANGE: Sequence[Any]
STRANGE = (None, "", [], {}, 5, True, 1.5, "x", "{{ nope }}", "{{", "a.b[", [[]], [None], {"": None}, -1, "((")
MUTATIONS = 6
"""Of each step; each takes some hundredths of a second, most of it to explain."""


def packaged_steps() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Path and head of a packaged phase, and one step of it under its position."""
    for path, file in templates().items():
        body = parse(file.text, path)[0].value if path.endswith("/phase.yaml") else {}
        head = {key: value for key, value in body.items() if key not in tuple(Position)}
        yield from ((path, head, {str(position): [step]}) for position in Position for step in body.get(position, ()))


def mutated(body: Any, random: Random, depth: int = 0) -> Any:
    """A copy with one strange value somewhere below its steps."""
    if not isinstance(body, (dict, list)) or not body or (depth > 1 and random.random() < 0.1):
        return random.choice(STRANGE)
    if isinstance(body, dict):
        key = random.choice(list(body))
        return {**body, key: mutated(body[key], random, depth + 1)}
    index = random.randrange(len(body))
    return [*body[:index], mutated(body[index], random, depth + 1), *body[index + 1 :]]


@pytest.mark.slow
def test_a_declaration_of_any_form_is_taken_or_refused() -> None:
    random = Random(3)
    told: list[Problem] = []
    for path, head, step in packaged_steps():
        shared = {name: file for name, file in templates().items() if name.startswith(("_", path[:3], "values"))}
        for _ in range(MUTATIONS):
            tree = overlaid({path: json.dumps({**head, **mutated(step, random)})}, shared)
            try:
                load_catalog(tree, document_problems)
            except Problems as refused:
                told += refused.problems
    assert len(told) > 100
    assert all(problem.file and problem.remedy for problem in told)


# ------------------------------------------------------------------------------------- manifests of any form whatsoever

KEYS = (
    "name",
    "labels",
    "annotations",
    "spec",
    "template",
    "containers",
    "image",
    "selector",
    "matchLabels",
    "metadata",
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=4), st.sampled_from(["a", "v1", "Job"])),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["v1", "batch/v1", "apps/v1", "upgrade.cattle.io/v1", "x/y"]),
        "kind": st.sampled_from(
            ["Job", "Service", "Pod", "Deployment", "Plan", "Secret", "ConfigMap", "Other", "NodeList"]
        ),
        "metadata": st.one_of(VALUES, st.just({"name": "a", "namespace": "ns"})),
        "spec": VALUES,
        "status": VALUES,
        "data": VALUES,
    },
)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60), derandomize=True)
@given(body=OBJECTS, borrowed=st.booleans())
def test_a_manifest_of_any_form_is_rendered_or_refused(body: dict[str, Any], borrowed: bool) -> None:
    """Never another exception: whoever wrote the template is told what is wrong with it."""
    step = (
        {"borrowed": [{"file": "a.yaml.j2", "return": "never"}]}
        if borrowed
        else {"owned": ["a.yaml.j2"], "noGate": "none"}
    )
    phase = f"{PHASE}{dump({'steps': [{'name': 'Do', **step}]})}"
    text = "{% raw %}" + json.dumps(body) + "{% endraw %}"
    files = {"90-wait/phase.yaml": phase, "90-wait/a.yaml.j2": text}
    try:
        render_made(plan(), tree=overlaid(files)).files()
    except Problems as refused:
        told = [str(problem) for problem in refused.problems]
    else:
        told = []
    assert all(text.startswith("overlay/90-wait/") for text in told)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_template_may_have_the_name_of_a_file_of_a_layout(layout: str) -> None:
    rendered = render_example("three-node").plan
    own = {Path(file).name for file in files_of(rendered, layout).keys() - files_of(rendered, "plain")}
    assert own <= {*RESERVED}
