"""The support matrix and the notes of releases: data of `preflight/releases/`, chosen by the versions of an upgrade."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.preflight_cases import checks
from support.rendered_plans import ROOT, templates

from renderer.catalog.load import load_catalog
from renderer.catalog.releases import components_of, load_releases, minimum_of, notes_between
from renderer.catalog.template_tree import Template
from renderer.cli.program import run
from renderer.errors import Problems
from renderer.model.release_line import NoteKind
from renderer.validation import document_problems

LINES = load_releases(templates(), document_problems)


def ids(current: str, target: str) -> set[str]:
    return {note.id for note in notes_between(LINES, current, target)}


@pytest.mark.parametrize(
    ("target", "minimum"),
    [
        ("v1.4.0", "v1.3.2"),
        ("v1.4.1", "v1.4.0"),
        ("v1.4.3", "v1.4.1"),
        ("v1.5.2", "v1.4.2"),
        ("v1.6.1", "v1.5.0"),
        ("v1.7.1", "v1.6.0"),
        ("v1.8.0-rc1", "v1.7.0"),
        ("v1.9.0", "v1.8.0"),
        ("v1.10.0", "v1.9.0"),
        ("v1.11.0", ""),
        ("master-f6bc010", ""),
    ],
)
def test_the_oldest_version_that_may_be_upgraded(target: str, minimum: str) -> None:
    assert minimum_of(LINES, target) == minimum


def test_notes_are_those_of_the_two_versions() -> None:
    assert {"network-manager", "nic-names", "dhcp-client-id"} <= ids("v1.6.1", "v1.7.0")
    assert "dhcp-client-id" not in ids("v1.6.1", "v1.7.1")  # kept by itself from then on
    assert "nic-names" not in ids("v1.6.1", "v1.7.2")
    assert ids("v1.7.1", "v1.7.2") == {"cos-state-size", "import-memory", "repository-volume", "plan-controller"}
    assert ids("v1.7.1", "v1.8.0-rc1") == ids("v1.7.1", "v1.8.0")
    assert "legacy-bios" in ids("v1.7.1", "v1.8.0")
    assert ids("v1.8.0", "v1.8.0") == set()
    assert ids("v1.7-head", "v1.8.0") == set()


@pytest.mark.parametrize("minor", range(5, 11))
def test_an_outside_rancher_comes_before_the_cluster_and_its_extension_after(minor: int) -> None:
    of_rancher = [f"external-rancher-1-{minor}", f"ui-extension-1-{minor}"]
    notes = [note for note in notes_between(LINES, f"v1.{minor - 1}.3", f"v1.{minor}.0") if note.id in of_rancher]
    assert [(note.id, note.afterwards) for note in notes] == list(zip(of_rancher, (False, True), strict=True))


def test_components_of_a_release() -> None:
    assert components_of(LINES, "v1.8.1")["KubeVirt"] == "1.7"
    assert components_of(LINES, "v1.6.0")["OS"] == "SLE Micro 5.5"
    assert components_of(LINES, "v9.9.9") == {}


def test_a_gate_and_a_probe_have_a_check_that_stands_for_them() -> None:
    """The reverse as well: nobody else names one. A probe is answered by hosts."""
    for line in LINES:
        for note in line.notes:
            assert bool(note.checks) == (note.kind in (NoteKind.GATE, NoteKind.PROBE)), note.id
            assert set(note.checks) <= set(checks()), note.id
            if note.kind is NoteKind.PROBE:
                assert all(check.startswith("host-") for check in note.checks), note.id


def test_no_note_is_called_as_another() -> None:
    names = [note.id for line in LINES for note in line.notes]
    assert len(names) == len(set(names))


OF_A_SITE = """\
apiVersion: templates.upgradeplan/v1
kind: ReleaseNotes
release: {release}
paths: [{{to: [{release}], minimum: v1.7.0}}]
components: {{KubeVirt: "9.9"}}
notes:
- id: ours
  from: [1.7.x]
  to: [{release}]
  kind: gate
  text: It is so.
  remedy: do it
  checks: [{check}]
"""


def tree_with(**files: str) -> Mapping[str, Template]:
    """With files of an overlay in preflight/releases/."""
    own = {f"preflight/releases/{name}.yaml": text for name, text in files.items()}
    return {**templates(), **{path: Template(text=text, shown=path, packaged=False) for path, text in own.items()}}


@pytest.mark.slow
def test_a_new_release_is_a_new_file_and_one_of_a_line_takes_its_place() -> None:
    tree = tree_with(
        new=OF_A_SITE.format(release="1.11.x", check="node-ready"),
        ours=OF_A_SITE.format(release="1.8.x", check="node-ready"),
    )
    load_catalog(tree, document_problems)
    lines = load_releases(tree, document_problems)
    assert components_of(lines, "v1.11.2") == components_of(lines, "v1.8.0") == {"KubeVirt": "9.9"}
    assert [note.id for note in notes_between(lines, "v1.7.1", "v1.8.0") if "legacy" in note.id] == []
    assert len(lines) == len(LINES) + 1


def test_a_note_that_names_no_check_is_refused() -> None:
    with pytest.raises(Problems) as caught:
        load_catalog(tree_with(ours=OF_A_SITE.format(release="1.8.x", check="node-redy")), document_problems)
    assert str(caught.value.problems[0]).splitlines()[0] == (
        "preflight/releases/ours.yaml:13: note ours: check 'node-redy' not found; did you mean 'node-ready'?"
    )


def test_a_gate_without_a_check_is_refused() -> None:
    text = OF_A_SITE.format(release="1.8.x", check="x").replace("  checks: [x]\n", "")
    with pytest.raises(Problems) as caught:
        load_catalog(tree_with(ours=text), document_problems)
    assert [(item.file, item.line) for item in caught.value.problems] == [("preflight/releases/ours.yaml", 7)]


@pytest.mark.slow
def test_a_review_tree_has_what_is_known_of_the_releases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page of its own beside the index; no digest depends on it, and without the version that runs there is none."""
    example, out = ROOT / "examples" / "three-node", tmp_path / "out"
    assert run(["upgradeplan", "render", str(example), "--output-dir", str(out)]) == 0
    (page,) = out.glob("*/UPGRADE.md")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Upgrade from v1.7.1 to v1.8.0-rc1\n\n| component | v1.7.1 | v1.8.0-rc1 |\n")
    assert "- probe: cos-state-size: The partition COS_STATE must have 15 GB" in text
    assert "- UPGRADE.md" in (page.parent / "index.yaml").read_text(encoding="utf-8")
    digest = re.search("sha256:[0-9a-f]{64}", capsys.readouterr().out)
    overlay = tmp_path / "overlay"
    shutil.copytree(ROOT / "templates" / "preflight" / "releases", overlay / "preflight" / "releases")
    own = overlay / "preflight" / "releases" / "1.8.yaml"
    own.write_text(own.read_text(encoding="utf-8").replace("must have 15 GB", "must have room"), encoding="utf-8")
    words = ["upgradeplan", "render", str(example), "--output-dir", str(out), "--templates", str(overlay)]
    assert run([*words, "--check"]) == 1
    assert run(words) == 0
    assert "must have room" in page.read_text(encoding="utf-8")
    assert digest is not None
    assert digest[0] in capsys.readouterr().out
    files = [str(example / name) for name in ("upgradeplan.yaml", "nodes.yaml")]
    assert run(["upgradeplan", "render", *files, "--output-dir", str(out)]) == 0
    assert not page.exists()
