"""Checks what may be sent and through which proxy: URLs, header values, and Go's rules for proxies, which kubectl
follows.

Of a text that may not be sent, messages say why and never show it: it may contain a password or be a token.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from renderer.errors import problem

SERVER_SCHEMES = ("https", "http")
PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
PROXY_REMEDY = "write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"

_NOT_IN_URL = re.compile(r"[^\x21-\x7e]")
_NOT_IN_HEADER = re.compile(r"[\x00-\x1f\x7f]")
_LABEL = r"[A-Za-z0-9_-]{1,63}"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_TOKEN_MARKS = "!#$&'*+-.^_`|~"  # noqa: S105 - RFC 9110, 5.6.2, without the % that escapes


def url_fault(text: str, schemes: Sequence[str]) -> str | None:
    """Explains why this is no absolute URL of one of the schemes; None where it is one."""
    if _NOT_IN_URL.search(text):
        return "is not a URL: it contains a space or another invalid character"
    scheme, _, rest = text.partition("://")
    if not rest or scheme.lower() not in schemes:
        return f"is not a URL that starts with {' or '.join(f'{name}://' for name in schemes)}"
    try:
        url = urlsplit(text)
        _ = url.port  # raises where it is no number below 65536
    except ValueError:
        return "is not a URL: invalid port or IPv6 address"
    return None if _is_host(url.hostname or "") else "is not a URL: invalid host name"


def token_fault(text: str) -> str | None:
    """Explains why this cannot be sent as a bearer token."""
    if _NOT_IN_HEADER.search(text):
        return "contains a line break or another control character"
    return None if text.isascii() else "contains characters that are not ASCII"


def as_header(text: str) -> str:
    """A text whose Latin-1 bytes, which the HTTP library sends, are its UTF-8 bytes, which Go's sends."""
    return text.encode().decode("latin-1")


def as_header_name(text: str) -> str:
    """Escaped as client-go escapes the keys of `as-user-extra`."""
    return quote(text, safe=_TOKEN_MARKS)


def _is_host(host: str) -> bool:
    if ":" not in host:
        return bool(_NAME.fullmatch(host))
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """`url` None means a direct connection; `exceptions` is a NO_PROXY list still to be looked at."""

    url: str | None = None
    exceptions: str = ""


def proxy_of(server: str, proxy_url: str, environ: Mapping[str, str]) -> Proxy:
    """The kubeconfig's `proxy-url` without exceptions, else the environment's; none for loopback. Raises `Problems`."""
    if proxy_url:
        return Proxy(url=_resolving(proxy_url))
    parts = urlsplit(server)
    name, url = _variable(environ, f"{parts.scheme}_proxy")
    if not url or _loopback(parts.hostname or ""):
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
