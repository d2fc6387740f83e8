"""Renders `templates/install/` to the objects of an installation, in the order in which they are created."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from renderer.catalog.places import INSTALL
from renderer.catalog.template_tree import Template, TemplateTree
from renderer.context.scope import Scope
from renderer.frozen import frozen
from renderer.install.install_values import Values
from renderer.model.ref import Body
from renderer.yaml_io import parse

if TYPE_CHECKING:
    from renderer.templating import Templates

_ENDING = ".yaml.j2"
_DEFINITION = f"{INSTALL}/crd{_ENDING}"
_OF_CHART = f"{INSTALL}/chart"
_ORDER = (
    *("CustomResourceDefinition", "ServiceAccount", "Secret", "ConfigMap", "ClusterRole", "ClusterRoleBinding"),
    *("Role", "RoleBinding", "Service", "NetworkPolicy", "PodDisruptionBudget"),
    *("PersistentVolumeClaim", "Deployment"),
)
"""Kinds in the order of creation; every other kind comes last."""


@frozen
class InstallFile:
    """Objects of one template. `name` is its file's, without folder and ending."""

    name: str
    objects: tuple[Body, ...]


def install_tree(tree: TemplateTree, definition: str) -> TemplateTree:
    """The templates of an installation. `definition` is the text of the CustomResourceDefinition, which becomes one."""
    made = Template(text=_as_template(definition), shown="schemas/crds/upgradeplan.yaml", packaged=True)
    return {_DEFINITION: made, **_below(tree, INSTALL)}


def chart_tree(tree: TemplateTree) -> TemplateTree:
    """The templates that a chart has besides: hooks of helm."""
    return _below(tree, _OF_CHART)


def _below(tree: TemplateTree, folder: str) -> TemplateTree:
    return {path: item for path, item in tree.items() if path.rpartition("/")[0] == folder and path.endswith(_ENDING)}


def _as_template(definition: str) -> str:
    """The definition, if it is wanted, with the annotation by which helm keeps it."""
    keep = "{% if values.crd.keep %}\n  annotations: {helm.sh/resource-policy: keep}\n{% endif %}\n"
    label = "  labels: {app.kubernetes.io/name: {{ values.name | quote }}, app.kubernetes.io/part-of: upgradeplan}\n"
    text = definition.replace("metadata:\n", f"metadata:\n{keep}{label}", 1)
    return f"{{% if values.crd.enable %}}\n{text}{{% endif %}}\n"


def install_files(templates: Templates, tree: TemplateTree, values: Values, version: str) -> tuple[InstallFile, ...]:
    """The objects of each template that renders any. Raises `Problems`."""
    context = {"values": Scope("values", values), "appVersion": version}
    files = (InstallFile(name=short_name(path), objects=tuple(_objects(templates, path, context))) for path in tree)
    return tuple(file for file in files if file.objects)


def short_name(path: str) -> str:
    """`rbac` of `install/rbac.yaml.j2`."""
    return path.rpartition("/")[2].removesuffix(_ENDING)


def _objects(templates: Templates, path: str, context: Mapping[str, Any]) -> Iterator[Body]:
    for document in parse(templates.render_text(path, context), templates.shown(path)):
        yield document.value


def in_order(files: tuple[InstallFile, ...]) -> tuple[Body, ...]:
    """All objects in the order in which they are created."""
    places = {kind: number for number, kind in enumerate(_ORDER)}
    objects = [body for file in files for body in file.objects]
    return tuple(sorted(objects, key=lambda body: places.get(body["kind"], len(places))))
