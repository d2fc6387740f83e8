"""Every example's whole rendering is pinned, one file a scenario, as text that a reviewer can read.

`pytest --snapshot-update tests/test_render_examples.py` writes the files again; a file of no scenario fails the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from schemas.definitions import CRDS
from schemas.strict import refused
from support.rendered_plans import EXAMPLES, Rendered, inputs_of_example, looking_at_hosts, render, render_example
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from renderer.layout.table import LAYOUTS
from renderer.layout.trees import INDEX
from renderer.model.rendered import Manifest, RenderedStep
from renderer.yaml_io import parse


class WholeTree(SingleFileSnapshotExtension):
    """One file for all of a rendering: `__snapshots__/test_render_examples/test_pinned[<scenario>].yaml`."""

    file_extension = "yaml"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Mapping[str, str], **_: Any) -> str:
        return whole(data)


def whole(files: Mapping[str, str]) -> str:
    """The index first, then every file in the order of the steps; each begins with a line `# <path>`."""
    order = [INDEX, *(path for path in files if path != INDEX)]
    return "".join(f"---\n# {path}\n{files[path]}" for path in order)


HOSTS = "single-node-whose-host-is-looked-at"
SCENARIOS = (*EXAMPLES, HOSTS)


def scenario(name: str) -> Rendered:
    if name == HOSTS:
        return render(inputs_of_example("single-node"), looking_at_hosts())
    return render_example(name)


@pytest.fixture(params=SCENARIOS)
def example(request: pytest.FixtureRequest) -> Rendered:
    return scenario(request.param)


def test_pinned(example: Rendered, snapshot: SnapshotAssertion) -> None:
    assert example.files() == snapshot(extension_class=WholeTree)


def test_a_pinned_file_is_for_people_to_read(example: Rendered) -> None:
    """It is YAML, it has a document for each object, and no line runs on for ever."""
    text = whole(example.files())
    assert len(parse(text, "snapshot")) == 1 + len(list(example.plan.manifests()))
    assert "\\u" not in text
    assert max(map(len, text.splitlines())) < 400


def test_every_phase_is_in_the_index(example: Rendered) -> None:
    names = [phase["name"] for phase in parse(example.files()[INDEX], INDEX)[0].value["phases"]]
    assert names == [phase.phase.name for phase in example.plan.phases]
    assert len(names) >= 8


def test_together_the_examples_take_every_step() -> None:
    """No step of the packaged phases is skipped or pending in all of them: each one's manifests are pinned."""
    steps = [step for name in SCENARIOS for step in scenario(name).steps()]
    taken = {(step.phase, step.step.name) for step in steps if step.skipped is None and not step.pending}
    assert {(step.phase, step.step.name) for step in steps} - taken == set()


def test_a_step_that_may_be_skipped_is_shown_with_the_reason() -> None:
    """Whether a node is cordoned is read when the upgrade begins, so a rendering cannot know it."""
    steps = [step for step in scenario("three-node").steps() if step.step.name == "CordonAgain"]
    reasons = ("the node was not cordoned before", "somebody has uncordoned the node since it was drained")
    assert [undecided(step) for step in steps] == [(reasons, "cordon.yaml.txt")] * 3
    (single,) = (step for step in scenario("single-node").steps() if step.step.name == "CordonAgain")
    assert single.skipped == "Rancher does not uncordon the node of a single-node cluster"
    assert (single.skipped_if, single.manifests) == ((), ())


def undecided(step: RenderedStep) -> tuple[tuple[str, ...], str]:
    (manifest,) = step.manifests
    return step.skipped_if, manifest.file.rpartition("/")[2]


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
    free = {path for path in example.files() if not path.startswith("review/") and path != INDEX}
    assert listed == free


def test_nothing_of_an_upgrade_under_way_may_be_applied_from_outside(example: Rendered) -> None:
    """From the first phase on in which the plan may not be deleted."""
    names = [phase.phase.name for phase in example.plan.phases]
    held = example.plan.phases[names.index("ClusterUpgrade") :]
    files = {manifest.file for phase in held for manifest in phase.manifests()}
    assert len(files) > 3
    assert [file for file in files if not (file.startswith("review/") and file.endswith(".yaml.txt"))] == []


# ------------------------------------------------------------------------------------------------------------ schemas

KUBERNETES = ("1.33", "1.35", "1.37")
_VALID: set[tuple[str, str]] = set()


@pytest.mark.slow
@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_built_in_kinds_pass_the_strict_schemas(example: Rendered, kubernetes: str) -> None:
    """Of every Kubernetes that an upgrade passes through. A manifest that many examples share is looked at once."""
    found = [manifest for manifest in example.plan.manifests() if crd(manifest) is None and not manifest.borrowed]
    assert found
    for manifest in found:
        if (manifest.digest, kubernetes) not in _VALID:
            kubernetes_validate.validate(manifest.body, kubernetes, strict=True)
            _VALID.add((manifest.digest, kubernetes))


def test_custom_kinds_pass_their_definitions(example: Rendered) -> None:
    """Owned and borrowed ones: a borrowed field is one that the definition has."""
    found = [(manifest, crd(manifest)) for manifest in example.plan.manifests()]
    custom = [(manifest, definition) for manifest, definition in found if definition is not None]
    assert len(custom) > 3
    wrong = {
        manifest.file: refused(definition, manifest.body)
        for manifest, definition in custom
        if refused(definition, manifest.body) not in ((), *_RUN_TIME_ONLY)
    }
    assert wrong == {}


_RUN_TIME_ONLY = (("spec.rkeConfig.provisionGeneration",),)
"""What is a number at run time is the text of a mark before."""


def crd(manifest: Manifest) -> Mapping[str, Any] | None:
    """The definition of a custom kind; None for a built-in one."""
    return CRDS.get(f"{manifest.ref.api_version} {manifest.ref.kind}")
