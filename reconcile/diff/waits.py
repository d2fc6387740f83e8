"""What the steps of a phase wait for once their manifests are applied, in words. Pure."""

from __future__ import annotations

from renderer.describe import DescriptionContext, describe_gate
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedPhase, RenderedStep


def waits_of(phase: RenderedPhase) -> dict[str, str]:
    """The words of each step's gates, by the `file` of each of its manifests; a step without gates has none."""
    words = ((step, _words(step)) for step in phase.steps if step.step.gates)
    return {manifest.file: text for step, text in words for manifest in step.manifests}


def _words(step: RenderedStep) -> str:
    rendered: dict[str, tuple[Ref, ...]] = {}
    for manifest in step.manifests:
        rendered[manifest.spec.file] = (*rendered.get(manifest.spec.file, ()), manifest.ref)
    return " and ".join(describe_gate(gate, DescriptionContext(manifests=rendered)) for gate in step.step.gates)
