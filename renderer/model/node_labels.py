"""The labels of a Node that mark it as managed by Harvester, and as a witness."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.model.path import Path, look_up
from renderer.model.ref import Body

LABELS: Path = ("metadata", "labels")
MANAGED = "harvesterhci.io/managed"
WITNESS = "node-role.harvesterhci.io/witness"


def is_managed(node: Body) -> bool:
    return bool(look_up(node, (*LABELS, MANAGED)) == "true")


def is_witness(node: Body) -> bool:
    """The label makes a witness with any value but `false`.

    Harvester sets it to `true`. Its controllers and its detector of virtual machines ask whether it is there
    (`ExcludeWitnessNodes` in harvester/harvester), its upgrade's repository whether it is `true`. `false` is what only
    an operator writes, and nothing keeps virtual machines and volumes off such a node: the taint does, not the label.
    """
    labels = look_up(node, LABELS)
    return isinstance(labels, Mapping) and labels.get(WITNESS, "false") != "false"
