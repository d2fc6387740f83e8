"""Computes the permissions that an overlay's own steps and checks need beside those of an installation.

A manifest's kind is read off its template's text: a template that computes its kind has to be given a rule by hand.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from renderer.catalog.checks import DeclaredCheck
from renderer.catalog.kinds import Kinds
from renderer.catalog.load import Catalog
from renderer.catalog.named_kinds import Named, named_in_probe, named_in_step
from renderer.catalog.template_tree import TemplateTree
from renderer.catalog.verify import all_steps, probes_of
from renderer.frozen import frozen
from renderer.model.manifest_spec import Owned
from renderer.model.phase import Phase, Step
from renderer.model.ref import Body, Kind

_READ = ("list", "watch")
_LOOK = ("list",)
_OWN = (*_READ, "create", "patch", "delete")
_BORROW = (*_READ, "patch")
_SECRET = ("v1", "Secret")
_OPEN = re.compile(r"{[{%]")

_Resource = tuple[str, str, tuple[str, ...]]
"""Group, plural, and the names of the only objects that are meant."""

Rules = Mapping[str, Sequence[Mapping[str, Any]]]
"""PolicyRules by namespace; the empty one stands for the whole cluster."""


@frozen
class _Use:
    """Verbs on a kind, in a namespace; in the empty one if it has none, or if that is unknown. `names` are the
    only objects that are meant, if there are any."""

    kind: Kind
    namespace: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


def overlay_rules(
    catalog: Catalog, checks: Iterable[DeclaredCheck], tree: TemplateTree, granted: Iterable[Body]
) -> Rules:
    """The rules that are not among those of the `granted` roles."""
    known = set(_granted(granted))
    found: dict[str, dict[_Resource, list[str]]] = defaultdict(lambda: defaultdict(list))
    for use in (*_of_phases(catalog, tree), *_of_checks(checks, catalog.kinds)):
        for verb in use.verbs:
            asked = (use.kind.group, use.kind.plural, verb)
            verbs = found[use.namespace][use.kind.group, use.kind.plural, use.names]
            if not {("", *asked), (use.namespace, *asked)} & known and verb not in verbs:
                verbs.append(verb)
    rules = {namespace: list(_rules(resources)) for namespace, resources in sorted(found.items())}
    return {namespace: own for namespace, own in rules.items() if own}


def _rules(resources: Mapping[_Resource, list[str]]) -> Iterator[Mapping[str, Any]]:
    for (group, plural, names), verbs in sorted(resources.items()):
        if verbs:
            named = {"resourceNames": list(names)} if names else {}
            yield {"apiGroups": [group], "resources": [plural], **named, "verbs": verbs}


def _granted(roles: Iterable[Body]) -> Iterator[tuple[str, str, str, str]]:
    """Namespace, group, resource and verb of each rule that holds for every name."""
    for body in roles:
        for rule in body.get("rules") or () if body["kind"] in ("Role", "ClusterRole") else ():
            if not rule.get("resourceNames"):
                place = str(body["metadata"].get("namespace", ""))
                for group in rule.get("apiGroups", ()):  # a rule for paths has none
                    yield from ((place, group, name, verb) for name in rule["resources"] for verb in rule["verbs"])


def _of_phases(catalog: Catalog, tree: TemplateTree) -> Iterator[_Use]:
    for declared in catalog.phases:
        for step in all_steps(declared.phase):
            yield from _of_manifests(declared.phase, step, catalog.kinds, tree)
            for named in named_in_step(step, tuple(probes_of(step))):
                yield from _of_named(named, catalog.kinds, _READ)


def _of_manifests(phase: Phase, step: Step, kinds: Kinds, tree: TemplateTree) -> Iterator[_Use]:
    for spec in step.manifests:
        text = tree[f"{phase.folder}/{spec.file}"].text
        row = kinds.find(_head(text, "apiVersion"), _head(text, "kind"))
        if row is not None:
            namespace = _head(text, "  namespace") if row.kind.namespaced else ""
            yield _Use(kind=row.kind, namespace=namespace, verbs=_OWN if isinstance(spec, Owned) else _BORROW)


def _head(text: str, key: str) -> str:
    """The value of a key as it stands in the template; empty where the template computes it."""
    found = re.search(rf"^{key}: *[\"']?([^\"'\n]+)", text, re.MULTILINE)
    return "" if found is None or _OPEN.search(found[1]) else found[1].strip()


def _of_checks(checks: Iterable[DeclaredCheck], kinds: Kinds) -> Iterator[_Use]:
    for declared in checks:
        named = named_in_probe(declared.check.probe)
        if named is not None:
            yield from _of_named(named, kinds, _LOOK)


def _of_named(named: Named, kinds: Kinds, verbs: tuple[str, ...]) -> Iterator[_Use]:
    """A Secret that is not a machine plan is read by its name. A kind or a name with marks in it cannot be known."""
    row = kinds.find(named.api_version, named.kind)
    if row is None:
        return
    namespace = "" if _OPEN.search(named.namespace) else named.namespace
    if not named.names or (named.api_version, named.kind) != _SECRET:
        yield _Use(kind=row.kind, namespace=namespace, verbs=verbs)
        return
    names = () if any(map(_OPEN.search, named.names)) else named.names
    yield _Use(kind=row.kind, namespace=namespace, verbs=("get",), names=names)
