"""Writes `reconcile/simulator/apiserver/go_types.json`: which built-in fields survive the API server's decoding.

The server reads a built-in object into Go structs and writes it out again, so `hostNetwork: false` vanishes while
`replicas: 0` stays and `status: {}` appears. JSON schemas do not tell these apart; the Go sources do. To be run after
a change of version:

    python -m conformance.go_types "$(cd controlplane/kube && go list -m -f '{{.Dir}}' k8s.io/api)" ...apimachinery ...

with the folders of k8s.io/api, k8s.io/apimachinery, k8s.io/apiextensions-apiserver and k8s.io/kube-aggregator.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "schemas" / "kubernetes" / "v1.35.json"
TARGET = ROOT / "reconcile" / "rehearsal" / "go_types.json"

STRUCT = re.compile(r"^type (\w+) struct \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\t(?:(\w+) +)?(\*?\[?\]?[\w.\[\]*]+) +`[^`]*json:\"([^\"]*)\"", re.MULTILINE)
PACKAGES = {
    "io.k8s.api.": "k8s.io/api",
    "io.k8s.apimachinery.": "k8s.io/apimachinery",
    "io.k8s.apiextensions-apiserver.": "k8s.io/apiextensions-apiserver",
    "io.k8s.kube-aggregator.": "k8s.io/kube-aggregator",
}
ZEROES = {"Quantity": "quantity", "Time": "time", "MicroTime": "time", "IntOrString": "number"}


def main(folders: Iterable[str]) -> int:
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    sources = {name: struct for folder in folders for name, struct in structs(Path(folder))}
    table = {name: rows(sources, definitions, name) for name in sorted(definitions) if name in sources}
    TARGET.write_text(one_line_each({name: row for name, row in table.items() if row}), encoding="utf-8")
    return 0


def one_line_each(table: Mapping[str, Any]) -> str:
    lines = (f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in table.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def structs(folder: Path) -> Iterator[tuple[str, str]]:
    """Every struct of a module under its definition's name, with its fields as Go text."""
    module = re.sub(r"@.*", "", folder.name)
    for file in sorted(folder.rglob("*.go")):
        if file.name.endswith("_test.go"):
            continue
        package = ".".join(file.parent.relative_to(folder).parts)
        for name, body in STRUCT.findall(file.read_text(encoding="utf-8")):
            yield f"io.k8s.{module}.{package}.{name}", body


def rows(sources: Mapping[str, str], definitions: Mapping[str, Any], name: str) -> dict[str, list[str]]:
    """`pointer`: kept if given; `struct`: always there; `always`: there, be it as zero. Others go if they are zero."""
    found: dict[str, list[str]] = {}
    for field, go_type, options in fields(sources, name):
        how = handling(go_type, options, definitions[name].get("properties", {}).get(field, {}), definitions)
        if how:
            found.setdefault(how, []).append(field)
    return found


def fields(sources: Mapping[str, str], name: str) -> Iterator[tuple[str, str, list[str]]]:
    for _, go_type, tag in FIELD.findall(sources[name]):
        field, *options = tag.split(",")
        if field in ("", "-") or "inline" in options:
            embedded = f"{name.rpartition('.')[0]}.{go_type.rpartition('.')[2]}"
            if "inline" in options and embedded in sources:
                yield from fields(sources, embedded)
            continue
        yield field, go_type, options


def handling(go_type: str, options: list[str], schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if go_type.startswith("*"):
        return "pointer"
    referred = schema.get("$ref", "").rpartition("/")[2]
    struct = bool(definitions.get(referred, {}).get("properties")) or referred.rpartition(".")[2] in ZEROES
    if struct:
        return "" if "omitzero" in options else "struct"
    return "" if "omitempty" in options else "always"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
