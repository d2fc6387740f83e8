"""The images of an installation, and of the upgrades that it runs: its values say where both come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.catalog.places import VALUES_FILE
from renderer.catalog.template_tree import TemplateTree
from renderer.install.formats import Installation
from renderer.install.install_objects import install_files
from renderer.manifest_rules import images_of
from renderer.model.ref import ref_of
from renderer.templating import Templates
from renderer.yaml_io import dump, parse


def used_images(found: Installation, kinds: Kinds) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each object with the images that it uses, the chart's hooks included."""
    hooks = install_files(Templates(found.chart_tree), found.chart_tree, found.values, found.version)
    for body in (body for file in (*found.files, *hooks) for body in file.objects):
        if images := images_of(body, kinds.find(body["apiVersion"], body["kind"])):
            yield str(ref_of(body)), images


def under_values(tree: TemplateTree, found: Installation) -> TemplateTree:
    """The templates with the values that the manager of this installation puts in place of theirs, by environment
    variables (`reconcile.loop.overrides`)."""
    own = {key: text for key, text in _overriding(found).items() if text}
    if not own:
        return tree
    (document,) = parse(tree[VALUES_FILE].text, tree[VALUES_FILE].shown)
    return {**tree, VALUES_FILE: replace(tree[VALUES_FILE], text=dump({**document.value, **own}))}


def _overriding(found: Installation) -> Mapping[str, str]:
    registry: Mapping[str, Any] = found.values["registry"]
    deployments = (body for file in found.files for body in file.objects if body["kind"] == "Deployment")
    return {
        "managerImage": next(body["spec"]["template"]["spec"]["containers"][0]["image"] for body in deployments),
        "imageRegistry": registry["prefix"],
        "imagePullSecrets": ",".join(registry["pullSecrets"]),
        "toolkitTag": found.values["toolkitTag"],
    }
