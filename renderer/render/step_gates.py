"""The gates of a step: those declared, or, where none are, that every owned object is ready by its kind's rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from renderer.catalog.kinds import Kinds
from renderer.catalog.load import Declared
from renderer.errors import problem
from renderer.model.phase import Step
from renderer.model.probe import BuiltinPredicate, EveryTarget, Gate, ManifestTarget, ObjectTarget, Probe
from renderer.model.rendered import Manifest


def gates_of(
    step: Step, manifests: tuple[Manifest, ...], left_out: Collection[str], declared: Declared, kinds: Kinds
) -> tuple[Gate, ...]:
    """The declared gates, but those over a manifest that is left out; where none are declared, every owned object must
    be ready by its kind's rule. Raises `Problems` for a kind without such a rule."""
    gates = tuple(gate for gate in step.gates if getattr(gate.probe.target, "file", None) not in left_out)
    if not step.gates:
        gates = implied_gates(step, [item.spec.file for item in manifests if not item.borrowed])
    for gate in gates:
        _check_rule(gate.probe, manifests, step, declared, kinds)
    return gates


def _check_rule(probe: Probe, manifests: tuple[Manifest, ...], step: Step, declared: Declared, kinds: Kinds) -> None:
    if not any(isinstance(predicate, BuiltinPredicate) for predicate in probe.all):
        return
    for api_version, kind in _kinds_of(probe, manifests):
        row = kinds.find(api_version, kind)
        if row is None or row.ready is None:
            raise problem(
                "UnknownKind",
                f"step {step.name}: nothing says when a {api_version} {kind} is ready",
                file=declared.document.file,
                line=declared.document.line_with(step.name),
                remedy="add `ready` to its row in _kinds/ of the template tree, or give the step a gate of its own",
            )


def gates_of_begun(step: Step, made: Collection[str]) -> tuple[Gate, ...]:
    """The gates of a step of which only the templates are known that have made something."""
    files = {spec.file for spec in step.manifests}
    declared = tuple(gate for gate in step.gates if getattr(gate.probe.target, "file", None) not in files - set(made))
    return declared if step.gates else implied_gates(step, made)


def implied_gates(step: Step, owned: Iterable[str]) -> tuple[Gate, ...]:
    """The gates of a step that declares none: what its templates `owned` render must be ready by its kind's rule."""
    if step.no_gate:
        return ()
    files = dict.fromkeys(owned)
    return tuple(Gate(probe=Probe(target=ManifestTarget(file=file), all=(BuiltinPredicate(),))) for file in files)


def _kinds_of(probe: Probe, manifests: tuple[Manifest, ...]) -> Iterable[tuple[str, str]]:
    target = probe.target
    if isinstance(target, ManifestTarget):
        return {(m.ref.api_version, m.ref.kind) for m in manifests if m.spec.file == target.file}
    if isinstance(target, ObjectTarget):
        return {(target.ref.api_version, target.ref.kind)}
    return {(target.api_version, target.kind)} if isinstance(target, EveryTarget) else set()
