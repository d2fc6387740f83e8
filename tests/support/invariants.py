"""What must hold in every upgrade, whatever went wrong: judged by what happened, not by what the loop says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reconcile.simulator.actors.simulation_log import SimulationEvent, SimulationEventType

Facts = Sequence[SimulationEvent]


def violations(facts: Facts) -> tuple[str, ...]:
    """A sentence for each thing that must not happen and did; in order of the rules, then of time."""
    return tuple(said for rule in _RULES for said in rule(facts))


def _storms(facts: Facts) -> Iterator[str]:
    for fact in facts:
        if fact.what is SimulationEventType.MIGRATION_STORM:
            yield f"KubeVirt moved machines by itself: {fact.detail}"


def _undrained(facts: Facts) -> Iterator[str]:
    for fact in facts:
        if fact.what is SimulationEventType.KUBERNETES_UPGRADED and fact.detail.endswith("not drained"):
            yield f"{fact.node} was upgraded without having been drained"


def _two_out(facts: Facts) -> Iterator[str]:
    """From cordon to uncordon, and from going down to coming back, a node is out."""
    out: dict[str, set[SimulationEventType]] = {}
    for fact in facts:
        if fact.what in _ENDS:
            out.get(fact.node, set()).discard(_ENDS[fact.what])
        elif fact.what in _ENDS.values():
            others = sorted(node for node, why in out.items() if why and node != fact.node)
            if others:
                yield f"{fact.node} went out while {', '.join(others)} was"
            out.setdefault(fact.node, set()).add(fact.what)


def _rash_answers(facts: Facts) -> Iterator[str]:
    """Rancher may be answered only after our own Job, and after the drain only when the node has rebooted."""
    ready: set[tuple[SimulationEventType, str]] = set()
    for fact in facts:
        if fact.what is SimulationEventType.WORK_SUCCEEDED and fact.subject == "pre-drain":
            ready.add((SimulationEventType.PRE_DRAIN_ANSWERED, fact.node))
        elif fact.what is SimulationEventType.WORK_STARTED and fact.subject == "post-drain":
            ready.discard((SimulationEventType.POST_DRAIN_ANSWERED, fact.node))
        elif fact.what is SimulationEventType.CAME_BACK:
            ready.add((SimulationEventType.POST_DRAIN_ANSWERED, fact.node))
        elif (
            fact.what in (SimulationEventType.PRE_DRAIN_ANSWERED, SimulationEventType.POST_DRAIN_ANSWERED)
            and (fact.what, fact.node) not in ready
        ):
            yield f"Rancher was answered too early on {fact.node}: {fact.what}"


def _repeated_jobs(facts: Facts) -> Iterator[str]:
    """A Job that has succeeded is not there again under the same name. One that has failed may be, for a node Plan."""
    succeeded: dict[str, str] = {}
    for fact in facts:
        _, _, job = fact.detail.partition("Job ")
        name, _, uid = job.partition(" ")
        if fact.what is SimulationEventType.WORK_SUCCEEDED:
            succeeded[name] = uid
        elif fact.what is SimulationEventType.WORK_STARTED and succeeded.get(name, uid) != uid:
            yield f"Job {name} ran again after it had succeeded"


_ENDS = {
    SimulationEventType.UNCORDONED: SimulationEventType.CORDONED,
    SimulationEventType.CAME_BACK: SimulationEventType.WENT_DOWN,
}
_RULES: Sequence[Callable[[Facts], Iterator[str]]] = (_storms, _undrained, _two_out, _rash_answers, _repeated_jobs)
