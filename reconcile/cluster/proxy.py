"""Which HTTP proxy stands between us and the API server, by the rules of Go's net/http, which kubectl follows."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from reconcile.cluster.kubeconfig import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """`url` None means a direct connection; `exceptions` is a NO_PROXY list still to be looked at."""

    url: str | None = None
    exceptions: str = ""


def proxy_of(access: Access, environ: Mapping[str, str]) -> Proxy:
    """The kubeconfig's proxy-url without exceptions, else the environment's, never for loopback."""
    if url := str(access.cluster.get("proxy-url") or ""):
        return Proxy(url=url)
    server = urlsplit(access.server)
    url = _variable(environ, f"{server.scheme}_proxy")
    if not url or _loopback(server.hostname or ""):
        return Proxy()
    return Proxy(url=url if "://" in url else f"http://{url}", exceptions=_variable(environ, "no_proxy"))


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
