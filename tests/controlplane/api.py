"""JSON over HTTPS to one API server, for the fixture's own needs; the product's door is somewhere else."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
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
    """Every call is a connection of its own, so it may be used from any thread and over a restart of the server."""

    def __init__(self, server: str, ca_file: Path, token: str) -> None:
        self.server = server
        self._token = token
        self._open = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),  # a proxy of the environment has no business on loopback
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(ca_file))),
        ).open

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
        request = urllib.request.Request(
            f"{self.server}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": JSON} | dict(headers or {}),
        )
        try:
            with self._open(request, timeout=30) as answer:
                return _parsed(answer.read())
        except urllib.error.HTTPError as error:
            status = _parsed(error.read())
            raise ApiError(method, path, error.code, status if isinstance(status, dict) else {}) from None


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")
