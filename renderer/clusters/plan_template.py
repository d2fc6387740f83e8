"""The plan of a cluster that has none of its own, from a template that all such clusters share."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace

from renderer.catalog.template_tree import Template
from renderer.clusters.cluster_values import ClusterValues
from renderer.context.scope import Scope
from renderer.errors import Problem, Problems
from renderer.source_document import without_lines
from renderer.templating import Templates
from renderer.yaml_io import Document, parse

PLAN_TEMPLATE = "upgradeplan.yaml.j2"


class PlanTemplate:
    """A template that sees `cluster.name`, `cluster.labels` and `values`. It is compiled once."""

    def __init__(self, text: str, file: str, code: MutableMapping[str, bytes] | None = None) -> None:
        tree = {PLAN_TEMPLATE: Template(text=text, shown=file, packaged=False)}
        self._templates, self._file = Templates(tree, code), file

    def documents(self, cluster: str, own: ClusterValues) -> tuple[Document, ...]:
        """The documents that it renders for a cluster. Raises `Problems`; their lines are those of the template."""
        self._templates.begin()
        names = {"name": cluster, "labels": own.labels}
        context = {"cluster": Scope("cluster", names), "values": Scope("values", own.values)}
        text = self._templates.render_text(PLAN_TEMPLATE, context)
        try:
            found = parse(text, self._file)
        except Problems as error:
            raise Problems(_of_rendered(item) for item in error.problems) from error
        return tuple(without_lines(document.value, self._file) for document in found)


def _of_rendered(item: Problem) -> Problem:
    """A problem of the rendered text, whose lines are not those of the template."""
    where = f" (line {item.line} of what it renders)" if item.line else ""
    return replace(item, line=None, message=f"{item.message}{where}")
