"""A rendering as a pull request shows it: versions, what has changed, phases with gates, borrowed fields, images."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from renderer.markdown.differences import difference_blocks
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell, cell_lines, code

Model = Mapping[str, Any]


def rendering_blocks(index: Model, review: Model) -> Iterator[Block]:
    yield f"### Upgrade {cell(index['plan'])}: {cell(review['from'] or '?')} to {cell(review['to'] or '?')}"
    yield from ("", f"{_count(review['nodes'], 'node')}, digest <code>{index['digest']}</code>")
    pending = {item["input"]: item["remedy"] for item in _pending(index)}
    rows = [(code(name), cell(remedy)) for name, remedy in pending.items()]
    yield Table(heading=("not known yet", "give it"), rows=rows, noun=("input", "inputs"))
    credentials = [(code(item["object"]), code(item["field"])) for item in index.get("sensitiveFields", ())]
    yield Table(heading=("credential in", "field"), rows=credentials, noun=("field", "fields"))
    if "against" in review:
        yield from _against(review["against"])
    components = [
        tuple(map(cell, (item["name"], item["from"] or "?", item["to"] or "?"))) for item in review["components"]
    ]
    yield Table(heading=("component", "from", "to"), rows=components, noun=("component", "components"))
    yield "#### Phases"
    yield Table(
        heading=("phase", "step", "makes or changes", "goes on when"), rows=[*_steps(index)], noun=("step", "steps")
    )
    borrowed = [*map(_borrowed, review["borrowed"])]
    if borrowed:
        yield "#### Borrowed fields"
    heading = ("field", "now", "during the upgrade", "goes back")
    yield Table(heading=heading, rows=borrowed, noun=("field", "fields"))
    images = [(code(image),) for image in index["images"]]
    yield Table(heading=("image",), rows=images, noun=("image", "images"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _pending(index: Model) -> Iterator[Model]:
    for phase in index["phases"]:
        yield from phase.get("pending", ())
        for step in phase.get("steps", ()):
            yield from step.get("pending", ())


def _against(against: Model) -> Iterator[Block]:
    """The differences to the base branch."""
    if not against["known"]:
        yield "#### New: the base branch has no rendering of this plan"
        return
    count = len(against["differences"])
    yield f"#### Changed since the base branch: {_count(count, 'difference') if count else 'no object'}"
    yield from difference_blocks(against["differences"], against["images"])
    files = [(code(file),) for file in against["files"]]
    yield Table(heading=("other file that differs",), rows=files, noun=("file", "files"))


def _steps(index: Model) -> Iterator[Sequence[str]]:
    for phase in index["phases"]:
        name = cell(phase["name"])
        if "skipped" in phase:
            yield name, "", "", f"skipped: {cell(phase['skipped'])}"
        for step in phase.get("steps", ()):
            yield name, _step(step), cell_lines(_objects(step)), cell_lines(_conditions(step))
            name = ""


def _step(step: Model) -> str:
    return cell(step["name"]) + (", once a node" if "forEach" in step else "")


def _objects(step: Model) -> list[str]:
    nodes = step.get("nodes", ())
    entries = [*step.get("manifests", ()), *(nodes[0].get("manifests", ()) if nodes else ())]
    more = f" (and of {len(nodes) - 1} more nodes)" if len(nodes) > 1 else ""
    return [f"{entry['object']}{more}" for entry in entries]


def _conditions(step: Model) -> Iterator[str]:
    skipped = step.get("skipped")
    if isinstance(skipped, str):
        yield f"skipped: {skipped}"
    for item in skipped if isinstance(skipped, list) else ():
        yield f"skipped on {_count(len(item['nodes']), 'node')}: {item['reason']}"
    if "skippedIf" in step:
        yield from (f"may be skipped: {text}" for text in _texts(step["skippedIf"]))
    yield from (f"pending: {item['input']}" for item in step.get("pending", ()))
    if "trigger" in step:
        yield f"starts when {step['trigger']}"
    if "checks" in step:
        yield step["checks"]
    yield from step.get("waitsFor", ())
    if "noGate" in step:
        yield step["noGate"]
    if step.get("heldNodes"):
        yield f"held on {', '.join(step['heldNodes'][:9])}" + (" and more" if len(step["heldNodes"]) > 9 else "")


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value]


def _borrowed(field: Model) -> tuple[str, ...]:
    more = f" (and of {field['nodes'] - 1} more nodes)" if field["nodes"] > 1 else ""
    now = _value(field["now"]) if field["known"] else "not among the inputs"
    back = f"to {now} on {cell(field['returned'])}" if field["returned"] and field["known"] else cell(field["returned"])
    return code(f"{field['object']} {field['path']}") + more, now, _value(field["set"]), back or "never"


def _value(value: Any) -> str:
    if value is None:
        return "absent"
    return code(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), longest=120)
