"""Where the engines' binaries are, and how they are built, once, into the cache of the control plane.

The versions stand in the two go.mod files. Without Go, and without binaries, the tests that need them are skipped.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from controlplane import binaries
from controlplane.build import BuildError, Say, go, go_build, once

HERE = Path(__file__).resolve().parent
FLUX, ARGO = "kustomize-controller", "argo-driver"
_PACKAGES = {FLUX: (HERE / "flux", "github.com/fluxcd/kustomize-controller"), ARGO: (HERE / "argo", ".")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The two binaries, and the folder of Flux's definitions, as its module has them."""

    flux: Path
    argo: Path
    definitions: Path


def folder() -> Path:
    """Named by the versions, and by the text of our driver."""
    driver = hashlib.sha256((HERE / "argo" / "main.go").read_bytes()).hexdigest()[:8]
    versions = (_version("flux", "kustomize-controller"), _version("argo", "gitops-engine"))
    return binaries.cache_root() / "-".join(("agents", *versions, driver))


def why_absent() -> str | None:
    """Explains why there are no engines here and cannot be any."""
    if binaries.missing(folder(), (FLUX, ARGO)) and shutil.which("go") is None:
        return "Go is not installed and the agents' engines have not been built"
    return None


def build(say: Say) -> Engines:
    """Makes what is missing. Raises BuildError."""
    if binaries.missing(folder(), (FLUX, ARGO)):
        if shutil.which("go") is None:
            raise BuildError("Go is not installed; the engines are built from Go modules (Go 1.26 or later)")
        with once(folder(), (FLUX, ARGO), say) as new:
            if new is not None:
                say("building the engines of Flux and Argo CD from their Go modules; the first build takes 4 minutes")
                for name, (module, package) in _PACKAGES.items():
                    go_build(name, module, (package,), "-s -w", new / name, say)
                shutil.copytree(_module_folder() / "config" / "crd" / "bases", new / "definitions")
    return Engines(flux=folder() / FLUX, argo=folder() / ARGO, definitions=folder() / "definitions")


def _module_folder() -> Path:
    """The sources of kustomize-controller in Go's cache of modules."""
    module, package = _PACKAGES[FLUX]
    return Path(go(module, "list", "-m", "-f", "{{.Dir}}", package).stdout.strip())


def _version(module: str, name: str) -> str:
    found = re.search(rf"/{name} (v\S+)", (HERE / module / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{module}/go.mod has no {name}")
    return found[1].rpartition("-")[2] if "-" in found[1] else found[1]


if __name__ == "__main__":
    build(lambda text: print(text, flush=True))
    sys.exit(0)
