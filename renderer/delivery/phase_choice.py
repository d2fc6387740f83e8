"""Chooses the phases that agents deliver, and refuses those that would endanger a cluster: all reasons at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.delivery.delivery_rules import DeliveryRules
from renderer.delivery.options import DeliveryOptions
from renderer.errors import Problem, Problems
from renderer.layout.select import unknown
from renderer.model.rendered import Manifest, RenderedPhase, RenderedPlan, RenderedStep

_INSTEAD = "end before it with --through, or deliver the plan alone with --deliver plan"


def chosen_phases(plan: RenderedPlan, options: DeliveryOptions, rules: DeliveryRules) -> tuple[RenderedPhase, ...]:
    """The phases up to the last one that is wanted, and those that are asked for. Raises `Problems`."""
    names = [phase.phase.name for phase in plan.phases]
    through = options.through or rules.through
    for name in (through, *options.also):
        if name not in names:
            raise unknown("phase", name, names)
    first = {name for name in names[: names.index(through) + 1] if not rules.of(name).on_request}
    wanted = [phase for phase in plan.phases if phase.phase.name in {*first, *options.also}]
    asked = rules.of(through).on_request and through not in options.also
    problems = [*([_only_on_request(through, str(rules.of(through).on_request))] if asked else [])]
    problems += [problem for phase in wanted for problem in _problems(phase, rules)]
    if problems:
        raise Problems(problems)
    return tuple(phase for phase in wanted if phase.skipped is None)


def delivered_steps(phase: RenderedPhase, rules: DeliveryRules) -> tuple[RenderedStep, ...]:
    """Steps that run and are not left out."""
    left_out = rules.of(phase.phase.name).left_out
    return tuple(step for step in phase.steps if step.skipped is None and step.step.name not in left_out)


def _problems(phase: RenderedPhase, rules: DeliveryRules) -> Iterator[Problem]:
    name, rule = phase.phase.name, rules.of(phase.phase.name)
    if rule.never:
        yield _undeliverable(f"{name} cannot be delivered by an agent: {rule.never}", _INSTEAD)
        return
    if phase.skipped is not None:
        return
    steps = delivered_steps(phase, rules)
    pending = {item.input: item.remedy for item in (*phase.pending, *(item for step in steps for item in step.pending))}
    for missing, remedy in sorted(pending.items()):
        yield _undeliverable(f"{name} cannot be delivered without {missing}", remedy)
    yield from (_borrowed(name, item) for step in steps for item in _manifests(step) if item.borrowed)
    yield from (problem for step in steps if (problem := _at_run_time(step)))


def _manifests(step: RenderedStep) -> Sequence[Manifest]:
    return (*step.manifests, *(step.undo.manifests if step.undo else ()))


def _borrowed(phase: str, manifest: Manifest) -> Problem:
    fields = [field for field in manifest.body if field not in ("apiVersion", "kind", "metadata")]
    paths = ", ".join(_leaf(manifest, field) for field in fields or ["metadata"])
    message = f"{phase} borrows {paths} of {manifest.ref}, and nothing in the tree would return it"
    return _undeliverable(f"{message}: an agent that removes the file removes the field", _INSTEAD, manifest.file)


def _leaf(manifest: Manifest, top: str) -> str:
    """The path of the deepest mapping that has one key only."""
    path, value = top, manifest.body[top]
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path = f"{path}.{key}"
    return path


def _at_run_time(step: RenderedStep) -> Problem | None:
    """A step that waits for a sign, or whose objects are made for each node in turn."""
    held = [item for item in step.manifests if (item.run_time or step.step.node) and not item.borrowed]
    if not step.step.trigger and not step.undo and not held:
        return None
    message = f"{step.id} cannot be delivered by an agent: its objects must not exist before the step starts"
    return _undeliverable(message, _INSTEAD, held[0].file if held else None)


def _only_on_request(name: str, reason: str) -> Problem:
    return _undeliverable(f"{name} is delivered only on request: {reason}", f"add --phase {name}")


def _undeliverable(message: str, remedy: str, file: str | None = None) -> Problem:
    return Problem(reason="CannotDeliver", message=message, file=file, remedy=remedy)
