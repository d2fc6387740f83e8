"""Reading of arguments and template folders: what is taken, what is left, what is said when it cannot be read."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from renderer.catalog.template_tree import Template
from renderer.errors import Problems
from renderer.files.arguments import read_documents
from renderer.files.decode import documents_of, text_of
from renderer.files.filesystem import FilesRead
from renderer.files.inputs import read_inputs
from renderer.files.templates import read_templates
from renderer.files.tree import write_tree
from renderer.model.path import walk

ROOT = Path(__file__).parents[1]
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n"


def said(reading: FilesRead) -> list[str]:
    return [str(problem) for problem in reading.problems]


def names(reading: FilesRead) -> list[str]:
    return [document.value["metadata"]["name"] for document in reading.documents]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder that everybody may enter, read by somebody who is not root."""
    if os.geteuid() != 0:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
        return
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(0)


def as_root(action: Any, *arguments: Any) -> None:
    effective, real = os.geteuid(), os.getuid()
    os.seteuid(real)
    try:
        action(*arguments)
    finally:
        os.seteuid(effective)


# ---------------------------------------------------------------------------------------------------------- arguments


def test_files_and_folders_are_read_in_order_and_each_file_once(folder: Path) -> None:
    (folder / "nodes").mkdir()
    (folder / "nodes/b.yml").write_text(NODE % "b")
    (folder / "nodes/a.yaml").write_text(NODE % "a" + "---\n" + NODE % "a2")
    (folder / "nodes/c.json").write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c"}}')
    (folder / "nodes/.hidden.yaml").write_text(NODE % "hidden")
    (folder / "nodes/notes.txt").write_text("a: [")
    (folder / "nodes/below").mkdir()
    (folder / "nodes/below/d.yaml").write_text(NODE % "d")
    (folder / "z.yaml").write_text(NODE % "z")
    (folder / "link.yaml").symlink_to("z.yaml")
    reading = read_documents(["z.yaml", "nodes", "./nodes/../z.yaml", "link.yaml", str(folder / "nodes")])
    assert (names(reading), said(reading)) == (["z", "a", "a2", "b", "c"], [])
    assert [document.file for document in reading.documents][:2] == ["z.yaml", "nodes/a.yaml"]


def test_a_dash_is_standard_input() -> None:
    reading = read_documents(["-", "-"], io.BytesIO(b"\xef\xbb\xbf" + (NODE % "a").encode()))
    assert (names(reading), [document.file for document in reading.documents]) == (["a"], ["<stdin>"])
    assert said(read_documents(["-"])) == ["<stdin>: standard input is closed\n    remedy: pass a file"]
    assert said(read_documents(["-"], io.BytesIO(b""))) == [
        "<stdin>: is empty\n    remedy: add a document, or remove the file"
    ]


def test_everything_that_cannot_be_read_is_said_in_one_run(folder: Path) -> None:
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "empty").mkdir()
    (folder / "outer/inner").mkdir(parents=True)
    (folder / "gone.yaml").symlink_to("nowhere")
    arguments = ["missing.yaml", "loop.yaml", "empty", "outer", "gone.yaml", "http://192.0.2.1/plan.yaml", "x" * 300]
    assert said(read_documents([*arguments, "harvester.iso"])) == [
        "missing.yaml: no such file or folder\n    remedy: correct the path",
        "loop.yaml: cannot be read: Too many levels of symbolic links\n    remedy: look at it with: ls -ld loop.yaml",
        "empty: contains no .yaml, .yml, .json file\n    remedy: name another folder",
        "outer: contains no .yaml, .yml, .json file\n"
        "    remedy: name a folder below it; folders are not searched further",
        "gone.yaml: no such file or folder\n    remedy: correct the path",
        "http://192.0.2.1/plan.yaml: an address is not read here\n"
        "    remedy: fetch it and name the file; only --release takes an address",
        f"{'x' * 300}: cannot be read: File name too long\n    remedy: look at it with: ls -ld {'x' * 300}",
        "harvester.iso: no such file or folder\n    remedy: correct the path",
    ]


def test_a_broken_link_in_a_folder_is_said_and_a_pipe_is_passed_over(folder: Path) -> None:
    (folder / "a.yaml").write_text(NODE % "a")
    (folder / "b.yaml").symlink_to("nowhere")
    os.mkfifo(folder / "c.yaml")
    (folder / "d.yaml").symlink_to("d.yaml")
    (folder / "e.yaml").mkdir()
    reading = read_documents(["."])
    assert (names(reading), said(reading)) == (
        ["a"],
        [
            "b.yaml: no such file or folder\n    remedy: correct the path",
            "d.yaml: cannot be read: Too many levels of symbolic links\n    remedy: look at it with: ls -ld d.yaml",
        ],
    )


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    message = "is a device, a pipe or a socket; a file is expected\n    remedy: pass a file, or - for standard input"
    assert said(read_documents([str(tmp_path / "a.yaml")])) == [f"{tmp_path}/a.yaml: {message}"]

    with pytest.raises(Problems, match="is a device, a pipe or a socket"):
        read_inputs(release=str(tmp_path / "a.yaml"))


@pytest.fixture
def open_pipe() -> Iterator[Callable[[bytes], str]]:
    """Makes a pipe that has been written, as `<(command)` gives one."""
    reading, writing = os.pipe()

    def written(content: bytes) -> str:
        os.write(writing, content)
        os.close(writing)
        return f"/dev/fd/{reading}"

    yield written
    os.close(reading)


def test_a_pipe_that_is_open_already_is_read(open_pipe: Callable[[bytes], str]) -> None:
    assert names(read_documents([open_pipe(b"metadata: {name: a}")])) == ["a"]


def test_a_release_may_come_from_an_open_pipe(open_pipe: Callable[[bytes], str]) -> None:
    release = (ROOT / "examples" / "single-node" / "harvester-release.yaml").read_bytes()
    found = read_inputs(release=open_pipe(release)).release
    assert found is not None
    assert found.body["harvester"] == "v1.8.0-rc5"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-be"])
def test_text_in_another_encoding_is_named(encoding: str) -> None:
    mark = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    with pytest.raises(Problems, match=f"is {encoding[:6].upper()} text, not UTF-8 text"):
        text_of((mark + "a: 1").encode(encoding), "a.yaml")


def test_a_folder_that_may_not_be_entered_takes_no_rendering(as_nobody: Path) -> None:
    closed = as_nobody / "closed"
    as_root(closed.mkdir, 0)
    with pytest.raises(Problems, match="cannot be written: Permission denied"):
        write_tree(closed / "plan", {"index.yaml": "a: 1\n"})
    as_root(closed.chmod, 0o755)


def test_what_may_not_be_read_is_said(as_nobody: Path) -> None:
    secret, closed = as_nobody / "secret.yaml", as_nobody / "closed"
    as_root(secret.write_text, "a: 1")
    as_root(secret.chmod, 0)
    as_root(closed.mkdir, 0)
    arguments = [str(secret), str(closed), str(closed / "a.yaml")]
    assert said(read_documents(arguments)) == [
        f"{name}: cannot be read: Permission denied\n    remedy: look at it with: ls -ld {name}" for name in arguments
    ]
    with pytest.raises(Problems) as caught:
        read_templates([closed])
    assert [problem.reason for problem in caught.value.problems] == ["Unreadable"]
    as_root(closed.chmod, 0o755)


@pytest.mark.slow
def test_too_much_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "huge.yaml").open("wb") as file:
        file.truncate(10 * 2**40)
    assert said(read_documents(["huge.yaml"])) == [
        "huge.yaml: is larger than 64 MiB\n    remedy: split it, or ask kubectl get only for the kinds that are needed"
    ]


def test_an_iso_image_among_the_arguments_is_known_by_its_content(folder: Path) -> None:
    (folder / "x.yaml").write_bytes(b"\0" * 32769 + b"CD001" + b"\0" * 100000)
    assert said(read_documents(["x.yaml"])) == [
        "x.yaml: is an ISO image, not UTF-8 text\n    remedy: pass it with --release"
    ]


def test_files_named_by_options_are_read_and_their_problems_said_together(folder: Path) -> None:
    (folder / "release.yaml").write_text("harvester: v1\n")
    with pytest.raises(Problems) as caught:
        read_inputs(["none.yaml"], plan="plan.yaml", release="release.yaml", cluster=["nodes.yaml", "vms.yaml"])
    assert [f"{problem.file}: {problem.reason}" for problem in caught.value.problems] == [
        "none.yaml: NotFound",
        "plan.yaml: NotFound",
        "nodes.yaml: NotFound",
        "vms.yaml: NotFound",
        "release.yaml: MissingField",
        "release.yaml: MissingField",
    ]


# --------------------------------------------------------------------------------------------------------------- JSON

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(st.text(max_size=3), JSON, min_size=1), st.booleans(), st.sampled_from([None, "\t", 2]))
def test_json_reads_the_same_fast_and_with_lines(value: dict[str, Any], escaped: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    with suppress(Problems):  # a null character
        (short,) = documents_of(text, "f")
        (long,) = documents_of(text + " " * 2**20, "f")
        assert short.value == long.value
        assert [type(scalar) for _, scalar in walk(short.value)] == [type(scalar) for _, scalar in walk(long.value)]
        return
    assert "\\u0000" in json.dumps(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "duplicate key 'a'"),
        ('{"a": [1, {"b": 1, "b": 2}]}', "duplicate key 'b'"),
        ('{"a": 1e999}', "1e999 is not a number in JSON"),
        ('{"a": "\\u0000"}', "contains NUL or half of a surrogate pair"),
        ('{"a": "\\ud800"}', "while parsing a quoted scalar; found invalid Unicode character escape code"),
        ("[" * 150 + "]" * 150, "nested deeper than 100 levels"),
        ("[" * 100000, "while increasing flow level; exceeded maximum nesting depth"),
        ('{"a": }{', "did not find expected <document start>"),
    ],
)
@pytest.mark.parametrize("padding", [0, 2**20])
def test_json_that_is_not_sound_is_refused_with_its_line_however_long(text: str, message: str, padding: int) -> None:
    with pytest.raises(Problems) as caught:
        documents_of("\n" + text + "\n" * padding, "f.json")
    (problem,) = caught.value.problems
    assert (problem.message, problem.line) == (message, 2)


def test_long_json_has_no_lines_and_large_numbers_are_read_as_go_does() -> None:
    (document,) = documents_of('{"a": 18446744073709551616, "b": 18446744073709551615}' + " " * 2**20, "f.json")
    assert document.value == {"a": 18446744073709551616.0, "b": 18446744073709551615}
    assert isinstance(document.value["a"], float)
    assert document.line_of(("a",)) == 0


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(
    st.binary(max_size=200)
    | st.text(max_size=100).map(str.encode)
    | st.text("{}[]:,\"'\\\n \tu0d8a1-", max_size=60).map(str.encode)
)
def test_any_bytes_are_documents_or_problems(data: bytes) -> None:
    reading = read_documents(["-"], io.BytesIO(data))
    assert bool(reading.documents) != bool(reading.problems)
    assert all(problem.file == "<stdin>" and problem.remedy for problem in reading.problems)


# ---------------------------------------------------------------------------------------------------------- templates


def test_the_packaged_templates_are_called_by_their_place_in_the_project() -> None:
    tree = read_templates()
    assert tree["10-initialize/phase.yaml"].shown == "templates/10-initialize/phase.yaml"
    assert all(template.packaged and template.shown == f"templates/{path}" for path, template in tree.items())
    assert list(tree) == sorted(tree)
    with pytest.raises(TypeError):
        tree["x"] = tree["10-initialize/phase.yaml"]  # type: ignore[index]


def test_an_overlay_is_laid_over_file_by_file(folder: Path) -> None:
    for name, text in {
        "a/10-initialize/phase.yaml": "one",
        "b/10-initialize/phase.yaml": "two",
        "a/15-x/y.j2": "é",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    tree = read_templates([Path("a"), Path("b")])
    assert tree["10-initialize/phase.yaml"] == Template(text="two", shown="b/10-initialize/phase.yaml", packaged=False)
    assert tree["15-x/y.j2"] == Template(text="é", shown="a/15-x/y.j2", packaged=False)
    assert tree["20-iso-download/phase.yaml"].packaged
    assert list(tree) == sorted(tree)


def test_hidden_files_and_what_editors_leave_are_left_out(folder: Path) -> None:
    for name in (".git/x", ".y.swp", "a~", "#a#", "b.swp", "c.orig", "d.rej", "e.bak", "__pycache__/f.pyc", "kept.j2"):
        (folder / "over" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "over" / name).write_text("x")
    assert sorted(set(read_templates([Path("over")])) - set(read_templates())) == ["kept.j2"]


def test_a_mounted_config_map_is_read_through_its_links(folder: Path) -> None:
    (folder / "over/..2026/15-x").mkdir(parents=True)
    (folder / "over/..2026/15-x/phase.yaml").write_text("x")
    (folder / "over/..data").symlink_to("..2026")
    (folder / "over/15-x").symlink_to("..data/15-x")
    assert read_templates([Path("over")])["15-x/phase.yaml"].shown == "over/15-x/phase.yaml"


def test_a_link_of_an_overlay_may_not_lead_out_of_it(folder: Path) -> None:
    (folder / "outside/15-x").mkdir(parents=True)
    (folder / "outside/secret").write_text("hidden")
    (folder / "over/_macros").mkdir(parents=True)
    (folder / "over/_macros/k.j2").symlink_to("../../outside/secret")
    (folder / "over/15-x").symlink_to("../outside/15-x")
    (folder / "over/phase.yaml").symlink_to("/etc/passwd")
    (folder / "over/gone").symlink_to("../nowhere")
    with pytest.raises(Problems) as caught:
        read_templates([Path("over")])
    assert [(problem.reason, problem.file) for problem in caught.value.problems] == [
        ("LinkOutside", f"over/{name}") for name in ("15-x", "_macros/k.j2", "gone", "phase.yaml")
    ]
    assert "hidden" not in str(caught.value)


def test_an_overlay_may_be_a_link_itself(folder: Path) -> None:
    (folder / "mounted/15-x").mkdir(parents=True)
    (folder / "mounted/15-x/phase.yaml").write_text("x")
    (folder / "mounted/15-x/a.yaml.j2").symlink_to("phase.yaml")
    (folder / "over").symlink_to("mounted")
    assert read_templates([Path("over")])["15-x/a.yaml.j2"].text == "x"


def test_a_link_of_a_folder_of_objects_may_not_lead_out_of_it(folder: Path) -> None:
    (folder / "cluster").mkdir()
    (folder / "outside.yaml").write_text(NODE % "a")
    (folder / "cluster/a.yaml").symlink_to("../outside.yaml")
    (folder / "cluster/b.yaml").write_text(NODE % "b")
    (folder / "cluster/c.yaml").symlink_to("b.yaml")
    reading = read_documents(["cluster"])
    assert names(reading) == ["b"]
    assert said(reading) == [
        "cluster/a.yaml: a symbolic link leads out of cluster\n    remedy: put the file itself in its place"
    ]


def test_all_that_is_wrong_with_overlays_is_said_in_one_run(folder: Path) -> None:
    (folder / "over/a").mkdir(parents=True)
    (folder / "over/a/back").symlink_to("..")
    (folder / "over/binary").write_bytes(b"\0\1")
    (folder / "over/latin").write_bytes(b"a\n\xfc")
    (folder / "over/gone").symlink_to("nowhere")
    os.mkfifo(folder / "over/pipe")
    (folder / "file").write_text("x")
    (folder / "empty").mkdir()
    with pytest.raises(Problems) as caught:
        read_templates([Path("over"), Path("file"), Path("none"), Path("empty")])
    assert [str(problem).partition("\n")[0] for problem in caught.value.problems] == [
        "over/a/back: a symbolic link leads back to a folder above it",
        "over/binary: is a binary file",
        "over/gone: no such file or folder",
        "over/latin:2: byte 0xfc is not UTF-8",
        "over/pipe: is a device, a pipe or a socket; a file is expected",
        "file: is not a folder",
        "none: no such file or folder",
        "empty: contains no template",
    ]
    assert all(problem.remedy for problem in caught.value.problems)


# ---------------------------------------------------------------------------------------------------------- packaging

LIST = """
import sys
from renderer.files.templates import read_templates
from renderer.validation import load
tree = read_templates()
shown = tree["10-initialize/phase.yaml"].shown
print(len(tree), shown, load("facts.json")["title"], "importlib.resources" in sys.modules)
"""


def listed(path: Path, cwd: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(path)!r})\n{LIST}"],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_templates_and_schemas_are_found_in_a_tree_in_a_wheel_and_in_a_zip(tmp_path: Path) -> None:
    wheel = tmp_path / "wheel.zip"
    with zipfile.ZipFile(wheel, "w") as archive:
        for source, target in (
            ("renderer", "renderer"),
            ("templates", "renderer/templates"),
            ("schemas", "renderer/schemas"),
        ):
            for file in sorted((ROOT / source).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, f"{target}/{file.relative_to(ROOT / source)}")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site-packages")
    in_tree = listed(ROOT, tmp_path)
    assert in_tree.endswith("False\n")
    assert listed(tmp_path / "site-packages", tmp_path) == in_tree
    assert listed(wheel, tmp_path) == in_tree.replace("False", "True")
