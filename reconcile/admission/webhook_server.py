"""Serves the webhook over HTTPS: reviews in, answers out, and a certificate that is exchanged without a pause.

Nothing is decided here. A body that is not a review is answered with 400 and a message; a bug in this program with 500,
so that the configuration's failurePolicy decides, and with a line in the log.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from threading import Thread
from traceback import format_exception
from typing import Any

from aiohttp import web

from reconcile.admission.review import AdmissionRequest, Judgement, ReviewError, read_review, write_review
from reconcile.admission.tls import server_context, use_certificate

PATH = "/validate-management-harvesterhci-io-v1beta1-upgradeplan"
"""The path at which the existing manager serves it."""
LARGEST = 7 * 1024 * 1024
"""Bytes of a request: twice the largest object that an API server takes, as controller-runtime has it."""

_AT_ONCE = 4
_USUAL, _LONGEST = 10.0, 30.0
"""Seconds that an API server waits: if it does not say, and at most."""
_SPARE = 0.15
"""The part of these that is left for the way back."""
_GRACE = 10.0
_START = 10.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_UNITS: Mapping[str, float] = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

Answer = Callable[[AdmissionRequest, float], Judgement]
"""Judges a request within so many seconds."""

OnReview = Callable[[str, str, float], None]
"""Receives each review: its operation, `allowed`, `denied`, `malformed` or `error`, and the seconds it took."""


def log_nothing(operation: str, result: str, seconds: float) -> None:
    """For use without metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCertificate:
    """A certificate with its key, in PEM, and between which times it is valid."""

    certificate: bytes
    key: bytes
    not_before: datetime
    not_after: datetime


class WebhookServer:
    """An HTTPS server in a thread of its own. `address` is `host:port`, an empty host for all; `tell` writes a line of
    the log; `clock` is monotonic."""

    def __init__(
        self,
        address: str,
        answer: Answer,
        *,
        log: Callable[[str, Mapping[str, Any]], None],
        now: Callable[[], datetime],
        clock: Callable[[], float],
        on_review: OnReview = log_nothing,
    ) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]") or None, int(port)
        self._answer = answer
        self._log = log
        self._now = now
        self._clock = clock
        self._on_review = on_review
        self._context = server_context()
        self._used: ServingCertificate | None = None
        self._loop = asyncio.new_event_loop()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="admission")
        self._runner = web.AppRunner(self._application(), access_log=None, logger=_quiet(), shutdown_timeout=_GRACE)
        self._thread = Thread(target=self._loop.run_forever, name="webhook", daemon=True)

    @property
    def serving(self) -> bool:
        """True if a client that trusts the certificate gets an answer now."""
        used = self._used
        return used is not None and used.not_before <= self._now() < used.not_after

    @property
    def port(self) -> int:
        return int(self._runner.addresses[0][1])

    @property
    def not_after(self) -> datetime | None:
        """The time when the certificate ends; None before there is one."""
        return self._used.not_after if self._used else None

    def start(self) -> None:
        """Raises OSError and OverflowError for an address that cannot be listened at."""
        self._thread.start()
        try:
            self._run(self._listen()).result(_START)
        except BaseException:
            self.stop()
            raise

    def use(self, certificate: ServingCertificate) -> None:
        """Serves with this certificate from now on. Raises OSError if it is not a pair."""
        self._run(self._use(certificate)).result(_START)
        self._used = certificate

    def stop(self) -> None:
        """Takes no more requests, and finishes those that are under way."""
        self._run(self._runner.cleanup()).result(_GRACE + _START)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START)
        self._loop.close()
        self._pool.shutdown(wait=False)

    def _run(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=LARGEST)
        application.router.add_post(PATH, self._review)
        return application

    async def _listen(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._context).start()

    async def _use(self, certificate: ServingCertificate) -> None:
        use_certificate(self._context, certificate.certificate, certificate.key)

    async def _review(self, request: web.Request) -> web.Response:
        began = self._clock()
        deadline = began + seconds_for(request.query.get("timeout", ""))
        content = await request.read()
        operation, result = "", "error"
        try:
            review, judgement = await self._loop.run_in_executor(self._pool, self._judged, content, deadline)
            operation, result = review.operation, "denied" if judgement.causes else "allowed"
            return _last(web.json_response(write_review(review, judgement)))
        except ReviewError as error:
            result = "malformed"
            return _last(web.Response(status=400, text=f"{error}\n"))
        except Exception as error:
            message = f"internal error, please report it: {type(error).__name__}: {error}"
            self._log("bug", {"why": message, "traceback": "".join(format_exception(error))})
            return _last(web.Response(status=500, text="internal error; see the log of this program\n"))
        finally:
            self._on_review(operation, result, self._clock() - began)

    def _judged(self, content: bytes, deadline: float) -> tuple[AdmissionRequest, Judgement]:
        request = read_review(content)
        judgement = self._answer(request, max(0.0, deadline - self._clock()))
        causes = [f"{cause.field}: {cause.message}".removeprefix(": ") for cause in judgement.causes]
        said = {"plan": request.name, "operation": request.operation, "allowed": not causes}
        self._log("admission", {**said, **({"why": causes} if causes else {})})
        return request, judgement


def _last(response: web.Response) -> web.Response:
    """The answer, after which the connection is closed. Requests are rare, and the next one meets the certificate of
    its own time."""
    response.force_close()
    return response


def seconds_for(timeout: str) -> float:
    """The seconds for an answer, of those that the API server says it waits, as Go writes them: `10s`, `1m0s`."""
    parts = _DURATION.findall(timeout)
    whole = "".join(number + unit for number, unit in parts) == timeout
    said = sum(float(number) * _UNITS[unit] for number, unit in parts) if parts and whole else _USUAL
    return min(said, _LONGEST) * (1 - _SPARE)


def _quiet() -> logging.Logger:
    """The server's own remarks, which are about what clients send."""
    logger = logging.Logger("webhook")
    logger.addHandler(logging.NullHandler())
    return logger
