"""Times as people read them: ages as kubectl prints them, limits as a phase declares them."""

from __future__ import annotations

import pytest

from reconcile.report.progress import age_of, borrowed_line
from reconcile.status.times import age_text, span_text

AGES = (
    "0=0s 1=1s 119=119s 120=2m 125=2m5s 599=9m59s 600=10m 660=11m 10799=179m 10800=3h 10860=3h1m 28799=7h59m 28800=8h"
)
MORE = "172799=47h 172800=2d 176400=2d1h 691199=7d23h 691200=8d 8640000=100d -5=0s"


@pytest.mark.parametrize("pair", [*AGES.split(), *MORE.split()])
def test_an_age_is_written_as_kubectl_writes_it(pair: str) -> None:
    seconds, text = pair.split("=")
    assert age_text(float(seconds)) == text


@pytest.mark.parametrize("pair", ["0=0s", "90=1m30s", "3600=1h", "5430=1h30m30s"])
def test_a_limit_is_written_as_a_phase_declares_it(pair: str) -> None:
    seconds, text = pair.split("=")
    assert span_text(int(seconds)) == text


@pytest.mark.parametrize(
    ("since", "text"),
    [("2026-01-01T00:00:00Z", " (for 12m)"), ("", ""), ("long ago", " (since long ago)")],
)
def test_a_wait_says_how_long_it_has_lasted(since: str, text: str) -> None:
    assert age_of(since, "2026-01-01T00:12:00Z") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("absent", "will be removed again"),
        ("600", 'will be set back to "600"'),
        (600, "will be set back to 600"),
        (True, "will be set back to true"),
        (None, "will be set back to null"),
        (["LiveMigrate"], 'will be set back to ["LiveMigrate"]'),
        ([{"name": "a long entry of a list"}] * 4, "will be set back to the former value with 4 items"),
    ],
)
def test_what_goes_back_is_shown_as_yaml_on_one_line(value: object, text: str) -> None:
    loan = {"object": "Setting a/b", "path": "/metadata/annotations/x~1y", "goesBackTo": value}
    assert borrowed_line(loan) == f'Setting a/b metadata.annotations["x/y"] ({text})'
