"""The agents' own objects, and the files that they read beside manifests, from `templates/delivery/`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.catalog.places import DELIVERY
from renderer.context.scope import Scope
from renderer.delivery.health.argo_scripts import argo_health
from renderer.delivery.health.fleet_settings import fleet_health
from renderer.delivery.health.flux_expressions import flux_health
from renderer.delivery.options import DeliveryOptions, Repository
from renderer.delivery.units import Unit, refs_of, unit_name
from renderer.digest import short_digest
from renderer.frozen import frozen
from renderer.layout.manifests import Tree
from renderer.model.rendered import RenderedPlan
from renderer.templating import Templates
from renderer.yaml_io import dump, each_document

_ENDING = ".j2"
Context = Mapping[str, Any]


@frozen
class AgentTemplates:
    """The templates of one tree. `paths` are those of all its files."""

    templates: Templates
    paths: tuple[str, ...]

    def files(self, folder: str, context: Context) -> Tree:
        """The text of each template of the folder, by its name. One that renders nothing gives no file."""
        prefix = f"{DELIVERY}/{folder}/"
        found = {path: self._text(path, context) for path in self.paths if path.startswith(prefix)}
        return {path.removeprefix(prefix).removesuffix(_ENDING): text for path, text in found.items() if text}

    def _text(self, path: str, context: Context) -> str:
        scopes = {name: Scope(name, value) if isinstance(value, Mapping) else value for name, value in context.items()}
        rendered = self.templates.render_text(path, scopes)
        documents = each_document(rendered, self.templates.shown(path))
        return "---\n".join(dump(document.value) for document in documents)


def _unit_context(unit: Unit, repository: Repository, kinds: Kinds) -> dict[str, Any]:
    """The names that templates see of one unit, Flux's health expressions and Fleet's settings for its kinds
    included."""
    pairs = [(ref.api_version, ref.kind) for ref in unit.refs]
    fleet = fleet_health(kinds, pairs).context()
    return {**unit.context(repository), "health": flux_health(kinds, pairs), "fleet": fleet}


def context_of(plan: RenderedPlan, options: DeliveryOptions, units: Iterable[Unit], kinds: Kinds) -> dict[str, Any]:
    """The names that every template of `delivery/` sees."""
    found = tuple(units)
    refs = refs_of(found)
    repository = options.repository
    rows = {(ref.api_version, ref.kind): kinds.find(ref.api_version, ref.kind) for ref in refs}
    return {
        "plan": {"name": plan.plan, "digest": plan.digest, "shortDigest": short_digest(plan.digest)},
        "agent": {"name": unit_name(plan.plan)},
        "shape": str(options.shape),
        "repository": {
            "url": repository.url,
            "branch": repository.branch,
            "path": repository.path,
            "agents": repository.below("agents"),
        },
        "units": [Scope("unit", _unit_context(unit, repository, kinds)) for unit in found],
        "argoHealth": sorted(argo_health(kinds).items()),
        "namespaces": sorted({"harvester-system", *(ref.namespace for ref in refs if ref.namespace)}),
        "kinds": [
            Scope("kind", {"group": row.kind.group, "kind": row.kind.kind, "namespaced": row.kind.namespaced})
            for row in (rows[key] for key in sorted(rows))
            if row
        ],
    }
