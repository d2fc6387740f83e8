"""Fetches a release file over http or https: bounded in size and time, and only a plain 200 counts.

Proxies are those of the environment; certificates are always verified, and what was asked over https is not answered
over http.
"""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

from renderer.errors import Problems, problem
from renderer.redaction import bare_address

if TYPE_CHECKING:
    import urllib.request
    from concurrent.futures import Future

TIMEOUT = 30.0
LARGEST = 2**20
_CHUNK = 2**16
_REMEDY = "check the URL, or download the file and pass it with --release FILE"


def fetch(url: str, *, timeout: float = TIMEOUT, largest: int = LARGEST) -> bytes:
    """The body. `timeout` in seconds bounds the whole: names, connections, redirects, headers and body. Raises
    `Problems` for anything but a whole 200."""
    from concurrent.futures import Future  # loads logging; few commands fetch anything

    if "@" in url.partition("://")[2].partition("/")[0]:
        message = "contains a user name or password, which any process list would show"
        remedy = "download the file with a program that asks for them, and pass the file"
        raise problem("CannotFetch", message, file=bare_address(url), remedy=remedy)
    answer: Future[bytes] = Future()
    Thread(target=_into, args=(answer, url, timeout, largest), daemon=True).start()
    try:
        return answer.result(timeout)
    except TimeoutError as error:
        raise _refusal(url, f"no complete response within {timeout:g} s") from error


def is_address(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def _into(answer: Future[bytes], url: str, timeout: float, largest: int) -> None:
    """Runs in a thread of its own: a server can make each single wait short, and so the whole without an end. Whoever
    waits for the answer goes away in time, and the thread ends with the process."""
    try:
        answer.set_result(_fetched(url, timeout, largest))
    except BaseException as error:
        answer.set_exception(error)


def _fetched(url: str, timeout: float, largest: int) -> bytes:
    import http.client  # dear imports, which only an address needs
    import urllib.error

    try:
        with _opener().open(_request(url), timeout=timeout) as response:
            if response.status != 200:
                raise _refusal(url, f"the server answered {_status(response.status)}; 200 is expected")
            return _body(response, url, largest)
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(url, f"the server answered {_status(error.code)}; 200 is expected") from error
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(reason := getattr(error, "reason", None), TimeoutError):
            raise reason from error
        raise _refusal(url, f"cannot be fetched: {_cause(error)}") from error


def _status(code: int) -> str:
    """An HTTP status in the standard's words; a server's own could be anything, also a secret."""
    from http.client import responses

    return f"{code} {responses.get(code, '')}".strip()


def _opener() -> urllib.request.OpenerDirector:
    """As `build_opener` makes it, without its handlers for ftp, file and data addresses."""
    import urllib.request as request
    from urllib.parse import urlsplit

    class SafeRedirects(request.HTTPRedirectHandler):
        """Refuses to leave https: an attacker on the network could choose the release."""

        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            if req.full_url.lower().startswith("https:") and not newurl.lower().startswith("https:"):
                raise _refusal(req.full_url, f"redirects from https to {bare_address(newurl)}, which is not secure")
            if "@" in urlsplit(newurl).netloc:
                raise _refusal(req.full_url, "redirects to an address that contains a user name or password")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        SafeRedirects,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _request(url: str) -> urllib.request.Request:
    import urllib.request

    return urllib.request.Request(url, headers={"User-Agent": "upgradeplan"})  # noqa: S310 - the opener knows http only


def _body(response: Any, url: str, largest: int) -> bytes:
    body = b""
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > largest:
            message = f"is not a harvester-release.yaml: larger than {largest // 2**10} KiB"
            remedy = "download an ISO image and pass the file"
            raise problem("TooLarge", message, file=bare_address(url), remedy=remedy)
    if response.length:
        raise _refusal(url, f"the response ended {response.length} bytes early")
    return body


def _refusal(url: str, message: str) -> Problems:
    return problem("CannotFetch", message, file=bare_address(url), remedy=_REMEDY)


def _cause(error: Exception) -> str:
    from http.client import BadStatusLine, UnknownProtocol

    if isinstance(error, BadStatusLine | UnknownProtocol) and not isinstance(error, OSError):
        return "the server does not answer in HTTP"  # and what it says instead could be anything
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason).strip() or type(error).__name__
