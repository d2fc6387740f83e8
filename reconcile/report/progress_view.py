"""The progress of a plan as lines for people: all of them, or those that a screen has room for.

A line has a weight: the least heavy go first where there is no room. What a plan waits for longer than expected, the
newest wait, the phase that runs and what to do next stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from textwrap import wrap

from reconcile.report.progress import Model, age_of, borrowed_line, is_worth_a_look
from reconcile.status.times import age_text, span_text, time_of


class Tone(Enum):
    """The meaning of a line, which decides its colour."""

    PLAIN = None
    GOOD = "green"
    WARN = "yellow"
    BAD = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLine:
    """A line of a view; the heavier, the longer it stays."""

    text: str
    tone: Tone = Tone.PLAIN
    weight: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Lines that belong together, and the same in short; `order` says whose turn it is to be short, 0 first."""

    whole: tuple[ShownLine, ...]
    short: tuple[ShownLine, ...] | None = None
    order: int = 0


Room = tuple[int, int]
"""Columns and rows."""

_MARKS = {"done": "✓", "running": "…", "failed": "✗", "skipped": "-", "to do": " "}
_TONES = {"done": Tone.GOOD, "failed": Tone.BAD}


def progress_lines(model: Model) -> Iterator[str]:
    """The model as a tree for people."""
    yield from (line.text for line in progress_view(model))


def progress_view(model: Model, room: Room | None = None) -> list[ShownLine]:
    """The same with tones, and only what there is room for."""
    sections = list(_sections(model))
    if room is None:
        return [line for section in sections for line in section.whole]
    return _fitted(sections, *room)


def wait_lines(model: Model) -> Iterator[str]:
    """The waits of the plan."""
    yield from (line.text for line in _waits(model))


def _fitted(sections: list[Section], columns: int, rows: int) -> list[ShownLine]:
    shortable = [number for number, section in enumerate(sections) if section.short is not None]
    for number in sorted(shortable, key=lambda number: sections[number].order):
        if _height(_flat(sections), columns) <= rows:
            break
        sections[number] = replace(sections[number], whole=sections[number].short or ())
    lines = _flat(sections)
    if _height(lines, columns) > rows:
        lines = [replace(line, text=_clipped(line.text, columns)) for line in lines]
    return lines if len(lines) <= rows else _heaviest(lines, rows)


def _flat(sections: Iterable[Section]) -> list[ShownLine]:
    return [line for section in sections for line in section.whole]


def _height(lines: Iterable[ShownLine], columns: int) -> int:
    """Rows, with lines broken between words as a terminal's view breaks them."""
    return sum(max(1, len(wrap(line.text, columns, break_on_hyphens=False))) for line in lines)


def _clipped(text: str, columns: int) -> str:
    return text if len(text) <= columns else f"{text[: max(0, columns - 1)]}…"


def _heaviest(lines: Sequence[ShownLine], rows: int) -> list[ShownLine]:
    """As many as there are rows, in their order; the last row says how many are left out."""
    kept = sorted(sorted(range(len(lines)), key=lambda number: (-lines[number].weight, number))[: max(1, rows - 1)])
    return [*(lines[number] for number in kept), ShownLine(text=f"  … {len(lines) - len(kept)} more lines")]


# ------------------------------------------------------------------------------------------------------ the sections


def _sections(model: Model) -> Iterator[Section]:
    yield Section(whole=(_head(model),))
    yield from _phases(model)
    yield _nodes(model)
    yield _wait_section(model)
    loans = tuple(ShownLine(text=f"  borrowed: {borrowed_line(loan)}", weight=1) for loan in model["borrowed"])
    count = ShownLine(text=f"  borrowed: {len(loans)} fields, which will be returned", weight=1)
    yield Section(whole=loans, short=(count,) if len(loans) > 1 else None)
    yield _verification(model)
    yield Section(
        whole=tuple(ShownLine(text=f"  problem: {text}", tone=Tone.BAD, weight=8) for text in model["problems"])
    )
    yield Section(whole=tuple(ShownLine(text=f"  note: {text}", weight=2) for text in model.get("notes", ())))
    ways = [way["command"] or way["way"] for way in model["waysOut"] if way["allowed"] and model["phase"] == "Failed"]
    yield Section(whole=(ShownLine(text=f"  ways out: {'; '.join(ways)}", weight=8),) if ways else ())
    yield Section(whole=(ShownLine(text=f"  next: {model['next']}", weight=8),) if model["next"] else ())


def _head(model: Model) -> ShownLine:
    target = model["version"] or model["image"]
    said = f": {model['message']}" if model["message"] else ""
    tone = {"Failed": Tone.BAD, "Succeeded": Tone.GOOD}.get(model["phase"], Tone.PLAIN)
    return ShownLine(text=f"{model['plan']} to {target}: {model['phase'] or 'not started'}{said}", tone=tone, weight=9)


def _phases(model: Model) -> Iterator[Section]:
    """Those that are over, the one that runs, and those to come: neighbours that are alike share a line."""
    done = [phase for phase in model["phases"] if phase["state"] in ("done", "skipped")]
    to_do = [phase for phase in model["phases"] if phase["state"] == "to do"]
    now = [phase for phase in model["phases"] if phase not in done and phase not in to_do]
    yield Section(
        whole=tuple(_phase(phase, model, 2) for phase in done),
        short=(_counted(f"  ✓ {len(done)} phases done", Tone.GOOD),) if len(done) > 1 else None,
        order=2,
    )
    yield Section(whole=tuple(_phase(phase, model, 7) for phase in now))
    yield Section(
        whole=tuple(_phase(phase, model, 2) for phase in to_do),
        short=(_counted(f"    {len(to_do)} phases to do: {', '.join(p['name'] for p in to_do)}"),)
        if len(to_do) > 1
        else None,
        order=1,
    )


def _counted(text: str, tone: Tone = Tone.PLAIN) -> ShownLine:
    return ShownLine(text=text, tone=tone, weight=4)


def _phase(phase: Model, model: Model, weight: int) -> ShownLine:
    text = phase["skipped"] or _duration(phase, model["at"])
    line = f"  {_MARKS[phase['state']]} {phase['name']:18} {text}".rstrip()
    return ShownLine(text=line, tone=_TONES.get(phase["state"], Tone.PLAIN), weight=weight)


def _nodes(model: Model) -> Section:
    """In short; those in the same state share a line."""
    whole = tuple(
        ShownLine(text=f"  node {node['name']}: {node['state'] or 'not started'}{_because(node)}", tone=_tone_of(node))
        for node in model["nodes"]
    )
    states: dict[str, list[str]] = {}
    for node in model["nodes"]:
        states.setdefault(node["state"] or "not started", []).append(node["name"])
    short = tuple(
        ShownLine(text=f"  node {names[0]}: {state}" if len(names) == 1 else f"  {len(names)} nodes: {state}", weight=4)
        for state, names in states.items()
    )
    return Section(whole=whole, short=short if len(short) < len(whole) else None, order=3)


def _verification(model: Model) -> Section:
    """The findings of the checks after the upgrade; in short without their remedies."""
    found = [(item, is_worth_a_look(item)) for item in model["verification"]]
    heads = [
        ShownLine(
            text=f"  {'not as expected' if worth else 'to know'}: {item['check']}: {item['message']}",
            tone=Tone.WARN if worth else Tone.PLAIN,
            weight=7 if worth else 4,
        )
        for item, worth in found
    ]
    remedies = [ShownLine(text=f"    remedy: {item['remedy']}", weight=2) for item, _ in found]
    whole = tuple(line for pair in zip(heads, remedies, strict=True) for line in pair)
    return Section(whole=whole, short=tuple(heads) if heads else None, order=1)


def _tone_of(node: Model) -> Tone:
    return Tone.BAD if node["reason"] and "Failed" in node["state"] else Tone.PLAIN


def _because(node: Model) -> str:
    return f" ({node['message'] or node['reason']})" if node["message"] or node["reason"] else ""


def _duration(phase: Model, at: str) -> str:
    usual = f"usually {age_text(phase['usual'])}" if phase.get("usual") is not None else ""
    if not phase["began"]:
        return usual
    seconds = (time_of(phase["ended"] or at) - time_of(phase["began"])).total_seconds()
    if phase["ended"]:
        return age_text(seconds)
    return ", ".join(filter(None, [f"for {age_text(seconds)}", usual]))


# --------------------------------------------------------------------------------------------------------- the waits


def _wait_section(model: Model) -> Section:
    lines = tuple(_waits(model))
    shared = {**model, "waits": list(_shared(model["waits"]))}
    heavy = tuple(line for line in _waits(shared) if line.weight >= 5)
    left = len(shared["waits"]) - len([line for line in heavy if line.weight >= 6])
    short = (*heavy, _counted(f"  waits for {left} other things")) if left > 0 and heavy else heavy
    return Section(whole=lines, short=short if short and len(short) < len(lines) else None, order=4)


def _shared(waits: Iterable[Model]) -> Iterator[Model]:
    """Joins what several nodes wait for alike, since the first of them began it; a check names its own node."""
    alike: dict[object, list[Model]] = {}
    for number, wait in enumerate(waits):
        is_of_node = wait["node"] and "check" not in wait
        step = str(wait["step"]).removesuffix(f"/{wait['node']}")
        key = (step, wait["text"], wait["slow"], wait["unknown"], wait["limit"]) if is_of_node else number
        alike.setdefault(key, []).append(wait)
    for first, *others in alike.values():
        if not others:
            yield first
            continue
        step = str(first["step"]).removesuffix(f"/{first['node']}")
        since = min(wait["since"] for wait in (first, *others))
        yield {
            **first,
            "step": step,
            "text": f"{len(others) + 1} nodes: {first['text']}",
            "summary": "",
            "since": since,
        }


def _waits(model: Model) -> Iterator[ShownLine]:
    newest = max((wait["since"] for wait in model["waits"]), default="")
    for wait in model["waits"]:
        matters = wait["slow"] or wait["unknown"]
        weight = 8 if matters else 6 if wait["since"] == newest else 3
        tone = Tone.WARN if matters else Tone.PLAIN
        if "check" in wait:
            first, *rest = _check_lines(wait, model)
            yield ShownLine(text=first, tone=Tone.WARN, weight=max(weight, 6))
            yield from (ShownLine(text=text, weight=2) for text in rest)
            continue
        text = wait["summary"] or (f"{wait['step']}: " if wait["step"] else "") + wait["text"]
        line = f"  waits for {text}{age_of(wait['since'], model['at'])}{_mark(wait)}"
        yield ShownLine(text=line, tone=tone, weight=weight)


def _check_lines(wait: Model, model: Model) -> Iterator[str]:
    """The check, everything that it found, what to do and what accepts the risk, each thing in a line of its own."""
    check, node = wait["check"], f" of {wait['node']}" if wait["node"] else ""
    verb = "could not evaluate" if wait["unknown"] else "blocked by"
    yield f"  {verb} {check['id']}{node}: {check['title']}{age_of(wait['since'], model['at'])}{_mark(wait)}"
    yield from (f"    {text}" for text in check["found"])
    yield from (f"    remedy: {text}" for text in check["remedies"])
    if check["accept"]:
        yield f"    to accept the risk: upgradeplan accept {check['id']} {model['plan']}, or {check['accept']}"


def _mark(wait: Model) -> str:
    if wait["slow"]:
        return f", longer than {span_text(wait['limit'])}" if wait["limit"] is not None else ", needs an operator"
    return ", cannot be read" if wait["unknown"] else ""
