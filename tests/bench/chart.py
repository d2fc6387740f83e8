"""A Helm chart that gives the objects of a rendered tree: one template for each, with a range over the nodes where the
tree has one for each node. So helm has as much to do as a chart's author would leave it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml


def write_chart(tree: Path, nodes: Mapping[str, str], folder: Path) -> Path:
    """`nodes`: name to machine name."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: upgrade\nversion: 0.1.0\n")
    values = {"nodes": [{"name": name, "machine": machine} for name, machine in nodes.items()]}
    (folder / "values.yaml").write_text(yaml.dump(values))
    for number, text in enumerate(_templates(tree, nodes)):
        (folder / "templates" / f"{number:04}.yaml").write_text(text)
    return folder


def manifest_files(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*.yaml") if path.name not in {"index.yaml", "kustomization.yaml"})


def _templates(tree: Path, nodes: Mapping[str, str]) -> Iterator[str]:
    first, machine = next(iter(nodes.items()))
    for path in manifest_files(tree):
        text = path.read_text().replace("{{", '{{ "{{" }}')
        if not nodes.keys() & set(path.parts):
            yield text
        elif first in path.parts:
            each = text.replace(first, "{{ $node.name }}").replace(machine, "{{ $node.machine }}")
            yield "{{- range $node := .Values.nodes }}\n---\n" + each + "{{- end }}\n"
