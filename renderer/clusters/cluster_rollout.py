"""The folder of all clusters together: what was rendered for each, and by which objects agents carry out the waves.

```
index.yaml, SUMMARY.md    for people
agents/AGENT/             the agent's own objects, for the cluster that it delivers from
waves/NAME/               Flux: the record of a wave, pulled by its Kustomization
bundles/NAME/             Fleet: the plans of several waves, pulled by one GitRepo
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.clusters.rendered_cluster import RenderedCluster
from renderer.clusters.wave_choice import ChosenWave
from renderer.clusters.waves import MANUAL
from renderer.context.scope import Scope
from renderer.delivery.agent_files import AgentTemplates
from renderer.delivery.agents import AGENTS
from renderer.delivery.delivery_rules import DeliveryRules
from renderer.delivery.delivery_tree import PLAN_FOLDER, SUMMARY
from renderer.delivery.health.argo_scripts import argo_health
from renderer.delivery.health.fleet_settings import fleet_health
from renderer.delivery.health.flux_expressions import flux_health
from renderer.delivery.linter import FLEET_FILE, LintedDocument, lint
from renderer.delivery.options import DeliveryOptions
from renderer.delivery.summary import patches_in
from renderer.delivery.units import KUSTOMIZATION, kustomization, unit_name
from renderer.errors import Problem, Problems
from renderer.layout.manifests import Tree
from renderer.model.document_type import RENDERED_CLUSTERS
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.source_document import PLAN_KIND
from renderer.yaml_io import dump, each_document

ROLLOUT = "rollout"
"""The folder's name in the output."""
FROM_ONE_FOLDER = "fleet"
"""The agent that pulls the plans of many clusters from one folder, in which each of them is."""


@dataclass(frozen=True, kw_only=True)
class ClusterRollout:
    """All that the folder is made of. `clusters` are by name; without `options` no agent delivers anything."""

    name: str
    waves: Sequence[ChosenWave]
    clusters: Mapping[str, RenderedCluster]
    layout: str
    options: DeliveryOptions | None
    rules: DeliveryRules
    kinds: Kinds
    templates: AgentTemplates

    def files(self) -> Tree:
        """All files of the folder but the index. Raises `Problems`."""
        tree: Tree = {}
        for agent in self.options.agents if self.options else ():
            tree |= self._own(agent)
            tree |= _PULLED[agent](self)
        if found := lint(self.rules.lint, _linted(tree)):
            raise Problems(found)
        return {**tree, SUMMARY: "\n".join((*self._summary(), ""))}

    def index(self, files: Iterable[str]) -> dict[str, Any]:
        """The index; `files` are all others."""
        found = sorted(self.clusters.values(), key=lambda cluster: cluster.name)
        keys = ("name", "plan", "digest", "folder")
        body = {
            **({"name": self.name} if self.name else {}),
            "layout": self.layout,
            **({"delivery": self.options.document()} if self.options else {}),
            **({"waves": [_wave_of_index(wave) for wave in self.waves]} if self.waves else {}),
            "clusters": [{key: getattr(cluster, key) for key in keys} for cluster in found],
            "files": sorted(files),
        }
        return RENDERED_CLUSTERS.document(body)

    @cached_property
    def _context(self) -> dict[str, Any]:
        """The names that every template of `delivery/waves` sees."""
        repository = self.options.repository if self.options else None
        waves = [*self._waves()]
        return {
            "rollout": {"name": self.name},
            "repository": {"url": repository.url, "branch": repository.branch} if repository else {},
            "waves": [Scope("wave", wave) for wave in waves],
            "parts": [Scope("part", part) for part in self._parts(waves)],
            "health": flux_health(self.kinds, [(PLAN_API_VERSION, PLAN_KIND)]),
            "fleet": Scope("fleet", fleet_health(self.kinds, [(PLAN_API_VERSION, PLAN_KIND)]).context()),
            "argoHealth": sorted(argo_health(self.kinds).items()),
        }

    def _waves(self) -> Iterator[dict[str, Any]]:
        """Each wave as templates see it. `previous` are the units of the clusters of the wave before; its `record` says
        that they have succeeded, and that somebody has released the wave."""
        previous: list[str] = []
        for wave in self.waves:
            clusters = [self._cluster(self.clusters[name]) for name in wave.clusters]
            manual = wave.pause == MANUAL
            name = unit_name(self.name, "before", wave.name)
            record = {"name": name, "path": self._below(ROLLOUT, "waves", wave.name)}
            yield {
                "name": wave.name,
                "unit": unit_name(self.name, wave.name),
                "manual": manual,
                "clusters": clusters,
                "previous": previous,
                "record": record if previous or manual else None,
            }
            previous = [cluster["unit"] for cluster in clusters]

    def _cluster(self, cluster: RenderedCluster) -> dict[str, Any]:
        unit = unit_name(self.name, "cluster", cluster.name)
        jobs = [{"namespace": namespace, "name": name} for namespace, name in cluster.jobs]
        return {"name": cluster.name, "unit": unit, "path": self._below(cluster.folder, PLAN_FOLDER), "jobs": jobs}

    def _parts(self, waves: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Waves that follow each other without anybody's help."""
        found: list[list[Mapping[str, Any]]] = []
        for wave in waves:
            if not found or wave["manual"]:
                found.append([])
            found[-1].append(wave)
        for part in found:
            name = part[0]["name"]
            path = self._below(ROLLOUT, "bundles", name)
            unit = unit_name(self.name, "from", name)
            manual, timeout = part[0]["manual"], self.rules.timeout
            yield {"name": name, "unit": unit, "path": path, "manual": manual, "timeout": timeout, "waves": part}

    def _below(self, *parts: str) -> str:
        """A folder of the output, as its place in the repository."""
        below = "/".join(parts)
        return self.options.repository.below(below) if self.options else below

    def _own(self, agent: str) -> Tree:
        """The agent's own objects."""
        return _below(f"agents/{agent}", self.templates.files(f"waves/{agent}", self._context))

    def _records(self) -> Tree:
        """The objects that Flux applies between two waves."""
        tree: Tree = {}
        for wave in self._context["waves"]:
            files = self.templates.files("waves/record", {**self._context, "wave": wave})
            if files:
                tree |= _below(f"waves/{wave['name']}", {**files, KUSTOMIZATION: dump(kustomization(files))})
        return tree

    def _bundles(self) -> Tree:
        """The bundles that Fleet pulls. Each holds the plans of its clusters, since a bundle is one folder."""
        tree: Tree = {}
        for part in self._context["parts"]:
            place = f"bundles/{part['name']}"
            tree |= _below(place, self.templates.files("waves/bundle", {**self._context, "part": part}))
            for cluster in (cluster for wave in part["waves"] for cluster in wave["clusters"]):
                tree |= _below(f"{place}/clusters/{cluster['name']}", self.clusters[cluster["name"]].bundle)
        return tree

    def _summary(self) -> Iterator[str]:
        yield from (f"# {self.name or 'Clusters'}", "", "| wave | begins | clusters |", "| --- | --- | --- |")
        for number, wave in enumerate(self.waves):
            yield f"| {wave.name} | {_begins(wave, number)} | {', '.join(wave.clusters)} |"
        if self.options and self.options.agents:
            yield from ("", "| agent | apply once |", "| --- | --- |")
            yield from (f"| {AGENTS[agent]} | `agents/{agent}` |" for agent in self.options.agents)
            patches = [patch for agent in self.options.agents for patch in patches_in(agent, self._own(agent))]
            yield from ("", *(f"{patch.agent}: `{patch.command} {patch.file}`" for patch in patches))
        yield from ("", "| cluster | plan | digest |", "| --- | --- | --- |")
        for name, cluster in sorted(self.clusters.items()):
            yield f"| {name} | {cluster.plan} | `{cluster.digest}` |"


_PULLED = {
    "argocd": lambda _: {},
    FROM_ONE_FOLDER: ClusterRollout._bundles,
    "flux": ClusterRollout._records,
}
"""The files that each agent pulls beside the clusters' own folders."""


def pause_problems(
    waves: Iterable[ChosenWave], agents: Iterable[str], rules: DeliveryRules, file: str
) -> list[Problem]:
    """A problem for each pause of a time, and each agent that has no clock for it."""
    return [
        Problem(
            reason="InvalidWaves",
            message=f"wave {wave.name!r} pauses for {wave.pause}, and {AGENTS[agent]} cannot wait for a time",
            file=file,
            remedy=f"write pause: {MANUAL}, or leave --format {agent} out",
        )
        for wave in waves
        if wave.pause not in (None, MANUAL)
        for agent in agents
        if agent not in rules.timed_pauses
    ]


def _begins(wave: ChosenWave, number: int) -> str:
    after = "once the wave before has succeeded" if number else "at once"
    if wave.pause is None:
        return after
    until = "somebody releases it" if wave.pause == MANUAL else f"{wave.pause} have passed"
    return f"{after}, and {until}" if number else f"once {until}"


def _wave_of_index(wave: ChosenWave) -> dict[str, Any]:
    pause = {"pause": wave.pause} if wave.pause else {}
    return {"name": wave.name, **pause, "clusters": list(wave.clusters)}


def _below(folder: str, files: Mapping[str, str]) -> Tree:
    return {f"{folder}/{name}": text for name, text in files.items()}


def _linted(tree: Tree) -> Iterator[LintedDocument]:
    for path, text in tree.items():
        if path.startswith("agents/") or path.endswith(f"/{FLEET_FILE[1]}"):
            yield from (LintedDocument(file=path, body=it.value, delivered=False) for it in each_document(text, path))
