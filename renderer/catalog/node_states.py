"""The table of node states, and whether a step names only states that the table has.

A state that nothing knows could be neither ordered nor shown: it is refused instead of dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.errors import Problem
from renderer.model.node_state import NodeState, NodeStates
from renderer.model.phase import StatesOfWork, Step
from renderer.suggest import did_you_mean
from renderer.yaml_io import Document


def node_states_from(raw: Mapping[str, Any]) -> Iterator[NodeState]:
    """Rows of one `_node-states` file; it has passed `schemas/node-states.json`."""
    for item in raw["nodeStates"]:
        yield NodeState(
            name=item["name"],
            ordinal=item["ordinal"],
            description=item["description"],
            out_of_service=item.get("outOfService", False),
            upgraded=item.get("upgraded", False),
        )


def duplicate_states(document: Document, known: Mapping[str, Document]) -> Iterator[Problem]:
    """A problem for each state of a file that is declared already; `known` are the files of the states so far."""
    seen = dict(known)
    for index, item in enumerate(document.value["nodeStates"]):
        name = item["name"]
        if name in seen:
            yield Problem(
                reason="NodeStateConflict",
                file=document.file,
                line=document.line_of(("nodeStates", index, "name")),
                message=f"node state {name} is already declared in {seen[name].file}",
                remedy="give the state another name, or remove one of the two",
            )
        seen[name] = document


def unknown_states(step: Step, states: NodeStates) -> Iterator[tuple[str, str, str]]:
    """Each state of a step that the table does not have, with a message and a remedy. A name that still holds marks is
    not judged yet."""
    for name in dict.fromkeys(_named(step)):
        if name not in states and "{{" not in name:
            hint = did_you_mean(name, [state.name for state in states])
            remedy = "correct the name, or declare the state in a file of _node-states/ of the template tree"
            yield name, f"step {step.name}: {name!r} is not a node state{hint}", remedy


def _named(step: Step) -> Iterator[str]:
    yield from _of_work(step.node_states)
    yield from _of_work(step.job_states.states if step.job_states else None)
    if step.hold:
        yield step.hold.state
    if step.initial_node_state:
        yield from (step.initial_node_state.state, *step.initial_node_state.replaces)


def _of_work(states: StatesOfWork | None) -> Iterator[str]:
    if states:
        yield from (state for state in (states.active, states.completed, states.failed) if state)
