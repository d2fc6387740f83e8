"""The manifests of a step as declared: the objects that it owns, and the fields that it borrows."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import Path


class Occasion(StrEnum):
    """The occasion on which a borrowed field is returned, or an owned object deleted."""

    COMPLETED = "completed"  # this step has ended
    SUCCESS = "success"
    ABORT = "abort"
    FAILURE = "failure"


class WhenAbsent(StrEnum):
    """The action if the object of a borrowed manifest does not exist."""

    SKIP = "skip"
    WAIT = "wait"


@frozen
class Expression:
    """A Jinja expression, and the reason that is recorded where it decides. `warning` is an event then."""

    expr: str
    reason: str
    warning: str = ""


@frozen
class Owned:
    """An object that the step creates and labels, and deletes on `cleanup`.

    `maintained`: drift is corrected until the plan ends. `set_on_take_over`: the fields that are set as rendered if the
    Harvester Upgrade Manager has created the object for this plan; its other fields are left alone.
    """

    file: str
    when: Expression | None = None
    maintained: bool = False
    cleanup: tuple[Occasion, ...] = (Occasion.SUCCESS, Occasion.ABORT)
    set_on_take_over: tuple[Path, ...] = ()


@frozen
class Union:
    """A list that entries are added to and removed from: `keys` identify an entry, and its texts at `values` are the
    set that is added to."""

    keys: tuple[str, ...]
    values: str


@frozen
class BorrowOption:
    """A way to write, hold and return the field at `path`, or (no path) every field of the manifest, other than
    plainly.

    `name` is its key in `phase.yaml` and its row in the tables of options.
    """

    name: str
    path: Path = ()
    argument: Any = None


@frozen
class OriginalOnTakeOver:
    """The value at `path` before the Harvester Upgrade Manager changed it, for a plan that is taken over from it.

    Counts only if the expression `when` is true. `value` is ABSENT if there was no such field.
    """

    path: Path
    value: Any
    when: str | None = None


@frozen
class OriginalInAnnotation:
    """The annotation of the plan that holds the original at `path` for another manager, as long as it is on loan."""

    path: Path
    annotation: str


@frozen
class Borrowed:
    """The fields that the step sets on somebody else's object.

    `returns` lists for each occasion which paths go back; `()` means all that were set. An original that holds one of
    the texts of `left_overs` does not go back: the field is removed instead.
    """

    file: str
    when: Expression | None = None
    returns: tuple[tuple[Occasion, tuple[Path, ...]], ...] = ()
    when_absent: WhenAbsent = WhenAbsent.WAIT
    options: tuple[BorrowOption, ...] = ()
    originals_on_take_over: tuple[OriginalOnTakeOver, ...] = ()
    originals_in_annotations: tuple[OriginalInAnnotation, ...] = ()
    left_overs: tuple[str, ...] = ()


ManifestSpec = Owned | Borrowed
