"""Serves `/metrics`, by HTTPS and to admitted clients only if it is to be secure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from reconcile.admission.certificates import Pair, Validity, new_authority, new_serving_pair, validity_of
from reconcile.admission.tls import server_context, use_certificate
from reconcile.loop.endpoint_server import NO_SUCH_PATH, EndpointServer, Reply
from reconcile.metrics.token_review import Admittance, Doorkeeper

PATH = "/metrics"
_OWN_LIFE = timedelta(days=365)
"""The life of a self-signed certificate; each process makes its own."""

_REFUSALS: Mapping[Admittance, str] = {
    Admittance.UNKNOWN_CLIENT: "the API server does not know this token",
    Admittance.FORBIDDEN: f"this client may not get {PATH}",
    Admittance.COULD_NOT_ASK: "the API server cannot be asked about this token",
}


def metrics_server(
    address: str,
    text: Callable[[str], tuple[bytes, str]],
    doorkeeper: Doorkeeper | None = None,
    certificate: ServedCertificate | None = None,
) -> EndpointServer:
    """A server of `/metrics` at `address`, which is still to be started. `text` takes an Accept header."""

    def respond(path: str, header: Callable[[str], str]) -> Reply:
        if path != PATH:
            return NO_SUCH_PATH
        admittance = doorkeeper.admits(header("Authorization")) if doorkeeper else Admittance.ADMITTED
        if admittance is not Admittance.ADMITTED:
            asked = {"WWW-Authenticate": "Bearer"} if admittance is Admittance.UNKNOWN_CLIENT else {}
            return Reply(status=admittance.value, content=f"{_REFUSALS[admittance]}\n".encode(), headers=asked)
        content, content_type = text(header("Accept"))
        return Reply(status=200, content=content, type=content_type)

    return EndpointServer(address, respond, name="metrics", wrap=certificate.wrap if certificate else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    pair: Pair
    context: Any
    not_after: datetime


class ServedCertificate:
    """A certificate for TLS. `read` gives the one of now, and is asked at each connection."""

    def __init__(self, read: Callable[[], Pair]) -> None:
        """Raises OSError if it is not a pair."""
        self._read = read
        self._lock = Lock()
        self._served = _served(read())

    @property
    def not_after(self) -> datetime:
        return self._served.not_after

    def wrap(self, connection: Any) -> Any:
        """A new certificate that is not a pair yet, as one of its files was written first, waits for the next
        connection."""
        return self._current().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)

    def _current(self) -> Any:
        with self._lock:
            try:
                pair = self._read()
                if pair != self._served.pair:
                    self._served = _served(pair)
            except OSError:
                pass
            return self._served.context


def _served(pair: Pair) -> _Served:
    context, valid = server_context(), validity_of(pair.certificate)
    use_certificate(context, pair.certificate, pair.key)
    if valid is None:
        raise OSError("holds no certificate")
    return _Served(pair=pair, context=context, not_after=valid.not_after)


def own_pair(names: tuple[str, ...], now: datetime) -> Pair:
    """A certificate of an authority that is forgotten at once: traffic is encrypted, and nobody can check by whom."""
    validity = Validity(not_before=now - timedelta(hours=1), not_after=now + _OWN_LIFE)
    return new_serving_pair(new_authority(validity), names, validity)
