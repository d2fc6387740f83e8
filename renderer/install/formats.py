"""An installation as files, one table row a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problems
from renderer.frozen import frozen
from renderer.install.install_objects import InstallFile, in_order, short_name
from renderer.install.install_values import Values, changed, missing_value
from renderer.templating.go_templates import in_go
from renderer.yaml_io import dump

CHART = "harvester-upgrade-manager"
_CHART_TEMPLATES = "templates"


@frozen
class Installation:
    """All that the formats are made of. `given` is what the user's values change; `schema` is the text of the values'
    JSON Schema, `defaults_text` the commented file of the defaults; `chart_tree` has the templates of a chart alone."""

    files: tuple[InstallFile, ...]
    tree: TemplateTree
    chart_tree: TemplateTree
    values: Values
    defaults: Values
    defaults_text: str
    schema: str
    version: str

    def only(self, name: str) -> Installation:
        """The part of it that one template is."""
        return replace(
            self,
            files=tuple(file for file in self.files if file.name == name),
            tree={path: item for path, item in self.tree.items() if short_name(path) == name},
        )

    @property
    def given(self) -> Mapping[str, Any]:
        return changed(self.values, self.defaults)


Tree = dict[str, str]
"""Path below the output folder to text."""


def one_file(found: Installation) -> str:
    """Every object as a document, in the order in which they are created."""
    return "---\n".join(dump(body) for body in in_order(found.files))


def _plain(found: Installation) -> Tree:
    return {"install.yaml": one_file(found)}


def _kustomize(found: Installation) -> Tree:
    """A base: one file for each template, and the kustomization that lists them."""
    files = {f"{file.name}.yaml": "---\n".join(dump(body) for body in file.objects) for file in found.files}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(files),
    }
    return {**files, "kustomization.yaml": dump(kustomization)}


def _chart(found: Installation) -> Tree:
    """A chart of the same templates in Go's words. Values that were given are its defaults."""
    own = {**found.tree, **found.chart_tree}
    texts = {f"{_CHART_TEMPLATES}/{short_name(path)}.yaml": in_go(item.text) for path, item in own.items()}
    values = dump(dict(found.values)) if found.given else found.defaults_text
    return {
        "Chart.yaml": dump(_chart_yaml(found.version)),
        "values.yaml": values,
        "values.schema.json": found.schema,
        **texts,
        f"{_CHART_TEMPLATES}/NOTES.txt": _NOTES,
    }


def _chart_yaml(version: str) -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": CHART,
        "description": "Upgrades Harvester clusters from an UpgradePlan.",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    }


_NOTES = """\
{{ .Values.name }} watches UpgradePlans.

  kubectl -n {{ .Values.namespace }} get deployment {{ .Values.name }}-controller-manager
  kubectl get upgradeplans

Without `crd.keep`, removing this release removes the definition of UpgradePlan and all plans with it.
"""


def _addon(found: Installation) -> Tree:
    """Harvester's Addon, which installs the chart from a repository; off until it is enabled."""
    addon = found.values["addon"]
    if not addon["repo"]:
        remedy = "write `addon: {repo: https://...}` into the file of --values"
        raise Problems(
            [missing_value("addon.repo", "is empty: an Addon needs the address of a chart repository", remedy)]
        )
    given = {key: item for key, item in found.given.items() if key != "addon"}
    body = {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "Addon",
        "metadata": {
            "name": found.values["name"],
            "namespace": found.values["namespace"],
            "labels": {"addon.harvesterhci.io/experimental": "true", "app.kubernetes.io/part-of": "upgradeplan"},
        },
        "spec": {
            "enabled": False,
            "repo": addon["repo"],
            "chart": CHART,
            "version": addon["version"] or found.version,
            "valuesContent": dump(given) if given else "",
        },
    }
    return {"addon.yaml": dump(body)}


FORMATS: Mapping[str, Callable[[Installation], Tree]] = {
    "plain": _plain,
    "kustomize": _kustomize,
    "helm-chart": _chart,
    "addon": _addon,
}
"""By the name that the command line has for it."""
