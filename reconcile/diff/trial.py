"""The result of trying one manifest: the input of a diff. Made by code with cluster access; only values here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from renderer.errors import Problem
from renderer.model.path import Path
from renderer.model.ref import Body
from renderer.model.rendered import Manifest


class Operation(StrEnum):
    """The effect of applying a manifest to its object, or why it would do nothing."""

    CREATE = "create"
    CHANGE = "change"
    ADOPT = "adopt"  # it is this plan's, but was not applied by us
    BORROW = "borrow"
    RETURN_LATER = "return-later"  # on loan already: nothing changes now
    UNCHANGED = "unchanged"
    SKIP = "skip"  # borrowed of an object that does not exist, and need not
    WAIT = "wait"  # the object must appear, or go, first
    PENDING = "pending"  # all that it sets is known at run time only
    CONFLICT = "conflict"  # another field manager holds fields that we set
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoesBack:
    """A borrowed field and what it goes back to (ABSENT: it is removed), on which occasions; on none it stays.

    `only_ours`: of a list that others add to as well, what we added is taken out again, and `value` does not matter.
    """

    path: Path
    value: Any
    occasions: tuple[str, ...]
    only_ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """`step` is the RenderedStep's id. `live` is the object before, `after` what the dry run answered; of a new object
    `after` is what is sent, since what a server fills in is nobody's wish. `because` explains in words."""

    step: str
    manifest: Manifest
    operation: Operation
    live: Body | None = None
    after: Body | None = None
    because: str = ""
    problem: Problem | None = None
    warnings: tuple[str, ...] = ()
    goes_back: tuple[GoesBack, ...] = ()
