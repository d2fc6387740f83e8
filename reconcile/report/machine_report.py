"""Puts the table of virtual machines into a model (part of schemas/preflight.json), and that into text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconcile.preflight.machines import MachineRow, MachineTable
from reconcile.probes.rules.virtual_machines import MachineOutcome
from renderer.columns import aligned
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell

Model = dict[str, Any]

_HEADING = ("NODE", "VM", "WHEN IT IS DRAINED", "WHY")
_WORDS: Mapping[str, str] = {
    MachineOutcome.MOVES: "moves",
    MachineOutcome.STARTED_AGAIN: "is stopped and started again",
    MachineOutcome.STOPPED: "is stopped",
    MachineOutcome.MAY_BLOCK: "may block the drain",
    MachineOutcome.BLOCKS: "blocks the drain",
    MachineOutcome.OFF: "is off",
}
_GRAVITY = (
    MachineOutcome.BLOCKS,
    MachineOutcome.MAY_BLOCK,
    MachineOutcome.STOPPED,
    MachineOutcome.STARTED_AGAIN,
    MachineOutcome.MOVES,
    MachineOutcome.OFF,
)
_EXPECTED = (MachineOutcome.MOVES, MachineOutcome.OFF)


def machines_model(table: MachineTable) -> Model:
    return {
        "counts": {outcome.value: count for outcome, count in table.counts.items()},
        "rows": [_row(row) for row in table.rows],
        "pausedNodes": list(table.paused),
        "readFailures": [failure.why for failure in table.read_failures],
    }


def _row(row: MachineRow) -> Model:
    return {
        "namespace": row.namespace,
        "name": row.name,
        "node": row.node,
        "outcome": row.outcome.value,
        "why": list(row.why),
        "kubevirt": row.kubevirt,
        "later": [{"node": item.node, "outcome": item.outcome.value, "why": list(item.why)} for item in row.later],
    }


def machine_lines(model: Model, *, everything: bool = False) -> Iterator[str]:
    """Those that do not just move, or all of them; and how many fare how. Nothing where there are none."""
    shown = _shown(model, everything)
    if shown:
        yield from aligned([_HEADING, *(line for row in shown for line in _lines(row))])
    if model["rows"]:
        yield machine_count_line(model)
    if model["pausedNodes"]:
        yield _paused_line(model)


def _paused_line(model: Model) -> str:
    return f"drained only once they are resumed, as the plan pauses before them: {', '.join(model['pausedNodes'])}"


def machine_blocks(model: Model) -> Iterator[Block]:
    """Every machine, those that fare worst first, for a pull request."""
    if not model["rows"]:
        return
    yield from ("#### Virtual machines", "", f"**{machine_count_line(model)}**")
    if model["pausedNodes"]:
        yield from ("", cell(_paused_line(model)))
    lines = [tuple(map(cell, line)) for row in sorted(model["rows"], key=_gravity) for line in _lines(row)]
    yield Table(heading=("node", "VM", "when it is drained", "why"), rows=lines, noun=("line", "lines"))


def _gravity(row: Model) -> int:
    worst = [row["outcome"], *(item["outcome"] for item in row["later"])]
    return min(map(_GRAVITY.index, worst))


def _shown(model: Model, everything: bool) -> list[Model]:
    return [row for row in model["rows"] if everything or row["outcome"] not in _EXPECTED or row["later"]]


def machine_count_line(model: Model) -> str:
    """`3 virtual machines: 2 move, 1 is stopped`."""
    counts = [f"{count} {_plural(name, count)}" for name, count in model["counts"].items() if count]
    total = len(model["rows"])
    return f"{total} virtual machine{'' if total == 1 else 's'}: {', '.join(counts)}"


def _plural(outcome: str, count: int) -> str:
    words = _WORDS[outcome]
    if count == 1:
        return words
    first, _, others = words.partition(" ")
    verb = {"is": "are"}.get(first, first.removesuffix("s"))
    return f"{verb} {others}".strip()


def _lines(row: Model) -> Iterator[tuple[str, str, str, str]]:
    name = f"{row['namespace']}/{row['name']}"
    yield row["node"] or "-", name, _WORDS[row["outcome"]], "; ".join(row["why"])
    for item in row["later"]:
        yield item["node"], name, _WORDS[item["outcome"]], "; ".join(item["why"])
