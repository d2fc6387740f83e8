"""Seals: the digest of each phase as a reviewer would see it now, what was approved, and in what the two differ.

A phase is compared once all its inputs are known. One that reads some of them itself begins before that: then its
steps are compared, each as soon as it is known. With the digests goes a copy of the objects, so that a refusal can name
the object and the path. Of objects that each node has, the copy holds the first node's: a thousand nodes would not fit
into an annotation.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from reconcile.loop.overrides import Overrides, named
from renderer.catalog.template_digests import TemplateDigests
from renderer.compare import differing
from renderer.model.path import look_up, path_name
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body, ref_of
from renderer.model.rendered import Manifest, RenderedPhase, RenderedPlan
from renderer.render.seal import APPROVED, APPROVED_STEPS, PENDING, digest_annotations, digests, is_whole, step_digests

APPROVED_OBJECTS = f"{PREFIX}approved-objects"
APPROVED_TEMPLATES = f"{PREFIX}approved-templates"

_LARGEST = 8 * 2**20
"""Bytes; a copy that unpacks to more was not written by us."""
_MOST_NAMED = 5
"""Differences that are named of one phase."""

Objects = Mapping[str, Mapping[str, Any]]
"""Phase, then the manifest's file, then its body."""


def seal(rendered: RenderedPlan, templates: TemplateDigests) -> dict[str, str]:
    """The annotations that approve what can be rendered whole, and the templates that it is rendered from."""
    text = json.dumps(_objects(rendered), sort_keys=True, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return {**digest_annotations(rendered), APPROVED_OBJECTS: packed, APPROVED_TEMPLATES: templates.digest}


def approved_of(plan: Body) -> Mapping[str, str]:
    """The digests that were approved, by phase, or `PENDING`; none where nobody did. What cannot be read approves
    nothing, and names no phase."""
    text = (plan["metadata"].get("annotations") or {}).get(APPROVED, "")
    if not text:
        return {}
    found = _mapping_in(text)
    return {"": text[:40]} if found is None else {str(key): str(value) for key, value in found.items()}


def approved_templates_of(plan: Body) -> str | None:
    """The digest of the templates that were approved; None where nobody did."""
    found = (plan["metadata"].get("annotations") or {}).get(APPROVED_TEMPLATES)
    return None if found is None else str(found)


def sealed_now(plan: Body, rendered: RenderedPlan) -> Mapping[str, str]:
    """The digest of each phase as a reviewer would see it now. One that reads some of its inputs itself has the digest
    that was approved, as long as what is known about it is as it was then."""
    approved = approved_of(plan)
    begun = {
        name: approved[name] for name, changed in _known_in_part(plan, rendered) if name in approved and not changed
    }
    return {**digests(rendered).phases, **begun}


def unapproved(plan: Body, rendered: RenderedPlan, overrides: Overrides) -> Mapping[str, tuple[str, ...]]:
    """For each phase that is rendered otherwise than it was approved, the objects and paths in which it differs, and
    the environment variable that makes it differ."""
    approved, copy = approved_of(plan), _copy_in(plan)
    now = digests(rendered).phases
    steps = {name: changed for name, changed in _known_in_part(plan, rendered) if changed}
    changed = [name for name, digest in now.items() if name in approved and approved[name] not in (digest, PENDING)]
    if not changed:
        return steps
    objects = _objects(rendered)
    return {**steps, **{name: _named_differences(copy.get(name), objects[name], overrides) for name in changed}}


def _known_in_part(plan: Body, rendered: RenderedPlan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each phase that begins although inputs are missing, since it reads them itself, with those of its steps that are
    known and not as they were approved."""
    text = (plan["metadata"].get("annotations") or {}).get(APPROVED_STEPS, "")
    steps = _mapping_in(text) or {}
    for phase in rendered.phases:
        name, approved = phase.phase.name, steps.get(phase.phase.name)
        pending = {item.input for step in phase.steps for item in step.pending}
        if isinstance(approved, Mapping) and not phase.pending and pending and pending <= {*phase.phase.provides}:
            known = step_digests(phase)
            yield name, tuple(f"step {name}/{step}" for step, it in known.items() if it and it != approved.get(step))


def _mapping_in(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _named_differences(before: Any, after: Mapping[str, Any], overrides: Overrides) -> tuple[str, ...]:
    if not isinstance(before, Mapping):
        return ("fields that are not known, since the plan has no copy of the approved objects",)
    found = tuple(islice(_differences(before, after, overrides), _MOST_NAMED))
    return found or ("objects of another node than the first, or in what its steps wait for",)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], overrides: Overrides) -> Iterator[str]:
    for file in dict.fromkeys((*before, *after)):
        if file not in after:
            yield f"{ref_of(before[file])} (removed)"
        elif file not in before:
            yield f"{ref_of(after[file])} (added)"
        else:
            for path in differing(before[file], after[file]):
                cause = named(overrides, look_up(after[file], path))
                yield f"{ref_of(after[file])} {path_name(path)}{cause}"


def _objects(rendered: RenderedPlan) -> Objects:
    first = next(iter(rendered.nodes), None)
    return {
        phase.phase.name: {manifest.file: manifest.body for manifest in _manifests(phase, first)}
        for phase in rendered.phases
        if is_whole(phase.phase.name, rendered)
    }


def _manifests(phase: RenderedPhase, first: str | None) -> Iterator[Manifest]:
    for step in phase.steps:
        if step.step.node in (None, first):
            yield from step.manifests
            yield from step.undo.manifests if step.undo else ()


def _copy_in(plan: Body) -> Objects:
    """The copy that `seal` has put there; empty for anything else."""
    text = (plan["metadata"].get("annotations") or {}).get(APPROVED_OBJECTS, "")
    try:
        unpacker = zlib.decompressobj()
        found = json.loads(unpacker.decompress(base64.b64decode(text, validate=True), _LARGEST))
    except (ValueError, binascii.Error, zlib.error):
        return {}
    return found if isinstance(found, dict) else {}
