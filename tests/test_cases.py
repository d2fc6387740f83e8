"""The field's cases that speak of inputs, rendering and versions, each by its file, with the outcome that it demands.

A case is data and stays as it came; what it leaves out (a release, nodes, the Version) is added here. Cases that other
rooms answer are named with the room, so that none is forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.rendered_plans import ROOT, Json, Rendered, inputs_of, nodes, release, render_made, server_version, version

from renderer.cli.program import run
from renderer.documents import Inputs, recognize
from renderer.errors import Problems
from renderer.files.inputs import read_inputs
from renderer.model.path import walk
from renderer.names import NAME_LIMIT
from renderer.versions import parse_version, refusal
from renderer.yaml_io import parse

CASES = sorted((ROOT / "tests" / "cases").glob("[0-9]*.yaml"))
LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def header(path: Path) -> Mapping[str, str]:
    """The five keys of a case's comment; a continued line starts with three blanks."""
    found: dict[str, str] = {}
    key = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        match = re.match(r"# (\w+): (.*)", line)
        if match:
            key, found[match[1]] = match[1], match[2]
        else:
            assert line.startswith("#   "), f"{path.name}: {line}"
            found[key] += f" {line[4:]}"
    return found


def documents(path: Path) -> list[Json]:
    return [document.value for document in parse(path.read_text(encoding="utf-8"), path.name)]


def rendered(path: Path, *added: Json) -> Rendered:
    return render_made(*documents(path), *added)


def check_guard(path: Path, *, allowed: bool) -> None:
    """What the guard before the preload says, and that the phase is rendered with these very versions."""
    inputs = inputs_of(documents(path))
    status = plan_status(inputs)
    expected = status["releaseMetadata"]
    refused = refusal(
        current=status["previousVersion"], target=expected["harvester"], minimum=expected["minUpgradableVersion"]
    )
    assert (refused is None) == allowed, refused
    (gate,) = rendered(path, *nodes("n1", "n2")).step("ImagePreload/VersionGuard").step.gates
    (rule,) = gate.probe.all
    assert dict(rule.arguments) == {  # type: ignore[union-attr]
        "current": status["previousVersion"],
        "target": expected["harvester"],
        "minimum": expected["minUpgradableVersion"],
        "strict": True,
    }


def plan_status(inputs: Inputs) -> Json:
    assert inputs.plan
    status: Json = inputs.plan.body["status"]
    return status


# ------------------------------------------------------------------------------------------------------------ the cases


def iso_url_with_ampersand(path: Path) -> None:
    url = documents(path)[0]["spec"]["isoURL"]
    assert (url.count("&"), "%3D" in url, url.partition("#")[2]) == (2, True, "iso")
    first, second = (rendered(path, release(), *nodes("n1")) for _ in range(2))
    assert first.body("ISODownload/Image")["spec"]["url"] == url
    text = "".join(first.files().values())
    assert url in text
    assert "&amp;" not in text
    assert "\\u0026" not in text
    assert first.files() == second.files()


def version_is_a_float(path: Path) -> None:
    with pytest.raises(Problems) as caught:
        read_inputs([str(path)])
    told = {problem.field: problem for problem in caught.value.problems}
    assert {"metadata.name", "spec.minUpgradableVersion", "spec.releaseDate", "spec.version"} <= set(told)
    for problem in told.values():
        assert problem.reason == "WrongType"
        assert "quotes" in str(problem.remedy)
        assert problem.line
    assert "1.10" in str(told["spec.version"]) or "1.1" in str(told["spec.version"])


def ten_is_newer_than_nine(path: Path) -> None:
    check_guard(path, allowed=True)
    assert refusal(current="v1.10.0", target="v1.9.2") == "downgrading is prohibited"


def rc_to_final(path: Path) -> None:
    check_guard(path, allowed=True)
    assert parse_version("v1.8.0-rc2").prerelease == ("rc2",)


def single_node(path: Path) -> None:
    """One replica is no reason to refuse, and neither is what the excerpt of the Node does not have."""
    assert run(["upgradeplan", "validate", str(path)]) == 0
    found = rendered(path, release(), version(), server_version())
    assert found.step("Initialize/ReadCluster").records is not None
    assert dict(found.step("Initialize/ReadCluster").records)["singleNode"] == "solo-1"
    assert (
        found.body("NodeUpgrade/SingleNode/solo-1")["metadata"]["labels"]["management.harvesterhci.io/job-type"]
        == "single-node-upgrade"
    )
    text = "".join(found.files().values())
    assert "preDrainHooks" not in text
    assert "pre-hook" not in "".join(text for file, text in found.files().items() if file != "index.yaml")


def long_node_names(path: Path) -> None:
    names = list(documents(path)[0]["status"]["nodeUpgradeStatuses"])
    found = rendered(path, release(), version(), server_version())
    jobs: dict[str, list[str]] = {}
    for manifest in found.plan.manifests():
        metadata = manifest.body["metadata"]
        pod = manifest.body.get("spec", {}).get("template", {}).get("metadata", {})
        labels = {**metadata.get("labels", {}), **pod.get("labels", {})}
        for text in (metadata["name"], *labels.values()):
            assert text.startswith("<") or (len(text) <= NAME_LIMIT and LABEL.fullmatch(text)), text
        if manifest.ref.kind == "Job" and (node := manifest.body["spec"]["template"]["spec"].get("nodeName")):
            jobs.setdefault(node, []).append(metadata["name"])
    assert sorted(jobs) == sorted(names)
    first, second = jobs.values()
    assert len({*first, *second}) == len(first) + len(second) > 2
    assert rendered(path, release(), version(), server_version()).files() == found.files()


def tag_like_a_number(path: Path) -> None:
    tag = "5319e7"
    found = rendered(path, release(), version(), server_version(), *nodes("n1", "n2"))
    assert found.plan.images == (f"rancher/harvester-upgrade-toolkit:{tag}",)
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 2)
    for file, text in found.files().items():
        assert not re.search(rf"(: |- ){tag}$", text, re.MULTILINE), file
        for document in reader.load_all(text):
            assert not [where for where, value in walk(document) if isinstance(value, float)], file
    assert found.body("ImagePreload/Preload")["spec"]["version"] == tag


HANDLERS: Mapping[str, Callable[[Path], None]] = {
    "04-iso-url-with-ampersand": iso_url_with_ampersand,
    "05-version-is-a-float": version_is_a_float,
    "06-ten-is-newer-than-nine": ten_is_newer_than_nine,
    "08-rc-to-final-allowed": rc_to_final,
    "11-single-node-single-replica": single_node,
    "21-long-node-names": long_node_names,
    "24-tag-like-a-number": tag_like_a_number,
}
ELSEWHERE: Mapping[str, str] = {
    "12-disk-over-gc-threshold": "preflight",
    "15-capi-cluster-paused": "preflight",
    "25-two-nodes-pre-drain": "the loop",
}
OUTCOMES = {"accept", "refuse", "fail-terminal", "one-job-only"}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_says_what_it_expects(path: Path) -> None:
    found = header(path)
    assert set(found) == {"case", "source", "stage", "expected", "detail"}
    assert found["case"] == path.stem
    assert found["expected"] in OUTCOMES
    assert documents(path)


def test_every_case_has_a_handler_or_a_room_that_answers_it() -> None:
    assert sorted(path.stem for path in CASES) == sorted({**HANDLERS, **ELSEWHERE})
    assert not set(HANDLERS) & set(ELSEWHERE)


@pytest.mark.slow
@pytest.mark.parametrize("case", HANDLERS)
def test_a_case_ends_as_it_demands(case: str) -> None:
    path = ROOT / "tests" / "cases" / f"{case}.yaml"
    HANDLERS[case](path)
    refused = bool(recognize(parse(path.read_text(encoding="utf-8"), path.name))[1]) or not is_accepted(path)
    assert refused == (header(path)["expected"] == "refuse")


def is_accepted(path: Path) -> bool:
    try:
        read_inputs([str(path)])
    except Problems:
        return False
    return True


@pytest.mark.parametrize("case", ELSEWHERE)
def test_a_case_of_another_room_is_well_formed_input(case: str) -> None:
    """Refusing it for its form would hide the reason that it is about."""
    assert is_accepted(ROOT / "tests" / "cases" / f"{case}.yaml")


def test_a_case_that_nobody_answers_is_found(tmp_path: Path) -> None:
    """The header is read as it is written: a continued line, and no key too many."""
    path = tmp_path / "99-x.yaml"
    path.write_text("# case: 99-x\n# detail: a\n#   b\nkind: X\n")
    assert dict[str, Any](header(path)) == {"case": "99-x", "detail": "a b"}
