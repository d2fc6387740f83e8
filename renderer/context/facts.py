"""Everything that rendering starts from, and look-ups over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import look_up
from renderer.model.ref import Body
from renderer.model.sharing import SameObject


@frozen
class Facts:
    """Everything that rendering starts from. `release` is None while it is not known; `image_lists` likewise.
    `fetched` is what the run has read over HTTP so far, by the name that a step gives it.
    """

    plan: Body
    release: Body | None = None
    objects: tuple[Body, ...] = ()
    image_lists: Mapping[str, Sequence[str]] | None = None
    fetched: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any]
    spec_fields: Mapping[str, Any]
    retry: int = 0


def status(facts: Facts, field: str) -> Any:
    """A field of the plan's status, None where it is not there."""
    return (facts.plan.get("status") or {}).get(field)


def every(facts: Facts, api: str, kind: str) -> Iterator[Body]:
    """`api` is a whole apiVersion, or a group with its slash."""
    for item in _by_kind(SameObject(facts.objects)).get(kind, ()):
        version = str(item.get("apiVersion", ""))
        if version.startswith(api) if api.endswith("/") else version == api:
            yield item


@lru_cache(maxsize=4)  # each kind is asked for, of the same objects
def _by_kind(objects: SameObject) -> Mapping[Any, list[Body]]:
    found: dict[Any, list[Body]] = {}
    for item in objects.it:
        found.setdefault(item.get("kind"), []).append(item)
    return found


def find(facts: Facts, api: str, kind: str, name: str | None, namespace: str = "") -> Body | None:
    found = (i for i in every(facts, api, kind) if meta(i, "name") == name and (meta(i, "namespace") == namespace))
    return next(found, None)


def meta(item: Body, field: str) -> str:
    return text_at(item, "metadata", field) or ""


def label(item: Body, key: str) -> str | None:
    return text_at(item, "metadata", "labels", key)


def node_of_machine(machine: Body) -> str:
    """The node that a Machine of Cluster API has become; empty until it has."""
    return text_at(machine, "status", "nodeRef", "name") or ""


def text_at(item: Body | None, *path: str) -> str | None:
    """The text at a path; None where there is anything else. An object need not be what its API would take."""
    found = look_up(item, path)
    return found if isinstance(found, str) else None
