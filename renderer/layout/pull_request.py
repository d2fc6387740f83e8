"""The review of a rendering: versions, and each borrowed field with its value now and later. Pure.

The index says the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from renderer.catalog.upgrade_notes import UpgradeNotes
from renderer.context.build import Context
from renderer.model.manifest_spec import Borrowed
from renderer.model.path import ABSENT, Path, look_up, path_name, starts_with
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import Manifest, RenderedPlan
from renderer.redaction import Redactor

Model = dict[str, Any]


def review_of(
    plan: RenderedPlan, context: Context, objects: Iterable[Body], notes: UpgradeNotes | None, redactor: Redactor
) -> Model:
    """`objects` are the cluster's, as far as they are known."""
    return {
        "from": str(context.names["cluster"]["previousVersion"] or ""),
        "to": str(dict(context.names["release"]).get("harvester") or ""),
        "nodes": len(plan.nodes),
        "components": [
            {"name": item.name, "from": item.before or "", "to": item.after or ""}
            for item in (notes.components if notes else ())
        ],
        "borrowed": [*_grouped(_fields(plan, objects, redactor))],
    }


def _grouped(fields: Iterator[tuple[tuple[str, ...], Model]]) -> Iterator[Model]:
    """The fields; what is the same on several nodes is one, with their number."""
    groups: dict[tuple[str, ...], Model] = {}
    for key, field in fields:
        known = groups.setdefault(key, {**field, "nodes": 0})
        known["nodes"] += 1
    yield from groups.values()


def _fields(plan: RenderedPlan, objects: Iterable[Body], redactor: Redactor) -> Iterator[tuple[tuple[str, ...], Model]]:
    known = {ref_of(body): body for body in objects if isinstance(body.get("metadata"), Mapping)}
    for phase in plan.phases:
        for step in phase.steps:
            for manifest in step.manifests:
                if isinstance(manifest.spec, Borrowed):
                    node = step.step.node or ""
                    for path, field in _fields_of(manifest, manifest.spec, known, redactor):
                        same = str(manifest.ref) if not node else manifest.spec.file
                        of_any = path_name(tuple("" if part == node else part for part in path))
                        key = (phase.phase.name, step.step.name, same, of_any, repr(field["now"]))
                        yield (*key, repr(field["set"]), field["returned"]), field


def _fields_of(
    manifest: Manifest, spec: Borrowed, known: Mapping[Ref, Body], redactor: Redactor
) -> Iterator[tuple[Path, Model]]:
    there = known.get(manifest.ref)
    now, later = (redactor.body(body) if body else {} for body in (there, manifest.body))
    for path in _leaves(later, frozenset(path for _, paths in spec.returns for path in paths)):
        value = look_up(now, path)
        field = {
            "object": str(manifest.ref),
            "path": path_name(path),
            "known": there is not None,
            "now": None if value is ABSENT else value,
            "set": "known at run time" if path in manifest.run_time else look_up(later, path),
            "returned": _returned(spec, path),
        }
        yield path, field


def _returned(spec: Borrowed, path: Path) -> str:
    """`success, abort`: the occasions on which the field goes back; empty if it never does."""
    return ", ".join(str(each) for each, paths in spec.returns if not paths or any(starts_with(path, p) for p in paths))


def _leaves(value: Any, whole: frozenset[Path], path: Path = ()) -> Iterator[Path]:
    """Each field that is set; a list is one value, and so is what is returned in one piece."""
    for key, inner in value.items():
        here = (*path, key)
        if here in _IDENTITY:
            continue
        if isinstance(inner, Mapping) and inner and here not in whole:
            yield from _leaves(inner, whole, here)
        else:
            yield here


_IDENTITY: frozenset[Path] = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
