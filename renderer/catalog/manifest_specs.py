"""Reads what a step of a `phase.yaml` makes and borrows into the model."""

from __future__ import annotations

from renderer.catalog.borrow_options import borrow_options_from
from renderer.catalog.probes import Raw
from renderer.model.manifest_spec import (
    Borrowed,
    Expression,
    ManifestSpec,
    Occasion,
    OriginalInAnnotation,
    OriginalOnTakeOver,
    Owned,
    WhenAbsent,
)
from renderer.model.path import ABSENT, parse_path

_RETURNS: dict[str, Raw] = {"always": {"success": "all", "abort": "all", "failure": "all"}, "never": {}}


def manifests_from(raw: Raw) -> tuple[ManifestSpec, ...]:
    """The manifests of a step, those that it owns first. Raises `ValueError` for a path that cannot be read."""
    owned = [_owned({"file": item} if isinstance(item, str) else item) for item in raw.get("owned", ())]
    return (*owned, *(_borrowed(item) for item in raw.get("borrowed", ())))


def _owned(raw: Raw) -> Owned:
    cleanup = raw.get("cleanup", (Occasion.SUCCESS, Occasion.ABORT))
    return Owned(
        file=raw["file"],
        when=expression_from(raw["when"]) if "when" in raw else None,
        maintained=raw.get("maintained", False),
        cleanup=tuple(Occasion(item) for item in cleanup),
        set_on_take_over=tuple(parse_path(path) for path in raw.get("setOnTakeOver", ())),
    )


def _borrowed(raw: Raw) -> Borrowed:
    returns = raw["return"]
    declared = _RETURNS[returns] if isinstance(returns, str) else returns
    return Borrowed(
        file=raw["file"],
        when=expression_from(raw["when"]) if "when" in raw else None,
        returns=tuple(
            (Occasion(occasion), () if paths == "all" else tuple(parse_path(path) for path in paths))
            for occasion, paths in declared.items()
            if paths != "none"
        ),
        when_absent=WhenAbsent(raw.get("whenAbsent", WhenAbsent.WAIT)),
        options=borrow_options_from(raw),
        originals_on_take_over=tuple(_original_on_take_over(item) for item in raw.get("originalsOnTakeOver", ())),
        originals_in_annotations=tuple(
            OriginalInAnnotation(path=parse_path(item["path"]), annotation=item["annotation"])
            for item in raw.get("originalsInAnnotations", ())
        ),
        left_overs=tuple(raw.get("leftOvers", ())),
    )


def _original_on_take_over(raw: Raw) -> OriginalOnTakeOver:
    return OriginalOnTakeOver(path=parse_path(raw["path"]), value=raw.get("value", ABSENT), when=raw.get("when"))


def expression_from(raw: Raw) -> Expression:
    return Expression(expr=raw["expr"], reason=raw["reason"], warning=raw.get("warning", ""))
