"""Turns the body of a `phase.yaml` into the model. The body has passed `schemas/phase.json`; what a schema cannot say
(paths, durations, a step without a gate) is checked by `renderer.catalog.verify`."""

from __future__ import annotations

from renderer.catalog.probes import Raw, event_from, gate_from, predicate_from, probe_from, target_from, trigger_from
from renderer.model.path import ABSENT, parse_path
from renderer.model.phase import (
    Absence,
    Assumed,
    Borrowed,
    Capture,
    Condition,
    Deletion,
    Fetch,
    FetchAs,
    Hold,
    Inherited,
    JobStates,
    Lane,
    ManifestSpec,
    NodeStates,
    Occasion,
    Others,
    Owned,
    Phase,
    Position,
    ProbeCondition,
    Seed,
    Step,
    Trace,
    Union,
    WhenAbsent,
)

_RETURNS: dict[str, Raw] = {"always": {"success": "all", "abort": "all", "failure": "all"}, "never": {}}


def phase_from(raw: Raw, *, number: int, folder: str) -> Phase:
    """Raises `ValueError` for a path or a pattern that cannot be read."""
    return Phase(
        name=raw["name"],
        number=number,
        folder=folder,
        description=raw["description"],
        active=raw["status"]["active"],
        completed=raw["status"]["completed"],
        deletion=Deletion(raw["deletion"]),
        announce=raw.get("announce", True),
        requires=tuple(raw.get("requires", ())),
        provides=tuple(raw.get("provides", ())),
        skip_when=_conditions(raw),
        lanes=tuple(_lane(name, lane) for name, lane in raw.get("lanes", {}).items()),
        steps=tuple(step_from(step, position) for position in Position for step in raw.get(position, ())),
    )


def _lane(name: str, raw: Raw) -> Lane:
    others = raw.get("others")
    return Lane(
        name=name,
        at_most=raw["atMost"],
        waiting=raw["waiting"],
        others=Others(all=tuple(map(predicate_from, others["all"])), waiting=others["waiting"]) if others else None,
    )


def step_from(raw: Raw, position: Position) -> Step:
    return Step(
        name=raw["name"],
        position=position,
        description=raw.get("description", ""),
        for_each=raw.get("forEach"),
        lane=raw.get("lane"),
        requires=tuple(raw.get("requires", ())),
        skip_when=_conditions(raw),
        skip_unless=_skip_unless(raw.get("skipUnless")),
        trigger=trigger_from(raw.get("trigger")),
        repeat=raw.get("repeat", False),
        hold=_hold(raw.get("hold")),
        captures=tuple(_capture(name, item) for name, item in raw.get("capture", {}).items()),
        fetches=tuple(_fetch(name, item) for name, item in raw.get("fetch", {}).items()),
        records=tuple(raw.get("record", {}).items()),
        seed=_seed(raw.get("seed")),
        manifests=_manifests(raw),
        gates=tuple(gate_from(item) for item in raw.get("gates", ())),
        no_gate=raw.get("noGate"),
        node_states=_node_states(raw.get("nodeStates")),
        job_states=_job_states(raw.get("jobStates")),
        started=event_from(raw.get("started")),
        traces=tuple(
            Trace(api_version=item["apiVersion"], kind=item["kind"], path=parse_path(item["path"]))
            for item in raw.get("traces", ())
        ),
        undo=step_from(raw["undo"], position) if "undo" in raw else None,
    )


def _conditions(raw: Raw) -> tuple[Condition, ...]:
    return tuple(_condition(item) for item in raw.get("skipWhen", ()))


def _condition(raw: Raw) -> Condition:
    return Condition(expr=raw["expr"], because=raw["because"])


def _skip_unless(raw: Raw | None) -> ProbeCondition | None:
    return ProbeCondition(probe=probe_from(raw["probe"]), because=raw["because"]) if raw else None


def _hold(raw: Raw | None) -> Hold | None:
    return Hold(**{key: raw[key] for key in ("when", "state", "reason", "message", "waiting")}) if raw else None


def _capture(name: str, raw: Raw) -> Capture:
    return Capture(
        name=name,
        target=target_from(raw),
        path=parse_path(raw["path"]),
        default=raw.get("default"),
        add=raw.get("add", 0),
        record=raw.get("record"),
        inherits=Assumed(**raw["inherits"]) if "inherits" in raw else None,
    )


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
    return Absence(because=raw["because"], proven_by=raw["provenBy"], event=event_from(raw.get("event")))


def _seed(raw: Raw | None) -> Seed | None:
    return Seed(state=raw["state"], replaces=tuple(raw.get("replaces", ()))) if raw else None


def _manifests(raw: Raw) -> tuple[ManifestSpec, ...]:
    owned = [_owned({"file": item} if isinstance(item, str) else item) for item in raw.get("owned", ())]
    return (*owned, *(_borrowed(item) for item in raw.get("borrowed", ())))


def _owned(raw: Raw) -> Owned:
    cleanup = raw.get("cleanup", (Occasion.SUCCESS, Occasion.ABORT))
    return Owned(
        file=raw["file"],
        when=_condition(raw["when"]) if "when" in raw else None,
        maintained=raw.get("maintained", False),
        cleanup=tuple(Occasion(item) for item in cleanup),
        take_over=tuple(parse_path(path) for path in raw.get("takeOver", ())),
    )


def _borrowed(raw: Raw) -> Borrowed:
    returns = raw["return"]
    declared = _RETURNS[returns] if isinstance(returns, str) else returns
    union = raw.get("union")
    return Borrowed(
        file=raw["file"],
        when=_condition(raw["when"]) if "when" in raw else None,
        returns=tuple(
            (Occasion(occasion), () if paths == "all" else tuple(parse_path(path) for path in paths))
            for occasion, paths in declared.items()
            if paths != "none"
        ),
        raise_only=raw.get("raiseOnly", False),
        when_absent=WhenAbsent(raw.get("whenAbsent", WhenAbsent.WAIT)),
        union=_union(union) if union else None,
        inherits=tuple(_inherited(item) for item in raw.get("inherits", ())),
    )


def _inherited(raw: Raw) -> Inherited:
    return Inherited(path=parse_path(raw["path"]), value=raw.get("value", ABSENT), when=raw.get("when"))


def _union(raw: Raw) -> Union:
    return Union(path=parse_path(raw["path"]), keys=tuple(raw["keys"]), values=raw["values"])


def _node_states(raw: Raw | None) -> NodeStates | None:
    if raw is None:
        return None
    return NodeStates(active=raw.get("active"), completed=raw.get("completed"), failed=raw.get("failed"))


def _job_states(raw: Raw | None) -> JobStates | None:
    if raw is None:
        return None
    return JobStates(
        namespace=raw["namespace"],
        labels=_pairs(raw["labels"]),
        node_label=raw["nodeLabel"],
        states=NodeStates(**{key: raw["states"].get(key) for key in ("active", "completed", "failed")}),
    )


def _pairs(raw: Raw) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(raw.items()))
