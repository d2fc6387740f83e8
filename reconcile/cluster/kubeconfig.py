"""Finds the cluster and the user as kubectl does: --kubeconfig, $KUBECONFIG, ~/.kube/config, then the pod's own.

It reads files and contacts nobody. The official client's loader is not used for this, since it takes the *last*
`current-context` of several files where kubectl takes the first: an upgrade must not land on another cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from reconcile.cluster.wire import PROXY_REMEDY, PROXY_SCHEMES, SERVER_SCHEMES, token_fault, url_fault
from renderer.errors import Problem, Problems, problem
from renderer.files.filesystem import require_file
from renderer.model import path as paths
from renderer.model.ref import Body
from renderer.validation import load, part_problems
from renderer.validation.nulls import without_nulls
from renderer.yaml_io import Document, parse

IN_CLUSTER = "in-cluster"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_CERTIFICATE_FILES = ("certificate-authority", "client-certificate", "client-key")
_TEXTS: Mapping[str, tuple[Callable[[str], str | None], str]] = {
    "server": (partial(url_fault, schemes=SERVER_SCHEMES), "write it as https://HOST:PORT"),
    "proxy-url": (partial(url_fault, schemes=PROXY_SCHEMES), PROXY_REMEDY),
    "token": (token_fault, "copy the token again, on one line and with nothing around it"),
}
"""Rules that a pattern cannot state: what is wrong with a text, and the remedy."""
SCHEMA = "kubeconfig.json"
INVALID = "InvalidKubeconfig"
REMEDY = "`kubectl config view` shows what kubectl reads"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """A cluster, and the identity to use there. `cluster` and `user` are kubeconfig's own entries, with absolute paths.

    `namespace` is the context's, or the pod's own; `default` where neither says. `inside`: we are one of its pods.
    `file` is where it stands, for messages.
    """

    context: str
    server: str
    namespace: str = "default"
    cluster: Body
    user: Body = field(repr=False)
    inside: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A named entry, and where it is. `body` has absolute paths, and nothing that is empty."""

    document: Document
    path: paths.Path
    body: Body

    @property
    def file(self) -> str:
        return self.document.file

    def line_of(self, path: paths.Path = ()) -> int | None:
        return self.document.line_of((*self.path, *path))

    def problems(self) -> list[Problem]:
        """The problems that kubectl would have too. A certificate file is not opened where the data is given."""
        return [*self._of_the_schema(), *self._of_texts()] or [*self._of_files()]

    def _of_the_schema(self) -> list[Problem]:
        at = paths.path_name(self.path)
        found = part_problems(self, SCHEMA, str(self.path[-1]))
        return [replace(item, reason=INVALID, field=f"{at}.{item.field}" if item.field else at) for item in found]

    def _of_texts(self) -> Iterator[Problem]:
        for name, (fault, remedy) in _TEXTS.items():
            text = self.body.get(name)
            if isinstance(text, str) and (message := fault(text)):
                yield self._problem(name, message, remedy)

    def _of_files(self) -> Iterator[Problem]:
        for name in _CERTIFICATE_FILES:
            if name in self.body and f"{name}-data" not in self.body and (message := _read_fault(self.body[name])):
                yield self._problem(name, message, "correct the path, or make the file readable for this user")

    def _problem(self, name: str, message: str, remedy: str) -> Problem:
        path = (*self.path, name)
        return Problem(
            reason=INVALID,
            message=message,
            file=self.file,
            line=self.document.line_of(path),
            field=paths.path_name(path),
            remedy=remedy,
        )


def find_access(
    environ: Mapping[str, str], *, kubeconfig: str = "", context: str = "", service_account: Path = SERVICE_ACCOUNT
) -> ClusterAccess:
    """The access that kubectl would use. Raises `Problems` that name the file."""
    places = _places(environ, kubeconfig)
    files = [_read(path) for path in places if kubeconfig or path.is_file()]
    if not files and not context and environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environ, service_account)
    if not files:
        raise problem(
            "NoKubeconfig",
            f"no kubeconfig found at {', '.join(map(str, places))}",
            remedy="set $KUBECONFIG, or name the file with --kubeconfig",
        )
    return _chosen(files, context)


def contexts_of(environ: Mapping[str, str], kubeconfig: str = "") -> tuple[str, ...]:
    """The names of all contexts, in the order of the files. Raises `Problems` that name the file."""
    places = _places(environ, kubeconfig)
    files = [_read(path) for path in places if kubeconfig or path.is_file()]
    names = (str(entry.get("name") or "") for document in files for entry in _entries(document, "context"))
    return tuple(dict.fromkeys(name for name in names if name))


def kubeconfigs_in(folder: Path) -> tuple[Path, ...]:
    """The kubeconfig files of a folder, by name. Raises `Problems` if there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise problem("NoKubeconfig", message, file=str(folder), remedy="name a folder of kubeconfig files") from error
    if not found:
        message = "contains no kubeconfig file"
        raise problem("NoKubeconfig", message, file=str(folder), remedy="name a folder of kubeconfig files")
    return tuple(found)


def _places(environ: Mapping[str, str], kubeconfig: str) -> list[Path]:
    if kubeconfig:
        return [_expanded(kubeconfig)]
    listed = [Path(path) for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    return listed or [_expanded(environ.get("HOME") or "~") / ".kube" / "config"]


def _expanded(path: str) -> Path:
    """Unchanged if there is no such home, as in a container with an unknown user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _read(path: Path) -> Document:
    require_file(path, remedy="pass a kubeconfig file")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(path, f"cannot be read: {error}") from error
    documents = parse(text, str(path)) or parse("{}", str(path))
    if not isinstance(documents[0].value, dict):
        raise _invalid(path, "is not a mapping")
    return documents[0]


def _chosen(files: list[Document], expected: str) -> ClusterAccess:
    names = ", ".join(document.file for document in files)
    context = expected or next((str(c) for document in files if (c := document.value.get("current-context"))), "")
    if not context:
        raise problem("NoContext", f"{names} has no current-context", remedy="choose one with --context")
    chosen = _sound(_entry(files, "context", context))
    cluster = _entry(files, "cluster", chosen.get("cluster") or "", because=f"context {context!r}")
    users = [_entry(files, "user", name, because=f"context {context!r}")] if (name := chosen.get("user")) else []
    _sound(cluster, *users)
    if not cluster.body.get("server"):
        message = f"cluster {chosen['cluster']!r} has no server"
        raise problem(INVALID, message, file=names, remedy="add server: https://HOST:PORT")
    return ClusterAccess(
        context=context,
        server=cluster.body["server"].rstrip("/"),
        namespace=chosen.get("namespace") or "default",
        cluster=cluster.body,
        user=users[0].body if users else {},
        file=names,
    )


def _sound(*entries: _Entry) -> Body:
    """The first one's body. Raises all that is wrong with any of them."""
    if found := [item for entry in entries for item in entry.problems()]:
        raise Problems(found)
    return entries[0].body


def _entry(files: list[Document], kind: str, name: str, because: str = "") -> _Entry:
    """The first file that defines an entry wins, as in kubectl."""
    known: list[str] = []
    for document in files:
        for index, entry in enumerate(_entries(document, kind)):
            if entry.get("name") == name:
                body = without_nulls(_absolute(Path(document.file), entry.get(kind) or {}), _schema_of(kind))
                return _Entry(document=document, path=(f"{kind}s", index, kind), body=body)
            known.append(str(entry.get("name")))
    asked_by = f" that {because} names" if because else ""
    raise problem(
        _NO_SUCH[kind],
        f"no {kind} {name!r}{asked_by}",
        file=", ".join(document.file for document in files),
        remedy=f"choose one of: {', '.join(sorted(set(known))) or 'none'}",
    )


_NO_SUCH = {"context": "NoSuchContext", "cluster": "NoSuchCluster", "user": "NoSuchUser"}


def _entries(document: Document, kind: str) -> Iterable[Mapping[str, Any]]:
    entries = document.value.get(f"{kind}s") or []
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get(kind) or {}, dict) for entry in entries
    ):
        raise _invalid(Path(document.file), f"{kind}s is not a list of named entries")
    return entries


def _absolute(path: Path, entry: Mapping[str, Any]) -> Body:
    """Relative paths count from the file that they stand in. What is empty counts as left out, as for kubectl."""
    folder = path.absolute().parent
    body = {key: value for key, value in entry.items() if value not in (None, "")}
    for key in (*_CERTIFICATE_FILES, "tokenFile"):
        if isinstance(body.get(key), str):
            body[key] = str(folder / body[key])
    plugin = body.get("exec")
    if isinstance(plugin, dict) and os.sep in (command := str(plugin.get("command") or "")):
        body["exec"] = {**plugin, "command": str(folder / command)}
    return body


def _schema_of(kind: str) -> Any:
    return load(SCHEMA)["$defs"][kind]


def _read_fault(path: str) -> str | None:
    try:
        require_file(Path(path))
        Path(path).read_bytes()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    except Problems as error:
        return f"{path} {error.problems[0].message}"
    return None


def _in_cluster(environ: Mapping[str, str], service_account: Path) -> ClusterAccess:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    own, authority = service_account / "namespace", str(service_account / "ca.crt")
    if message := _read_fault(authority):
        remedy = "mount the service account's token in the pod: automountServiceAccountToken: true"
        raise problem("NoServiceAccount", message, remedy=remedy)
    return ClusterAccess(
        context=IN_CLUSTER,
        server=server,
        namespace=own.read_text(encoding="utf-8").strip() if own.is_file() else "default",
        cluster={"server": server, "certificate-authority": authority},
        user={"tokenFile": str(service_account / "token")},
        inside=True,
    )


def _invalid(path: Path, message: str) -> Problems:
    return problem(INVALID, message, file=str(path), remedy=REMEDY)
