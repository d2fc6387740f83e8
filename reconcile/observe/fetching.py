"""Reads the documents that the upgrade's repository serves. What cannot be read is reported, and read again later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reconcile.cluster.errors import Away, BackendFailed, ClusterError
from reconcile.cluster.inside import read_service
from reconcile.cluster.protocol import Cluster
from reconcile.decide.observation import FetchFailure
from reconcile.observe.patience import NoAnswerError, Patience
from renderer.catalog.kinds import Kinds
from renderer.errors import Problems
from renderer.model.phase import Fetch, FetchAs
from renderer.model.ref import Ref
from renderer.yaml_io import parse

_NOT_FOUND = 404

Read = Callable[[Fetch], bytes]
"""Reads one document. Raises `BackendFailed` with the HTTP status that the repository answered, or that nobody did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The documents read by name, and the reasons why the rest was not."""

    values: Mapping[str, Any]
    missing: Mapping[str, FetchFailure]


def through_the_proxy(cluster: Cluster, kinds: Kinds) -> Read:
    """Reads by way of the API server, which is reached from outside of the cluster as well."""
    kind = kinds.row("v1", "Service").kind

    def read(fetch: Fetch) -> bytes:
        ref = Ref(api_version="v1", kind="Service", namespace=fetch.namespace, name=f"{fetch.service}:{fetch.port}")
        return cluster.read(kind, ref, f"proxy{fetch.path}")

    return read


def from_inside(fetch: Fetch) -> bytes:
    """Reads by the Service's own address, which only pods know the way to."""
    service = Ref(api_version="v1", kind="Service", namespace=fetch.namespace, name=fetch.service)
    return read_service(service, fetch.port, fetch.path)


def in_time(read: Read, patience: Patience) -> Read:
    """The same, for somebody who waits no longer than that."""

    def hurried(fetch: Fetch) -> bytes:
        try:
            return patience.answer(partial(read, fetch))
        except NoAnswerError as error:
            service = Ref(api_version="v1", kind="Service", namespace=fetch.namespace, name=fetch.service)
            raise BackendFailed(service, fetch.path, 0, str(error)) from error

    return hurried


def fetch_all(fetches: Iterable[Fetch], read: Read) -> Fetched:
    """Reads every document that is needed now. Raises `Away` where the API server itself does not answer."""
    values: dict[str, Any] = {}
    missing: dict[str, FetchFailure] = {}
    for fetch in fetches:
        found = _fetch(fetch, read)
        if isinstance(found, FetchFailure):
            missing[fetch.name] = found
        else:
            values[fetch.name] = found
    return Fetched(values=values, missing=missing)


def _fetch(fetch: Fetch, read: Read) -> Any:
    try:
        content = read(fetch)
    except BackendFailed as error:
        absent = error.status == _NOT_FOUND and _is_proven_absent(fetch, read)
        return FetchFailure(why=f"fetch {_url(fetch)}: {error.problem.message}", absent=absent)
    except Away:
        raise
    except ClusterError as error:
        return FetchFailure(why=f"fetch {_url(fetch)}: {error.problem.message}")
    try:
        return _READERS[fetch.read_as](content.decode(), fetch)
    except (ValueError, Problems) as error:
        return FetchFailure(why=f"{_url(fetch)}: {str(error).partition(chr(10))[0]}")


def _is_proven_absent(fetch: Fetch, read: Read) -> bool:
    """True if the repository itself said so: it is up, since it has what it always has."""
    if fetch.absent is None:
        return False
    try:
        return bool(read(replace(fetch, path=fetch.absent.proven_by)))
    except Away:
        raise
    except ClusterError:
        return False


def _release(text: str, fetch: Fetch) -> dict[str, Any]:
    documents = parse(text, fetch.path)
    bodies = [document.text for document in documents if isinstance(document.text, dict)]
    if len(bodies) != 1:
        raise ValueError("is not a release file: expected one mapping")
    body: dict[str, Any] = bodies[0]
    empty = [key for key in fetch.required if not body.get(key)]
    if empty:
        raise ValueError(f"the release file has no {', '.join(empty)}")
    return body


def _lines(text: str, fetch: Fetch) -> list[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if fetch.non_empty and not lines:
        raise ValueError("the list is empty, so every image would be removed")
    return lines


_READERS: Mapping[FetchAs, Callable[[str, Fetch], Any]] = {FetchAs.RELEASE: _release, FetchAs.LINES: _lines}


def _url(fetch: Fetch) -> str:
    return f"http://{fetch.service}.{fetch.namespace}:{fetch.port}{fetch.path}"
