"""The page of pre-flight checks: each with when it runs, what accepts its risk, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.preflight.accepting import how_to_accept
from renderer.catalog.checks import DeclaredCheck
from support.preflight_cases import checks
from support.reference.markdown import code, codes, page, section, table
from support.reference.schema_tables import sections
from support.reference.sources import schema

_HEADING = ("Check", "What holds", "Severity", "When", "Accepted by", "Remedy", "Source")


def check_table() -> str:
    return page(
        "Pre-flight checks",
        "`upgradeplan preflight` carries them out on files or on a cluster; [pre-flight](../preflight.md) says how"
        " to read the answer. A check is data: a file of `preflight/` in an overlay adds checks, replaces those of the"
        " same id, or switches them off.",
        *(section(subject.capitalize(), table(_HEADING, _rows(subject))) for subject in _subjects()),
        sections(schema("checks")),
    )


def _subjects() -> list[str]:
    """The names of the files, without their ending."""
    return list(dict.fromkeys(_subject(item) for item in checks().values()))


def _subject(item: DeclaredCheck) -> str:
    return item.document.file.rpartition("/")[2].removesuffix(".yaml").replace("-", " ")


def _rows(subject: str) -> Iterator[tuple[str, ...]]:
    for item in checks().values():
        if _subject(item) == subject:
            check = item.check
            accepted = how_to_accept(check)
            yield (
                code(check.id),
                check.title,
                check.severity.value,
                codes([time.value for time in check.when]),
                code(accepted) if check.override else "its id" if accepted else "nothing",
                code(" ".join(check.remedy.split())),
                check.source,
            )
