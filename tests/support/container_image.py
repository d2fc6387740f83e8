"""The container image for tests: built over a base of Debian packages, and run as a kubelet would run it.

No container engine is needed: buildah builds, and the program runs from the image's own files in a mount namespace of
its own, as the image's user, with everything read-only but `/tmp`, no shell, and this machine's network. One for
another machine is built likewise, over packages that are unpacked only, and its Python runs in qemu's user mode.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.binaries import cache_root

from support.debian_packages import why_not_installed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("buildah", "mmdebstrap")
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
EMULATORS = {"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}
SUITE = "bookworm"
"""Of the base: Debian 12, whose Python is the image's."""

_ENTER = """\
set -e
root=$1 account=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root/run/secrets/kubernetes.io/serviceaccount"
cp "$account"/* "$root/run/secrets/kubernetes.io/serviceaccount"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
for shell in dash bash; do mount --bind /dev/null "$root/usr/bin/$shell"; done
mount -o remount,ro,bind "$root"
exec chroot --userspec="$user" --groups= "$root" "$@"
"""


@functools.cache
def why_absent() -> str | None:
    """Why no image can be built here; None if one can."""
    if os.geteuid() != 0:
        return "the image's base is made as root"
    return why_not_installed(*PACKAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImage:
    """An image in a storage of its own, which `environment` names to buildah. `root` is the file system of a container
    of it, `config` as OCI has it."""

    environment: Mapping[str, str]
    arch: str
    base: str
    tag: str
    root: Path
    config: Mapping[str, Any]

    def emulated(self, *words: str) -> list[str]:
        """The command that runs the program of an image for another machine, which starts no program itself."""
        emulator, program = EMULATORS[self.arch], "usr/local/bin/upgradeplan"
        shutil.copy(str(shutil.which(emulator)), self.root / "emulator")
        settings = [word for setting in self.config["Env"] for word in ("-E", setting)]
        inside = ["/emulator", *settings, "/usr/bin/python3", f"/{program}", *words]
        return ["chroot", f"--userspec={self.config['User']}", "--groups=", str(self.root), *inside]

    def command(self, account: Path, *words: str, **environment: str) -> list[str]:
        """The command that starts a container, with the files of a service account in their place."""
        given = [*self.config["Env"], *(f"{name}={value}" for name, value in environment.items())]
        inside = ["/usr/bin/env", "-i", *given, *self.config["Entrypoint"], *words]
        script = ["sh", "-c", _ENTER, "enter", str(self.root), str(account), self.config["User"]]
        return ["unshare", "--mount", "--propagation", "private", *script, *inside]


@contextmanager
def built_image(arch: str = ARCH) -> Iterator[BuiltImage]:
    """Builds base and image; all of it goes away at the end, but for the base's packages in the cache."""
    with tempfile.TemporaryDirectory(prefix="upgradeplan-image-") as name:
        folder = Path(name)
        storage = folder / "storage.conf"
        places = f'graphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n'
        storage.write_text(f'[storage]\ndriver = "vfs"\n{places}')
        yield _built(
            arch, {"CONTAINERS_STORAGE_CONF": str(storage), "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
        )


def _built(arch: str, environment: Mapping[str, str]) -> BuiltImage:
    def buildah(*words: str | Path) -> str:
        return run(["buildah", *map(str, words)], environment)

    base, tag = "localhost/upgradeplan-base", "localhost/upgradeplan:test"
    scratch = buildah("from", "scratch")
    buildah("config", "--arch", arch, scratch)
    buildah("add", "-q", scratch, base_files(arch), "/")
    buildah("commit", "-q", "--rm", scratch, base)
    words = [sys.executable, "-m", "release", "image", "--arch", arch, "--base", base, "--tag", tag]
    run(words, {**environment, "PYTHONPATH": str(ROOT / "tests")})
    container = buildah("from", "--arch", arch, tag)
    inspected = json.loads(buildah("inspect", "--type", "image", tag))["OCIv1"]
    root = Path(buildah("mount", container))
    config, of = inspected["config"], inspected["architecture"]
    return BuiltImage(environment=environment, arch=of, base=base, tag=tag, root=root, config=config)


def base_files(arch: str) -> Path:
    """The files of a minimal Debian with Python, fetched once into the cache. Nothing of another machine can run while
    it is made, so its packages are unpacked and not set up."""
    kept = cache_root() / f"image-base-{SUITE}-{arch}.tar"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(f".{os.getpid()}")
        variant = "minbase" if arch == ARCH else "extract"
        options = (f"--architectures={arch}", f"--variant={variant}", "--include=python3,ca-certificates")
        run(["mmdebstrap", "-q", *options, "--format=tar", SUITE, str(new)])
        new.rename(kept)
    return kept


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """What it prints; an AssertionError with its own words if it fails."""
    given = {**os.environ, **(environment or {})}
    done = subprocess.run(command, env=given, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command[:3])}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()
