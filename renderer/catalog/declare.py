"""Reads the body of a `phase.yaml` into the model.

The body has passed `schemas/phase.json`; `renderer.catalog.verify` checks what a schema cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from renderer.catalog.manifest_specs import expression_from, manifests_from
from renderer.catalog.probes import (
    Raw,
    event_from,
    gate_from,
    predicate_from,
    probe_from,
    ref_from,
    seconds,
    target_from,
    trigger_from,
)
from renderer.frozen import frozen
from renderer.model.check import CheckTime
from renderer.model.manifest_spec import Expression
from renderer.model.path import parse_path
from renderer.model.phase import (
    Absence,
    Again,
    Capture,
    Deletion,
    Fetch,
    FetchAs,
    FieldToRemove,
    Hold,
    InitialNodeState,
    JobStates,
    Lane,
    LateNodes,
    Phase,
    Position,
    RequirePeers,
    SkipUnless,
    StatesOfWork,
    Step,
    StepChecks,
    Unite,
    ValueBefore,
    ValueIf,
    ValueOnTakeOver,
)
from renderer.model.probe import Gate, Probe, RulePredicate


def phase_from(raw: Raw, *, number: int, folder: str) -> Phase:
    """Raises `ValueError` for a path or a pattern that cannot be read."""
    return Phase(
        name=raw["name"],
        number=number,
        folder=folder,
        description=raw["description"],
        active=raw["status"]["active"],
        completed=raw["status"]["completed"],
        also_completed=tuple(raw["status"].get("alsoCompleted", ())),
        deletion=Deletion(raw["deletion"]),
        emit_events=raw.get("emitEvents", True),
        requires=tuple(raw.get("requires", ())),
        provides=tuple(raw.get("provides", ())),
        skip_when=_expressions(raw.get("skipWhen", ())),
        no_retry=raw.get("noRetry"),
        lanes=tuple(_lane(name, lane) for name, lane in raw.get("lanes", {}).items()),
        steps=tuple(step_from(step, position) for position in Position for step in raw.get(position, ())),
    )


def _lane(name: str, raw: Raw) -> Lane:
    peers = raw.get("requirePeers")
    return Lane(
        name=name,
        at_most=raw["atMost"],
        waiting=raw["waiting"],
        require_peers=_require_peers(peers) if peers else None,
    )


def _require_peers(raw: Raw) -> RequirePeers:
    return RequirePeers(all=tuple(map(predicate_from, raw["all"])), waiting=raw["waiting"])


def step_from(raw: Raw, position: Position) -> Step:
    read: dict[str, Any] = {field: part.read(raw) for field, part in _PARTS.items()}
    undo = step_from(raw["undo"], position) if "undo" in raw else None
    return Step(position=position, undo=undo, **read)


def refilled(step: Step, raw: Raw, filled: Raw) -> Step:
    """`step`, which `raw` declares, as `filled` declares it. Values that are identical in both are not read again.

    Raises `ValueError` for a filled-in value that cannot be read.
    """
    changed = {_FIELDS[key] for key, value in filled.items() if value is not raw[key] and key != "undo"}
    new: dict[str, Any] = {field: _PARTS[field].read(filled) for field in changed}
    if step.undo and "undo" in filled:
        new["undo"] = refilled(step.undo, raw["undo"], filled["undo"])
    return replace(step, **new)


@frozen
class _Part:
    """The reader of one field of a step, and the keys of the declaration that it is read from."""

    keys: tuple[str, ...]
    read: Callable[[Raw], Any]


def _part(key: str, read: Callable[[Any], Any], otherwise: Any = None) -> _Part:
    return _Part(keys=(key,), read=lambda raw: read(raw.get(key, otherwise)))


def _as_it_is(value: Any) -> Any:
    return value


def _expressions(raws: Sequence[Raw]) -> tuple[Expression, ...]:
    return tuple(map(expression_from, raws))


def _skip_unless(raw: Raw | None) -> SkipUnless | None:
    return SkipUnless(probe=probe_from(raw["probe"]), reason=raw["reason"]) if raw else None


def _probe(raw: Raw | None) -> Probe | None:
    return probe_from(raw) if raw else None


def _late_nodes(raw: Raw | None) -> LateNodes | None:
    if raw is None:
        return None
    return LateNodes(by=tuple(map(ref_from, raw["by"])), done=probe_from(raw["done"]), reason=raw["reason"])


def _hold(raw: Raw | None) -> Hold | None:
    if raw is None:
        return None
    texts = {key: raw[key] for key in ("when", "state", "reason", "message", "waiting")}
    return Hold(**texts, event=event_from(raw.get("event")))


def _checks(raw: Raw | None) -> StepChecks | None:
    if raw is None:
        return None
    return StepChecks(
        when=CheckTime(raw["when"]), slow_after=seconds(raw["slowAfter"]) or 0, patient=raw.get("patient", False)
    )


def _again(raw: Raw | None) -> Again | None:
    if raw is None:
        return None
    return Again(checks=raw["checks"], every=seconds(raw["every"]) or 0, annotation=raw["annotation"])


def _captures(raws: Mapping[str, Raw]) -> tuple[Capture, ...]:
    return tuple(_capture(name, raw) for name, raw in raws.items())


def _capture(name: str, raw: Raw) -> Capture:
    return Capture(
        name=name,
        target=target_from(raw),
        path=parse_path(raw["path"]) if "path" in raw else (),
        default=raw.get("default"),
        add=raw.get("add", 0),
        record=raw.get("record"),
        value_on_take_over=ValueOnTakeOver(**raw["valueOnTakeOver"]) if "valueOnTakeOver" in raw else None,
        unite=_unite(raw["unite"]) if "unite" in raw else None,
        value_if=_value_if(raw.get("valueIf")),
        value_before=ValueBefore(**raw["valueBefore"]) if "valueBefore" in raw else None,
    )


def _unite(raw: Raw) -> Unite:
    rule = predicate_from({"rule": raw["rule"]}) if "rule" in raw else None
    return Unite(rule=rule if isinstance(rule, RulePredicate) else None)


def _value_if(raw: Raw | None) -> ValueIf | None:
    return None if raw is None else ValueIf(probe=probe_from(raw["probe"]), value=raw["value"])


def _fetches(raws: Mapping[str, Raw]) -> tuple[Fetch, ...]:
    return tuple(_fetch(name, raw) for name, raw in raws.items())


def _fetch(name: str, raw: Raw) -> Fetch:
    absent = raw.get("absent")
    return Fetch(
        name=name,
        namespace=raw["namespace"],
        service=raw["service"],
        port=raw["port"],
        path=raw["path"],
        read_as=FetchAs(raw["as"]),
        required=tuple(raw.get("required", ())),
        non_empty=raw.get("nonEmpty", False),
        absent=_absence(absent) if absent else None,
    )


def _absence(raw: Raw) -> Absence:
    return Absence(reason=raw["reason"], proven_by=raw["provenBy"], event=event_from(raw.get("event")))


def _records(raw: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(raw.items())


def _initial_node_state(raw: Raw | None) -> InitialNodeState | None:
    return InitialNodeState(state=raw["state"], replaces=tuple(raw.get("replaces", ()))) if raw else None


def _gates(raws: Sequence[Raw]) -> tuple[Gate, ...]:
    return tuple(map(gate_from, raws))


def _node_states(raw: Raw | None) -> StatesOfWork | None:
    if raw is None:
        return None
    return StatesOfWork(active=raw.get("active"), completed=raw.get("completed"), failed=raw.get("failed"))


def _job_states(raw: Raw | None) -> JobStates | None:
    if raw is None:
        return None
    return JobStates(
        namespace=raw["namespace"],
        labels=_pairs(raw["labels"]),
        node_label=raw["nodeLabel"],
        states=StatesOfWork(**{key: raw["states"].get(key) for key in ("active", "completed", "failed")}),
    )


def _remove_fields(raws: Sequence[Raw]) -> tuple[FieldToRemove, ...]:
    return tuple(
        FieldToRemove(api_version=raw["apiVersion"], kind=raw["kind"], path=parse_path(raw["path"])) for raw in raws
    )


def _pairs(raw: Raw) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(raw.items()))


_PARTS: Mapping[str, _Part] = {
    "name": _part("name", _as_it_is),
    "description": _part("description", _as_it_is, ""),
    "for_each": _part("forEach", _as_it_is),
    "lane": _part("lane", _as_it_is),
    "ignore_unhealthy_peers": _part("ignoreUnhealthyPeers", _as_it_is, otherwise=False),
    "hold_slot_while": _part("holdSlotWhile", _probe),
    "requires": _part("requires", tuple, ()),
    "with_value": _part("withValue", _as_it_is),
    "skip_when": _part("skipWhen", _expressions, ()),
    "skip_unless": _part("skipUnless", _skip_unless),
    "trigger": _part("trigger", trigger_from),
    "late_nodes": _part("lateNodes", _late_nodes),
    "repeat": _part("repeat", _as_it_is, otherwise=False),
    "reconsider": _part("reconsider", _as_it_is, otherwise=False),
    "again": _part("again", _again),
    "hold": _part("hold", _hold),
    "checks": _part("checks", _checks),
    "captures": _part("capture", _captures, {}),
    "fetches": _part("fetch", _fetches, {}),
    "records": _part("record", _records, {}),
    "initial_node_state": _part("initialNodeState", _initial_node_state),
    "manifests": _Part(keys=("owned", "borrowed"), read=manifests_from),
    "gates": _part("gates", _gates, ()),
    "no_gate": _part("noGate", _as_it_is),
    "node_states": _part("nodeStates", _node_states),
    "job_states": _part("jobStates", _job_states),
    "started": _part("started", event_from),
    "completed": _part("completed", event_from),
    "remove_fields": _part("removeFields", _remove_fields, ()),
}
"""Every declared field of a step. Not here: its position, its node, and its undo, which is a step again."""

_FIELDS = {key: field for field, part in _PARTS.items() for key in part.keys}
