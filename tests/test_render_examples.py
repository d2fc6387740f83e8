"""Every example's whole rendering is pinned, one file a scenario, as text that a reviewer can read.

`pytest --snapshot-update tests/test_render_examples.py` writes the files anew; a file of no scenario fails the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rendering import EXAMPLES, Rendered, render_example
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from renderer.layout.trees import INDEX, LAYOUTS
from renderer.yaml_door import parse

class WholeTree(SingleFileSnapshotExtension):
    """One file for all files of a rendering: `tests/__snapshots__/test_render_examples/test_pinned[<scenario>].yaml`."""

    file_extension = "yaml"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Mapping[str, str], **_: Any) -> str:
        return whole(data)


def whole(files: Mapping[str, str]) -> str:
    """The index first, then every file in the order of the steps; each begins with a line `# <path>`."""
    order = [INDEX, *(path for path in files if path != INDEX)]
    return "".join(f"---\n# {path}\n{files[path]}" for path in order)


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Rendered:
    return render_example(request.param)


def test_pinned(example: Rendered, snapshot: SnapshotAssertion) -> None:
    assert example.files() == snapshot(extension_class=WholeTree)


def test_a_pinned_file_is_for_people_to_read(example: Rendered) -> None:
    """It is YAML, it has a document for each object, and no line runs on for ever."""
    text = whole(example.files())
    assert len(parse(text, "snapshot")) == 1 + len(list(example.plan.manifests()))
    assert "\\u" not in text
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_exercises_every_phase(name: str) -> None:
    """A phase that renders nothing says why in the index."""
    for phase in render_example(name).plan.phases:
        idle = phase.skipped or phase.pending or all(step.skipped or step.pending for step in phase.steps)
        works = any(step.manifests or step.step.gates or step.step.fetches for step in phase.steps)
        assert idle or works, phase.phase.name


def test_together_the_examples_take_every_step() -> None:
    """No step of the packaged phases is skipped or pending everywhere: each one's manifests are pinned somewhere."""
    seen = {(s.phase, s.step.name): bool(s.skipped or s.pending) for name in EXAMPLES for s in render_example(name).steps()}
    taken = {
        (s.phase, s.step.name)
        for name in EXAMPLES
        for s in render_example(name).steps()
        if not (s.skipped or s.pending)
    }
    assert set(seen) - taken == set()


def test_every_layout_holds_the_same_manifests(example: Rendered) -> None:
    plain = {path: text for path, text in example.files("plain").items() if path != INDEX}
    for layout in LAYOUTS:
        files = example.files(layout)
        assert {path: files[path] for path in plain} == plain


def test_a_kustomization_lists_what_may_be_applied_from_outside(example: Rendered) -> None:
    files = example.files("kustomize")
    listed = {
        f"{Path(path).parent}/{entry}"
        for path, text in files.items()
        if path.endswith("/kustomization.yaml")
        for entry in parse(text, path)[0].value["resources"]
    }
    free = {path for path in example.files() if "/loop-only/" not in path and path != INDEX}
    assert listed == free
