"""The report of a rehearsal as a pull request shows it: how long it takes, what happens to each machine, what is
returned. Of the model that `report` makes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconcile.simulator.rehearsal.report import Model, ending_line, fate_of, short_value
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell, cell_lines, code

_SUBJECTS = (
    ("machines", "Virtual machines", ("virtual machine", "virtual machines")),
    ("nodes", "Nodes", ("node", "nodes")),
    ("addons", "Add-ons", ("add-on", "add-ons")),
)


def report_blocks(model: Model) -> Iterator[Block]:
    yield f"### Rehearsal of {cell(model['plan'])}: {cell(ending_line(model), longest=2_000)}"
    if model["from"] or model["to"]:
        yield from ("", f"From {cell(model['from'] or '?')} to {cell(model['to'] or '?')}.")
    waits = [(code(item["step"]), cell(item["summary"] or item["text"])) for item in model["waits"]]
    yield Table(heading=("step", "what it waits for"), rows=waits, noun=("wait", "waits"))
    warnings = [(cell(text),) for text in model["storms"]]
    yield Table(heading=("warning",), rows=warnings, noun=("warning", "warnings"))
    phases = [(cell(item["phase"]), cell(item["at"])) for item in model["phases"]]
    yield Table(heading=("phase", "reached after"), rows=phases, noun=("phase", "phases"))
    for key, title, noun in _SUBJECTS:
        yield from _subjects(model[key], title, noun)
    loans = [
        (code(f"{loan['object']} {loan['path']}"), code(short_value(loan["was"])), fate_of(loan))
        for loan in sorted(model["borrowed"], key=lambda loan: bool(loan["returned"]))
    ]
    if loans:
        yield "#### Borrowed fields"
    yield Table(heading=("field", "was", "at the end"), rows=loans, noun=("field", "fields"))
    unchecked = [(code(f"{item['kind']} {item['path']}"), code(item["rule"])) for item in model["notChecked"]]
    yield Table(heading=("not checked", "rule"), rows=unchecked, noun=("rule", "rules"))


def _subjects(found: Sequence[Mapping[str, Any]], title: str, noun: tuple[str, str]) -> Iterator[Block]:
    """All that happens to each; those to whom most happens first, such as a machine that is stopped."""
    if not found:
        return
    yield f"#### {title}: {len(found)}"
    rows = [
        (cell(item["name"]), cell_lines([f"{fact['what']} at {fact['at']}" for fact in item["facts"]]))
        for item in sorted(found, key=lambda item: -len({fact["what"] for fact in item["facts"]}))
    ]
    yield Table(heading=(noun[0], "what happens"), rows=rows, noun=noun)
