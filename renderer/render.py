"""Renders phases: (catalog, templates, facts) -> RenderedPlan. Pure; all problems of a run are told together.

A phase or step whose inputs are not all given is pending, not wrong: the rest is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from renderer.catalog.declare import step_from
from renderer.catalog.inputs import INPUTS
from renderer.catalog.load import Catalog, Declared
from renderer.catalog.verify import captures_of
from renderer.checks import images_of, manifest_problems, plan_problems
from renderer.context import Context, Facts, context_of, for_step
from renderer.digest import digest_of
from renderer.errors import Problem, Problems, problem
from renderer.model.path import Path
from renderer.model.phase import Borrowed, Condition, ManifestSpec, Step
from renderer.model.probe import Builtin, EveryTarget, Gate, ManifestTarget, ObjectTarget, Probe
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, Pending, RenderedPhase, RenderedPlan, RenderedStep
from renderer.names import label_value
from renderer.templating import Templates
from renderer.yaml_door import parse, walk

Known = Callable[[str, str | None], Mapping[str, Any]]
"""(phase, node) -> the values captured so far by name; nothing is known before a run."""

LOOP_ONLY = "loop-only"
"""Folder of the manifests that only the loop may apply: borrowed, triggered, per node, or with run-time values."""


def nothing_known(phase: str, node: str | None) -> Mapping[str, Any]:
    """What is captured when nothing has run."""
    return {}


def render(catalog: Catalog, templates: Templates, facts: Facts, known: Known = nothing_known) -> RenderedPlan:
    """Raises `Problems` with everything that is wrong in any phase."""
    run = _Run(catalog, templates, context_of(facts), known)
    phases = tuple(run.phase(declared) for declared in catalog.phases)
    manifests = [manifest for phase in phases for manifest in phase.manifests()]
    problems = run.problems or plan_problems(manifests, catalog.kinds)
    if problems:
        raise Problems(problems)
    plan = str(facts.plan["metadata"]["name"])
    return RenderedPlan(
        plan=plan,
        phases=phases,
        images=tuple(sorted({image for manifest in manifests for image in manifest.images})),
        digest=digest_of([plan, *(phase.digest for phase in phases)]),
    )


@dataclass
class _Run:
    """One rendering: what is the same for all phases, and the problems found so far."""

    catalog: Catalog
    templates: Templates
    context: Context
    known: Known
    problems: list[Problem] = field(default_factory=list)

    def phase(self, declared: Declared) -> RenderedPhase:
        phase = declared.phase
        pending = self._pending(phase.requires)
        reason = None if pending else self._skip(phase.skip_when, self.context, declared)
        steps: tuple[RenderedStep, ...] = ()
        if not pending and reason is None:
            steps = tuple(step for index in range(len(phase.steps)) for step in self._fan_out(declared, index))
        digest = digest_of([phase.name, phase.number, phase.active, reason, [step.digest for step in steps]])
        return RenderedPhase(phase=phase, steps=steps, skipped=reason, pending=pending, digest=digest)

    def _fan_out(self, declared: Declared, index: int) -> Iterable[RenderedStep]:
        step = declared.phase.steps[index]
        nodes = self.context.nodes if step.for_each else (None,)
        for node in nodes:
            yield _StepRun(self, declared, step, _raw_step(declared, step), node).render()

    def _pending(self, requires: Sequence[str]) -> tuple[Pending, ...]:
        missing = (name for name in requires if name not in self.context.given)
        return tuple(Pending(input=name, remedy=INPUTS.get(name, f"{name} comes from a phase")) for name in missing)

    def _skip(self, conditions: Sequence[Condition], context: Context, declared: Declared) -> str | None:
        for condition in conditions:
            try:
                if self.templates.evaluate(condition.expr, context.names, file=declared.document.file):
                    return condition.because
            except Problems as error:
                self.problems += error.problems
        return None


def _raw_step(declared: Declared, step: Step) -> Mapping[str, Any]:
    body: Mapping[str, Any] = next(raw for raw in declared.raw[step.position] if raw["name"] == step.name)
    return body


@dataclass
class _StepRun:
    """One step for one node: its text filled in and its manifests made."""

    run: _Run
    declared: Declared
    step: Step
    raw: Mapping[str, Any]
    node: Mapping[str, Any] | None

    def render(self) -> RenderedStep:
        phase = self.declared.phase
        name = self.node["name"] if self.node else None
        bare = replace(self.step, node=name)
        pending = self.run._pending(self.step.requires)
        known = self.run.known(phase.name, name)
        context = for_step(self.run.context, self.node, captures_of(phase), known)
        # Whether a step is skipped often decides before its inputs do: a skipped step needs none.
        try:
            skipped = self._skipped(context, bool(pending))
            if skipped is not None or pending:
                return self._ended(bare, skipped, () if skipped is not None else pending)
            return self._rendered(context, name)
        except Problems as error:
            self.run.problems += error.problems
            return self._ended(bare, None, ())

    def _skipped(self, context: Context, lenient: bool) -> str | None:
        """With an input missing, an expression that needs it decides nothing."""
        for condition in self.step.skip_when:
            try:
                if self._evaluate(condition.expr, context):
                    return condition.because
            except Problems:
                if not lenient:
                    raise
        return None

    def _ended(self, step: Step, skipped: str | None, pending: tuple[Pending, ...]) -> RenderedStep:
        digest = digest_of([step.name, step.node, skipped, [item.input for item in pending]])
        return RenderedStep(phase=self.declared.phase.name, step=step, skipped=skipped, pending=pending, digest=digest)

    def _rendered(self, context: Context, node: str | None) -> RenderedStep:
        raw = {key: self._filled(value, context) for key, value in self.raw.items() if key != "undo"}
        step = replace(step_from(raw, self.step.position), node=node, undo=None)
        manifests, left_out = self._manifests(step, context)
        step = replace(step, gates=self._gates(step, manifests))
        undo = self._undo(context)
        held = bool(step.hold and self._evaluate(step.hold.when, context))
        # Whether a node is held just now is the operator's to change at any time, so it is no part of the digest.
        parts = [node, raw, [[item.file, item.digest] for item in manifests], undo.digest if undo else None]
        return RenderedStep(
            phase=self.declared.phase.name,
            step=step,
            manifests=manifests,
            held=held,
            digest=digest_of(parts),
            left_out=left_out,
            undo=undo,
        )

    def _undo(self, context: Context) -> RenderedStep | None:
        if self.step.undo is None:
            return None
        return _StepRun(self.run, self.declared, self.step.undo, self.raw["undo"], self.node)._rendered(
            context, self.node["name"] if self.node else None
        )

    def _manifests(self, step: Step, context: Context) -> tuple[tuple[Manifest, ...], tuple[tuple[str, str], ...]]:
        manifests: list[Manifest] = []
        left_out: list[tuple[str, str]] = []
        for spec in step.manifests:
            if spec.when and not self._evaluate(spec.when.expr, context):
                left_out.append((spec.file, spec.when.because))
            else:
                manifests += self._objects(step, spec, context)
        return tuple(manifests), tuple(left_out)

    def _objects(self, step: Step, spec: ManifestSpec, context: Context) -> list[Manifest]:
        template = f"{self.declared.phase.folder}/{spec.file}"
        shown = self.run.templates.shown(template)
        text = self.run.templates.render_text(template, context.names)
        try:
            bodies = [document.value for document in parse(text, shown)]
        except Problems as error:
            raise Problems(_of_rendered(item) for item in error.problems) from error
        return [self._manifest(step, spec, template, _ordered(body), context) for body in self._whole(bodies, shown)]

    def _whole(self, bodies: list[Any], shown: str) -> list[Body]:
        if not bodies:
            raise problem("EmptyManifest", "renders no object", file=shown, remedy="use `when` to leave a manifest out")
        if any(not isinstance(body, dict) for body in bodies):
            raise problem("InvalidManifest", "renders something that is no object", file=shown)
        return bodies

    def _manifest(self, step: Step, spec: ManifestSpec, template: str, body: Body, context: Context) -> Manifest:
        row = self.run.catalog.kinds.find(str(body.get("apiVersion")), str(body.get("kind")))
        run_time = tuple(path for path, value in walk(body) if value in context.marks and isinstance(value, str))
        manifest = Manifest(
            file=self._file(step, spec, run_time),
            template=self.run.templates.shown(template),
            spec=spec,
            body=body,
            run_time=run_time,
            images=images_of(body, row),
            digest=digest_of(body),
        )
        self.run.problems += manifest_problems(
            body, borrowed=manifest.borrowed, file=manifest.template, row=row, marks=context.marks
        )
        if row is None:
            self.run.problems.append(self._unknown_kind(manifest))
        return manifest

    def _file(self, step: Step, spec: ManifestSpec, run_time: tuple[Path, ...]) -> str:
        stem = f"{spec.file.removesuffix('.yaml.j2')}.yaml"
        folder = self.declared.phase.folder
        if step.node:
            return f"{folder}/{LOOP_ONLY}/{label_value(step.node)}/{stem}"
        free = not (run_time or step.trigger or _is_borrowed(spec) or self.step is not _top(self.declared, step.name))
        return f"{folder}/{stem}" if free else f"{folder}/{LOOP_ONLY}/{stem}"

    def _gates(self, step: Step, manifests: tuple[Manifest, ...]) -> tuple[Gate, ...]:
        """The declared gates; where there are none, every owned object must be ready by its kind's rule."""
        gates = step.gates
        if not gates and not step.no_gate:
            owned = dict.fromkeys(item.spec.file for item in manifests if not item.borrowed)
            gates = tuple(Gate(probe=Probe(target=ManifestTarget(file=file), all=(Builtin(),))) for file in owned)
        for gate in gates:
            self._has_rule(gate.probe, manifests)
        return gates

    def _has_rule(self, probe: Probe, manifests: tuple[Manifest, ...]) -> None:
        if not any(isinstance(predicate, Builtin) for predicate in probe.all):
            return
        for api_version, kind in _kinds_of(probe, manifests):
            row = self.run.catalog.kinds.find(api_version, kind)
            if row is None or row.ready is None:
                raise problem(
                    "UnknownKind",
                    f"step {self.step.name}: nothing says when a {api_version} {kind} is ready",
                    file=self.declared.document.file,
                    remedy="add `ready` to its row in _kinds/ of the template tree, or give the step a gate of its own",
                )

    def _unknown_kind(self, manifest: Manifest) -> Problem:
        return Problem(
            reason="UnknownKind",
            file=manifest.template,
            message=f"{manifest.ref.api_version} {manifest.ref.kind} is not in the kinds table",
            remedy="add a row for it to a file in _kinds/ of the template tree",
        )

    def _filled(self, value: Any, context: Context) -> Any:
        if isinstance(value, str):
            return self.run.templates.render_string(value, context.names, file=self.declared.document.file)
        if isinstance(value, Mapping):
            return {key: self._filled(item, context) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, context) for item in value]
        return value

    def _evaluate(self, expression: str, context: Context) -> Any:
        return self.run.templates.evaluate(expression, context.names, file=self.declared.document.file)


def _top(declared: Declared, name: str) -> Step | None:
    return next((step for step in declared.phase.steps if step.name == name), None)


def _is_borrowed(spec: ManifestSpec) -> bool:
    return isinstance(spec, Borrowed)


def _kinds_of(probe: Probe, manifests: tuple[Manifest, ...]) -> Iterable[tuple[str, str]]:
    target = probe.target
    if isinstance(target, ManifestTarget):
        return {(m.ref.api_version, m.ref.kind) for m in manifests if m.spec.file == target.file}
    if isinstance(target, ObjectTarget):
        return {(target.ref.api_version, target.ref.kind)}
    return {(target.api_version, target.kind)} if isinstance(target, EveryTarget) else set()


_FIRST = ("apiVersion", "kind", "metadata", "spec")


def _ordered(body: Any) -> Any:
    """A body with its keys in one order: the four that people look for first, then by name."""
    head = {key: _by_name(body[key]) for key in _FIRST if key in body}
    return head | {key: _by_name(body[key]) for key in sorted(body) if key not in _FIRST}


def _by_name(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _by_name(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_by_name(item) for item in value]
    return value


def _of_rendered(item: Problem) -> Problem:
    """A problem of the rendered text: its line is not a line of the template."""
    where = f" (line {item.line} of what it renders)" if item.line else ""
    return replace(item, line=None, message=f"{item.message}{where}")
