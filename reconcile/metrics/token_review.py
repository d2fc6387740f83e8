"""Asks the API server who a client is, by its token, and whether it may read a path: as kube-rbac-proxy does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from threading import Lock

from reconcile.cluster.errors import ClusterError
from renderer.model.ref import Body, Kind

TOKEN_REVIEW = Kind(api_version="authentication.k8s.io/v1", kind="TokenReview", plural="tokenreviews", namespaced=False)
ACCESS_REVIEW = Kind(
    api_version="authorization.k8s.io/v1",
    kind="SubjectAccessReview",
    plural="subjectaccessreviews",
    namespaced=False,
)
_KEPT = 60.0
"""Seconds for which an answer holds."""
_MOST = 100
"""Answers that are kept."""

Ask = Callable[[Kind, Body], Body]
"""Creates a review of this kind and spec, and returns its status."""


class Admittance(Enum):
    """The answers to a client, with their HTTP status."""

    ADMITTED = 200
    UNKNOWN_CLIENT = 401
    FORBIDDEN = 403
    COULD_NOT_ASK = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    admittance: Admittance
    until: float


class Doorkeeper:
    """Judges who may GET `path`. `clock` is monotonic. Thread-safe."""

    def __init__(self, ask: Ask, path: str, clock: Callable[[], float]) -> None:
        self._ask = ask
        self._path = path
        self._clock = clock
        self._lock = Lock()
        self._known: dict[bytes, _Answered] = {}

    def admits(self, authorization: str) -> Admittance:
        """Judges a client by the Authorization header that it sends."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Admittance.UNKNOWN_CLIENT
        key = sha256(token.encode()).digest()
        with self._lock:
            known = self._known.get(key)
        if known is not None and self._clock() < known.until:
            return known.admittance
        found = self._judged(token)
        if found is not Admittance.COULD_NOT_ASK:
            self._keep(key, found)
        return found

    def _judged(self, token: str) -> Admittance:
        try:
            client = self._ask(TOKEN_REVIEW, {"token": token})
            if not client.get("authenticated"):
                return Admittance.UNKNOWN_CLIENT
            access = self._ask(ACCESS_REVIEW, self._access(client.get("user") or {}))
        except ClusterError:
            return Admittance.COULD_NOT_ASK
        return Admittance.ADMITTED if access.get("allowed") else Admittance.FORBIDDEN

    def _access(self, user: Body) -> Body:
        renamed = {"username": "user", "groups": "groups", "uid": "uid", "extra": "extra"}
        subject = {name: user[key] for key, name in renamed.items() if user.get(key)}
        return {**subject, "nonResourceAttributes": {"path": self._path, "verb": "get"}}

    def _keep(self, key: bytes, found: Admittance) -> None:
        with self._lock:
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[key] = _Answered(admittance=found, until=self._clock() + _KEPT)
