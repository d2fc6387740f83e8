"""What an answer says, without what differs from run to run: uids, versions, times and addresses become words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.case import NAMESPACE
from reconcile.cluster.errors import (
    AlreadyExists,
    BackendFailed,
    ClusterError,
    Conflict,
    Denied,
    Forbidden,
    Invalid,
    NoSuchKind,
    NotFound,
)
from reconcile.cluster.protocol import Answer

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS = re.compile(r"^10\.\d+\.\d+\.\d+$")


class Facts:
    """Keeps the words of one run: the first uid is `uid-1`, and an object's version is `new` or `same`."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._uids: dict[str, str] = {}
        self._versions: dict[str, str] = {}

    def of_answer(self, answer: Answer) -> Any:
        told = {"WARNINGS": list(answer.warnings)} if answer.warnings else {}
        if not answer.body:
            return self._plain(told) or "empty"
        return self._plain({**told, **answer.body, "metadata": self._metadata(answer.body)})

    def of_error(self, error: ClusterError) -> dict[str, Any]:
        found: dict[str, Any] = {"error": type(error).__name__, **self._plain(_details(error))}
        return found

    def of_names(self, bodies: Iterable[Mapping[str, Any]]) -> Any:
        return [self._text(str(body["metadata"]["name"])) for body in bodies] or "none"

    def of_event(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        metadata = body["metadata"]
        told = {name: metadata[name] for name in ("labels", "deletionTimestamp", "finalizers") if name in metadata}
        return {"type": str(kind), "name": self._plain(metadata["name"]), **self._plain(told)}

    def _metadata(self, body: Mapping[str, Any]) -> dict[str, Any]:
        metadata = dict(body["metadata"])
        if "resourceVersion" in metadata:
            metadata["resourceVersion"] = self._version(metadata.get("uid", ""), metadata["resourceVersion"])
        if "managedFields" in metadata:
            metadata["managedFields"] = sorted(metadata["managedFields"], key=_entry_order)
        return metadata

    def _version(self, uid: str, version: str) -> str:
        before = self._versions.get(uid)
        self._versions[uid] = version
        return "same" if before == version else "new" if before is None or int(before) < int(version) else "old"

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self._text(name): self._plain(item) for name, item in sorted(value.items())}
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        if _ADDRESS.match(text):
            return "address"
        text = _UID.sub(lambda found: self._uids.setdefault(found[0], f"uid-{len(self._uids) + 1}"), text)
        return _TIME.sub("time", text).replace(self._namespace, NAMESPACE)


def _entry_order(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(name, "")) for name in ("manager", "operation", "subresource", "apiVersion"))


def _details(error: ClusterError) -> dict[str, Any]:
    """What the kind of error tells beside its words."""
    if isinstance(error, Conflict):
        claims = sorted(f"{claim.manager} {claim.field}" for claim in error.claims)
        return {"ref": str(error.ref), **({"claims": claims} if claims else {})}
    if isinstance(error, Invalid):
        causes = sorted({f"{cause.field} {cause.reason}".strip() for cause in error.causes})
        return {"ref": str(error.ref), **({"causes": causes} if causes else {})}
    if isinstance(error, BackendFailed):
        return {"ref": str(error.ref), "status": error.status}
    if isinstance(error, NotFound | AlreadyExists | Denied):
        return {"ref": str(error.ref)}
    if isinstance(error, NoSuchKind):
        return {"kind": str(error.kind), **({"subresource": error.subresource} if error.subresource else {})}
    if isinstance(error, Forbidden):
        return {"permission": str(error.permission)}
    return {}
