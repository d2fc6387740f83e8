"""Finds the cluster and the user as kubectl does: --kubeconfig, $KUBECONFIG, ~/.kube/config, then the pod's own.

It reads files and contacts nobody. The official client's loader is not used for this, since it takes the *last*
`current-context` of several files where kubectl takes the first: an upgrade must not land on another cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from renderer.errors import Problems, problem
from renderer.model.ref import Body
from renderer.yaml_door import parse

IN_CLUSTER = "in-cluster"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_FILES_OF_CLUSTER = ("certificate-authority",)
_FILES_OF_USER = ("client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Which cluster, and as whom. `cluster` and `user` are kubeconfig's own entries, with absolute paths.

    `namespace` is the context's, or the pod's own; `default` where neither says. `inside`: we are one of its pods.
    """

    context: str
    server: str
    namespace: str = "default"
    cluster: Body
    user: Body = field(repr=False)
    inside: bool = False


def find_access(
    environ: Mapping[str, str], *, kubeconfig: str = "", context: str = "", service_account: Path = SERVICE_ACCOUNT
) -> Access:
    """The access that kubectl would use. Raises `Problems` that name the file."""
    paths = _paths(environ, kubeconfig)
    files = [(path, _read(path)) for path in paths if kubeconfig or path.is_file()]
    if not files and not context and environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environ, service_account)
    if not files:
        raise problem(
            "NoKubeconfig",
            f"no kubeconfig was found at {', '.join(map(str, paths))}",
            remedy="name one with --kubeconfig or in $KUBECONFIG",
        )
    return _chosen(files, context)


def _paths(environ: Mapping[str, str], kubeconfig: str) -> list[Path]:
    if kubeconfig:
        return [Path(kubeconfig).expanduser()]
    listed = [Path(path) for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    return listed or [Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"]


def _read(path: Path) -> Body:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(path, f"cannot be read: {error}") from error
    documents = parse(text, str(path))
    value = documents[0].value if documents else {}
    if not isinstance(value, dict):
        raise _invalid(path, "is not a mapping")
    return value


def _chosen(files: list[tuple[Path, Body]], wanted: str) -> Access:
    names = ", ".join(str(path) for path, _ in files)
    context = wanted or next((str(c) for _, body in files if (c := body.get("current-context"))), "")
    if not context:
        raise problem("NoContext", f"{names} has no current-context", remedy="name one with --context")
    chosen = _entry(files, "context", context)
    cluster = _entry(files, "cluster", str(chosen.get("cluster") or ""), because=f"context {context!r}")
    user_name = str(chosen.get("user") or "")
    user = _entry(files, "user", user_name, because=f"context {context!r}") if user_name else {}
    if not cluster.get("server"):
        raise problem("InvalidKubeconfig", f"cluster {chosen.get('cluster')!r} has no server", file=names)
    return Access(
        context=context,
        server=str(cluster["server"]).rstrip("/"),
        namespace=str(chosen.get("namespace") or "default"),
        cluster=cluster,
        user=user,
    )


def _entry(files: list[tuple[Path, Body]], kind: str, name: str, because: str = "") -> Body:
    """The first file that defines an entry wins, as in kubectl."""
    known: list[str] = []
    for path, body in files:
        for entry in _entries(path, body, kind):
            if entry.get("name") == name:
                return _absolute(path, entry.get(kind) or {})
            known.append(str(entry.get("name")))
    asked_by = f" that {because} names" if because else ""
    raise problem(
        f"NoSuch{kind.capitalize()}",
        f"{', '.join(str(path) for path, _ in files)}: no {kind} {name!r}{asked_by}",
        remedy=f"{kind}s that are there: {', '.join(sorted(set(known))) or 'none'}",
    )


def _entries(path: Path, body: Body, kind: str) -> Iterable[Mapping[str, Any]]:
    entries = body.get(f"{kind}s") or []
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get(kind) or {}, dict) for entry in entries
    ):
        raise _invalid(path, f"{kind}s is not a list of named entries")
    return entries


def _absolute(path: Path, entry: Mapping[str, Any]) -> Body:
    """Relative paths count from the file that they stand in."""
    folder = path.absolute().parent
    files = {key: str(folder / entry[key]) for key in (*_FILES_OF_CLUSTER, *_FILES_OF_USER) if entry.get(key)}
    plugin = entry.get("exec") or {}
    if os.sep in (command := str(plugin.get("command") or "")):
        return {**entry, **files, "exec": {**plugin, "command": str(folder / command)}}
    return {**entry, **files}


def _in_cluster(environ: Mapping[str, str], service_account: Path) -> Access:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    own = service_account / "namespace"
    return Access(
        context=IN_CLUSTER,
        server=server,
        namespace=own.read_text(encoding="utf-8").strip() if own.is_file() else "default",
        cluster={"server": server, "certificate-authority": str(service_account / "ca.crt")},
        user={"tokenFile": str(service_account / "token")},
        inside=True,
    )


def _invalid(path: Path, message: str) -> Problems:
    return problem(
        "InvalidKubeconfig", message, file=str(path), remedy="`kubectl config view` shows what kubectl reads"
    )
