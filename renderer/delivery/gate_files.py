"""The Job of a gate, with the ConfigMap that it reads and the smallest role that suffices; and the role by which other
Jobs keep the record of their success."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.catalog.places import DELIVERY_GATE, DELIVERY_RUN_ONCE, INSTALL, PREFLIGHT
from renderer.catalog.probes import gate_from
from renderer.catalog.template_tree import TemplateTree
from renderer.context.scope import Scope
from renderer.delivery.delivery_rules import DeliveryRules, Pair
from renderer.delivery.dress import Record
from renderer.delivery.gate_document import GateContent, NamedGate, gate_document
from renderer.digest import digest_of, short_digest
from renderer.frozen import frozen
from renderer.model.probe import EveryTarget, ObjectTarget, RulePredicate
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan
from renderer.names import shortened_name
from renderer.templating import Templates
from renderer.yaml_io import dump, parse

_PREFLIGHT_ROLES = f"{INSTALL}/rbac-helpers.yaml.j2"
_LONGEST = 52
"""Of a Job's name, so that its pods' names keep it whole."""
_READ = ("get", "list")
PLAN_GATE = "UpgradePlan"
"""The name of the gate on the plan itself."""

Rule = Mapping[str, Any]


@frozen
class GateWriter:
    """Makes the objects of gates for one plan. `names` is what declared gates may use, `image` is of this program."""

    plan: RenderedPlan
    upgrade_plan: Body
    release: Body | None
    tree: TemplateTree
    templates: Templates
    kinds: Kinds
    rules: DeliveryRules
    names: Mapping[str, Any]
    image: str

    def declared(self, phase: str) -> tuple[NamedGate, ...]:
        """The gates that the delivery rules put before a phase."""
        raw = (self._filled(item) for item in self.rules.of(phase).before)
        return tuple(NamedGate(step=f"{phase}/Before", gate=gate_from(item)) for item in raw)

    def after_plan(self) -> tuple[NamedGate, ...]:
        """The gates that pass once the plan has ended well."""
        raw = (self._filled(item) for item in self.rules.after_plan)
        return tuple(NamedGate(step=f"{PLAN_GATE}/After", gate=gate_from(item)) for item in raw)

    def bodies(self, content: GateContent) -> tuple[Body, ...]:
        """ServiceAccount, roles, ConfigMap and Job."""
        looked = [*_looked_at(content.gates, self.rules, self.kinds)]
        document = gate_document(content, self.plan, self.tree, (pair for _, pair in looked), self._run())
        name = self._name(content, document)
        gate = {
            "name": name,
            "phase": content.name,
            "image": self.image,
            "pullSecrets": self.names["toolkit"]["pullSecrets"],
            "document": dump(document),
            "roles": self._roles(looked, content),
        }
        return self._rendered(DELIVERY_GATE, gate=gate)

    def keepers(self, record: Record) -> tuple[Body, ...]:
        """The role that reads and writes the record, and its binding to the accounts of the Jobs."""
        named = {"name": record.name, "namespace": record.namespace, "accounts": record.accounts}
        return self._rendered(DELIVERY_RUN_ONCE, record=named)

    def _rendered(self, template: str, **names: Mapping[str, Any]) -> tuple[Body, ...]:
        context = {name: Scope(name, value) for name, value in {"plan": {"name": self.plan.plan}, **names}.items()}
        text = self.templates.render_text(template, context)
        return tuple(document.value for document in parse(text, self.templates.shown(template)))

    def _name(self, content: GateContent, document: Mapping[str, Any]) -> str:
        """One that changes with all that the Job does: a Job cannot be changed."""
        digest = short_digest(digest_of([document, self.image]))[:8]
        return f"{shortened_name(_LONGEST - 9, self.plan.plan, 'gate', content.name.lower())}-{digest}"

    def _run(self) -> dict[str, Any]:
        files = {path: self.tree[path].text for path in self.tree if path.startswith(f"{PREFLIGHT}/")}
        return {
            "upgradePlan": self.upgrade_plan,
            **({"release": self.release} if self.release else {}),
            "files": files,
        }

    def _roles(self, looked: Iterable[tuple[str, Pair]], content: GateContent) -> list[Rule]:
        """By namespace, the empty one for the cluster."""
        found: dict[str, list[Rule]] = defaultdict(list)
        resources: dict[tuple[str, str], set[str]] = defaultdict(set)
        for namespace, pair in looked:
            kind = self.kinds.row(*pair).kind
            resources["" if not kind.namespaced else namespace, kind.group].add(kind.plural)
        for (namespace, group), names in sorted(resources.items()):
            found[namespace].append({"group": group, "resources": sorted(names), "verbs": [*_READ]})
        if content.checks:
            for namespace, rule in self._rules_of_checks():
                found[namespace].append(rule)
        return [{"namespace": namespace, "rules": rules} for namespace, rules in sorted(found.items())]

    def _rules_of_checks(self) -> Iterator[tuple[str, Rule]]:
        """All that `preflight` reads, as an installation grants it to people."""
        values = Scope("values", {"name": "gate", "rbacHelpers": {"enable": True}})
        text = self.templates.render_text(_PREFLIGHT_ROLES, {"values": values})
        for document in parse(text, _PREFLIGHT_ROLES):
            metadata = document.value["metadata"]
            if metadata["name"] == "gate-preflight":
                for rule in document.value["rules"]:
                    for group in rule["apiGroups"]:
                        granted = {"group": group, "resources": rule["resources"], "verbs": rule["verbs"]}
                        yield metadata.get("namespace", ""), granted

    def _filled(self, raw: Any) -> Any:
        if isinstance(raw, str):
            return self.templates.render_string(raw, self.names, of=self.rules.document)
        if isinstance(raw, Mapping):
            return {key: self._filled(value) for key, value in raw.items()}
        return [self._filled(item) for item in raw] if isinstance(raw, (list, tuple)) else raw


def _looked_at(gates: Iterable[NamedGate], rules: DeliveryRules, kinds: Kinds) -> Iterator[tuple[str, Pair]]:
    """Namespace, API version and kind of everything that gates read; what named rules read is in the same namespace."""
    for named in gates:
        target = named.target
        if isinstance(target, ObjectTarget):
            namespace, pair = target.ref.namespace, (target.ref.api_version, target.ref.kind)
        elif isinstance(target, EveryTarget):
            namespace, pair = target.namespace, (target.api_version, target.kind)
        else:
            continue
        yield namespace, pair
        yield from ((namespace, other) for other in _of_rules(named, pair, rules, kinds))


def _of_rules(named: NamedGate, pair: Pair, rules: DeliveryRules, kinds: Kinds) -> Iterator[Pair]:
    """The kinds that its named rules read, those of its kind's own rule included."""
    ready = kinds.row(*pair).ready
    for predicate in (*named.gate.probe.all, *named.gate.probe.fails, *((*ready.all, *ready.fails) if ready else ())):
        if isinstance(predicate, RulePredicate):
            yield from rules.reads.get(predicate.name, ())
