"""The page of a report in Chromium, which reads it as people's browsers do: rendered, without an error, alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from support.html_page import read_page
from support.rehearsals import template_set
from test_report import hostile_page_text, recorded

from reconcile.cli.report import report_text

pytestmark = [
    pytest.mark.full("starts Chromium; test_report.py reads the page's elements and colours"),
    pytest.mark.browser,
]

OWN = "http://report.test/"


@contextmanager
def browsing(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Options of a browser that gets the page from us and everything else through us, and the addresses that it asks
    for."""
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path == OWN else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode() if self.path == OWN else b"")

        def do_CONNECT(self) -> None:
            asked.append(self.path)
            self.send_error(502)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield [f"--proxy-server=http://127.0.0.1:{server.server_port}"], asked
    finally:
        server.shutdown()
        server.server_close()


def browse(tmp_path: Path, *options: str) -> tuple[str, list[str]]:
    """The document as the browser has it, and what its console says."""
    words = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
    more = ("--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path}", "--enable-logging=stderr")
    done = subprocess.run(
        ["chromium", *words, *more, *options, "--dump-dom", OWN],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def of_tests(asked: list[str]) -> list[str]:
    """What the page asked for: the browser's own addresses are no page's."""
    return [address for address in asked if ".test" in address]


@pytest.mark.parametrize("which", ["rehearsal", "hostile"])
def test_the_page_is_rendered_and_asks_for_nothing(which: str, tmp_path: Path) -> None:
    text = report_text(recorded(), "html", template_set()) if which == "rehearsal" else hostile_page_text()
    with browsing(text) as (options, asked):
        document, console = browse(tmp_path, *options)
    assert console == []
    assert of_tests(asked) == [OWN]
    ours, theirs = read_page(text), read_page(document)
    structure = ("h1", "h2", "h3", "section", "svg", "rect", "table", "tr", "td", "li", "script")
    assert [e.tag for e in theirs.every(*structure)] == [e.tag for e in ours.every(*structure)]
    assert [e.text.split() for e in theirs.every("h1", "h2", "h3", "td")] == [
        e.text.split() for e in ours.every("h1", "h2", "h3", "td")
    ]


def test_what_a_page_asks_for_and_says_would_be_seen(tmp_path: Path) -> None:
    with browsing('<img src="http://elsewhere.test/a.png"><script>console.error("!")</script>') as (options, asked):
        _, console = browse(tmp_path, *options)
    assert "http://elsewhere.test/a.png" in asked
    assert console
