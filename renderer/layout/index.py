"""`index.yaml`: what runs, in what order, what it waits for, what is skipped or pending and why.

Written for a reviewer who reads it top down, and for the diff of a pull request: of digests it has the plan's alone,
since one changed value changes those of each object and phase that it is in. It holds no time, host or version of this
program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from renderer.catalog.borrow_options import BORROW_OPTIONS
from renderer.catalog.kinds import Kinds
from renderer.describe import DescriptionContext, describe_gate, describe_peers, describe_probe, describe_trigger
from renderer.layout.credentials import RenderedCredential
from renderer.model.document_type import RENDERED_PLAN
from renderer.model.manifest_spec import Borrowed, ManifestSpec, WhenAbsent
from renderer.model.path import path_name
from renderer.model.phase import Lane, Position, Step
from renderer.model.probe import Predicate, Severity
from renderer.model.ref import Ref
from renderer.model.rendered import Manifest, RenderedPhase, RenderedPlan, RenderedStep
from renderer.redaction import Redactor, packaged_redactor


def index_of(
    plan: RenderedPlan,
    kinds: Kinds,
    files: Iterable[str],
    layout: str,
    credentials: Iterable[RenderedCredential] = (),
    redactor: Redactor | None = None,
    delivery: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The index as a document, without what is secret, by the packaged list if no redactor is given. `files` are all
    files of the tree but the index itself, `credentials` those in the manifests, `delivery` says what agents are
    given."""
    body = {
        "plan": plan.plan,
        "digest": plan.digest,
        "layout": layout,
        **_set(delivery=delivery),
        "images": list(plan.images),
        "phases": [_phase(phase, kinds) for phase in plan.phases],
        "files": sorted(files),
        **_set(sensitiveFields=[asdict(item) for item in credentials]),
    }
    shown: dict[str, Any] = (redactor or packaged_redactor()).value(body)
    return RENDERED_PLAN.document(shown)


def _phase(phase: RenderedPhase, kinds: Kinds) -> dict[str, Any]:
    return _set(
        name=phase.phase.name,
        description=phase.phase.description,
        folder=phase.phase.folder,
        status={"active": phase.phase.active, "completed": phase.phase.completed},
        deletion=str(phase.phase.deletion),
        skipped=phase.skipped,
        pending=_pending([phase]),
        lanes=[_lane(lane) for lane in phase.phase.lanes],
        steps=[_group(list(steps), phase, kinds) for _, steps in groupby(phase.steps, key=lambda item: item.step.name)],
    )


def _lane(lane: Lane) -> dict[str, Any]:
    peers = describe_peers(lane.require_peers) if lane.require_peers else None
    return _set(name=lane.name, atMost=lane.at_most, requirePeers=peers)


def _pending(holders: Sequence[RenderedPhase | RenderedStep]) -> list[dict[str, str]]:
    found = {item.input: item.remedy for holder in holders for item in holder.pending}
    return [{"input": name, "remedy": remedy} for name, remedy in sorted(found.items())]


def _group(steps: list[RenderedStep], phase: RenderedPhase, kinds: Kinds) -> dict[str, Any]:
    """A step, or a step's fan-out over nodes as one entry."""
    first = steps[0]
    if first.step.node is None:
        return _step(first, first.step, kinds)
    running = [step for step in steps if step.skipped is None and not step.pending]
    shape = next((step for step in phase.shapes if step.name == first.step.name), first.step)
    entry = _step(running[0] if running else first, shape, kinds)
    return _set(
        **{key: value for key, value in entry.items() if key not in ("skipped", "manifests")},
        skipped=_skipped_nodes(steps),
        heldNodes=[step.step.node for step in steps if step.held],
        nodes=[_set(name=step.step.node, manifests=[_manifest(m) for m in step.manifests]) for step in running],
    )


def _skipped_nodes(steps: Iterable[RenderedStep]) -> str | list[dict[str, Any]] | None:
    reasons: dict[str, list[str]] = defaultdict(list)
    every = True
    for step in steps:
        if step.skipped:
            reasons[step.skipped].append(str(step.step.node))
        every = every and step.skipped is not None
    if every and len(reasons) == 1:
        return next(iter(reasons))
    return [{"reason": reason, "nodes": nodes} for reason, nodes in reasons.items()] or None


def _step(step: RenderedStep, declared: Step, kinds: Kinds, runs: str | None = None) -> dict[str, Any]:
    """`declared` gives the words: the step itself, or the shape of one that fans out."""
    idle = step.skipped is not None or bool(step.pending)
    return _set(
        name=step.step.name,
        description=declared.description,
        runs=runs or POSITIONS.get(step.step.position),
        forEach=declared.for_each,
        lane=declared.lane,
        skipped=step.skipped,
        pending=_pending([step]),
        **({} if idle else _work(step, declared, kinds)),
    )


POSITIONS = {
    Position.ENTER: "before the phase's active status is recorded",
    Position.LEAVE: "after the phase's completed status is recorded",
}


def _work(step: RenderedStep, declared: Step, kinds: Kinds) -> dict[str, Any]:
    names = _lexicon(step, kinds)
    return _set(
        skippedIf=list(step.skipped_if),
        skipUnless=_skip_unless(declared, names),
        hold=declared.hold.message if declared.hold else None,
        trigger=describe_trigger(declared.trigger, names) if declared.trigger else None,
        checks=f"waits while a pre-flight check of the time {declared.checks.when} blocks" if declared.checks else None,
        repeat="whenever the trigger fires with another value" if declared.repeat else None,
        lateNodes=_late_nodes(declared, names),
        holdSlotWhile=describe_probe(declared.hold_slot_while, names) if declared.hold_slot_while else None,
        capture=[item.name for item in declared.captures] + _trigger_capture(declared),
        fetch=[f"http://{item.service}.{item.namespace}:{item.port}{item.path}" for item in declared.fetches],
        record=[name for name, _ in declared.records],
        manifests=[_manifest(item) for item in step.manifests],
        omitted=[{"template": file, "reason": reason} for file, reason in step.left_out],
        waitsFor=[describe_gate(gate, names) for gate in declared.gates or step.step.gates],
        noGate=declared.no_gate,
        onFailure=_mild_failure(declared),
        undo=_step(step.undo, step.undo.step, kinds, runs=_UNDO) if step.undo else None,
    )


_UNDO = "when the plan ends, whatever its result, if this step was completed"


def _late_nodes(step: Step, names: DescriptionContext) -> str | None:
    if step.late_nodes is None:
        return None
    done = describe_probe(step.late_nodes.done, names)
    return f"a node that joins during the upgrade is skipped if {done}, unless the trigger fires for it"


def _skip_unless(step: Step, names: DescriptionContext) -> dict[str, str] | None:
    unless = step.skip_unless
    return {"probe": describe_probe(unless.probe, names), "reason": unless.reason} if unless else None


def _mild_failure(step: Step) -> str | None:
    """Describes the failure of a step none of whose gates fails the plan; every other gate does."""
    mild = step.gates and all(gate.failure.severity is Severity.WARNING for gate in step.gates)
    return "a warning, and the upgrade continues" if mild else None


def _trigger_capture(step: Step) -> list[str]:
    return [step.trigger.capture] if step.trigger and step.trigger.capture else []


def _lexicon(step: RenderedStep, kinds: Kinds) -> DescriptionContext:
    """Objects of a step that fans out are named after their templates, since no single node is meant."""
    manifests: dict[str, list[Ref]] = defaultdict(list)
    for manifest in step.manifests:
        file, ref = manifest.spec.file, manifest.ref
        manifests[file].append(ref._replace(name=f"<{file.partition('.')[0]}>") if step.step.node else ref)
    return DescriptionContext(manifests={file: tuple(refs) for file, refs in manifests.items()}, ready=_ready(kinds))


def _ready(kinds: Kinds) -> Any:
    def ready(api_version: str, kind: str) -> tuple[Predicate, ...]:
        row = kinds.find(api_version, kind)
        return row.ready.all if row and row.ready else ()

    return ready


def _manifest(manifest: Manifest) -> dict[str, Any]:
    return _set(
        file=manifest.file,
        object=str(manifest.ref),
        **_care(manifest.spec),
        **{"return": _returns(manifest.spec) if isinstance(manifest.spec, Borrowed) else None},
        runtimeFields=[path_name(path) for path in manifest.run_time],
    )


def _care(spec: ManifestSpec) -> dict[str, Any]:
    """The options by which a manifest is applied, kept or removed in a special way."""
    if isinstance(spec, Borrowed):
        absent = "skip" if spec.when_absent is WhenAbsent.SKIP else None
        entries = [BORROW_OPTIONS[option.name].index(option) for option in spec.options]
        return {"whenAbsent": absent, **{key: text for entry in entries for key, text in entry.items()}}
    kept = None if spec.cleanup else "kept until the plan is deleted"
    return {"lifetime": "maintained until the plan has ended" if spec.maintained else kept}


def _returns(spec: Borrowed) -> dict[str, Any] | str:
    if not spec.returns:
        return "never"
    return {str(occasion): [path_name(path) for path in paths] or "all" for occasion, paths in spec.returns}


def _set(**entries: Any) -> dict[str, Any]:
    """The entries that say something."""
    return {key: value for key, value in entries.items() if value not in (None, "", [], {}, ())}


def pending_of(plan: RenderedPlan) -> Mapping[str, str]:
    """Every input that is missing anywhere, with its remedy."""
    holders: list[RenderedPhase | RenderedStep] = [*plan.phases]
    holders += [step for phase in plan.phases for step in phase.steps]
    return {item["input"]: item["remedy"] for item in _pending(holders)}
