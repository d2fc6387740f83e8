"""Serves what the upgrade repository serves as soon as one of its pods is ready: the release file and the image lists.

Called by whatever stands behind the API server's Service proxy, from any thread. The paths are those of a Harvester
ISO; an answer of 404 for a missing list is nginx's, not compared with the real image.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from threading import Lock

from reconcile.cluster.errors import BackendFailed
from reconcile.simulator.actors.actor_client import ENDPOINT_SLICE, SERVICE, SETTING, ActorClient
from reconcile.simulator.actors.actor_context import ActorContext, Timers, labels_of
from renderer.model.ref import Ref

RELEASE_FILE, IMAGE_LIST = "release-file", "image-list"
ROOT = "harvester-iso"
_LISTS = f"{ROOT}/bundle/harvester/images-lists-archive"
_SERVICE_NAME = "kubernetes.io/service-name"


class Repo:
    """Every Service that ends in `-repo` is one. A slow file is not answered at first; a file that fails answers 500,
    an image list that fails is not there."""

    def __init__(self, context: ActorContext, client: ActorClient) -> None:
        """`client` is read from other threads than the simulation's own."""
        self._context = context
        self._client = client
        self._timers = Timers()
        self._tries: Counter[str] = Counter()
        self._lock = Lock()
        self._previous = self._installed()

    def step(self, now: datetime) -> bool:
        with self._lock:
            self._timers.begin(now)
        return False

    def next_due(self) -> datetime | None:
        with self._lock:
            return self._timers.next_due()

    def answer(self, ref: Ref, path: str, query: Mapping[str, str]) -> bytes:
        """The bytes behind the Service's proxy; `path` has no slash in front. Raises BackendFailed."""
        with self._lock:
            self._client.refresh()
            if not self._is_up(ref):
                raise BackendFailed(ref, path, 503, "no endpoints available for service")
            content = self._contents().get(path.strip("/"))
            if content is None:
                raise BackendFailed(ref, path, 404, "404 Not Found")
            self._meet(ref, path, RELEASE_FILE if path.endswith("release.yaml") else IMAGE_LIST)
            return content

    def read(self, namespace: str, service: str, path: str) -> bytes:
        """The same by namespace, service and absolute path."""
        return self.answer(
            Ref(api_version="v1", kind="Service", namespace=namespace, name=service), path.strip("/"), {}
        )

    def _meet(self, ref: Ref, path: str, operation: str) -> None:
        self._tries[operation] += 1
        if self._context.faults.fails(operation, tried=self._tries[operation] - 1):
            status = 500 if operation == RELEASE_FILE else 404
            raise BackendFailed(ref, path, status, "as injected by the fault plan")
        if not self._timers.passed(operation, self._context.faults.lasts(operation, timedelta(0))):
            raise BackendFailed(ref, path, 504, "the server did not answer in time")

    def _is_up(self, ref: Ref) -> bool:
        """True if the Service has a ready endpoint; its name may stand between scheme and port."""
        parts = ref.name.split(":")
        name = parts[1] if len(parts) == 3 else parts[0]
        if not name.endswith("-repo") or self._client.find(SERVICE, name, ref.namespace) is None:
            return False
        return any(
            (endpoint.get("conditions") or {}).get("ready") is True
            for each in self._client.all(ENDPOINT_SLICE, ref.namespace)
            if labels_of(each).get(_SERVICE_NAME) == name
            for endpoint in each.get("endpoints") or ()
        )

    def _contents(self) -> Mapping[str, bytes]:
        settings = self._context.settings
        files = {f"{ROOT}/harvester-release.yaml": _yaml(settings.release)}
        if settings.previous_images is not None and self._previous:
            files[f"{_LISTS}/{self._previous}/image_list_all.txt"] = _lines(settings.previous_images)
        if settings.current_images is not None:
            files[f"{_LISTS}/current/image_list_all.txt"] = _lines(settings.current_images)
        return files

    def _installed(self) -> str:
        """The version that runs when the simulation begins: the one whose image list is the previous one."""
        setting = self._client.find(SETTING, "server-version")
        return str((setting or {}).get("value") or "")


def _yaml(release: Mapping[str, object]) -> bytes:
    """A line a key; JSON text is YAML text."""
    return "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in release.items()).encode()


def _lines(images: Sequence[str]) -> bytes:
    return "".join(f"{image}\n" for image in images).encode()
