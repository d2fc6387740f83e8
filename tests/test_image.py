"""The container image: what is in it, and that the manager in it works against a real API server as a pod would."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE, until
from release.archive import files_below
from release.artefacts import write_image
from release.image import MOST, PACKAGES, ImageRequest, build_image, size_of
from release.site_packages import PLATFORMS, missing_wheels
from release.source import source_of
from support import container_image
from support.container_image import ARCH, EMULATORS, BuiltImage, built_image
from support.debian_packages import why_not_installed
from support.installed import ACCOUNT, VERSION, installation, text_of
from support.pins import pins
from support.real_commands import PLAN, CommandSite, SeededCluster

pytestmark = [
    pytest.mark.image,
    pytest.mark.lane("engines"),
    pytest.mark.full("the container image, built and run; the same program in a wheel stays (test_packaging.py)"),
]
OTHER = next(arch for arch in PLATFORMS if arch != ARCH)
ELF_MACHINES = {"amd64": 62, "arm64": 183}
"""As `e_machine` of an ELF file has them."""
NO_CERTIFICATES = "management.harvesterhci.io/accept-risk=api-server-certificates"
"""This API server has no endpoint in a cluster that a check could connect to."""


@pytest.fixture(scope="module")
def image() -> Iterator[BuiltImage]:
    with built_image() as built:
        yield built


def test_the_image_is_small_and_says_what_it_is(image: BuiltImage) -> None:
    source = source_of()
    assert size_of(image.root / PACKAGES) < MOST
    labels = {key.rpartition(".")[2]: item for key, item in image.config["Labels"].items()}
    assert (labels["version"], labels["revision"], labels["created"]) == (VERSION, source.commit, source.created)
    assert labels["title"] == "upgradeplan"
    assert labels["licenses"] == "Apache-2.0"
    wanted = installation().values["manager"]["podSecurityContext"]
    assert image.config["User"] == f"{wanted['runAsUser']}:{wanted['runAsGroup']}" == "65532:65532"


def test_the_image_says_version_and_commit(image: BuiltImage, tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("x")
    said = container_image.run(image.command(tmp_path, "--version"))
    assert said == f"upgradeplan {VERSION} (commit {source_of().commit})"
    answer = json.loads(container_image.run(image.command(tmp_path, "version", "-o", "json")))
    assert answer["commit"] == source_of().commit


def test_the_image_archive_and_its_bill_of_materials_are_made_twice_to_the_same_bytes(
    image: BuiltImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytecode too: the packages are installed anew each time. All of them are in the bill of materials."""
    for name, value in image.environment.items():
        monkeypatch.setenv(name, value)
    made = []
    for name, tag in (("one", image.tag), ("two", "localhost/upgradeplan:again")):
        (tmp_path / name).mkdir()
        wanted = ImageRequest(arch=ARCH, tag=tag, base=image.base)
        if tag != image.tag:
            build_image(source_of(), wanted)
        write_image(source_of(), tmp_path / name, wanted)
        made.append(files_below(tmp_path / name))
    archive, materials = (f"upgradeplan-{VERSION}-linux-{ARCH}.{ending}" for ending in ("oci.tar", "cdx.json"))
    assert set(made[0]) == {archive, materials}
    assert made[0] == made[1]
    named = {item["bom-ref"] for item in json.loads(made[0][materials])["components"]}
    assert set(pins()) <= named


@pytest.mark.parametrize("arch", PLATFORMS)
def test_every_pin_has_a_wheel_for_the_machine(arch: str) -> None:
    assert missing_wheels(arch) == ""


@pytest.fixture(scope="module")
def foreign() -> Iterator[BuiltImage]:
    with built_image(OTHER) as built:
        yield built


def test_the_image_for_another_machine_has_no_program_of_this_one(foreign: BuiltImage) -> None:
    """And as many as the image for this machine: every package with compiled parts has them."""
    assert foreign.arch == OTHER
    programs = {path: path.read_bytes()[:20] for path in (foreign.root / PACKAGES).rglob("*.so*") if path.is_file()}
    machines = {path.name: int.from_bytes(head[18:20], "little") for path, head in programs.items()}
    assert len(machines) > 5
    assert set(machines.values()) == {ELF_MACHINES[OTHER]}
    others = [path for path in (foreign.root / PACKAGES).rglob("*") if path.is_file() and path not in programs]
    assert not [path for path in others if path.open("rb").read(4) == b"\x7fELF"]
    assert size_of(foreign.root / PACKAGES) < MOST


def test_the_image_for_another_machine_runs_there(foreign: BuiltImage) -> None:
    if reason := why_not_installed(EMULATORS[OTHER]):
        pytest.skip(f"nothing runs the other machine's programs: {reason}")
    said = container_image.run(foreign.emulated("--version"))
    assert said == f"upgradeplan {VERSION} (commit {source_of().commit})"
    assert "kind: Deployment" in container_image.run(foreign.emulated("install", "--format", "plain"))


def test_the_manager_in_the_image_begins_an_upgrade(
    image: BuiltImage, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """As the Deployment starts it, with its service account's permissions; Harvester's answers are played."""
    site = SeededCluster(control_plane).site()
    control_plane.kubectl("apply", "-f", "-", stdin=text_of("rbac"))
    (deployment,) = (
        body
        for file in installation({"webhook": {"enable": False}}).files
        for body in file.objects
        if body["kind"] == "Deployment"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == image.config["Entrypoint"]
    port = _free_port()
    words = [word.replace("=:8081", f"=127.0.0.1:{port}") for word in container["args"]]
    command = image.command(account_files(control_plane, tmp_path / "account"), *words, **api_server(control_plane))
    log = tmp_path / "log"
    with log.open("w") as file, subprocess.Popen(command, stderr=file, stdout=file) as manager:
        try:
            until("the manager is ready", lambda: manager.poll() is not None or _answers(port))
            assert manager.poll() is None, log.read_text()
            assert _user_of(manager.pid) == 65532
            control_plane.kubectl("annotate", "upgradeplan", PLAN, NO_CERTIFICATES)
            until("the ISO image is asked for", site.images)
            site.import_says("Imported")
            until("the repository is asked for", lambda: f"{PLAN}-repo" in _deployments(site))
        except TimeoutError as error:
            pytest.fail(f"{error}\n{log.read_text()[-3000:]}\n{site.plan().get('status')}")
        finally:
            manager.terminate()
        assert manager.wait(timeout=PATIENCE) == 0
    assert "Traceback" not in log.read_text()
    assert site.plan()["status"]["currentPhase"] == "RepoCreating"


def account_files(plane: ControlPlane, folder: Path) -> Path:
    """The files that a kubelet mounts into each pod."""
    folder.mkdir()
    (folder / "token").write_text(plane.service_account_token(*ACCOUNT))
    (folder / "namespace").write_text(ACCOUNT[0])
    (folder / "ca.crt").write_text(plane.certificate_authority)
    return folder


def api_server(plane: ControlPlane) -> dict[str, str]:
    """The variables that a kubelet sets in each container."""
    host, _, port = plane.server.removeprefix("https://").partition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False


def _user_of(pid: int) -> int:
    return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 - of no file


def _deployments(site: CommandSite) -> list[str]:
    found = site.plane.api.get("/apis/apps/v1/namespaces/harvester-system/deployments")["items"]
    return [item["metadata"]["name"] for item in found]
