"""The layout `kustomize`: as plain, with a kustomization.yaml in each phase's folder."""

from __future__ import annotations

from renderer.layout import plain
from renderer.layout.manifests import Tree
from renderer.model.rendered import RenderedPlan
from renderer.render.manifest import REVIEW
from renderer.yaml_io import dump


def files(plan: RenderedPlan) -> Tree:
    """A kustomization lists what may be applied from outside, in the order of the steps."""
    tree = plain.files(plan)
    for phase in plan.phases:
        found = dict.fromkeys(m.file for m in phase.manifests() if not m.file.startswith(REVIEW))
        if found:
            resources = [file.removeprefix(f"{phase.phase.folder}/") for file in found]
            tree[f"{phase.phase.folder}/kustomization.yaml"] = dump(
                {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}
            )
    return tree
