"""Chooses which of several UpgradePlans is meant: a cluster keeps those that have ended, and only one runs at a time.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.path import look_up
from renderer.model.ref import Body
from renderer.source_document import SourceDocument

_ENDED = ("Succeeded", "Failed")


@frozen
class PlanChoice:
    """The plan that is meant, what is wrong, and a warning for each plan that is left out."""

    plan: SourceDocument | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def choose(sources: Sequence[SourceDocument], name: str | None) -> PlanChoice:
    """The plan of that name; without a name the one that has not ended, or the only one."""
    if not sources:
        return PlanChoice()
    left = _meant(sources, name)
    if not left:
        return PlanChoice(problems=(_nobody(sources, name),))
    rivals = [source for source in left[1:] if source.body != left[0].body]
    return PlanChoice(
        plan=left[0],
        problems=tuple(_rival(left[0], source) for source in rivals),
        warnings=tuple(_left_out(source) for source in sources if source not in left),
    )


def _meant(sources: Sequence[SourceDocument], name: str | None) -> Sequence[SourceDocument]:
    if name is not None:
        return [source for source in sources if _name_of(source.body) == name]
    return [source for source in sources if not _end_of(source.body)] or sources


def _nobody(sources: Sequence[SourceDocument], name: str | None) -> Problem:
    known = ", ".join(_name_of(source.body) for source in sources)
    message = f"no UpgradePlan {name} among the inputs; found: {known}"
    return sources[0].problem("NoSuchPlan", message, remedy="name one of them with --plan")


def _rival(first: SourceDocument, extra: SourceDocument) -> Problem:
    one, other = _name_of(first.body), _name_of(extra.body)
    both = f"UpgradePlan {one} ({first.place}) and {other}"
    what = f"{both} have ended" if _end_of(extra.body) else f"of {both} none has ended"
    remedy = "keep one of them" if one == other else f"name one: --plan {one} or --plan {other}"
    return extra.problem("TwoPlans", f"{what}, so it is not clear which one is meant", remedy=remedy)


def _left_out(source: SourceDocument) -> Problem:
    end = _end_of(source.body)
    why = f"has ended ({end})" if end else "is not the one that was named"
    return source.problem("OtherPlan", f"UpgradePlan {_name_of(source.body)} {why}, and is left out")


def _end_of(plan: Body) -> str:
    """The phase that it has ended in; empty if it has not."""
    phase = look_up(plan, ("status", "currentPhase"))
    return phase if phase in _ENDED else ""


def _name_of(plan: Body) -> str:
    metadata = plan.get("metadata")
    found = (metadata.get("name") or metadata.get("generateName") or "") if isinstance(metadata, Mapping) else ""
    return str(found)
