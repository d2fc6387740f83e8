"""JSON over HTTPS to one API server, for the fixture's own needs; the product's door is somewhere else."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class ApiError(Exception):
    """The server answered with something other than success; `status` is its Status object, if it sent one."""

    def __init__(self, method: str, path: str, code: int, status: Mapping[str, Any]) -> None:
        self.code = code
        self.status = status
        super().__init__(f"{method} {path}: {code} {status.get('message', '')}")


class Api:
    """One connection, kept open, and opened again after it broke; threads take turns."""

    def __init__(self, host: str, port: int, ca_file: Path, token: str) -> None:
        self._token = token
        self._lock = threading.Lock()
        context = ssl.create_default_context(cafile=str(ca_file))
        self._connection = http.client.HTTPSConnection(host, port, timeout=30, context=context)

    def get(self, path: str, accept: str = JSON) -> Any:
        return self.send("GET", path, headers={"Accept": accept})

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.send("POST", path, body)

    def create_if_absent(self, path: str, body: Mapping[str, Any]) -> None:
        try:
            self.create(path, body)
        except ApiError as error:
            if error.code != 409:
                raise

    def patch(self, path: str, body: Mapping[str, Any], kind: str = MERGE) -> Any:
        """`kind` is the patch's media type: MERGE, or APPLY with `?fieldManager=` in the path."""
        return self.send("PATCH", path, body, {"Content-Type": kind})

    def delete(self, path: str, propagation: str = "Background") -> Any:
        return self.send("DELETE", path, {"propagationPolicy": propagation})

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The parsed answer, or its text where it is not JSON. Raises ApiError, or OSError if the server is away."""
        content = None if body is None else json.dumps(body)
        all_headers = {"Authorization": f"Bearer {self._token}", "Content-Type": JSON} | dict(headers or {})
        with self._lock:
            code, answer = self._exchange(method, path, content, all_headers)
        if code >= 400:
            raise ApiError(method, path, code, answer if isinstance(answer, dict) else {})
        return answer

    def _exchange(self, method: str, path: str, content: str | None, headers: dict[str, str]) -> tuple[int, Any]:
        was_open = self._connection.sock is not None
        try:
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
            return answer.status, _parsed(answer.read())
        except (ConnectionError, ssl.SSLEOFError):
            self._connection.close()
            if not was_open:
                raise
            return self._exchange(method, path, content, headers)
        except BaseException:
            self._connection.close()
            raise


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")
