"""The layouts: a table from name to a function that makes a rendered plan into files.

Text only, LF, one object a document; the same plan gives the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from renderer.catalog.kinds import Kinds
from renderer.layout.index import index_of
from renderer.model.rendered import Manifest, RenderedPlan
from renderer.render.manifest import LOOP_ONLY
from renderer.yaml_io import dump

Tree = dict[str, str]
"""Path below the plan's folder to text."""

INDEX = "index.yaml"


def tree_of(plan: RenderedPlan, kinds: Kinds, layout: str) -> Tree:
    """All files of a layout, index included."""
    tree = LAYOUTS[layout](plan)
    tree[INDEX] = dump(index_of(plan, kinds, tree, layout))
    return tree


def manifest_text(manifests: list[Manifest]) -> str:
    """The text of one file: its objects as documents, led by a note where it is not for everybody to apply."""
    return _note(manifests[0]) + "---\n".join(dump(manifest.body) for manifest in manifests)


def _plain(plan: RenderedPlan) -> Tree:
    """What one template renders is one file, though objects of other templates may come in between."""
    files: dict[str, list[Manifest]] = defaultdict(list)
    for manifest in plan.manifests():
        files[manifest.file].append(manifest)
    return {file: manifest_text(manifests) for file, manifests in files.items()}


def _kustomize(plan: RenderedPlan) -> Tree:
    """As plain; each phase folder lists what may be applied from outside, in the order of the steps."""
    tree = _plain(plan)
    for phase in plan.phases:
        files = dict.fromkeys(m.file for m in phase.manifests() if f"/{LOOP_ONLY}/" not in m.file)
        if files:
            resources = [file.removeprefix(f"{phase.phase.folder}/") for file in files]
            tree[f"{phase.phase.folder}/kustomization.yaml"] = dump(
                {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}
            )
    return tree


def _note(manifest: Manifest) -> str:
    if f"/{LOOP_ONLY}/" not in manifest.file:
        return ""
    reasons = [
        "its fields are borrowed from somebody else's object and sent as a merge patch" if manifest.borrowed else "",
        "it holds values that are known at run time only" if manifest.run_time else "",
    ]
    why = "; ".join(reason for reason in reasons if reason) or "its time comes when its step starts"
    return f"# For the upgrade loop alone: {why}.\n"


LAYOUTS: Mapping[str, Callable[[RenderedPlan], Tree]] = {"plain": _plain, "kustomize": _kustomize}
