"""Prepares the page of a report: the model, and for each bar of its timeline where it stands.

Times become text here, and lengths become thousandths of the whole run; the template (templates/report/) only places
them. The page needs nothing from anywhere: no script, no font, no picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconcile.report.progress import value_text
from reconcile.status.times import clock_text

Model = dict[str, Any]

PAGE = "report/page.html.j2"
WIDTH = 1000
NODES = 200
"""So many nodes are drawn; the counts have all."""
WAITS = 60
"""So many waits are listed: the longest."""
EVENTS = 300
_COLOURS = 6
_NARROWEST = 3.0


def page_view(model: Mapping[str, Any]) -> Model:
    """The names that the page's template uses."""
    whole = max(1, model["took"])
    colours = _colours(model["nodes"])
    longest = sorted(model["waits"], key=lambda wait: _length(wait, whole), reverse=True)
    waits = sorted(longest[:WAITS], key=lambda wait: int(wait["began"]))
    return {
        "report": model,
        "took": clock_text(model["took"]),
        "summary": _summary(model),
        "ticks": _ticks(whole),
        "phases": [_phase(phase, whole) for phase in model["phases"]],
        "nodes": [_node(node, model["waits"], whole, colours) for node in model["nodes"][:NODES]],
        "nodes_left": len(model["nodes"]) - len(model["nodes"][:NODES]),
        "legend": [{"step": step, "colour": colour} for step, colour in colours.items()],
        "waits": [{**wait, **_times(wait, whole), "took": clock_text(_length(wait, whole))} for wait in waits],
        "waits_left": len(longest) - len(waits),
        "machines": [{**item, "facts": _at(item["facts"])} for item in model["machines"]],
        "borrowed": [_loan(loan) for loan in model["borrowed"]],
        "failures": _at(model["failures"]),
        "checks": _at(model["checks"]),
        "accepted": _at(model["accepted"]),
        "events": _at(model["events"][-EVENTS:]),
        "events_left": len(model["events"]) - len(model["events"][-EVENTS:]),
    }


def _summary(model: Mapping[str, Any]) -> str:
    target = f" to {model['target']}" if model["target"] else ""
    verb = {
        "succeeded": f"succeeded after {clock_text(model['took'])}",
        "failed": f"failed after {clock_text(model['took'])}",
        "unfinished": f"has not ended: it is in {model['phase']}, {clock_text(model['took'])} after it began",
    }.get(model["result"], "has not started")
    would = {"succeeded": "would succeed", "failed": "would fail"}
    if model["source"] == "rehearsal" and model["result"] in would:
        verb = f"{would[model['result']]} after {clock_text(model['took'])}"
    return f"The upgrade{target} {verb}."


def _colours(nodes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """A colour for each step that some node has, in the order in which they come; colours repeat after the sixth."""
    steps = dict.fromkeys(step["step"] for node in nodes for step in node["steps"])
    return {step: number % _COLOURS for number, step in enumerate(steps)}


def _phase(phase: Mapping[str, Any], whole: int) -> Model:
    bar = [_bar(phase, whole, str(phase["state"]), phase["name"])] if phase["began"] is not None else []
    return {**phase, **_times(phase, whole), "took": _took(phase, whole), "bars": bar}


def _node(node: Mapping[str, Any], waits: Sequence[Mapping[str, Any]], whole: int, colours: Mapping[str, int]) -> Model:
    own = [wait for wait in waits if wait["node"] == node["name"]]
    bars = [_bar(wait, whole, "wait", f"waits: {wait['text']}") for wait in own]
    bars += [
        _bar(step, whole, "failed" if step["state"] == "Failed" else f"step{colours[step['step']]}", step["step"])
        for step in node["steps"]
    ]
    steps = [{**step, **_times(step, whole), "took": _took(step, whole)} for step in node["steps"]]
    return {**node, "bars": bars, "steps": steps}


def _bar(span: Mapping[str, Any], whole: int, look: str, name: str) -> Model:
    began = span["began"] * WIDTH / whole
    width = max(_NARROWEST, _length(span, whole) * WIDTH / whole)
    return {
        "x": round(min(began, WIDTH - _NARROWEST), 1),
        "width": round(min(width, WIDTH - min(began, WIDTH - _NARROWEST)), 1),
        "look": look.replace(" ", "-"),
        "title": f"{name}: from {clock_text(span['began'])}, {_took(span, whole)}",
    }


def _took(span: Mapping[str, Any], whole: int) -> str:
    if span["began"] is None:
        return ""
    text = clock_text(_length(span, whole))
    return text if span["ended"] is not None else f"{text} so far"


def _length(span: Mapping[str, Any], whole: int) -> int:
    ended = whole if span["ended"] is None else span["ended"]
    return max(0, int(ended - span["began"]))


def _times(span: Mapping[str, Any], whole: int) -> Model:
    return {
        "from": "" if span["began"] is None else clock_text(span["began"]),
        "to": "" if span["ended"] is None else clock_text(min(span["ended"], whole)),
    }


def _at(items: Iterable[Mapping[str, Any]]) -> list[Model]:
    return [{**item, "after": clock_text(item["at"])} for item in items]


def _loan(loan: Mapping[str, Any]) -> Model:
    return {
        **loan,
        "value": "absent" if loan["absent"] else value_text(loan["was"]),
        "from": clock_text(loan["taken"]),
        "to": "" if loan["returned"] is None else clock_text(loan["returned"]),
    }


_STEPS = (10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400)


def _ticks(whole: int) -> list[Model]:
    """At most six marks of time, at round numbers."""
    step = next((step for step in _STEPS if whole / step <= 6), whole)
    return [{"x": round(at * 100 / whole, 2), "text": clock_text(at)} for at in range(0, whole + 1, step)]
