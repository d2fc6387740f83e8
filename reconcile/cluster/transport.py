"""The one door to the `kubernetes` package: TLS, proxies, credentials and raw requests; no typed models.

It retries nothing but one request with fresh credentials after a 401. `import kubernetes` costs a third
of a second, so only `client.connect` imports this module.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, ApiException, Configuration
from urllib3.exceptions import HTTPError, InsecureRequestWarning, SSLError

from reconcile.cluster.credential import Credential, certificate_fault, credential_of, renewable
from reconcile.cluster.errors import Away, ClusterError, Unauthorized, Untrusted
from reconcile.cluster.exchange import Request
from reconcile.cluster.kubeconfig import REMEDY, ClusterAccess
from reconcile.cluster.wire import as_header, as_header_name, proxy_of
from renderer.errors import problem

USER_AGENT = "upgradeplan"

_CONNECT_SECONDS = 10.0
_CONNECTIONS = 64  # kept for reuse; every watch holds one
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_PASSING_TLS = re.compile(r"EOF|reset|timed out|Connection aborted")


class KubernetesTransport:
    """Carries requests for one `ClusterAccess`; credentials are renewed as they expire. Safe for several threads."""

    def __init__(self, access: ClusterAccess, *, environ: Mapping[str, str], now: Callable[[], datetime]) -> None:
        self._access = access
        self._environ = environ
        self._now = now
        self._lock = threading.Lock()
        self._credential = credential_of(access, environ, now())
        self._api = _api_client(access, self._credential, environ)

    def open(self, request: Request) -> KubernetesExchange:
        """See `exchange.Transport`."""
        exchange = self._send(self._current(), request)
        if exchange.status != 401 or not renewable(self._access):
            return exchange
        exchange.read()
        return self._send(self._renew(), request)

    def _current(self) -> ApiClient:
        with self._lock:
            if not self._credential.expired(self._now()):
                return self._api
        return self._renew()

    def _renew(self) -> ApiClient:
        """Asks for a credential again; connections are kept unless it is another one."""
        with self._lock:
            renewed = credential_of(self._access, self._environ, self._now())
            if renewed.user != self._credential.user:
                self._api = _api_client(self._access, renewed, self._environ)
            self._credential = renewed
            return self._api

    def _send(self, api: ApiClient, request: Request) -> KubernetesExchange:
        method, url, headers, body, _ = api.param_serialize(
            request.method,
            request.path,
            query_params=list(request.query),
            header_params={"Accept": "application/json, */*", "Content-Type": request.content_type},
            body=_plain(request.body),
            auth_settings=["BearerToken"],
        )
        all_headers = urllib3.HTTPHeaderDict(headers)
        for name, value in _impersonation(self._credential.user):
            all_headers.add(name, value)
        try:
            answer = api.call_api(
                method, url, all_headers, body=body, _request_timeout=(_CONNECT_SECONDS, request.timeout)
            )
        except (HTTPError, ApiException, OSError) as error:
            raise _unanswered(error) from error
        return KubernetesExchange(answer.response, request.idle)


class KubernetesExchange:
    """See `exchange.Exchange`."""

    def __init__(self, response: urllib3.HTTPResponse, idle: float) -> None:
        self._response = response
        self._closed = threading.Event()
        self.status: int = response.status
        self.warnings: tuple[str, ...] = tuple(
            text.replace('\\"', '"')
            for header in response.headers.getlist("Warning")
            for text in _WARNING.findall(header)
        )
        self.retry_after: str = response.headers.get("Retry-After") or ""
        if response.connection is not None and response.connection.sock is not None:
            response.connection.sock.settimeout(idle)

    def read(self) -> bytes:
        try:
            return self._response.data
        except (HTTPError, OSError) as error:
            raise _unanswered(error) from error

    def lines(self) -> Iterator[bytes]:
        rest = b""
        try:
            while data := self._response.read1(65536):
                *whole, rest = (rest + data).split(b"\n")
                yield from whole
        except (HTTPError, OSError) as error:
            if not self._closed.is_set():
                raise _unanswered(error) from error
        finally:
            self._response.close()
        if rest and not self._closed.is_set():
            raise Away("the stream ended within a line")

    def close(self) -> None:
        """Wakes the reader, which then closes the connection itself: closing it here could wait for the reader."""
        self._closed.set()
        with suppress(ValueError, RuntimeError, OSError):  # it has ended already
            self._response.shutdown()


def _api_client(access: ClusterAccess, credential: Credential, environ: Mapping[str, str]) -> ApiClient:
    settings = Configuration()
    settings.retries = False  # urllib3 would repeat refused connections at once, and follow redirects
    settings.keep_alive = True
    settings.connection_pool_maxsize = _CONNECTIONS
    try:
        config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]
            _kubeconfig(access, credential), client_configuration=settings, persist_config=False
        )
    except config.ConfigException as error:
        raise problem("InvalidKubeconfig", f"context {access.context!r}: {error}", remedy=REMEDY) from error
    _check_certificates(access, settings)
    proxy = proxy_of(access.server, access.cluster.get("proxy-url") or "", environ)
    settings.proxy, settings.no_proxy = proxy.url, proxy.exceptions
    if not settings.verify_ssl:  # as configured; kubectl does not warn at each request either
        urllib3.disable_warnings(InsecureRequestWarning)
    api = ApiClient(settings)
    api.user_agent = USER_AGENT
    return api


def _check_certificates(access: ClusterAccess, settings: Configuration) -> None:
    """Raises `Problems` for a file of the kubeconfig, Unauthorized for what a plugin gave."""
    found = certificate_fault(settings.ssl_ca_cert, settings.cert_file, settings.key_file)
    if found is None:
        return
    field, message = found
    own = access.user.keys() & {"client-certificate", "client-certificate-data"}
    if field != "certificate-authority" and access.user.get("exec") and not own:
        raise Unauthorized(f"what the plugin gave as {field} {message}")
    raise problem(
        "InvalidKubeconfig",
        f"context {access.context!r}: {field} {message}",
        file=access.file or None,
        remedy=f"correct {field} or {field}-data; `openssl x509 -in FILE -noout -text` shows a certificate",
    )


def _kubeconfig(access: ClusterAccess, credential: Credential) -> dict[str, Any]:
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": dict(access.cluster)}],
        "users": [{"name": "it", "user": _as_sent(credential.user)}],
    }


def _as_sent(user: Mapping[str, Any]) -> dict[str, Any]:
    return {key: as_header(value) if key in ("username", "password") else value for key, value in user.items()}


def _impersonation(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The headers for `as`, `as-uid`, `as-groups` and `as-user-extra`, which the client's loader passes over."""
    if user.get("as"):
        yield "Impersonate-User", as_header(user["as"])
    if user.get("as-uid"):
        yield "Impersonate-Uid", as_header(user["as-uid"])
    for group in user.get("as-groups") or ():
        yield "Impersonate-Group", as_header(group)
    for key, values in (user.get("as-user-extra") or {}).items():
        name = f"Impersonate-Extra-{as_header_name(key)}"
        yield from ((name, as_header(value)) for value in values or ())


def _plain(value: Any) -> Any:
    """Mappings as dicts and sequences as lists: the client serializes nothing else."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _unanswered(error: Exception) -> ClusterError:
    """The error that a failed exchange means: TLS that will not get better by waiting, or a server that is away."""
    text = " ".join(str(error.reason if isinstance(error, ApiException) else error).split())
    lasting = isinstance(error, ApiException | SSLError) and not _PASSING_TLS.search(text)
    return Untrusted(text) if lasting else Away(text)
