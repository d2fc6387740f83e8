"""Reads what `install` is given: an installation from the command line, and from what the cluster suggests besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile.cli.catalogue import template_set_in

if TYPE_CHECKING:
    from reconcile.cluster.protocol import Cluster
    from reconcile.install.toolkit_tag import KnownTag
    from renderer.catalog.template_tree import TemplateTree
    from renderer.install.formats import Installation

_CRDS = "crd"
_ONE_NODE, _TAG = "singleNode", "toolkitTag"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenInstallation:
    """The command line's words about what is installed; nothing is read yet."""

    files: tuple[str, ...]
    release: str | None
    name: str | None
    templates: tuple[str, ...]
    crds: bool

    def read(self, cluster: Cluster | None = None) -> tuple[Installation, str]:
        """The installation, and a line about its toolkit's tag; empty if nothing suggests one. The cluster's
        suggestions give way to the user's values. Raises `Problems` with all that is wrong."""
        from renderer.cli.version import installed_version
        from renderer.files.templates import read_templates
        from renderer.files.value_files import read_documents
        from renderer.install.install_values import read_values
        from renderer.install.prepare import prepare_installation

        tree = read_templates([Path(folder) for folder in self.templates])
        overlay = _overlay_values(tree) if self.templates else {}
        named = {"name": self.name} if self.name else {}
        given = [_suggested(cluster), overlay, *(read_values(read_documents(file)) for file in self.files), named]
        found = prepare_installation(tree, given, installed_version())
        if self.crds:
            return found.only(_CRDS), ""
        usual = _usual_tag(tree)
        if (known := self._tag(found, cluster, usual)) is None:
            return found, ""
        found = prepare_installation(tree, [*given, {_TAG: known.tag}], installed_version())
        return found, f"{_TAG}: {known.tag or usual or 'none'}, {known.source}"

    def _tag(self, found: Installation, cluster: Cluster | None, usual: str | None) -> KnownTag | None:
        from reconcile.install.toolkit_tag import KnownTag, known_tag, tag_of_release

        if self.release:
            return tag_of_release(_version_of(self.release), self.release)
        if tag := str(found.values[_TAG]):
            return KnownTag(tag=tag, source="from the values")
        return known_tag(cluster, found.values, usual) if cluster else None


def _suggested(cluster: Cluster | None) -> Mapping[str, Any]:
    from reconcile.install.installer import has_one_node

    return {_ONE_NODE: has_one_node(cluster)} if cluster else {}


def _overlay_values(tree: TemplateTree) -> Mapping[str, Any]:
    """The overlay's files, and the rules that they need. Raises `Problems` where the templates do not hold together."""
    from reconcile.preflight.check_context import checks_of
    from renderer.install.install_objects import in_order
    from renderer.install.overlay_rules import overlay_rules
    from renderer.install.overlay_values import overlay_values
    from renderer.install.prepare import prepare_installation

    template_set = template_set_in(tree)
    granted = in_order(prepare_installation(tree, (), "").files)
    rules = overlay_rules(template_set.catalog, checks_of(template_set.catalog), tree, granted)
    return {**overlay_values(tree), "rbac": {"rules": rules}}


def _usual_tag(tree: TemplateTree) -> str | None:
    """The tag that the templates themselves have."""
    from renderer.catalog.places import VALUES_FILE
    from renderer.yaml_io import parse

    (document,) = parse(tree[VALUES_FILE].text, tree[VALUES_FILE].shown)
    tag = document.value.get(_TAG)
    return None if tag is None else str(tag)


def _version_of(name: str) -> str:
    """Raises `Problems` where it is no release."""
    from renderer.files.inputs import read_inputs

    release = read_inputs((), release=name).release
    return "" if release is None else str(release.body["harvester"])
