"""Fetches a release file over http or https: bounded in size and time, and only a plain 200 counts.

Proxies are those of the environment; certificates are always verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from renderer.errors import Problems, problem

if TYPE_CHECKING:
    import urllib.request

TIMEOUT = 30.0
LARGEST = 2**20
_CHUNK = 2**16
_REMEDY = "check the URL, or download the file and pass it with --release FILE"


def fetch(
    url: str, *, timeout: float = TIMEOUT, largest: int = LARGEST, clock: Callable[[], float] = time.monotonic
) -> bytes:
    """The body. `timeout` in seconds bounds each wait and the whole. Raises `Problems` for anything but a whole 200."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        message = "contains a user name or password, which any process list would show"
        remedy = "download the file with a program that asks for them, and pass the file"
        raise problem("CannotFetch", message, file=shown(url), remedy=remedy)
    import http.client  # dear imports, which only an address needs
    import urllib.error

    try:
        with _opener().open(_request(url), timeout=timeout) as response:
            if response.status != 200:
                raise _refusal(url, f"the server answered {response.status} {response.reason}; 200 is expected")
            return _body(response, url, clock() + timeout, largest, clock)
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(url, f"the server answered {error.code} {error.reason}; 200 is expected") from error
    except TimeoutError as error:
        raise _refusal(url, f"no complete response within {timeout:g} s") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(getattr(error, "reason", None), TimeoutError):
            raise _refusal(url, f"no complete response within {timeout:g} s") from error
        raise _refusal(url, f"cannot be fetched: {_cause(error)}") from error


def is_address(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def shown(url: str) -> str:
    """An address without what may be secret: no user, no password, no query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _opener() -> urllib.request.OpenerDirector:
    """As `build_opener` makes it, without its handlers for ftp, file and data addresses."""
    import urllib.request as request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _request(url: str) -> urllib.request.Request:
    import urllib.request

    return urllib.request.Request(url, headers={"User-Agent": "upgradeplan"})  # noqa: S310 - the opener knows http only


def _body(response: Any, url: str, deadline: float, largest: int, clock: Callable[[], float]) -> bytes:
    body = b""
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > largest:
            message = f"is not a harvester-release.yaml: larger than {largest // 2**10} KiB"
            raise problem("TooLarge", message, file=shown(url), remedy="download an ISO image and pass the file")
        if clock() > deadline:
            raise TimeoutError
    if response.length:
        raise _refusal(url, f"the response ended {response.length} bytes early")
    return body


def _refusal(url: str, message: str) -> Problems:
    return problem("CannotFetch", message, file=shown(url), remedy=_REMEDY)


def _cause(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason).strip() or type(error).__name__
