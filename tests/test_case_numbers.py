"""Every case of the behaviour spec that the control plane answers is named by a test: its name, docstring, id or file.

Only the numbers stand here: AC is the control plane's section 8, FX its fixes, CASE the periphery's part (h) without
what admission and the helper programs answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
AC = """
    1 2 4 5 7 8 10 11 13 14 16 17 19 20 22 23 25 26 28 29 31 32 34 35 37 38 40 41 43 44 46 47 49 50 52 53 55 56 58 59 61
    62 64 65 67 68 70 71 73 74 76 77 79 80 82 83 85 86 88 89 91 92 94 95 97 98 100 101 103 104 106 107 109
"""
FX = "1 2 3 4 5 6 7 8 9 10"
CASE = "41 44 49 50 52 53 55 56 58 59 61 62 64 65 85 86 88 89 91 92"
NAMED = re.compile(r"(?<![a-z])(ac|fx|case)s?((?:(?:[-_ ]|, | and )\d+)+)", re.IGNORECASE)


def test_every_case_has_a_test_that_names_it() -> None:
    wanted = {(word, int(number)) for word, text in (("ac", AC), ("fx", FX), ("case", CASE)) for number in text.split()}
    assert sorted(wanted - set(named())) == []


def named() -> Iterator[tuple[str, int]]:
    """`test_ac_05_06_...`, `id="case-55"`, `Cases 49 and 50 of the periphery`."""
    cases = (file for folder in ("probes", "schemas") for file in (TESTS / folder).rglob("*.yaml"))
    for file in {*TESTS.rglob("*.py"), *cases} - {Path(__file__)}:
        for word, numbers in NAMED.findall(file.read_text(encoding="utf-8")):
            yield from ((word.lower(), int(number)) for number in re.findall(r"\d+", numbers))
