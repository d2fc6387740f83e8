"""The ways from one object to others: owners, label selectors, fields of equal value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconcile.diagnosis.situation import entries, mapping
from renderer.model.known_cause import Join, Link
from renderer.model.path import ABSENT, look_up
from renderer.model.ref import Body


def leads_to(link: Link, start: Body, other: Body) -> bool:
    """True if the link leads from the object to the other one."""
    return _JOINS[link.join](link, start, other)


def selects(selector: Any, labels: Mapping[str, Any]) -> bool:
    """The selector as policy/v1 reads it: an empty one takes every object, none takes none."""
    if not isinstance(selector, Mapping):
        return False
    alike = all(labels.get(key) == value for key, value in mapping(selector, "matchLabels").items())
    return alike and all(_meets(labels, rule) for rule in entries(selector, "matchExpressions"))


def _meets(labels: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    value, values = labels.get(rule.get("key", "")), rule.get("values") or ()
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(str(rule.get("operator")), False)


def _selects(selecting: Body, selected: Body) -> bool:
    """A selector of plain labels, as a Service has, reads as one of a Deployment does."""
    if look_up(selecting, ("metadata", "namespace")) != look_up(selected, ("metadata", "namespace")):
        return False
    selector = look_up(selecting, ("spec", "selector"))
    return selects(selector, mapping(selected, "metadata", "labels"))


def _owns(owner: Body, owned: Body) -> bool:
    uid = look_up(owner, ("metadata", "uid"))
    return any(
        item.get("kind") == owner.get("kind")
        and item.get("name") == look_up(owner, ("metadata", "name"))
        and uid in (item.get("uid"), ABSENT)
        for item in entries(owned, "metadata", "ownerReferences")
    )


def _equal(link: Link, start: Body, other: Body) -> bool:
    """Of what is absent nothing is equal."""
    pairs = ((look_up(other, theirs), look_up(start, ours)) for theirs, ours in link.fields)
    return all(theirs == ours and theirs is not ABSENT and theirs != "" for theirs, ours in pairs)


_JOINS: Mapping[Join, Callable[[Link, Body, Body], bool]] = {
    Join.OWNER: lambda _, start, other: _owns(other, start),
    Join.OWNED: lambda _, start, other: _owns(start, other),
    Join.SELECTOR: lambda _, start, other: _selects(start, other),
    Join.SELECTED: lambda _, start, other: _selects(other, start),
    Join.FIELDS: _equal,
    Join.ANY: lambda _, start, other: True,
}
