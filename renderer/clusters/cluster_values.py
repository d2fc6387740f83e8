"""`cluster.yaml` as values: what is particular to one of many clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.document_type import CLUSTER_VALUES
from renderer.validation import document_problems
from renderer.yaml_io import Document


@frozen
class ClusterValues:
    """Labels by which waves select the cluster, and what the template of its plan sees."""

    labels: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def cluster_values_from(document: Document) -> tuple[ClusterValues, list[Problem]]:
    """The values; none where the document is wrong."""
    if problems := document_problems(document, CLUSTER_VALUES):
        return ClusterValues(), problems
    body = document.value
    return ClusterValues(labels=body.get("labels", {}), values=body.get("values", {})), []
