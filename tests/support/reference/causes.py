"""The page of known causes: each with where it is looked for, what to do, and where it is known from."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.diagnosis.diagnosing import known_causes
from renderer.catalog.causes import DeclaredCause
from renderer.catalog.searches import SEARCHES
from renderer.model.known_cause import Answered, FoundByCheck, Search
from support.preflight_cases import template_set
from support.reference.markdown import code, codes, page, section, table

_HEADING = ("Cause", "Problem", "Phases", "Looked for by", "Remedy", "Restart", "Page", "Source")


def cause_table() -> str:
    return page(
        "Known causes",
        "`upgradeplan explain` looks for them around a plan that waits. A cause is data: a file of `diagnosis/` in an"
        " overlay adds causes, replaces those of the same id, or switches them off;"
        " [documents](documents.md#causes) has the keys. A remedy that stands with the search or the check is not"
        " repeated here.",
        *(section(subject.capitalize(), table(_HEADING, _rows(subject))) for subject in _subjects()),
        section("Searches", table(("Search", "Finds"), ((code(name), spec.words) for name, spec in SEARCHES.items()))),
    )


def _subjects() -> list[str]:
    return list(dict.fromkeys(_subject(item) for item in known_causes(template_set().catalog)))


def _subject(item: DeclaredCause) -> str:
    return item.document.file.rpartition("/")[2].removesuffix(".yaml").partition("-")[2].replace("-", " ")


def _rows(subject: str) -> Iterator[tuple[str, ...]]:
    for item in known_causes(template_set().catalog):
        if _subject(item) == subject:
            cause = item.cause
            yield (
                code(cause.id),
                cause.title,
                codes(list(cause.phases)) if cause.phases else "all",
                _sign(item),
                code(" ".join(cause.remedy.split())) if cause.remedy else "",
                cause.restart.value,
                code(cause.docs) if cause.docs else "",
                cause.source,
            )


def _sign(item: DeclaredCause) -> str:
    match item.cause.sign:
        case Search(name=name, says=says):
            return f"search {code(name)}" + (f" that says {code(says)}" if says else "")
        case FoundByCheck(check=check):
            return f"check {code(check)}"
        case Answered(matches=text):
            return f"the API server's answer {code(text)}"
        case _:
            return "its pattern"
