"""The script that looks at a node's host: `host_check/*.yaml` say how a host differs from a good one, and what is
answered. It is run for real, by each shell that is there, against a folder that plays the host's root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.played_host import Answered, as_in_a_pod, ask, play, play_partitions
from support.rendered_plans import inputs_of_example, looking_at_hosts, render

CASES = Path(__file__).parent / "host_check"
IMAGE = "rancher/harvester-upgrade-toolkit:v1.8.0"
LARGEST_ANSWER = 4096  # bytes that a kubelet takes of a termination message
SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])] or [["sh"]]

OTHER_SHELLS = pytest.mark.full("bad hosts in more shells; all of them in one, and a good one in each, stand for them")
IN_EVERY_SHELL = ("good", "nothing-there", "certificate-name-hostile", "interfaces-named-to-hurt", "answers-too-long")


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


GOOD = loaded(CASES / "good.yaml")


def merged(base: Any, change: Any) -> Any:
    """JSON merge patch, but that null stays in files, where it is looked for."""
    if change == "none":
        return {}
    if not isinstance(base, dict) or not isinstance(change, dict) or base.keys() & {"text", "copy", "program"}:
        return change
    both = {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in both.items() if value is not None}


def script_of() -> str:
    """The script as the single-node example brings it to its node."""
    found = render(inputs_of_example("single-node"), looking_at_hosts()).body("Initialize/HostCheckScript")
    return str(found["data"]["host-check.sh"])


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("script") / "host-check.sh"
    file.write_text(script_of())
    return file


def answered(case: Mapping[str, Any], script: Path, shell: list[str], folder: Path) -> Answered:
    files = merged(GOOD["files"], case.get("files", {}))
    for number in range(case.get("interfaces", 0)):
        files[f"sys/class/net/{number:0>15}/device/driver"] = {"link": "drivers/ice"}
    play(folder / "root", files)
    play_partitions(folder / "tools", folder / "root", merged(GOOD["partitions"], case.get("partitions", {})))
    image = case.get("image", IMAGE)
    return ask(script, [*as_in_a_pod(), *shell], folder / "root", folder / "tools", TOOLKIT_IMAGE=image)


def listed(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """The answer, as a case writes it that counts names, or leaves a long text to the program."""
    if isinstance(expected.get("nics", {}).get("unpinned"), int):
        found = {**found, "nics": {"unpinned": len(found["nics"]["unpinned"])}}
    texts = {key: text for key, text in expected.get("couldNotLook", {}).items() if text == "any"}
    return found if not texts else {**found, "couldNotLook": {**found["couldNotLook"], **texts}}


def runs() -> list[Any]:
    """Every case in the first shell, the telling ones in each."""
    paths = sorted(CASES.glob("*.yaml"))
    chosen = [(path, shell) for shell in SHELLS for path in paths if shell is SHELLS[0] or path.stem in IN_EVERY_SHELL]
    return [
        pytest.param(
            path,
            shell,
            id=f"{path.stem}-{shell[0]}",
            marks=[] if shell is SHELLS[0] or path.stem == "good" else [OTHER_SHELLS],
        )
        for path, shell in chosen
    ]


@pytest.mark.parametrize(("path", "shell"), runs())
@pytest.mark.slow
def test_a_host_is_looked_at(path: Path, shell: list[str], script: Path, tmp_path: Path) -> None:
    case = loaded(path)
    expected = merged(GOOD["expect"], case.get("expect", {}))
    answer = answered(case, script, shell, tmp_path)
    assert listed(answer.document, expected) == expected
    assert answer.stderr == ""
    assert len(answer.raw) <= LARGEST_ANSWER
    assert answer.raw.isascii()


@pytest.mark.slow
def test_nothing_on_the_host_is_changed(script: Path, tmp_path: Path) -> None:
    def files() -> dict[str, tuple[int, int]]:
        found = sorted((tmp_path / "root").rglob("*"))
        return {str(file): (file.lstat().st_mode, file.lstat().st_mtime_ns) for file in found}

    play(tmp_path / "root", GOOD["files"])
    before = files()
    ask(script, SHELLS[0], tmp_path / "root", None)
    assert files() == before


@pytest.mark.slow
def test_a_real_partition_is_measured(script: Path, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount in a namespace of its own")
    play(tmp_path / "root", GOOD["files"])
    state, local = tmp_path / "root/run/initramfs/cos-state", tmp_path / "root/usr/local"
    mounts = f'mount -t tmpfs -o size=2048k x "{state}" && mount -t tmpfs -o size=4096k x "{local}" && exec "$0" "$@"'
    shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounts, *SHELLS[0]]
    answer = ask(script, shell, tmp_path / "root", None).document
    assert answer["cosState"] == {"kilobytes": 2048}
    assert answer["usrLocal"] == {"freeKilobytes": 4096}


def test_without_openssl_certificates_are_not_looked_at(script: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "readlink", "stat", "df", "sed", "awk", "tr", "cut", "wc", "tail", "head", "grep", "timeout"):
        (tools / name).symlink_to(str(shutil.which(name)))
    play(tmp_path / "root", GOOD["files"])
    done = subprocess.run(
        [str(shutil.which("sh")), str(script)],
        env={"PATH": str(tools), "HOST_ROOT": str(tmp_path / "root"), "TERMINATION_LOG": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"certificate": "the image has no openssl"' in done.stdout


@pytest.mark.slow
def test_shellcheck_finds_nothing(script: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    if not shellcheck.exists() and not os.environ.get("CI"):
        pytest.skip("shellcheck is not installed: make .venv again")
    done = subprocess.run([shellcheck, "--shell=sh", "--norc", script], capture_output=True, text=True)
    assert done.stdout + done.stderr == ""
