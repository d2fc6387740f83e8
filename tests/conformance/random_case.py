"""Cases that nobody thought of: random writes by several managers to one object, the same for the same number."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from conformance.case import Case

NAMES = "abcd"
MANAGERS = ("one", "two", "three")
STEPS = 14

Make = Callable[[random.Random], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The kind that is written to. `base` is what its first apply must say; `fields` are top-level parts by name."""

    api_version: str
    kind: str
    base: Mapping[str, Any]
    parts: Mapping[str, Mapping[str, Make]]
    statuses: Mapping[str, Make] | None = None


def random_case(number: int) -> Case:
    rng = random.Random(number)
    subject = SUBJECTS[number % len(SUBJECTS)]
    steps = [_first(rng, subject), *(_step(rng, subject) for _ in range(STEPS))]
    text = yaml.safe_dump({"about": f"random writes, number {number}", "steps": steps})
    return Case(name=f"random-{number}", about="random writes", text=text)


def _first(rng: random.Random, subject: Subject) -> dict[str, Any]:
    return {"apply": _body(subject, subject.base), "manager": rng.choice(MANAGERS)}


def _step(rng: random.Random, subject: Subject) -> dict[str, Any]:
    make = rng.choices((_apply, _patch, _status, _delete), weights=(10, 6, 2, 1))[0]
    step = make(rng, subject)
    return {**step, "dryRun": True} if rng.random() < 0.1 else step


def _body(subject: Subject, parts: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": "w", **parts.get("metadata", {})}
    return {"apiVersion": subject.api_version, "kind": subject.kind, **parts, "metadata": metadata}


def _apply(rng: random.Random, subject: Subject) -> dict[str, Any]:
    chosen = {name: _some(rng, fields, 0.35) for name, fields in subject.parts.items() if rng.random() < 0.9}
    said = {name: part for name, part in chosen.items() if part}
    parts = {**said, **_some(rng, {"metadata": _metadata}, 0.3)}
    return {"apply": _body(subject, parts), "manager": rng.choice(MANAGERS), "force": rng.random() < 0.4}


def _patch(rng: random.Random, subject: Subject) -> dict[str, Any]:
    parts = {name: _some(rng, fields, 0.25) for name, fields in subject.parts.items()}
    body = {
        name: {key: None if rng.random() < 0.2 else value for key, value in part.items()}
        for name, part in parts.items()
    }
    body |= _some(rng, {"metadata": _metadata}, 0.2)
    return {"patch": f"{subject.kind} w", "body": body, "manager": rng.choice(MANAGERS)}


def _status(rng: random.Random, subject: Subject) -> dict[str, Any]:
    if subject.statuses is None:
        return _patch(rng, subject)
    status = _some(rng, subject.statuses, 0.7)
    manager = rng.choice(MANAGERS)
    return {"patch": f"{subject.kind} w", "body": {"status": status}, "subresource": "status", "manager": manager}


def _delete(rng: random.Random, subject: Subject) -> dict[str, Any]:
    return {"delete": f"{subject.kind} w", "propagation": "Background"}


def _metadata(rng: random.Random) -> dict[str, Any]:
    return _some(rng, {"labels": _words, "annotations": _words}, 0.7)


def _some(rng: random.Random, fields: Mapping[str, Make], chance: float) -> dict[str, Any]:
    return {name: make(rng) for name, make in fields.items() if rng.random() < chance}


def _name(rng: random.Random) -> str:
    return rng.choice(NAMES)


def _texts(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(NAMES) for name in rng.sample(NAMES, rng.randint(0, 3))}


def _words(rng: random.Random) -> dict[str, str]:
    """Never empty: of an empty map in metadata the server makes a write that changes nothing."""
    return {name: rng.choice(NAMES) for name in rng.sample(NAMES, rng.randint(1, 3))}


def _set(rng: random.Random) -> list[str]:
    return rng.sample(NAMES, rng.randint(0, 4))


def _plain(rng: random.Random) -> list[str]:
    return rng.choices(NAMES, k=rng.randint(0, 3))


def _keyed(rng: random.Random) -> list[dict[str, Any]]:
    fields: dict[str, Make] = {"value": _name, "weight": lambda rng: rng.randint(1, 3)}
    return [{"name": name, **_some(rng, fields, 0.4)} for name in rng.sample(NAMES, rng.randint(0, 3))]


def _two_keys(rng: random.Random) -> list[dict[str, Any]]:
    """The protocol is left out now and then where it is the default."""
    pairs = rng.sample([(80, "TCP"), (80, "UDP"), (81, "TCP"), (81, "UDP")], rng.randint(0, 3))
    said = [{} if protocol == "TCP" and rng.random() < 0.5 else {"protocol": protocol} for _, protocol in pairs]
    return [{"port": port, **word, "note": _name(rng)} for (port, _), word in zip(pairs, said, strict=True)]


def _nested(rng: random.Random) -> dict[str, Any]:
    inner: dict[str, Make] = {"c": lambda rng: rng.random() < 0.5, "d": lambda rng: rng.choice([1, 1.5])}
    return _some(rng, {"a": _name, "b": _name, "inner": lambda rng: _some(rng, inner, 0.5)}, 0.5)


def _free(rng: random.Random) -> Any:
    maps: tuple[Any, ...] = ({"a": 1}, {"a": {"b": [2]}}, {"a": {"c": "d"}})
    values: tuple[Any, ...] = (1, "x", True, None, [], {}, [1, {"a": "b"}])
    return {name: rng.choice((*values, *maps)) for name in rng.sample(NAMES, rng.randint(0, 3))}


def _conditions(rng: random.Random) -> list[dict[str, str]]:
    return [{"type": name, "status": rng.choice(["True", "False"])} for name in rng.sample(NAMES, 2)]


def _container(rng: random.Random, name: str) -> dict[str, Any]:
    first = 80 if name == "main" else 90
    fields: dict[str, Make] = {
        "image": lambda rng: f"i:{rng.randint(1, 2)}",
        "args": _plain,
        "env": lambda rng: [{"name": key, "value": rng.choice(["", "x", "y"])} for key in rng.sample("ABC", 2)],
        "ports": lambda rng: [{"containerPort": first + number} for number in rng.sample([0, 1, 2], 2)],
        "resources": lambda rng: {"requests": {"cpu": rng.choice(["1000m", "1", "0.5"])}},
        "volumeMounts": lambda rng: [{"name": "a", "mountPath": "/a", "readOnly": rng.random() < 0.5}],
        "securityContext": lambda rng: {"privileged": rng.random() < 0.5},
        "imagePullPolicy": lambda rng: rng.choice(["Always", "Never"]),
    }
    return {"name": name, **_some(rng, fields, 0.4)}


def _pod(rng: random.Random) -> dict[str, Any]:
    fields: dict[str, Make] = {
        "containers": lambda rng: [_container(rng, name) for name in rng.sample(["main", "side"], rng.randint(1, 2))],
        "nodeSelector": _texts,
        "tolerations": lambda rng: [{"key": key, "operator": "Exists"} for key in rng.sample(NAMES, 2)],
        "hostNetwork": lambda rng: False,
        "terminationGracePeriodSeconds": lambda rng: rng.choice([0, 5]),
        "priorityClassName": lambda rng: "",
        "hostAliases": lambda rng: [{"ip": f"192.0.2.{n}", "hostnames": ["h"]} for n in rng.sample([1, 2, 3], 2)],
    }
    return _some(rng, fields, 0.4)


def _template(rng: random.Random) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "w", **_texts(rng)}}, "spec": _pod(rng)}


_WIDGET: dict[str, Make] = {
    "color": lambda rng: rng.choice(["red", "green", "blue"]),
    "size": lambda rng: rng.randint(1, 12),
    "nothing": lambda rng: rng.choice([None, "x"]),
    "port": lambda rng: rng.choice([80, "http"]),
    "set": _set,
    "plain": _plain,
    "keyed": _keyed,
    "twoKeys": _two_keys,
    "texts": _texts,
    "atomic": _texts,
    "nested": _nested,
    "free": _free,
}
_LABELS = {"app": "w"}
_MAIN = {"name": "main", "image": "i:0"}
_SET_BASE = {
    "replicas": 0,
    "serviceName": "w",
    "selector": {"matchLabels": _LABELS},
    "template": {
        "metadata": {"labels": _LABELS},
        "spec": {"volumes": [{"name": "a", "emptyDir": {}}], "containers": [_MAIN, {"name": "side", "image": "s:0"}]},
    },
}

SUBJECTS = (
    Subject(
        api_version="conformance.example.org/v1",
        kind="Widget",
        base={"spec": {"color": "red", "texts": {"a": "b"}, "set": ["a"], "keyed": [{"name": "a"}, {"name": "b"}]}},
        parts={"spec": _WIDGET},
        statuses={"phase": _name, "conditions": _conditions},
    ),
    Subject(
        api_version="v1",
        kind="ConfigMap",
        base={"data": {"a": "x"}},
        parts={"data": {name: lambda rng: rng.choice(["", "x", "y"]) for name in NAMES}},
    ),
    Subject(
        api_version="apps/v1",
        kind="StatefulSet",
        base={"spec": _SET_BASE},
        parts={"spec": {"template": _template, "replicas": lambda rng: rng.choice([0, 1])}},
        statuses={"replicas": lambda rng: rng.randint(0, 3), "readyReplicas": lambda rng: 0},
    ),
)
