"""Events on the plan: what was decided, and its results. Each is emitted after the write that it reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.events import EventSeverity, Occurrence, emit
from reconcile.decide.decision import Apply, Borrow
from reconcile.decide.phase import all_steps
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.executor import ExecutedAction
from reconcile.status.plan import key_of
from renderer.model.probe import Event
from renderer.model.ref import Body, ref_of
from renderer.model.rendered import RenderedPlan

COMPONENT = "upgradeplan-controller"


def events_of(results: Sequence[ExecutedAction], rendered: RenderedPlan, known: Collection[str]) -> Iterator[Event]:
    """The events of steps once an object of theirs was made, or a field was set, and the errors that are not in a
    `known` text."""
    began = {
        result.action.step for result in results if _has_made(result) and isinstance(result.action, Apply | Borrow)
    }
    nodes = {key[2] for key in began if key}
    for item in all_steps(rendered.phases) if began else ():
        if item.step.node in nodes and key_of(item) in began and item.step.started:
            yield item.step.started
    for result in results:
        if result.problem and not result.stale and not any(result.problem in text for text in known):
            yield pipeline_error(result.problem)


def _has_made(result: ExecutedAction) -> bool:
    return result.created if isinstance(result.action, Apply) else result.problem is None


def pipeline_error(message: str) -> Event:
    return Event(type="Warning", reason="ReconcileError", message=f"Pipeline error: {message}")


def emit_events(deps: ReconcilerDeps, plan: Body, events: Iterable[Event]) -> None:
    """Emits events as far as possible: one that cannot be written is dropped, since the status says it too."""
    for event in events:
        now = deps.now()
        occurrence = Occurrence(
            regarding=ref_of(plan),
            uid=str(plan["metadata"]["uid"]),
            severity=EventSeverity(event.type),
            reason=event.reason,
            message=event.message,
            component=COMPONENT,
            first=now,
            last=now,
        )
        try:
            emit(deps.cluster, occurrence)
        except ClusterError:
            continue
