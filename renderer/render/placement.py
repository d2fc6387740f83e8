"""Moves the manifests of a step to `review/`, where nothing reads them as YAML."""

from __future__ import annotations

from dataclasses import replace

from renderer.model.rendered import Manifest, RenderedStep
from renderer.render.manifest import file_for_review


def step_for_review(step: RenderedStep) -> RenderedStep:
    """The step with all its manifests where nobody applies them. Its digest is of what is applied, so it stays."""
    undo = step_for_review(step.undo) if step.undo else None
    return replace(step, manifests=tuple(map(_for_review, step.manifests)), undo=undo)


def _for_review(manifest: Manifest) -> Manifest:
    return replace(manifest, file=file_for_review(manifest.file))
