"""What is installed, in whatever way, renders the same bytes as the source tree, far from the source tree.

Nothing is fetched: the installed package borrows its dependencies from the environment that runs the tests. All is
built from one copy of the source, so that nobody's edits meanwhile come between.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.installed import VERSION

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("renderer", "reconcile")
KNOWLEDGE = ("templates", "schemas")
BESIDE = ("pyproject.toml", "hatch_build.py", ".gitignore", "README.md", "CHANGELOG.md", "LICENSE")
MADE_BY_PYTHON = shutil.ignore_patterns("__pycache__", ".*")
DIST_INFO = f"upgradeplan-{VERSION}.dist-info"
SCRIPTS = ("upgradeplan", "kubectl-upgradeplan")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def source(folder: Path) -> Path:
    for name in (*PACKAGES, *KNOWLEDGE, "examples"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=MADE_BY_PYTHON)
    for name in BESIDE:
        shutil.copy(ROOT / name, folder / "source")
    return committed(folder / "source")


@pytest.fixture(scope="module")
def wheel(source: Path, folder: Path) -> Path:
    return _build("wheel", source, folder / "dist")


@pytest.fixture(scope="module")
def wheel_from_sdist(source: Path, folder: Path) -> Path:
    with tarfile.open(_build("sdist", source, folder / "sdist")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return _build("wheel", unpacked, folder / "dist-from-sdist")


@pytest.fixture(scope="module")
def install(folder: Path) -> Callable[..., Path]:
    """Installs into a new environment and answers the environment's folder."""
    python = _with_pip(folder / "tools")

    def install(*what: str | Path) -> Path:
        environment = folder / f"environment-{len(list(folder.iterdir()))}"
        venv.create(environment)
        site = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        arguments = ("--ignore-installed", "--no-compile", "--no-index", "--no-deps", "--no-build-isolation")
        pip = (python, "-m", "pip", "--python", environment / "bin" / "python", "install", "-q")
        _run(*pip, *arguments, *what, at=folder)
        return environment

    return install


@pytest.fixture(scope="module")
def example(source: Path, folder: Path) -> Path:
    """Copied, as a user would."""
    shutil.copytree(source / "examples" / "three-node", folder / "example")
    return folder / "example"


@pytest.fixture(scope="module")
def from_source(source: Path, example: Path, folder: Path) -> Path:
    rendered = folder / "from-source"
    _run(sys.executable, "-m", "renderer.cli", *_render(example, rendered), at=source)
    return rendered


def test_a_wheel_holds_two_packages_and_what_they_know(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {info.filename: archive.read(info) for info in archive.infolist()}
    tops = {name.partition("/")[0] for name in inside}
    assert tops == {*PACKAGES, DIST_INFO}
    for name in KNOWLEDGE:
        prefix = f"renderer/{name}/"
        found = {path.removeprefix(prefix): text for path, text in inside.items() if path.startswith(prefix)}
        assert found == _files(source / name)
    assert inside["renderer/commit.txt"].decode().strip() == _commit(source)
    assert {"renderer/py.typed", "reconcile/py.typed"} <= set(inside)
    assert inside[f"{DIST_INFO}/licenses/LICENSE"] == (source / "LICENSE").read_bytes()


def test_an_sdist_gives_the_same_wheel(wheel: Path, wheel_from_sdist: Path) -> None:
    assert wheel_from_sdist.read_bytes() == wheel.read_bytes()


def test_a_wheel_tells_its_commit_and_renders_the_same(
    install: Callable[..., Path], source: Path, wheel: Path, example: Path, from_source: Path, folder: Path
) -> None:
    environment = install(wheel)
    assert _home_of("renderer", environment, folder).is_relative_to(environment)
    said = _run(environment / "bin" / "upgradeplan", "--version", at=folder)
    assert said == f"upgradeplan {VERSION} (commit {_commit(source)})\n"
    for script in SCRIPTS:
        _assert_renders(environment / "bin" / script, example=example, like=from_source, at=folder)


OTHER_CLONES = pytest.mark.full("more wheels are built; the one that tells its commit stands for them")


@OTHER_CLONES
def test_a_wheel_of_a_changed_tree_says_so(source: Path, folder: Path) -> None:
    changed = committed(shutil.copytree(source, folder / "changed", ignore=shutil.ignore_patterns(".git")))
    (changed / "README.md").write_text("changed", encoding="utf-8")
    with zipfile.ZipFile(_build("wheel", changed, folder / "dist-changed")) as archive:
        assert archive.read("renderer/commit.txt").decode() == f"{_commit(changed)}-dirty\n"


@OTHER_CLONES
def test_a_wheel_of_no_clone_tells_no_commit_not_even_that_of_a_clone_around_it(source: Path, folder: Path) -> None:
    around = committed(shutil.copytree(source, folder / "around", ignore=shutil.ignore_patterns(".git")))
    inner = shutil.copytree(source, around / "inner", ignore=shutil.ignore_patterns(".git"))
    with zipfile.ZipFile(_build("wheel", inner, folder / "dist-inner")) as archive:
        assert "renderer/commit.txt" not in archive.namelist()


@pytest.mark.full("an editable install; make has made one before any test runs")
def test_an_editable_install_renders_the_same(
    install: Callable[..., Path], source: Path, example: Path, from_source: Path, folder: Path
) -> None:
    environment = install("--editable", source)
    assert _home_of("renderer", environment, folder).is_relative_to(source)
    assert _home_of("reconcile", environment, folder).is_relative_to(source)
    _assert_renders(environment / "bin" / "upgradeplan", example=example, like=from_source, at=folder)


def test_a_wheel_that_stays_zipped_renders_the_same(
    wheel: Path, example: Path, from_source: Path, folder: Path
) -> None:
    program = f"import sys; sys.path.insert(0, {str(wheel)!r}); from renderer.cli import main; sys.exit(main())"
    _assert_renders(sys.executable, "-c", program, example=example, like=from_source, at=folder)


def committed(folder: Path) -> Path:
    """The folder, made a clone with one commit."""
    name = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "--all"), (*name, "commit", "-q", "-m", "All")):
        _run("git", *words, at=folder)
    return folder


def _commit(clone: Path) -> str:
    return _run("git", "rev-parse", "HEAD", at=clone).strip()


def _build(target: str, source: Path, folder: Path) -> Path:
    _run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder, at=source)
    (built,) = folder.iterdir()
    return built


def _with_pip(folder: Path) -> Path:
    """The Python that runs this, or one with the pip that Python brings: uv makes environments without."""
    if find_spec("pip"):
        return Path(sys.executable)
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def _assert_renders(*command: str | Path, example: Path, like: Path, at: Path) -> None:
    rendered = at / f"rendered-{len(list(at.iterdir()))}"
    _run(*command, *_render(example, rendered), at=at)
    assert _files(rendered) == _files(like)


def _render(example: Path, folder: Path) -> tuple[str | Path, ...]:
    return ("render", example, "--output-dir", folder)


def _home_of(package: str, environment: Path, at: Path) -> Path:
    program = f"import {package}; print({package}.__file__)"
    return Path(_run(environment / "bin" / "python", "-c", program, at=at).strip())


def _files(folder: Path) -> dict[str, bytes]:
    """By path, without what Python and editors leave behind. There is at least one."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = {path: path.relative_to(folder) for path in paths}
    kept = {
        path: name for path, name in names.items() if not any(part.startswith((".", "__py")) for part in name.parts)
    }
    assert kept
    return {name.as_posix(): path.read_bytes() for path, name in kept.items()}


def _run(*command: str | Path, at: Path) -> str:
    """Raises with the command's own words. PYTHONPATH would show it the source tree."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "PIP_"))}
    done = subprocess.run([str(part) for part in command], cwd=at, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
