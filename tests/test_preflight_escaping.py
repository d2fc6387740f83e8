"""What a finding quotes from a cluster stands in JUnit XML and in Markdown as text, whatever it is."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from renderer.cli.program import run
from renderer.markdown.quoting import cell

HOSTILE = '<b> & ]]> `x` [a](javascript:b) "q" | end'
NODE = """
apiVersion: v1
kind: Node
metadata:
  name: a
  annotations:
    harvesterhci.io/maintain-status: "{value}"
"""


def asked(value: str, form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\a", "\\a")
    file = folder / "node.yaml"
    file.write_text(NODE.format(value=quoted), encoding="utf-8")
    assert run(["upgradeplan", "preflight", str(file), "--check", "node-maintenance", "-o", form]) == 1
    return capsys.readouterr().out


def test_junit_has_it_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = ElementTree.fromstring(asked(f"{HOSTILE}\n\a", "junit", tmp_path, capsys))[0]
    (failure,) = case
    assert HOSTILE in str(failure.text)
    assert HOSTILE in failure.attrib["message"]


def test_markdown_has_it_in_one_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = asked(f"{HOSTILE}\n\a", "markdown", tmp_path, capsys)
    (row,) = [line for line in text.splitlines() if line.startswith("| blocked")]
    assert len(re.split(r"(?<!\\)\|", row)) == 5
    finding = row.partition("<br>")[0]
    assert not set("`[<") & set(finding.split("|", 3)[-1])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("*a* _b_ ~~c~~", "&#42;a&#42; &#95;b&#95; &#126;&#126;c&#126;&#126;"),
        ("@everyone", "@\u200beveryone"),
        ("a|b", "a\\|b"),
        ("a\\|b", "a&#92;\\|b"),
        ("a\r\nb\tc", "a b c"),
        ("<script>", "&lt;script&gt;"),
        ("`a`", "&#96;a&#96;"),
        ("![x](y)", "!&#91;x](y)"),
        ("a\u202eb", "a\ufffdb"),
    ],
)
def test_a_cell(text: str, shown: str) -> None:
    assert cell(text) == shown
