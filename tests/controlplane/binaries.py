"""Where the binaries are, and in which versions; builds nothing.

The versions have one source each: the two go.mod files and the pinned requirement for kubectl.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
KUBE_MODULE = HERE / "kube"
ETCD_MODULE = HERE / "etcd"
KUBECTL_PIN = HERE / "kubectl-requirements.txt"

SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager")
CLIENTS = ("kubectl", "helm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path


def kube_version() -> str:
    return _first(r"k8s\.io/kubernetes v(\S+)", KUBE_MODULE / "go.mod")


def etcd_version() -> str:
    return _first(r"go\.etcd\.io/etcd/server/v3 v(\S+)", ETCD_MODULE / "go.mod")


def servers_dir() -> Path:
    """KUBEBUILDER_ASSETS when set, as elsewhere in the field; else our own cache folder."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(assets) if assets else cache_root() / f"controlplane-{kube_version()}-{etcd_version()}"


def clients_dir() -> Path:
    return cache_root() / f"kubectl-{_first(r'kubectl-(v[0-9]+==[0-9.]+)', KUBECTL_PIN).replace('==', '-')}"


def cache_root() -> Path:
    return Path(os.environ.get("UPGRADEPLAN_CACHE") or Path.home() / ".cache" / "upgradeplan")


def built() -> Binaries | None:
    """The binaries if all of them are there. KUBEBUILDER_ASSETS may bring its own kubectl."""
    if missing(servers_dir(), SERVERS):
        return None
    kubectl = next((d / "kubectl" for d in (servers_dir(), clients_dir()) if not missing(d, ("kubectl",))), None)
    if kubectl is None:
        return None
    etcd, kube_apiserver, kube_controller_manager = (servers_dir() / name for name in SERVERS)
    return Binaries(
        etcd=etcd, kube_apiserver=kube_apiserver, kube_controller_manager=kube_controller_manager, kubectl=kubectl
    )


def missing(folder: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not os.access(folder / name, os.X_OK))


def why_absent() -> str | None:
    """Why there is no control plane here and cannot be one; None when it is built or can be built."""
    if sys.platform != "linux":
        return f"the control plane runs on Linux only, this is {sys.platform}"
    if built() is not None:
        return None
    if os.environ.get("KUBEBUILDER_ASSETS") and (names := missing(servers_dir(), SERVERS)):
        return f"KUBEBUILDER_ASSETS lacks {', '.join(names)}"
    if missing(servers_dir(), SERVERS) and shutil.which("go") is None:
        return "Go is not installed and no control plane has been built"
    return None


def _first(pattern: str, file: Path) -> str:
    found = re.search(pattern, file.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{file}: nothing matches {pattern}")
    return found[1]
