"""Markdown for pull requests: no longer than a comment may be, whatever the cluster, and what is quoted stands there as
text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from reconcile.report.preflight_report import preflight_blocks
from reconcile.simulator.rehearsal.report_blocks import report_blocks
from renderer.errors import Problem
from renderer.markdown.differences import difference_blocks
from renderer.markdown.limited_page import Block, Fold, Table, page
from renderer.markdown.problem_blocks import problem_blocks
from renderer.markdown.quoting import cell, cell_lines, code

MOST = 60_000
HOSTILE = "<script>alert(1)</script> | `x` [a](javascript:b) ![i](http://x) *b* @all \u202e \n# h"


def text_of(blocks: list[Block]) -> str:
    return "".join(f"{line}\n" for line in page(blocks))


def table(count: int, width: int = 10, noun: tuple[str, str] = ("machine", "machines")) -> Table:
    return Table(heading=("name",), rows=[(f"{number:0{width}}",) for number in range(count)], noun=noun)


def test_a_page_that_fits_has_everything() -> None:
    assert page(["### Title", table(2, 1)]) == ["### Title", "", "| name |", "| --- |", "| 0 |", "| 1 |"]


def test_what_does_not_fit_is_counted_and_small_tables_keep_all_their_rows() -> None:
    text = text_of(["### Title", table(3, noun=("node", "nodes")), table(20_000), table(30_000, 20)])
    assert len(text) < MOST
    assert len(text) > MOST * 0.9
    assert "0000000002" in text
    left = [int(count) for count in re.findall(r"_(\d+) more machines left out; `-o json` has all._", text)]
    assert len(left) == 2
    assert sum(left) == 50_000 - (len(re.findall(r"^\| \d+ \|$", text, re.MULTILINE)) - 3)
    assert "nodes left out" not in text


def test_lines_without_a_table_are_cut_as_well() -> None:
    text = text_of(["x" * 100] * 1_000)
    assert len(text) < MOST
    assert text.endswith("_The rest is left out; `-o json` has all._\n")


def test_a_diff_ends_its_block_itself() -> None:
    text = text_of([Fold(title="All", lines=["+ ````", "- <script>"])])
    assert text.count("`````") == 2
    assert text.splitlines()[-1] == "</details>"


BLOCKS = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.builds(
            Table,
            heading=st.just(("a", "b")),
            rows=st.lists(st.tuples(st.text(max_size=500).map(cell), st.lists(st.text()).map(cell_lines)), max_size=9),
        ),
        st.builds(Fold, title=st.just("f"), lines=st.lists(st.text(max_size=90), max_size=9)),
    ),
    max_size=9,
)


@settings(max_examples=examples(100))
@given(BLOCKS, st.integers(min_value=200, max_value=4_000))
def test_no_page_is_longer_than_it_may_be(blocks: list[Block], limit: int) -> None:
    lines = page(blocks, limit)
    assert sum(len(line) + 1 for line in lines) <= max(limit, 60)


def test_a_cell_is_cut_and_several_texts_are_counted() -> None:
    assert cell("x" * 500) == f"{'x' * 400}…"
    assert cell_lines(["y" * 300] * 50).endswith("<br>and 37 more")


def machine(number: int, name: str = "vm") -> dict[str, Any]:
    return {
        "namespace": "default",
        "name": f"{name}-{number}",
        "node": f"node-{number % 1000}",
        "outcome": "blocks" if number % 100 == 7 else "moves",
        "why": [HOSTILE] if number % 100 == 7 else [],
        "kubevirt": "",
        "later": [],
    }


def preflight(name: str, size: int) -> dict[str, Any]:
    """Of a cluster with `size` machines."""
    finding = {"text": HOSTILE, "remedy": HOSTILE}
    check = {"id": "c", "title": HOSTILE, "outcome": "blocked", "reason": "", "findings": [finding] * (size // 10)}
    rest: dict[str, Any] = {"readFailures": [], "accepted": None, "accept": HOSTILE, "notes": []}
    rows = [machine(number, name) for number in range(size)]
    counts = {"moves": size - size // 100, "blocks": size // 100}
    return {
        "plan": HOSTILE,
        "blocked": True,
        "counts": {"blocked": 80},
        "checks": [{**check, **rest, "id": f"check-{number}"} for number in range(80)],
        "machines": {"counts": counts, "rows": rows, "pausedNodes": [name] * (size // 10), "readFailures": []},
        "upgrade": {"from": HOSTILE, "to": "b", "components": [], "notes": []},
    }


def rehearsal(name: str, size: int) -> dict[str, Any]:
    facts = [{"what": "moved", "at": "1:00:00"}] * 12
    machines = [{"name": f"default/{name}-{number}", "facts": facts} for number in range(size)]
    loan = {"object": f"Setting {name}", "path": "value", "was": HOSTILE, "returned": True}
    return {
        "plan": HOSTILE,
        "from": HOSTILE,
        "to": "b",
        "ending": f"would fail: {HOSTILE * 1_000}",
        "took": "1:00:00",
        "phases": [{"phase": "Initializing", "at": "0:00:00"}] * 20,
        "machines": machines,
        "nodes": [{"name": f"node-{number}", "facts": facts} for number in range(size // 10)],
        "addons": [],
        "borrowed": [loan] * (size // 10),
        "waits": [{"step": "A/b", "node": "", "text": HOSTILE, "summary": ""}] * (size // 10),
        "storms": [HOSTILE] * (size // 100),
        "notChecked": [],
    }


def differences(name: str, size: int) -> list[dict[str, Any]]:
    item = {"operation": "changed", "subject": "manifest", "phase": "P", "fields": (HOSTILE,) * 9}
    return [{**item, "name": f"{name} {number}", "diff": f"--- a\n+++ b\n+{HOSTILE}\n" * 3} for number in range(size)]


PAGES: dict[str, Any] = {
    "preflight": lambda name, size: [*preflight_blocks(preflight(name, size))],
    "rehearse": lambda name, size: [*report_blocks(rehearsal(name, size))],
    "differences": lambda name, size: [*difference_blocks(differences(name, size), {"added": [name], "removed": []})],
    "problems": lambda name, size: [*problem_blocks([Problem(reason="A", message=HOSTILE, file=name)] * size)],
}
LARGE, SMALL = 10_000, 108
"""Enough machines for each form of a row; what is too much for a page is another question."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAGES)
def test_a_thousand_nodes_and_ten_thousand_machines_fit(kind: str) -> None:
    text = text_of(PAGES[kind]("vm", LARGE))
    assert MOST / 2 < len(text) < MOST
    assert re.search(r"_\d+ more [a-z -]+ left out; `-o json` has all._", text)


@pytest.mark.parametrize("name", ["<script>", "|", "a`b", "@all", "*", "\n\n# x"])
@pytest.mark.parametrize("kind", PAGES)
def test_names_are_text(kind: str, name: str) -> None:
    blocks = PAGES[kind](name, SMALL)
    rows = [row for block in blocks if isinstance(block, Table) for row in block.rows]
    lines = [item for item in blocks if isinstance(item, str)]
    for item in (*lines, *(part for row in rows for part in row)):
        bare = re.sub(r"</?code>|<br>|`check-\d+`|`-o json`", "", item)
        assert not re.search(r"[<>`\n]|(?<!\\)\||@(?!\u200b)", bare), item


def test_every_row_has_as_many_cells_as_the_heading() -> None:
    for make in PAGES.values():
        for block in make("a|b", SMALL):
            if isinstance(block, Table):
                assert {len(row) for row in block.rows} <= {len(block.heading)}


def test_code_is_html_and_empty_code_is_nothing() -> None:
    assert (code("a`b"), code(" ")) == ("<code>a&#96;b</code>", "")
