"""The report of a run as Markdown, for an issue or a chat. Text of users stays text: it makes no link and no markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconcile.report_page.page import Model, page_view
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell, legible

_LONGEST = 2_000


def run_blocks(model: Mapping[str, Any]) -> Iterator[Block]:
    """The same parts as the page, in the same order."""
    view = page_view(model)
    yield f"# {cell(model['plan'])}: {model['result']}"
    yield ""
    yield cell(" ".join(filter(None, [view["summary"], model["message"]])), _LONGEST)
    yield from _failures(view["failures"])
    yield from _list(
        "What it waits for now", (f"{c['object']} {c['what']}. Remedy: {c['remedy']}" for c in model["causes"])
    )
    yield from _table(
        "Phases",
        ("Phase", "State", "From", "Took"),
        [(p["name"], p["skipped"] or p["state"], p["from"], p["took"]) for p in view["phases"]],
    )
    yield from _table(
        "Nodes",
        ("Node", "State", "Step", "From", "Took"),
        [(n["name"], n["state"], s["step"], s["from"], s["took"]) for n in view["nodes"] for s in n["steps"]],
    )
    yield from _table(
        "Waits",
        ("From", "For", "Step", "Cause"),
        [(wait["from"], wait["took"], wait["step"], wait["text"]) for wait in view["waits"]],
    )
    yield from _list("Virtual machines", map(_machine, view["machines"]))
    yield from _table(
        "Borrowed fields",
        ("Object", "Field", "Original value", "Borrowed", "Returned"),
        [(o["object"], o["path"], o["value"], o["from"], o["to"] or "not returned") for o in view["borrowed"]],
    )
    yield from _list("Checks that held the upgrade", map(_check, view["checks"]))
    yield from _list(
        "Accepted risks", (f"{r['check']} at {r['after']}, by {r['by']}: {r['value']}" for r in view["accepted"])
    )
    yield from _table(
        "After the upgrade",
        ("Check", "Outcome", "Found", "Remedy"),
        [(f["check"], f["outcome"], f["message"], f["remedy"]) for f in model["verification"]],
    )
    yield from _table(
        "Versions",
        ("Of", "Before", "After"),
        [(row["what"], row["before"] or "not known", row["after"] or "not known") for row in model["versions"]],
    )
    yield from _table(
        "Events", ("At", "Reason", "Message"), [(e["after"], e["reason"], e["message"]) for e in view["events"]]
    )
    yield from _list("Not read", model["unread"])


def _failures(failures: Iterable[Model]) -> Iterator[Block]:
    for failure in failures:
        yield f"## {cell(failure['step'])} failed at {failure['after']}"
        yield from ("", cell(failure["message"] or "No reason is recorded.", _LONGEST))
        for log in failure["logs"]:
            yield from ("", f"Last lines of container {cell(log['container'])} of {cell(log['object'])}:", "")
            yield from (f"    {legible(line)}" for line in log["lines"])


def _machine(item: Model) -> str:
    return f"{item['name']}: " + ", ".join(f"{fact['what']} at {fact['after']}" for fact in item["facts"])


def _check(check: Model) -> str:
    node = f" of {check['node']}" if check["node"] else ""
    return f"{check['check']}{node} at {check['after']}: {'; '.join([check['title'], *check['found']])}"


def _list(heading: str, items: Iterable[str]) -> Iterator[Block]:
    texts = list(items)
    if texts:
        yield from (f"## {heading}", "")
        yield from (f"- {cell(text)}" for text in texts)


def _table(heading: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[Block]:
    shown = [tuple(map(cell, row)) for row in rows]
    if shown:
        yield f"## {heading}"
        yield Table(heading=head, rows=shown)
