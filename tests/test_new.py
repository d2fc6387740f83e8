"""`upgradeplan new`: what it prints is what `validate` accepts, and what it would refuse is refused at once."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pycdlib
import pytest

from renderer.cli.program import run
from renderer.files.inputs import read_inputs
from renderer.yaml_io import parse

CHECKSUM = "0f" * 64
URL = "https://files.example.com/harvester.iso"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[Any]:
    assert run(["upgradeplan", "new", *words]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return [document.value for document in parse(shown.out, "new")]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["upgradeplan", "new", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


def test_a_plan_has_the_version_in_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    [plan] = printed(capsys, "--version", "v1.8.0-rc1")
    assert plan == {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "to-v1-8-0-rc1"},
        "spec": {"version": "v1.8.0-rc1", "restoreVM": False},
    }


def test_every_option_is_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--version", "v1.8.0", "--name", "night", "--pause-node", "n2", "--pause-node", "n1", "--pause-node", "n2"]
    words += ["--restore-vms", "--preload-concurrency=-1", "--toolkit-tag", "v1.8.0-site.1"]
    [plan] = printed(capsys, *words, "--toolkit-image", "registry.example.com/toolkit")
    key = "management.harvesterhci.io/upgrade-toolkit-image"
    assert plan["metadata"] == {"name": "night", "annotations": {key: "registry.example.com/toolkit"}}
    assert plan["spec"] == {
        "version": "v1.8.0",
        "upgrade": "v1.8.0-site.1",
        "imagePreloadOption": {"concurrency": -1},
        "nodeUpgradeOption": {"pauseNodes": ["n2", "n1"]},
        "restoreVM": True,
    }


def test_a_version_is_made_for_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    version, plan = printed(capsys, "--version", "v1.8.0", "--iso-url", URL, "--iso-checksum", CHECKSUM)
    assert (version["kind"], version["apiVersion"]) == ("Version", "harvesterhci.io/v1beta1")
    assert version["metadata"] == {"name": plan["spec"]["version"], "namespace": "harvester-system"}
    assert version["spec"] == {"isoURL": URL, "isoChecksum": CHECKSUM}


def test_an_image_is_made_as_the_loop_would_make_it(capsys: pytest.CaptureFixture[str]) -> None:
    image, plan = printed(capsys, "--image", "harvester-v1-8-0", "--iso-url", URL)
    assert (plan["spec"]["image"], plan["metadata"]["name"]) == ("harvester-v1-8-0", "to-harvester-v1-8-0")
    assert "version" not in plan["spec"]
    assert image["metadata"]["annotations"] == {"harvesterhci.io/os-upgrade-image": "True"}
    assert image["spec"] == {
        "backend": "cdi",
        "displayName": "harvester-v1-8-0",
        "sourceType": "download",
        "url": URL,
        "checksum": "",
        "retry": 3,
        "targetStorageClassName": "longhorn-static",
    }


def test_what_is_printed_is_accepted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["upgradeplan", "new", "--version", "v1.8.0", "--iso-url", URL]) == 0
    file = tmp_path / "plan.yaml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    inputs = read_inputs([str(file)])
    assert inputs.plan is not None
    assert [source.body["kind"] for source in inputs.objects] == ["Version"]


def test_credentials_of_an_address_are_printed_since_the_cluster_needs_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = "https://user:hunter2@files.example.com/h.iso?token=abcdef0123456789"
    assert run(["upgradeplan", "new", "--version", "v1.8.0", "--iso-url", url]) == 0
    shown = capsys.readouterr()
    assert next(document.value for document in parse(shown.out, "new"))["spec"]["isoURL"] == url
    assert (
        "spec.isoURL: Version v1.8.0 contains a credential, and anyone who may read the object can see it" in shown.err
    )
    assert "hunter2" not in shown.err


def iso(path: Path, release: bytes) -> Path:
    image = pycdlib.PyCdlib()
    image.new(rock_ridge="1.09")
    image.add_fp(BytesIO(release), len(release), "/HARVESTE.YAM;1", rr_name="harvester-release.yaml")
    image.write(str(path))
    image.close()
    return path


def test_version_and_checksum_are_read_from_the_iso(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = iso(tmp_path / "h.iso", b"harvester: v1.8.1\nos: Harvester v1.8.1\nkubernetes: v1.35.2+rke2r1\n")
    version, plan = printed(capsys, "--iso", str(file), "--iso-url", URL)
    assert plan["metadata"]["name"] == "to-v1-8-1"
    assert version["metadata"]["name"] == "v1.8.1"
    assert version["spec"]["isoChecksum"] == hashlib.sha512(file.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "neither --version nor --image nor --iso is given"),
        (["--version", "v1.8.0", "--image", "i"], "a plan with an image looks up no Version"),
        (["--version", "v1.8.0", "--iso-checksum", CHECKSUM], "--iso-checksum is given without --iso-url"),
        (["--version", "v1.8.0", "--name", "V1.8"], "metadata.name: 'V1.8' is not a name for a plan"),
        (["--image", "No_Image"], "spec.image: 'No_Image' is not a name"),
        (["--version", "v1.8.0", "--iso-url", "ftp://x/y"], "spec.isoURL: 'ftp://x/y' is not an http or https URL"),
        (["--version", "v1.8.0", "--iso-url", URL, "--iso-checksum", "0f"], "'0f' is not a SHA-512 checksum"),
        (["--image", "i", "--iso-url", URL, "--iso-checksum", "0f"], "spec.checksum: '0f' is not a SHA-512 checksum"),
        (["--image", "i", "--iso-url", "h.iso"], "spec.url: 'h.iso' is not an http or https URL"),
        (["--version", "v1.8.0 "], "spec.version: 'v1.8.0 ' is not a name that a Version can have"),
        (["--version", "v1.8.0", "--toolkit-tag", "a b"], "'a b' cannot be the tag of the toolkit image"),
        (["--iso", "/nowhere/h.iso"], "/nowhere/h.iso"),
    ],
)
def test_what_validate_would_refuse_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    text = refused(capsys, *words)
    assert said in text
    assert "remedy: " in text
