"""A known cause as declared: the pattern, the chain of objects, and the texts for a match.

The document is `kind: Causes` in `diagnosis/` of the template tree. `reconcile.diagnosis` looks for them; nothing here
looks at an object.
"""

from __future__ import annotations

from enum import StrEnum

from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.model.probe import EveryTarget, ObjectTarget, Predicate


class Take(StrEnum):
    """The objects of a link that are taken. Values are the words of a Causes document."""

    EACH = "each"
    FIRST = "first"
    NEWEST = "newest"
    LIST = "list"
    NONE = "none"


class Join(StrEnum):
    """The way from an object to others."""

    OWNER = "owner"
    OWNED = "owned"
    SELECTOR = "selector"
    SELECTED = "selected"
    FIELDS = "fields"
    ANY = "any"


class Restart(StrEnum):
    """The answer to whether the upgrade may be started again because of a cause; by phase: as its phase allows it."""

    BY_PHASE = "byPhase"
    NOT_NEEDED = "notNeeded"
    ALLOWED = "allowed"
    NOT_ALLOWED = "notAllowed"


class CauseMoment(StrEnum):
    """The state of a plan in which a cause is looked for."""

    WAITING = "waiting"
    DELETING = "deleting"


@frozen
class Pattern:
    """The objects with which a match begins."""

    target: EveryTarget | ObjectTarget
    all: tuple[Predicate, ...] = ()


@frozen
class Link:
    """A step of the chain, from the object called `start` to one that is called `name`. `fields` are pairs of paths,
    theirs and ours, whose values are equal."""

    name: str
    start: str
    target: EveryTarget
    join: Join
    fields: tuple[tuple[Path, Path], ...] = ()
    all: tuple[Predicate, ...] = ()
    take: Take = Take.EACH


@frozen
class LogLink:
    """A line of a container's log of the pod called `start`, the last one that matches. Its named groups are known as
    fields of `name`, the line itself as `text`, and with the two before it as `lines`."""

    name: str
    start: str
    matches: str


@frozen
class Search:
    """A search of the program, for what needs arithmetic or the plan's own record. `says` is a regular expression: of
    what is found, only that whose words match, and its named groups are fields of `found`."""

    name: str
    says: str | None = None


@frozen
class FoundByCheck:
    """The findings of the pre-flight check of this id."""

    check: str


@frozen
class Answered:
    """The API server's answer to the last writes, where it matches."""

    matches: str


Sign = Pattern | Search | FoundByCheck | Answered


@frozen
class KnownCause:
    """`sign` is what a match begins with; `chain` goes on from its object, and `condition` is an expression that must
    hold in the end. `object_of` is the name of the object that is to blame.

    `what`, `remedy`, `offender`, `node` and `since` are Jinja text; None where the search or the check says it.
    `patience` is an expression: where it holds the cause resolves itself, and `wait` replaces the remedy.
    `unless` are ids: what one of these has named, this one does not name again. `off` says why an overlay has switched
    it off.
    """

    id: str
    title: str
    sign: Sign
    phases: tuple[str, ...] = ()
    moments: tuple[CauseMoment, ...] = (CauseMoment.WAITING,)
    chain: tuple[Link | LogLink, ...] = ()
    condition: str | None = None
    object_of: str = "object"
    offender: str | None = None
    node: str | None = None
    what: str | None = None
    since: str | None = None
    remedy: str | None = None
    patience: str | None = None
    wait: str | None = None
    unless: tuple[str, ...] = ()
    docs: str = ""
    restart: Restart = Restart.BY_PHASE
    source: str = ""
    off: str | None = None
