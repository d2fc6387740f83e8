"""Reads cases of known causes: `diagnosis/<cause-id>.yaml`, each laid over the cluster of `diagnosis/_world.yaml`.

The first document says what is expected; the others are the case's objects, which replace those of the same name.

    source: where the objects come from: a public dump, or the schema of a definition
    expect: {object: ..., node: ..., what: ..., remedy: ...}   # keys may be left out; … ends the beginning of a text
    nearMisses:                                                # each must not be found
    - because: what is otherwise
      change: {Node n1: {spec.unschedulable: false}}           # null removes the field, or the object
    logs: {harvester-system/pod: {container: text}}            # left out: there are none
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderer.model.path import parse_path
from renderer.model.ref import Body, Ref, ref_of
from renderer.yaml_io import parse
from support.rendered_plans import ROOT

CASES = ROOT / "tests" / "diagnosis"
Objects = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisCase:
    """`cause` is the id that the file is called by."""

    cause: str
    head: Mapping[str, Any]
    objects: Objects

    @property
    def expected(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.head["expect"]
        return found

    @property
    def near_misses(self) -> Mapping[str, Objects]:
        return {item["because"]: changed(self.objects, item["change"]) for item in self.head["nearMisses"]}

    def logs(self, ref: Ref) -> Mapping[str, str]:
        found: Mapping[str, str] = self.head.get("logs", {}).get(f"{ref.namespace}/{ref.name}", {})
        return found


def paths() -> list[Path]:
    return sorted(path for path in CASES.glob("*.yaml") if not path.name.startswith("_"))


@functools.cache
def read(path: Path) -> DiagnosisCase:
    head, *bodies = (document.value for document in parse(path.read_text(encoding="utf-8"), path.name))
    own = {str(ref_of(body)): body for body in bodies}
    return DiagnosisCase(cause=path.stem, head=head, objects=changed({**world(), **own}, head.get("change", {})))


@functools.cache
def world() -> Objects:
    text = (CASES / "_world.yaml").read_text(encoding="utf-8")
    bodies = [document.value for document in parse(text, "_world.yaml")]
    return {_key(body): body for body in bodies}


def _key(body: Body) -> str:
    """Two kinds of one name are told apart by their groups."""
    return str(ref_of(body)) if body["apiVersion"] != "provisioning.cattle.io/v1" else f"Rancher {ref_of(body)}"


def changed(objects: Objects, changes: Mapping[str, Mapping[str, Any] | None]) -> Objects:
    found = copy.deepcopy(objects)
    for name, fields in changes.items():
        assert name in found, f"no object is called {name}"
        if fields is None:
            del found[name]
            continue
        for path, value in fields.items():
            *above, last = parse_path(path)
            place: Any = found[name]
            for step in above:
                place = place[step] if isinstance(step, int) else place.setdefault(step, {})
            if value is None:
                del place[last]
            elif isinstance(last, int) and last == len(place):
                place.append(value)
            else:
                place[last] = value
    return found
