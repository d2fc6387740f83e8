"""The input of a decision: everything that was read in this round, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconcile.borrow.loan import Loan
from reconcile.preflight.running_plan import LivePreflight
from reconcile.probes.look import Look
from reconcile.schemas import Schemas
from renderer.catalog.kinds import Kinds
from renderer.catalog.template_digests import TemplateDigests
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPlan
from renderer.redaction import Redactor, packaged_redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchFailure:
    """The reason why a document could not be read. `absent`: the repository does not have it (HTTP 404)."""

    why: str
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BorrowedElsewhere:
    """A loan of another plan; `active`: that plan has not ended."""

    plan: str
    active: bool
    loan: Loan


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherUpgrades:
    """The other upgrades of the cluster: `blocker` goes before this plan, `beside` is a built-in Upgrade that was
    started while this plan runs, `lookup_error` is why they could not be listed. `lent` is what other plans have
    borrowed. `rival` says which of them keeps a plan that has ended from being retried.
    """

    blocker: str | None = None
    beside: str | None = None
    lookup_error: str | None = None
    rival: str | None = None
    lent: tuple[BorrowedElsewhere, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """`plan` is the UpgradePlan as it was read, `others` what is known about other upgrades.

    `rendered` was made from this plan and what was captured so far. `fetched` names the documents that were read,
    `fetch_failures` has those of steps under way that could not be; `errors` what the last round's writes met.
    `attended(since)` is how many seconds since then count: not those in which the API server was away. `passes` is how
    often in a row each gate had passed before, by step id and place. `approved` has the digests that were approved, by
    phase, and `sealed` those that a reviewer would see now; `unapproved` names what differs where the two do.
    `templates` are the manager's, None where they are not compared; `approved_templates` the digest of those that were
    approved. `preflight` has the checks; None where they are not carried out. `causes` are why the plan waited too long
    when somebody last looked for that. `redactor` hides what is secret in a text
    that is written down.
    """

    plan: Body
    rendered: RenderedPlan
    kinds: Kinds
    schemas: Schemas
    look: Look
    now: datetime
    attended: Callable[[datetime], float]
    others: OtherUpgrades = OtherUpgrades()
    fetched: frozenset[str] = frozenset()
    fetch_failures: Mapping[str, FetchFailure] = field(default_factory=dict)
    passes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    approved: Mapping[str, str] = field(default_factory=dict)
    sealed: Mapping[str, str] = field(default_factory=dict)
    unapproved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    templates: TemplateDigests | None = None
    approved_templates: str | None = None
    errors: tuple[str, ...] = ()
    preflight: Callable[[], LivePreflight] | None = None
    causes: tuple[str, ...] = ()
    redactor: Redactor = field(default_factory=packaged_redactor, compare=False, repr=False)
