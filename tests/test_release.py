"""A release: what must hold before, the version and the changelog, and that all is made to the same bytes twice.

Packages, chart and manifests are made here from a clone of its own; images with them in `test_image.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from datetime import date
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from release.archive import pack
from release.artefacts import CHECKSUMS, write_checksums
from release.bill_of_materials import bill_of_materials
from release.preparing import is_released, obstacles, prepare, with_heading
from release.source import Source, source_of
from support.installed import ROOT, VERSION
from support.pins import pins

TODAY = date(2026, 11, 29)
SOURCE = Source(version=VERSION, commit="0" * 40, epoch=1_764_400_000)
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.1.0 - 2026-01-01\n\n- All.\n"
PROJECT = '[project]\nname = "x"\nversion = "0.1.0"\n\n[tool.x]\nversion = "7"\n'


def git(folder: Path, *words: str) -> str:
    name = {f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    times = {f"GIT_{who}_DATE": "2026-11-29T09:00:00Z" for who in ("AUTHOR", "COMMITTER")}
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        env={**os.environ, **name, **times},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of two files, and an author for what is committed."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "test@example.com")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "-q", "-m", "All")
    return tmp_path


def test_version_and_changelog_are_committed_and_nothing_is_done_twice(clone: Path) -> None:
    assert not is_released("0.2.0", clone)
    prepare("0.2.0", TODAY, clone)
    assert (clone / "pyproject.toml").read_text() == PROJECT.replace('"0.1.0"', '"0.2.0"')
    expected = "## Unreleased\n\n## 0.2.0 - 2026-11-29\n\n### Added\n\n- A thing.\n\n## 0.1.0 - 2026-01-01\n"
    assert expected in (clone / "CHANGELOG.md").read_text()
    assert git(clone, "log", "-1", "--format=%s") == "Release 0.2.0"
    released = source_of(clone)
    assert (released.version, released.commit) == ("0.2.0", git(clone, "rev-parse", "HEAD"))
    prepare("0.2.0", date(2027, 1, 1), clone)
    assert source_of(clone) == released


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v1", "'v1' is not a version: write MAJOR.MINOR.PATCH"),
        ("0.02.0", "'0.02.0' is not a version: write MAJOR.MINOR.PATCH"),
        ("0.0.9", "0.0.9 is older than 0.1.0, the version in pyproject.toml"),
        ("0.2.0", None),
        ("0.10.0", None),
    ],
)
def test_what_is_no_next_version_is_not_released(clone: Path, version: str, said: str | None) -> None:
    assert list(obstacles(version, clone)) == ([said] if said else [])


def test_all_that_is_in_the_way_is_said_at_once_and_nothing_is_changed(clone: Path) -> None:
    text = CHANGELOG.replace("### Added\n\n- A thing.\n\n", "")
    (clone / "CHANGELOG.md").write_text(text)
    with pytest.raises(SystemExit) as caught:
        prepare("0.2.0", TODAY, clone)
    assert str(caught.value).splitlines() == [
        "the work tree has changes that are not committed: commit or stash them",
        "CHANGELOG.md has nothing under Unreleased",
    ]
    assert (clone / "CHANGELOG.md").read_text() == text
    assert source_of(clone).version == "0.1.0"


def test_the_projects_own_changelog_can_be_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    after = with_heading(text, "99.0.0", TODAY)
    assert after.replace("\n## 99.0.0 - 2026-11-29\n", "", 1) == text
    assert after.index("## Unreleased") < after.index("## 99.0.0") < after.index("### Added")


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    for number, names in enumerate((("a", "b/c"), ("b/c", "a"))):
        pack({name: name.encode() for name in names}, tmp_path / f"{number}.tgz", SOURCE.epoch)
    assert (tmp_path / "0.tgz").read_bytes() == (tmp_path / "1.tgz").read_bytes()
    with tarfile.open(tmp_path / "0.tgz") as archive:
        found = {member.name: (member.mtime, member.uid) for member in archive}
    assert found == dict.fromkeys(("a", "b/c"), (SOURCE.epoch, 0))


def test_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "install.yaml").write_text("x")
    write_checksums(tmp_path)
    assert (tmp_path / CHECKSUMS).read_text() == f"{hashlib.sha256(b'x').hexdigest()}  install.yaml\n"


@pytest.mark.full(
    "a release is built twice, from two clones; its parts, and the wheel of test_packaging.py, stand for it"
)
def test_a_release_is_made_twice_to_the_same_bytes(tmp_path: Path) -> None:
    """From another clone at another path the second time, and at another hour."""
    made = [_made_in(cloned(tmp_path / name)) for name in ("one", "two")]
    assert made[0] == made[1]
    wheel, sdist = f"upgradeplan-{VERSION}-py3-none-any.whl", f"upgradeplan-{VERSION}.tar.gz"
    assert set(made[0]) == {wheel, sdist, "install.yaml", f"harvester-upgrade-manager-{VERSION}.tgz", CHECKSUMS}


def cloned(folder: Path) -> Path:
    """What git has of this tree, as a clone with one commit of a fixed time."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = [
        Path(name)
        for name in listed.split("\0")
        if name and (not name.startswith("tests/") or name.startswith("tests/release/"))
    ]
    for name in (name for name in names if (ROOT / name).is_file()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for words in (("init", "-q"), ("add", "--all"), ("commit", "-q", "-m", "All")):
        git(folder, *words)
    return folder


_MAKE = "from release.artefacts import *; from release.source import *; make_release(source_of(), ROOT / 'dist', [])"


def _made_in(clone: Path) -> dict[str, bytes]:
    environment = {**os.environ, "PYTHONPATH": str(clone / "tests")}
    done = subprocess.run([sys.executable, "-c", _MAKE], cwd=clone, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert git(clone, "status", "--porcelain") == ""
    return {path.name: path.read_bytes() for path in (clone / "dist").iterdir()}


@pytest.mark.slow
def test_the_bill_of_materials_names_every_pinned_package_and_who_needs_it() -> None:
    site = Path(pytest.__file__).parents[1]
    text = bill_of_materials(SOURCE, site)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert text == bill_of_materials(SOURCE, site)
    found = json.loads(text)
    named = {item["bom-ref"] for item in found["components"]}
    assert set(pins()) <= named
    needs = {item["ref"]: item.get("dependsOn", []) for item in found["dependencies"]}
    assert any(ref.startswith("pkg:pypi/jinja2@") for ref in needs[f"pkg:pypi/upgradeplan@{VERSION}"])
    assert found["metadata"]["component"]["bom-ref"] == f"pkg:pypi/upgradeplan@{VERSION}"
