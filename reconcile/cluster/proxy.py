"""Which HTTP proxy stands between us and the API server, by the rules of Go's net/http, which kubectl follows."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from reconcile.cluster.kubeconfig import ClusterAccess
from reconcile.cluster.wire import PROXY_REMEDY, PROXY_SCHEMES, url_fault
from renderer.errors import problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """`url` None means a direct connection; `exceptions` is a NO_PROXY list still to be looked at."""

    url: str | None = None
    exceptions: str = ""


def proxy_of(access: ClusterAccess, environ: Mapping[str, str]) -> Proxy:
    """The kubeconfig's proxy-url without exceptions, else the environment's, never for loopback. Raises `Problems`."""
    if url := access.cluster.get("proxy-url"):
        return Proxy(url=_resolving(url))
    server = urlsplit(access.server)
    name, url = _variable(environ, f"{server.scheme}_proxy")
    if not url or _loopback(server.hostname or ""):
        return Proxy()
    url = url if "://" in url else f"http://{url}"
    if fault := url_fault(url, PROXY_SCHEMES):
        raise problem("InvalidProxy", f"${name} {fault}", remedy=PROXY_REMEDY)
    return Proxy(url=_resolving(url), exceptions=_variable(environ, "no_proxy")[1])


def _variable(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """The variable that is set, and its value; empty where neither spelling is."""
    return next(((spelt, value) for spelt in (name.upper(), name) if (value := environ.get(spelt))), (name, ""))


def _resolving(url: str) -> str:
    """Go leaves it to a SOCKS proxy to look a name up; in Python's libraries that has a scheme of its own."""
    scheme, _, rest = url.partition("://")
    return f"socks5h://{rest}" if scheme.lower() == "socks5" else url


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
