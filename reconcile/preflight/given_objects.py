"""A `Look` over what somebody has given: objects of files, and the readings of facts documents.

A kind of which no object is there was looked at only if something says that it was read completely; else nobody knows
whether there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reconcile import objects
from reconcile.probes.look import HOSTS, Answer, Group, ReadFailure, Reading
from renderer.catalog.kinds import Kinds
from renderer.model.collected import CollectedKind
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

_Kind = tuple[str, str]
"""Group and kind."""
_Name = tuple[str, str]
"""Namespace and name."""
_NEVER_WHOLE = ("", "Secret")
"""Files have single Secrets, if any: that one is not among them says nothing."""


class GivenObjects:
    """`collected` is what was read completely; `facts` are sections of facts documents, empty if there is none. An
    object is found whatever version of its kind it is written in. The `plan` that is about to be created says nothing
    about whether there are others."""

    def __init__(
        self,
        bodies: Iterable[Body],
        kinds: Kinds,
        *,
        collected: Iterable[CollectedKind] = (),
        facts: Mapping[str, Any] | None = None,
        plan: Body | None = None,
    ) -> None:
        self._kinds = kinds
        self._facts = facts or {}
        self._collected: defaultdict[_Kind, list[CollectedKind]] = defaultdict(list)
        for item in collected:
            self._collected[item.group, item.kind].append(item)
        self._of: defaultdict[_Kind, dict[_Name, Body]] = defaultdict(dict)
        for body in bodies:
            ref = ref_of(body)
            self._of[_group(ref.api_version), ref.kind][ref.namespace, ref.name] = body
        self._alone = _alone(plan, self._of) if plan else None
        if plan is not None:
            ref = ref_of(plan)
            self._of[_group(ref.api_version), ref.kind].setdefault((ref.namespace, ref.name), plan)
        self._lists: dict[Group, tuple[Body, ...]] = {}

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """None where the kind was looked at and has no such object."""
        found = self._of[_group(ref.api_version), ref.kind].get((ref.namespace, ref.name))
        return found if found is not None else self._absence(ref.api_version, ref.kind, ref.namespace, ref.name)

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        failure = self._absence(group.api_version, group.kind, group.namespace)
        if failure is not None:
            return failure
        if group not in self._lists:
            self._lists[group] = tuple(self._members(group))
        return self._lists[group]

    def never_known(self, group: Group) -> ReadFailure | None:
        """The failure for a group of which these files cannot say what is in it, to somebody who gets no others."""
        failure = self._absence(group.api_version, group.kind, group.namespace, group.name)
        return replace(failure, out_of_reach=True) if failure else None

    def reading(self, reading: Reading, name: str) -> Answer:
        answer = look_up(self._facts, (reading.name, name))
        if isinstance(answer, Mapping):
            return answer
        if not self._facts or reading is HOSTS:
            return ReadFailure(why=f"files do not say it ({reading.name})", out_of_reach=True)
        why = f"the facts have no {reading.name} reading of {name}"
        return ReadFailure(why=why, remedy="collect them again: upgradeplan facts")

    def _members(self, group: Group) -> Iterable[Body]:
        of = self._of[_group(group.api_version), group.kind]
        for (namespace, name), body in sorted(of.items()):
            if (
                group.namespace in ("", namespace)
                and group.name in ("", name)
                and objects.has_labels(body, group.labels)
            ):
                yield body

    def _absence(self, api_version: str, kind: str, namespace: str, name: str = "") -> ReadFailure | None:
        """None if what is not among the objects does not exist."""
        key = (_group(api_version), kind)
        if any(_covers(item, namespace, name) for item in self._collected.get(key, ())):
            return None
        if self._of.get(key) and key != self._alone and not (key == _NEVER_WHOLE and name):
            return None
        plural, namespaced = self._plural(api_version, kind)
        if key == _NEVER_WHOLE and name:
            command = f"kubectl get secrets -n {namespace} {name} -o yaml"
            return ReadFailure(why=f"Secret {namespace}/{name} is not among the inputs", remedy=command)
        where = " -A" if namespaced else ""
        return ReadFailure(why=f"no {kind} objects among the inputs", remedy=f"kubectl get {plural}{where} -o yaml")

    def _plural(self, api_version: str, kind: str) -> tuple[str, bool]:
        row = self._kinds.row(api_version, kind).kind
        return f"{row.plural}.{row.group}" if row.group else row.plural, row.namespaced


def _alone(plan: Body, of: Mapping[_Kind, Mapping[_Name, Body]]) -> _Kind | None:
    """The kind of a plan that is just a file: other plans were not read."""
    ref = ref_of(plan)
    key = (_group(ref.api_version), ref.kind)
    return None if of.get(key) or plan["metadata"].get("uid") else key


def _covers(item: CollectedKind, namespace: str, name: str) -> bool:
    return item.namespace in ("", namespace) and item.name in ("", name)


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
