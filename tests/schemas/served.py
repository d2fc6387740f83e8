"""Custom resources on a real API server: made and removed again, refused, compared with what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from controlplane.api import Api, ApiError

from schemas.definitions import Json, crd_of, subresources


def path(body: Json) -> str:
    """Path of the body's kind in its namespace."""
    spec, namespace = crd_of(body)["spec"], body["metadata"].get("namespace")
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}{where}/{spec['names']['plural']}"


@contextmanager
def created(api: Api, body: Json, query: str = "") -> Iterator[tuple[str, Json]]:
    """Path and live object; gone afterwards."""
    live = api.create(f"{path(body)}?{query}", body)
    one = f"{path(body)}/{body['metadata']['name']}"
    try:
        yield one, live
    finally:
        api.delete(one)


def put_status(api: Api, one: str, live: Json, body: Json, query: str = "") -> Json:
    """The live object with the body's status, written where the kind wants it written."""
    if "status" not in body or "status" not in subresources(crd_of(body)):
        return live
    written: Json = api.send("PUT", f"{one}/status?{query}", {**live, "status": body["status"]})
    return written


def refusals(api: Api, body: Json) -> Iterator[str]:
    """What the server says with and without looking for unknown fields, which it looks for first and by themselves."""
    for query in ("dryRun=All&fieldValidation=Strict", "dryRun=All&fieldValidation=Ignore"):
        try:
            api.create(f"{path(body)}?{query}", body)
            with created(api, {key: body[key] for key in body if key != "status"}) as (one, live):
                put_status(api, one, live, body, query)
        except ApiError as error:
            yield str(error)


def broken_rules(api: Api, method: str, where: str, body: Json) -> list[str]:
    """Sorted messages of the rules that the body breaks, without writing anything."""
    try:
        api.send(method, f"{where}?dryRun=All", body)
    except ApiError as error:
        causes = error.status["details"]["causes"]
        return sorted(cause["message"].removeprefix("Invalid value: ") for cause in causes)
    return []


def lost(expected: Any, live: Any, where: str) -> list[str]:
    """Paths of what is expected and not live; the server may have added to mappings."""
    if isinstance(expected, Mapping) and isinstance(live, Mapping):
        return [
            text for key, value in expected.items() for text in lost(value, live.get(key, "absent"), f"{where}.{key}")
        ]
    return [] if expected == live else [where]
