"""Reads what is documented of the states of Harvester's built-in upgrade."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.places import BUILT_IN_UPGRADE
from renderer.catalog.probes import Raw
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problems
from renderer.frozen import frozen
from renderer.model.document_type import BUILT_IN_UPGRADE_STATES


@frozen
class WorkKind:
    """A kind of objects that do the work of a state."""

    api_version: str
    kind: str
    namespace: str


@frozen
class UpgradeState:
    """A state of an Upgrade. `phases` are those of a plan that do the same, none where it is not known which; `step` is
    the phase as the documentation counts it, `restart` whether the upgrade may be started again, and `how`."""

    name: str
    phases: tuple[str, ...]
    step: str
    restart: str
    how: str
    works: tuple[WorkKind, ...] = ()


@frozen
class BuiltInUpgrade:
    """The states of an Upgrade by name, and the states of its nodes with those of a plan's nodes that mean the same."""

    states: Mapping[str, UpgradeState]
    node_states: Mapping[str, str]


def load_built_in_upgrade(tree: TemplateTree, validate: Validate) -> BuiltInUpgrade:
    """Raises `Problems` with everything that is wrong."""
    reader = FileReader(tree, validate)
    found = read_built_in_upgrade(reader)
    if reader.problems or found is None:
        raise Problems(reader.problems, warnings=reader.warnings)
    return found


def read_built_in_upgrade(reader: FileReader) -> BuiltInUpgrade | None:
    """The same; everything that is wrong is kept by the reader."""
    document = reader.document(BUILT_IN_UPGRADE, BUILT_IN_UPGRADE_STATES)
    if document is None:
        return None
    states = (_state(raw) for raw in document.value["states"])
    return BuiltInUpgrade(states={state.name: state for state in states}, node_states=document.value["nodeStates"])


def _state(raw: Raw) -> UpgradeState:
    return UpgradeState(
        name=raw["state"],
        phases=tuple(raw["phases"]),
        step=raw["step"],
        restart=raw["restart"],
        how=raw["how"],
        works=tuple(
            WorkKind(api_version=item["apiVersion"], kind=item["kind"], namespace=item["namespace"])
            for item in raw.get("works", ())
        ),
    )
