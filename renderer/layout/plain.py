"""The layout `plain`: a folder for each phase, a file for each template."""

from __future__ import annotations

from collections import defaultdict

from renderer.layout.manifests import Tree, manifest_text
from renderer.model.rendered import Manifest, RenderedPlan


def files(plan: RenderedPlan) -> Tree:
    """Puts all that one template renders into one file, even if objects of other templates are applied in between."""
    found: dict[str, list[Manifest]] = defaultdict(list)
    for manifest in plan.manifests():
        found[manifest.file].append(manifest)
    return {file: manifest_text(manifests) for file, manifests in found.items()}
